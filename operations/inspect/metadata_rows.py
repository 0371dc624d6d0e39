"""The metadata table of a table: how large its partitions are, and what their records say."""

from __future__ import annotations

import pyarrow as pa

from ...errors import InvalidOptionError
from ...storage.base import Storage
from ...table.metadata.metadata_table import MetadataPartition, MetadataTable
from ...table.metadata.releases import joined
from ...table.table import open_table
from .described_columns import COUNT, TEXT, DescribedColumn, DescribedRows

METADATA = DescribedRows(
    "metadata",
    "A row for each partition of the metadata table of Apache Hudi, in order of its name.",
    (
        DescribedColumn("partition", TEXT, "Name of the partition, such as files or column_stats.", False),
        DescribedColumn("file_groups", COUNT, "File groups among which the hash of a key chooses.", False),
        DescribedColumn("files", COUNT, "Base files and log files of the newest file slices.", False),
        DescribedColumn("log_files", COUNT, "Log files among them.", False),
        DescribedColumn("bytes", COUNT, "Size of the files.", False),
        DescribedColumn(
            "lacks", COUNT, "Completed writes of the table that the metadata table lacks; 0 if sound.", False
        ),
    ),
)


def metadata_rows(storage: Storage, partition: str | None = None, limit: int | None = None) -> pa.Table:
    """Return one row for each partition of the metadata table, with columns as in `METADATA`.

    With the name of a partition its records, at most ``limit``, as Apache Hudi's ``HoodieMetadataRecord`` has them.
    """
    table = open_table(storage)
    metadata = MetadataTable.of(table, table.timeline())
    if limit is not None and limit < 0:
        raise InvalidOptionError(f"The limit {limit} is below zero.", "Give a positive number, or none for all.")
    names = () if metadata is None else metadata.names
    if partition is None:
        lacks = 0 if metadata is None else len(metadata.lacks())
        rows = [] if metadata is None else [_row(metadata.partition(name), lacks) for name in sorted(names)]
        return METADATA.table(rows[:limit])
    if metadata is None or partition not in names:
        raise InvalidOptionError(
            f"The table {storage.path} has no metadata table with a partition {partition!r}.",
            f"It has {', '.join(sorted(names))}."
            if names
            else "Apache Hudi makes one where hoodie.metadata.enable is true.",
        )
    return _records(metadata.partition(partition), limit)


def _records(partition: MetadataPartition, limit: int | None) -> pa.Table:
    parts, count = [], 0
    for part in partition.records():
        parts.append(part if limit is None else part.slice(0, limit - count))
        count += len(parts[-1])
        if limit is not None and count >= limit:
            break
    if not parts:
        return pa.table({"key": pa.array([], pa.string()), "type": pa.array([], pa.int32())})
    rows = pa.Table.from_batches([pa.RecordBatch.from_struct_array(joined(parts))])
    return rows.select([name for name in ("key", "type", *partition.kind.columns) if name in rows.column_names])


def _row(partition: MetadataPartition, lacks: int) -> tuple[object, ...]:
    slices = list(partition.slices.values())
    logs = [log for file_slice in slices for log in file_slice.logs]
    files = [file for file_slice in slices for file in file_slice.data_files]
    return partition.name, len(slices), len(files), len(logs), sum(file.size for file in files), lacks
