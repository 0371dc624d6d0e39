"""The files of a table's newest file slices, or of its slices at an earlier moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa

from ...reader.moments import find_moment
from ...reader.query import AsOf
from ...reader.snapshot import Snapshot
from ...storage.base import Storage, split
from ...storage.threads import for_each
from ...table.config import check_supported
from ...table.config.property_keys import BUCKET
from ...table.files.file_group import FileSlice, log_file
from ...table.files.names import bucket_by_name
from ...table.files.slice_rule import slice_rule
from ...table.inferred.index import index_of_groups, is_unnoted
from ...table.metadata.at_hand import MetadataAtHand
from ...table.seen_table import SeenTable
from ...table.table import Table, open_table
from ...timeline.metadata.codec import CommitFiles
from ...timeline.timeline import Timeline
from .described_columns import COUNT, TEXT, DescribedColumn, DescribedRows
from .walked_table import WalkedTable

FILES = DescribedRows(
    "files",
    "A row for each file slice that a snapshot reads, by partition and file group.",
    (
        DescribedColumn("partition", TEXT, "Path of the partition below the table's path; empty without.", False),
        DescribedColumn("file_id", TEXT, "Id of the file group.", False),
        DescribedColumn("bucket", pa.int32(), "Number of the bucket; null for a table without a bucket index."),
        DescribedColumn("instant", TEXT, "Requested time of the instant that began the slice.", False),
        DescribedColumn("base_file", TEXT, "Base file, relative to the table's path; null for log files alone."),
        DescribedColumn("base_bytes", COUNT, "Size of the base file; 0 without.", False),
        DescribedColumn("log_files", pa.list_(TEXT), "Log files, relative, in the order in which they merge.", False),
        DescribedColumn("log_bytes", COUNT, "Size of the log files.", False),
        DescribedColumn("bytes", COUNT, "Size of all files of the slice.", False),
        DescribedColumn("rows", COUNT, "Rows of the base file, as its commit states; null if that commit is archived."),
        DescribedColumn(
            "log_records",
            COUNT,
            "Rows and deletes in the log files, as their commits state; null if a commit is archived.",
        ),
    ),
)


def files(storage: Storage, as_of: str | None = None) -> pa.Table:
    """Return one row for each file slice, with columns as in `FILES`; no data file is opened.

    Args:
        as_of: Show the table as of this time, by requested times; None for the newest file slices.
    """
    if as_of is None:
        walked = WalkedTable.now(storage)
        timeline, slices, index = walked.timeline, walked.slices, walked.index
    else:
        table = open_table(storage)
        snapshot = snapshot_as_of(table, as_of)
        timeline, slices, index = snapshot.timeline, tuple(snapshot.slices()), table.config.index_type
        if is_unnoted(table.config):
            index = index_of_groups(file_slice.group for file_slice in slices).kind
    rows = stated_rows(timeline, slices)
    return FILES.table(_row(file_slice, rows, has_buckets=index == BUCKET) for file_slice in slices)


def snapshot_as_of(table: Table, time: str) -> Snapshot:
    """Return a snapshot of a table at a time, by a listing of now; it has the file slices of that time and no columns.

    Raises `UnreadableTimeError` if the archive does not tell enough about that time. `Snapshot.slices` raises it if a
    clean has deleted one of the files.
    """
    check_supported(table.config, table.path, writing=False)
    seen, query = SeenTable.now(table), AsOf(time)
    metadata = MetadataAtHand(seen.table, seen.timeline)
    # No row is read, so the snapshot needs no columns.
    return Snapshot(seen, seen.timeline, find_moment(seen, query), metadata, pa.schema([]), query)


def stated_rows(timeline: Timeline, slices: Iterable[FileSlice]) -> Mapping[str, int]:
    """Return the number of rows that the writes on a timeline state for the files of slices, by file name.

    For a log file, rows and deletes count, those of all writes that appended to it. Only the completed writes that made
    these files are opened.
    """
    files = (file for file_slice in slices for file in file_slice.data_files)
    times = slice_rule(timeline).makers(files, timeline)
    writes = [write for write in timeline.writes if write.requested_time in times]
    bodies = for_each(timeline.storage, timeline.files.read_written_files, writes)
    counts: Counter[str] = Counter()
    for body in bodies:
        counts.update(_rows_in(body))
    return dict(counts)


def _rows_in(body: CommitFiles) -> Mapping[str, int]:
    """Return the number of rows of each file of a write, by file name; for a log file, deletes count, too."""
    rows_by_name: dict[str, int] = {}
    for stats in body.stats.values():
        for stat in stats:
            path, rows = stat.get("path") or "", stat.get("numWrites") or 0
            rows_by_name[split(path)[1]] = rows + (0 if log_file(path) is None else stat.get("numDeletes") or 0)
    return rows_by_name


def _row(file_slice: FileSlice, rows: Mapping[str, int], *, has_buckets: bool) -> tuple[object, ...]:
    """Return the values of a slice in the order of `FILES`.

    ``rows`` has the number of rows of each file by its name; a count is null if the write that states it is archived.
    """
    base, names = file_slice.base, [split(log.path)[1] for log in file_slice.logs]
    return (
        file_slice.partition_path,
        file_slice.file_id,
        bucket_by_name(file_slice.file_id) if has_buckets else None,
        file_slice.base_time,
        None if base is None else base.path,
        0 if base is None else base.size,
        [log.path for log in file_slice.logs],
        file_slice.log_bytes,
        file_slice.size,
        None if base is None else rows.get(base.name),
        sum(rows[name] for name in names) if all(name in rows for name in names) else None,
    )
