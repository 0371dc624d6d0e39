"""How many buckets each partition of a table has, how large they are, and how many buckets would suit its size."""

from __future__ import annotations

import pyarrow as pa

from ...errors import UnsupportedTableError
from ...index.registry import has_buckets
from ...index.sizing import suggest_buckets
from ...storage.base import Storage
from ...table.buckets.numbers import bucket_numbers
from ...table.config import check_supported
from ...table.files.read_written import read_written
from ...table.files.view import FileView
from ...table.table import open_table

BUCKET_SIZES_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("buckets", pa.int32()),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("suggested", pa.int32(), nullable=False),
    ]
)


def bucket_sizes(storage: Storage, growth: float = 1.0) -> pa.Table:
    """Return one row for each partition, in order, with columns as in `BUCKET_SIZES_SCHEMA`; no file is opened.

    Files and bytes are those of the newest slices, log files included. ``growth`` is how many times its bytes the table
    will have one day, for the suggested number. Raises `UnsupportedTableError` for a table without a bucket index, and
    `InvalidOptionError` for a growth that is not positive.
    """
    table = open_table(storage)
    check_supported(table.config, storage.path, writing=False)
    if not has_buckets(table.config):
        raise UnsupportedTableError(
            f"The properties of the table {storage.path} note no bucket index, so its partitions have no number of "
            "buckets.",
            "Query the sizes of file groups with detail().",
        )
    timeline = table.timeline()
    numbers, view = bucket_numbers(table, timeline), FileView(timeline, read_written(timeline))
    rows = []
    slices_by_partition = {path: tuple(view.slices(path).values()) for path in view.partitions()}
    for path, slices in sorted(slices_by_partition.items()):
        size = sum(file_slice.size for file_slice in slices)
        rows.append(
            {
                "partition": path,
                "buckets": numbers.of(path),
                "files": sum(len(file_slice.files) for file_slice in slices),
                "bytes": size,
                # Suggest as if all partitions were as large: the table's number of file groups counts, too.
                "suggested": suggest_buckets(
                    size * len(slices_by_partition),
                    partitions=len(slices_by_partition),
                    growth=growth,
                    table_type=table.config.table_type,
                ),
            }
        )
    return pa.Table.from_pylist(rows, BUCKET_SIZES_SCHEMA)
