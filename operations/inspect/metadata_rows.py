"""The metadata table of a table: how large its partitions are, and what their records say."""

from __future__ import annotations

import pyarrow as pa

from ...errors import InvalidOptionError, PyHudiError
from ...storage.base import Storage
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.releases import joined
from ...table.table import open_table
from .described_columns import COUNT, TEXT, DescribedColumn, DescribedRows
from .metadata_partitions import PartitionSize, metadata_in_use_or_built, partition_sizes

METADATA = DescribedRows(
    "metadata",
    "A row for each partition of the metadata table of Apache Hudi, in order of its name.",
    (
        DescribedColumn("partition", TEXT, "Name of the partition, such as files or column_stats.", False),
        DescribedColumn(
            "state", TEXT, "`in use`, or `being built` while writes update it and no reader uses it yet.", False
        ),
        DescribedColumn("file_groups", COUNT, "File groups among which the hash of a key chooses.", False),
        DescribedColumn("files", COUNT, "Base files and log files of the newest file slices.", False),
        DescribedColumn("log_files", COUNT, "Log files among them.", False),
        DescribedColumn("bytes", COUNT, "Size of the files.", False),
        DescribedColumn("log_bytes", COUNT, "Size of the log files among them.", False),
        DescribedColumn(
            "records", COUNT, "Records; null if log files are too large to be counted, or a file is damaged."
        ),
        DescribedColumn("compacted", TEXT, "Requested time of its last compaction; null before the first."),
        DescribedColumn(
            "lacks", COUNT, "Completed writes of the table that the metadata table lacks; 0 if sound.", False
        ),
    ),
)


def metadata_rows(storage: Storage, partition: str | None = None, limit: int | None = None) -> pa.Table:
    """Return one row for each partition of the metadata table, with columns as in `METADATA`.

    With the name of a partition, return its records, at most ``limit``, as Apache Hudi's ``HoodieMetadataRecord`` has
    them.
    """
    table = open_table(storage)
    metadata = metadata_in_use_or_built(table, table.timeline())
    if limit is not None and limit < 0:
        raise InvalidOptionError(f"The limit {limit} is below zero.", "Give a positive number, or none for all.")
    names = () if metadata is None else metadata.names
    if partition is None:
        if metadata is None:
            return METADATA.table([])
        lacks = len(metadata.lacks())
        sizes = partition_sizes(table.config, metadata)[:limit]
        return METADATA.table([_row(size, _records_of(metadata.partition(size.partition)), lacks) for size in sizes])
    if metadata is None or partition not in names:
        raise InvalidOptionError(
            f"The table {storage.path} has no metadata table with a partition {partition!r}.",
            f"It has {', '.join(sorted(names))}."
            if names
            else "HudiTable.create_index builds one, and Apache Hudi makes one by default.",
        )
    return _records(metadata.partition(partition), limit)


def _records(partition: MetadataPartition, limit: int | None) -> pa.Table:
    """Return at most ``limit`` records of a partition, with the columns that its kind has."""
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


def _row(size: PartitionSize, records: int | None, lacks: int) -> tuple[object, ...]:
    """Return the row of a partition; ``records`` is None if they could not be counted."""
    counts = size.file_groups, size.files, size.log_files, size.bytes, size.log_bytes
    return size.partition, size.state, *counts, records, size.compacted, lacks


def _records_of(partition: MetadataPartition) -> int | None:
    """Return the number of records; None if a file is damaged, or log files are too large to be counted."""
    try:
        counts = partition.counts(list(partition.slices))
    except PyHudiError:
        return None
    return None if counts is None else sum(counts.values())
