"""A table read batch by batch: the offset that a batch ends with, and the rows between two offsets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa

from ...errors import StorageError, UnreadableTimeError
from ...storage import open_storage
from ...table.config import check_supported
from ...table.config.property_keys import MERGE_ON_READ
from ...table.files.cleaned import earliest_kept, read_cleans
from ...table.table import Table, open_table
from ...timeline.archive.history import SilentArchiveError, undone, with_archived
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ..plan import Split
from ..query import EARLIEST, LATEST, Changes, Query, is_beginning, resolve
from ..snapshot import Snapshot, open_snapshot
from .offsets import INITIAL, Offset, WriteSum
from .settled import SettledWrites, completed_writes, settled_timeline, times_until
from .terms import NO_LIMITS, START, BatchLimits, StreamTerms

logger = logging.getLogger("pyhudi")


def end_of_batch(table: Table, settled: SettledWrites, after: str, until: str, limits: BatchLimits) -> str | None:
    """Return the completion time at which a batch ends; None if no write completed in the window.

    None, too, if writes that completed later are archived, as the table cannot be shown before these. A batch has at
    least one commit, and does not end before the first time as of which the table is still readable.
    """
    writes_of_window = settled.between(after, until)
    if not writes_of_window or until < settled.archived_until:
        return None
    if limits == NO_LIMITS:
        return writes_of_window[-1].visible_since
    batch_end = _end_within_limits(table, settled, writes_of_window, limits)
    first_readable = _first_readable(settled, batch_end)
    if first_readable > batch_end:
        batch_end = min(first_readable, writes_of_window[-1].visible_since)
        logger.warning(
            "table %s: a batch of the stream is larger than its limits, as cleaning and archiving have left no end "
            "before %s readable",
            table.path,
            batch_end,
        )
    return next(write.visible_since for write in reversed(writes_of_window) if write.visible_since <= batch_end)


def _end_within_limits(
    table: Table, settled: SettledWrites, writes_of_window: Sequence[Instant], limits: BatchLimits
) -> str:
    """Return the completion time of the last commit of a batch within the limits, at least that of the first.

    ``writes_of_window`` are the commits that the batch may have, in the order of completion; ``settled`` has the files
    that they name, for the limit of bytes, and ``table`` tells which of them are compactions.
    """
    commits = size = 0
    end = ""
    for write in writes_of_window:
        if _is_compaction(table, write):
            # It brings no rows, so it counts for no limit.
            end = write.visible_since
            continue
        commits += 1
        size += _written_bytes(settled, write) if limits.bytes is not None else 0
        exceeds_limits = (limits.commits is not None and commits > limits.commits) or (
            limits.bytes is not None and size > limits.bytes
        )
        # Writes that completed at the same time cannot be divided between batches.
        if exceeds_limits and commits > 1 and write.visible_since > end:
            break
        end = write.visible_since
    return end


def _is_compaction(table: Table, write: Instant) -> bool:
    """Return whether the name of a write tells that it is a compaction, which brings no rows."""
    return table.config.table_type == MERGE_ON_READ and write.group == "commit"


def _written_bytes(settled: SettledWrites, write: Instant) -> int:
    """Return the bytes of the files that a write names; 0 of an archived write, which no limit cuts off."""
    if settled.timeline.write_at(write.requested_time) is None:
        return 0
    try:
        stats = settled.timeline.files.read_written_files(write).stats
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return 0  # archived since the listing
        raise
    return sum(stat.get("fileSizeInBytes") or 0 for files in stats.values() for stat in files)


def _first_readable(settled: SettledWrites, end: str) -> str:
    """Return the first time from an end on as of which every file is there, as far as the cleans tell."""
    timeline = settled.timeline
    # The newest clean may have kept more than an earlier one. One by file versions keeps the newest slices at its plan.
    earliest = max(
        (earliest_kept(clean) or instant.requested_time for instant, clean in read_cleans(timeline, end)), default=""
    )
    times = (write.visible_since for write in timeline.writes if write.requested_time <= earliest)
    return max([end, settled.archived_until, *times])


# An instant may be archived after a call listed it and before the call reads it.
_TRIES = 3

Result = TypeVar("Result")


def _with_retries(run: Callable[[], Result]) -> Result:
    """Return the result of a call, which is repeated up to twice if an instant was archived during it."""
    for _ in range(_TRIES - 1):
        try:
            return run()
        except StorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return run()


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch as of its end, with the columns to read and the splits of its tasks."""

    snapshot: Snapshot
    columns: pa.Schema
    splits: list[Split]


@dataclass
class TableStream:
    """One stream of one table in one process; batches are the same in any other process.

    Every batch has the writes that completed after its first offset and until its second, in the state of the table at
    the second. The process keeps which writes those were; another process knows their sum from the offset. ``newest``
    is the offset of all that was complete at the last look.
    """

    path: str
    storage_options: Mapping[str, str] = field(repr=False)
    terms: StreamTerms
    newest: Offset | None = None
    _initial: Offset | None = None
    _last_offset: Offset | None = None
    _latest_end: str | None = None
    _last_look: tuple[Offset, tuple[Instant, ...]] | None = None
    _checked_writes: tuple[Offset, frozenset[str]] | None = None
    _archived: tuple[str, tuple[Instant, ...]] | None = None

    def initial(self) -> Offset:
        """Return the offset after which the first batch of a new query begins."""
        if self._initial is None:
            start = self.terms.start
            if start.lower() == LATEST:
                _, until = settled_timeline(self._table())
                self._initial = Offset(until) if until else INITIAL
            elif is_beginning(start):
                self._initial = INITIAL
            else:
                self._initial = Offset(resolve(start, self._table().config.timezone))
        return self._initial

    def prepare(self) -> None:
        """Let `latest` never show more than what is complete now, for a query that ends there (`availableNow`)."""
        _, self._latest_end = settled_timeline(self._table())

    def latest(self, start: Offset | None = None, limits: BatchLimits | None = None) -> Offset:
        """Return the end of the next batch; ``start`` if nothing has completed since, or nothing readable.

        ``limits`` count in place of the stream's own. Without ``start`` the batch begins where the last batch of this
        process ended. Raises UnreadableTimeError if a write completed before ``start``, and no batch has it.
        """
        return _with_retries(partial(self._latest, start or self._last_offset or self.initial(), limits))

    def _latest(self, start: Offset, limits: BatchLimits | None) -> Offset:
        """Return the end of the next batch, as `latest` does; raises StorageError if an instant was archived since."""
        table = self._table()
        listed = table.timeline()
        # Nothing happened since the last look, which found no batch.
        if self._last_look == (start, listed.instants):
            return start
        timeline, until = settled_timeline(table, listed)
        # An instant is archived before it leaves the timeline.
        settled = SettledWrites(timeline, self._archive(table), until)
        self.newest = Offset(until) if until else INITIAL
        given_start, start = start, start.carried_over(table.config, settled.all)
        self._check_writes(table, start, settled.timeline, settled.all)
        until = self._limit_of_batch(settled, start)
        end = end_of_batch(table, settled, start.bound, until, self.terms.limits if limits is None else limits)
        if end is None or end <= start.time:
            # The caller compares the offset that it gave, which an upgrade may have carried over to another time.
            self._last_offset, self._last_look = start, (given_start, listed.instants)
            return given_start
        times = times_until(settled.all, end)
        self._last_offset = Offset(end, WriteSum.of(times), start.time)
        self._checked_writes = self._last_offset, times
        return self._last_offset

    def _limit_of_batch(self, settled: SettledWrites, start: Offset) -> str:
        """Return the time until which a batch may reach."""
        if self._latest_end is None:
            return settled.until
        target = min(settled.until, self._latest_end)
        # If archiving made the table as of that end unreadable, the last batch ends later.
        is_unreadable = settled.between(start.bound, target) and settled.archived_until > target
        return min(settled.until, settled.archived_until) if is_unreadable else target

    def batch(self, start: Offset, end: Offset) -> Snapshot | None:
        """Return the table as a batch shows it; None for a batch without writes.

        Raises UnreadableTimeError if archiving made its end unreadable, or a write completed too late for its batch.
        """
        self._last_offset = end
        table = self._table()
        if table.config.left_old_layout:
            writes = completed_writes(table.timeline(), self._archive(table))
            start, end = (offset.carried_over(table.config, writes) for offset in (start, end))
        # The first batch of a query that began at `latest` is replayed with another beginning: no checkpoint holds it.
        after = min(start.time, end.after) if end.after else start.time
        # After a restart Spark plans the last batch with its end as its beginning, and reads nothing of it.
        if start == end or after >= end.time:
            return None
        changes = Changes(after, end.time, self.terms.path_glob, self.terms.full_scan)
        try:
            snapshot = open_snapshot(self.path, self.storage_options, query=changes, file_search=self.terms.file_search)
        except UnreadableTimeError as error:
            raise self._unreadable_error(changes, error) from error
        table, timeline = snapshot.seen.table, snapshot.timeline
        self._check_writes(table, end, timeline, completed_writes(timeline, self._archive(table)))
        return snapshot

    def plan(
        self, start: Offset, end: Offset, columns: Callable[[Snapshot], pa.Schema], split_size: int
    ) -> PlannedBatch | None:
        """Return a batch with its splits; None without writes. ``columns`` chooses the columns to read.

        Raises UnreadableTimeError as `batch` does, and if a clean removed files that the batch shows.
        """
        return _with_retries(partial(self._plan, start, end, columns, split_size))

    def _plan(
        self, start: Offset, end: Offset, columns: Callable[[Snapshot], pa.Schema], split_size: int
    ) -> PlannedBatch | None:
        """Return a batch with its splits, as `plan` does; raises StorageError if an instant was archived since."""
        batch = self.batch(start, end)
        if batch is None:
            return None
        try:
            wanted = columns(batch)
            return PlannedBatch(batch, wanted, batch.plan(wanted, (), split_size))
        except UnreadableTimeError as error:
            raise self._unreadable_error(batch.query, error) from error

    def _unreadable_error(self, changes: Query | None, error: UnreadableTimeError) -> UnreadableTimeError:
        """Return the error of a batch that cannot be read, with what to do about the query."""
        begin, end = (changes.begin, changes.end) if isinstance(changes, Changes) else ("", "")
        return UnreadableTimeError(
            f"The batch of the stream of {self.path} after {begin} and until {end} cannot be read: {error.what}",
            f"Start the query with a new checkpoint and {START} as the first readable begin, or else as {begin}: from "
            "there on it reads what changed, as it is now.",
        )

    def _table(self) -> Table:
        """Open the table, and refuse it if this pyhudi cannot read it."""
        table = open_table(open_storage(self.path, self.storage_options))
        check_supported(table.config, table.path, writing=False)
        return table

    def _archive(self, table: Table) -> tuple[Instant, ...]:
        """Return the archived instants, which are read again only if the archive changed."""
        state = table.archive.state()
        if self._archived is None or self._archived[0] != state:
            self._archived = state, table.archive.instants()
        return self._archived[1]

    def _check_writes(self, table: Table, offset: Offset, timeline: Timeline, writes: Mapping[str, Instant]) -> None:
        """Raise UnreadableTimeError if a write completed before an offset, and no batch until the offset had it.

        ``writes`` are the completed writes by requested time, from ``timeline`` and the archive of ``table``. An undone
        write whose rows a batch had is only logged, as the stream cannot take them back; if other writes are missing,
        UnreadableTimeError, too. An offset without the sum of its writes is not checked.
        """
        if offset.writes is None:
            return
        present = times_until(writes, offset.time)
        if self._checked_writes is not None and self._checked_writes[0] == offset:
            # This process knows which writes the offset had.
            late_times = tuple(sorted(present - self._checked_writes[1]))
            lost = self._checked_writes[1] - present
            undone_count = len(lost)
            if lost and lost - _undone(table, timeline):
                raise _other_writes_error(table, offset, present)
        else:
            # Another process made the offset, which has only the number and the sum of its writes.
            noted_sum = offset.writes
            undone_count = max(0, noted_sum.count - len(present))
            explained_times: tuple[str, ...] | None = ()
            if noted_sum != WriteSum.of(present):
                gone_since = _undone(table, timeline) - present
                explained_times = noted_sum.explain(present, [time for time in gone_since if time < offset.time])
            if explained_times is None:
                raise _other_writes_error(table, offset, present)
            late_times = explained_times
        if late_times:
            raise _late_writes_error(table, offset, [writes[time] for time in late_times], writes)
        if undone_count:
            logger.warning(
                "table %s: %d of the writes that the stream has read were undone since; their rows stay where the "
                "stream brought them",
                table.path,
                undone_count,
            )
        self._checked_writes = offset, present


def _undone(table: Table, timeline: Timeline) -> frozenset[str]:
    """Return the requested times of the writes that were undone.

    These include writes whose undoing is archived, if the archive is readable.
    """
    active = undone(timeline)
    try:
        history = with_archived(table.archive, timeline)
        return active if history is None else active | undone(history)
    except SilentArchiveError:
        return active


def _advice_to_restart(after: str) -> str:
    """Return the words that advise a new checkpoint from a time on."""
    return f"start the query with a new checkpoint and {START}={after}, from where on it reads what changed."


def _late_writes_error(
    table: Table, offset: Offset, late_writes: list[Instant], writes: Mapping[str, Instant]
) -> UnreadableTimeError:
    """Return the error of writes that completed before an offset, and came to light after it."""
    first_time = min(write.visible_since for write in late_writes)
    time_before = max(
        (write.visible_since for write in writes.values() if write.visible_since < first_time), default=EARLIEST
    )
    write_texts = ", ".join(f"{write.requested_time} (completed at {write.visible_since})" for write in late_writes)
    return UnreadableTimeError(
        f"The stream of {table.path} had read all that completed until {offset.time} when a write came to light that "
        f"completed before that: {write_texts}. No batch has its rows.",
        f"To read its rows and those of all later writes again, {_advice_to_restart(time_before)}",
    )


def _other_writes_error(table: Table, offset: Offset, present: frozenset[str]) -> UnreadableTimeError:
    """Return the error of a table whose writes until an offset are not those that the stream has read."""
    count = 0 if offset.writes is None else offset.writes.count
    return UnreadableTimeError(
        f"The stream of {table.path} had read {count} writes that completed until {offset.time}, and these are not the "
        f"{len(present)} that the table has until then: it is another table, or writes completed behind the stream.",
        f"To read everything again, {_advice_to_restart(EARLIEST)}",
    )
