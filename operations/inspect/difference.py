"""What changed in a table between two instants: its files by their names, and its rows by their keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from ...errors import InvalidOptionError
from ...reader.moments import find_moment
from ...reader.plan import Split, whole
from ...reader.query import AsOf, resolve
from ...reader.scan import MergeTerms, RowReader
from ...storage.base import Storage, split
from ...storage.threads import for_each
from ...table.files.file_group import FileSlice, LogFile, log_file
from ...table.files.names import FileGroupId
from ...table.files.slice_rule import slice_rule
from ...table.latest_schema import latest_schema
from ...table.schema.columns import RECORD_KEY, SEQUENCE_NUMBER, with_meta
from ...table.seen_table import SeenTable
from ...table.table import Table, open_table
from ...timeline.archive.history import SilentArchiveError, undone
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ..result import OPERATIONS_OF_SERVICES, CommitResult, result_from
from .described_columns import COUNT, TEXT, DescribedColumn, DescribedRows
from .files import snapshot_as_of

CHANGED_FILES = DescribedRows(
    "diff",
    "A row for each file group whose newest slice differs, by partition and file group.",
    (
        DescribedColumn("partition", TEXT, "Path of the partition below the table's path; empty without.", False),
        DescribedColumn("file_id", TEXT, "Id of the file group.", False),
        DescribedColumn("change", TEXT, "`added`, `removed` or `changed`.", False),
        DescribedColumn("files_added", pa.list_(TEXT), "Files of the later slice that the earlier lacks.", False),
        DescribedColumn("files_removed", pa.list_(TEXT), "Files of the earlier slice that the later lacks.", False),
        DescribedColumn("bytes_before", COUNT, "Size of the earlier slice; 0 without.", False),
        DescribedColumn("bytes_after", COUNT, "Size of the later slice; 0 without.", False),
    ),
)
CHANGED_ROWS = DescribedRows(
    "diff --rows",
    "A row for each record key whose row differs, by partition. A row that moved is deleted in one partition and "
    "inserted in another.",
    (
        DescribedColumn("partition", TEXT, "Path of the partition below the table's path; empty without.", False),
        DescribedColumn("change", TEXT, "`inserted`, `updated` or `deleted`.", False),
        DescribedColumn("key", TEXT, "Record key, as in `_hoodie_record_key`."),
    ),
)


@dataclass(frozen=True, slots=True)
class StatedChanges:
    """What the completed writes state that were requested between two times.

    Attributes:
        changes: The results of the writes of rows.
        log_names: The names of the log files to which any of the writes appended.
        silent: The number of archived writes of which the archive does not say what they did.
        shares_logs: Whether a write may append to a log file of earlier writes, as in version 6. By its name, such a
            file shows from the time of its base file on.
    """

    changes: tuple[CommitResult, ...]
    log_names: frozenset[str]
    silent: int
    shares_logs: bool

    @classmethod
    def between(cls, history: Timeline | None, timeline: Timeline, first: str, last: str) -> StatedChanges:
        """Return what the writes state that were requested after the time ``first``, until the time ``last``.

        ``timeline`` has the active instants, and ``history`` the archived instants, too; None if all writes since
        ``first`` are active.
        """
        writes = [(timeline, write) for write in timeline.writes]
        if history is not None:
            active, undone_times = {instant.identity for instant in timeline.instants}, undone(history)
            writes += [
                (history, write)
                for write in history.writes
                if write.identity not in active and write.requested_time not in undone_times
            ]
        writes_between = [pair for pair in writes if first < pair[1].requested_time <= last]
        stated = [
            pair for pair in for_each(timeline.storage, _result_and_log_names, writes_between) if pair is not None
        ]
        return cls(
            tuple(result for result, _ in stated if result.operation not in OPERATIONS_OF_SERVICES),
            frozenset(chain.from_iterable(names for _, names in stated)),
            len(writes_between) - len(stated),
            slice_rule(timeline).shares_logs,
        )

    def may_append(self, log: LogFile) -> bool:
        """Return whether one of the writes appended to a log file, or may have done so if it is silent."""
        return self.shares_logs and (self.silent > 0 or split(log.path)[1] in self.log_names)


def _result_and_log_names(write: tuple[Timeline, Instant]) -> tuple[CommitResult, Collection[str]] | None:
    """Return the result of a completed write, and the names of the log files to which it appended.

    ``write`` is an instant with its timeline. None if the archive does not say what the write did.
    """
    timeline, instant = write
    try:
        commit = timeline.files.read_commit(instant)
    except SilentArchiveError:
        return None
    paths = (stat.path for stats in commit.partition_to_write_stats.values() for stat in stats if stat.path)
    names = frozenset(split(path)[1] for path in paths if log_file(path) is not None)
    return result_from(timeline.storage.path, instant.requested_time, commit), names


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two instants.

    Attributes:
        timeline: The timeline of now.
        earlier: The file slices of the earlier time that the later time lacks, and those to whose log files a write
            appended in between; ``later`` the other way round.
        writes: The number of completed writes of rows that were requested in between. ``inserts``, ``updates`` and
            ``deletes`` are the rows that they state.
        silent: The number of further writes in between, of which the archive does not say what they did.
    """

    table: Table
    timeline: Timeline
    earlier_time: str
    later_time: str
    earlier: tuple[FileSlice, ...]
    later: tuple[FileSlice, ...]
    writes: int
    inserts: int
    updates: int
    deletes: int
    silent: int

    @classmethod
    def between(cls, storage: Storage, earlier: str, later: str) -> Difference:
        """Return what changed in a table between two times, each an instant or a time as `HudiTable.to_df` takes it.

        Raises `InvalidOptionError` for times in the wrong order, and `UnreadableTimeError` if a clean has deleted a
        file of either time.
        """
        table = open_table(storage)
        first_time, last_time = (resolve(text, table.config.timezone) for text in (earlier, later))
        if first_time > last_time:
            raise InvalidOptionError(
                f"The table {table.path} was to be compared from {earlier} to {later}, which is earlier.",
                "Give the earlier time first.",
            )
        before, after = snapshot_as_of(table, earlier), snapshot_as_of(table, later)
        slices_before, slices_after, timeline = before.slices(), after.slices(), after.timeline
        stated = StatedChanges.between(before.moment.history, timeline, first_time, last_time)
        paths_before, paths_after = frozenset(map(_paths_of, slices_before)), frozenset(map(_paths_of, slices_after))

        def differs(file_slice: FileSlice, paths_then: Collection[tuple[str, ...]]) -> bool:
            """Return whether no slice of the other time has the same rows, by ``paths_then`` of its slices."""
            return _paths_of(file_slice) not in paths_then or any(map(stated.may_append, file_slice.logs))

        return cls(
            table,
            timeline,
            earlier,
            later,
            tuple(file_slice for file_slice in slices_before if differs(file_slice, paths_after)),
            tuple(file_slice for file_slice in slices_after if differs(file_slice, paths_before)),
            len(stated.changes),
            sum(result.inserts for result in stated.changes),
            sum(result.updates for result in stated.changes),
            sum(result.deletes for result in stated.changes),
            stated.silent,
        )

    def files(self) -> pa.Table:
        """Return one row for each changed file group, with columns as in `CHANGED_FILES`."""
        slice_by_group_before, slice_by_group_after = _by_group(self.earlier), _by_group(self.later)
        return CHANGED_FILES.table(
            _row(group, slice_by_group_before.get(group), slice_by_group_after.get(group))
            for group in sorted({*slice_by_group_before, *slice_by_group_after})
        )

    def rows(self) -> Iterator[pa.Table]:
        """Yield the changed rows of each partition in which a file group changed, with columns as in `CHANGED_ROWS`.

        It reads keys and meta columns of the changed file groups, of one partition at a time.
        """
        slices_before, slices_after = _by_partition(self.earlier), _by_partition(self.later)
        for partition in sorted({*slices_before, *slices_after}):
            keys_before = self._keys(slices_before.get(partition, []), self.earlier_time)
            keys_after = self._keys(slices_after.get(partition, []), self.later_time)
            yield _changed_rows(partition, keys_before, keys_after)

    def _keys(self, slices: Iterable[FileSlice], time: str) -> pa.Table:
        """Return the record keys of slices, as of ``time``, with the sequence number of each row.

        An update gives a row another sequence number, but a rewrite of its file does not.
        """
        file_slices = tuple(slices)
        columns = pa.schema([pa.field(RECORD_KEY, TEXT), pa.field(SEQUENCE_NUMBER, TEXT)])
        if not file_slices:
            return columns.empty_table()
        # The timeline had the file slices of that time, so it also has the columns.
        timeline = find_moment(SeenTable(self.table, self.timeline), AsOf(time)).timeline
        schema = with_meta(latest_schema(self.table.config, timeline) or pa.schema([]))
        reader = RowReader(self.table.storage, columns, schema, terms=MergeTerms(self.table.config))
        batches = reader.read(Split(tuple(map(whole, file_slices))))
        return pa.Table.from_batches(batches, columns)


def _changed_rows(partition: str, rows_before: pa.Table, rows_after: pa.Table) -> pa.Table:
    """Return the changed rows of a partition by comparing keys and sequence numbers of both times.

    ``rows_before`` and ``rows_after`` have the record key and the sequence number of each row at the earlier and the
    later time. A key whose row has another sequence number was updated. The result has the columns of `CHANGED_ROWS`.
    """
    identity = [RECORD_KEY, SEQUENCE_NUMBER]
    old_keys = rows_before.join(rows_after, identity, join_type="left anti").select([RECORD_KEY])
    new_keys = rows_after.join(rows_before, identity, join_type="left anti").select([RECORD_KEY])
    changes = {
        "inserted": new_keys.join(old_keys, RECORD_KEY, join_type="left anti"),
        "updated": new_keys.join(old_keys, RECORD_KEY, join_type="left semi"),
        "deleted": old_keys.join(new_keys, RECORD_KEY, join_type="left anti"),
    }
    parts = [
        pa.Table.from_arrays(
            [
                pa.repeat(pa.scalar(partition, TEXT), keys.num_rows),
                pa.repeat(pa.scalar(change, TEXT), keys.num_rows),
                keys.sort_by(RECORD_KEY).column(RECORD_KEY),
            ],
            schema=CHANGED_ROWS.schema,
        )
        for change, keys in changes.items()
    ]
    return pa.concat_tables(parts)


def _row(group: FileGroupId, slice_before: FileSlice | None, slice_after: FileSlice | None) -> tuple[object, ...]:
    """Return the row of a changed file group; a slice is None if the group did not exist at that time."""
    old_files = () if slice_before is None else slice_before.files
    new_files = () if slice_after is None else slice_after.files
    return (
        group.partition_path,
        group.file_id,
        "added" if slice_before is None else "removed" if slice_after is None else "changed",
        [path for path in new_files if path not in old_files],
        [path for path in old_files if path not in new_files],
        0 if slice_before is None else slice_before.size,
        0 if slice_after is None else slice_after.size,
    )


def _paths_of(file_slice: FileSlice) -> tuple[str, ...]:
    return file_slice.files


def _by_group(slices: Iterable[FileSlice]) -> Mapping[FileGroupId, FileSlice]:
    return {file_slice.group: file_slice for file_slice in slices}


def _by_partition(slices: Iterable[FileSlice]) -> Mapping[str, list[FileSlice]]:
    by_partition: dict[str, list[FileSlice]] = {}
    for file_slice in slices:
        by_partition.setdefault(file_slice.partition_path, []).append(file_slice)
    return by_partition
