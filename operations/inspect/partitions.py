"""The partitions of a table: how many file groups, files, bytes and rows each has, and when it last changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ...storage.base import Storage
from ...table.files.file_group import FileSlice
from .described_columns import COUNT, TEXT, DescribedColumn, DescribedRows
from .files import stated_rows
from .walked_table import WalkedTable

PARTITIONS = DescribedRows(
    "partitions",
    "A row for each partition, in order of its path. Files and bytes are those of the newest file slices.",
    (
        DescribedColumn("partition", TEXT, "Path of the partition below the table's path; empty without.", False),
        DescribedColumn("buckets", pa.int32(), "Its number of buckets; null if unknown, or without a bucket index."),
        DescribedColumn("file_groups", COUNT, "File groups with rows.", False),
        DescribedColumn("files", COUNT, "Base files and log files.", False),
        DescribedColumn("log_files", COUNT, "Log files among them.", False),
        DescribedColumn("bytes", COUNT, "Size of the files.", False),
        DescribedColumn(
            "rows",
            COUNT,
            "Rows, as commits state; null if there are log files, or a commit that made a base file is archived.",
        ),
        DescribedColumn("newest_instant", TEXT, "Requested time of the newest write to a file; null without files."),
    ),
)


def partitions(storage: Storage) -> pa.Table:
    """Return one row for each partition, with columns as in `PARTITIONS`; no data file is opened."""
    walked = WalkedTable.now(storage)
    rows = stated_rows(walked.timeline, walked.slices)
    numbers = walked.numbers
    return PARTITIONS.table(
        _row(walked, path, None if numbers is None else numbers.of(path), tuple(slices.values()), rows)
        for path, slices in walked.slices_by_partition.items()
    )


def _row(
    walked: WalkedTable, path: str, buckets: int | None, slices: Sequence[FileSlice], rows: Mapping[str, int]
) -> tuple[object, ...]:
    """Return the values of a partition in the order of `PARTITIONS`.

    ``rows`` has the number of rows of each file by its name. The count of rows is null unless every slice is a base
    file whose number is known.
    """
    files = [file for file_slice in slices for file in file_slice.data_files]
    stated = [
        None if file_slice.logs or file_slice.base is None else rows.get(file_slice.base.name) for file_slice in slices
    ]
    row_counts = [count for count in stated if count is not None]
    return (
        path,
        buckets,
        len(slices),
        len(files),
        sum(len(file_slice.logs) for file_slice in slices),
        sum(file_slice.size for file_slice in slices),
        sum(row_counts) if len(row_counts) == len(stated) else None,
        max(walked.table.format.makers(files, walked.timeline), default=None),
    )
