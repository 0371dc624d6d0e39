"""Slices of table version 6, whose log files have the base instant of their slice in their names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ...timeline.watermark import Seen
from .file_group import BaseFile, CompletedAt, DataFile, FileSlice, LogFile, OpenLog, Sizes, slice_with
from .names import FileGroupId
from .read_written import read_written


@dataclass(frozen=True, slots=True)
class CommittedWrites:
    """`Timeline.is_committed` for tasks, without all else that a timeline has.

    A write that is neither ``completed`` nor ``pending`` counts as archived if it is older than ``first``.
    """

    completed: frozenset[str]
    pending: frozenset[str]
    first: str
    seen: Seen | None

    @classmethod
    def of(cls, timeline: Timeline) -> CommittedWrites:
        writes = [instant for instant in timeline.instants if instant.is_write]
        completed = frozenset(instant.requested_time for instant in writes if instant.state == State.COMPLETED)
        pending = frozenset(instant.requested_time for instant in writes) - completed
        seen, first = timeline.seen, writes[0].requested_time if writes else ""
        return cls(completed, pending, first if seen is None else max(first, seen.watermark.first_write), seen)

    def __call__(self, requested_time: str) -> bool:
        if requested_time in self.completed or requested_time in self.pending:
            return requested_time in self.completed
        return requested_time < self.first and (self.seen is None or self.seen.saw_write(requested_time))


class ByName:
    """The rule of table version 6, by the names of files alone and never by times of completion.

    Several instants may append to one log file, so that its blocks decide what counts. While a compaction is pending,
    delta commits write log files with the compaction's time in their names: they belong to the slice before, to which
    the log files of a slice without a base file are joined. Source: ``HoodieFileGroup`` of Apache Hudi 0.15, and
    ``AbstractTableFileSystemView.fetchMergedFileSlice``.
    """

    def makers(self, files: Iterable[DataFile], completed: Timeline, open_log: OpenLog | None = None) -> frozenset[str]:
        makers: set[str] = set()
        logs = []
        for file in files:
            if isinstance(file, LogFile):
                logs.append(file)
            else:
                makers.add(file.instant_time)
        written = read_written(completed) if logs else None
        for log in logs:
            stated = None if written is None else written.stated(log)
            if stated is not None:
                makers.update(stated.makers)
            # A write that failed may have appended what no completed write states.
            if open_log is not None and (stated is None or log.size > stated.size):
                makers.update(open_log(log))
        return frozenset(makers)

    def may_be_of(self, file: DataFile, requested_time: str) -> bool:
        if isinstance(file, LogFile):
            return file.named_time <= requested_time
        return file.named_time == requested_time

    def shows(self, file: DataFile, sees: Callable[[str], bool], until: str | None = None) -> bool:
        if isinstance(file, LogFile):
            # No block is older than the slice. Which of the others count is decided where they are read.
            return until is None or file.named_time <= until
        return sees(file.named_time)

    def slices(
        self, group: FileGroupId, bases: Sequence[BaseFile], logs: Sequence[LogFile], completed_at: CompletedAt
    ) -> tuple[FileSlice, ...]:
        by_time = {file.instant_time: file for file in sorted(bases, key=lambda file: file.instant_time)}
        ordered = sorted(logs, key=lambda log: log.name.order)
        times = list(by_time)
        if ordered and (not times or ordered[0].named_time < times[0]):
            times.insert(0, ordered[0].named_time)
        placed: dict[str, list[LogFile]] = {time: [] for time in times}
        for log in ordered:
            placed[times[bisect_right(times, log.named_time) - 1]].append(log)
        return tuple(FileSlice(group, time, by_time.get(time), tuple(placed[time])) for time in times)

    def slice_after(self, before: FileSlice | None, group: FileGroupId, files: Sizes) -> FileSlice | None:
        return slice_with(before, group, files)

    def is_merged(self, log: LogFile, plan_time: str, completed_at: CompletedAt) -> bool:
        return log.named_time < plan_time

    def comes_before(self, log: LogFile, requested_time: str) -> bool:
        # Each append takes a version above those that are there.
        return True

    def counting(self, timeline: Timeline) -> Callable[[str], bool]:
        return CommittedWrites.of(timeline)

    def reach(self, logs: Iterable[LogFile], timeline: Timeline) -> str:
        # Their names never lead to a later base file.
        return ""
