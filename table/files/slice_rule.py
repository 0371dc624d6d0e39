"""Which instants wrote a data file, and which slice a log file belongs to: a rule for each way of naming log files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...timeline.instants import State
from ...timeline.layout import Layout, LayoutV1, LayoutV2, UpgradeLayout
from ...timeline.timeline import Timeline
from ...timeline.watermark import Seen
from .file_group import BaseFile, CompletedAt, DataFile, FileSlice, LogFile, OpenLog, Sizes, slice_with
from .file_group import every_instant as every_instant  # noqa: PLC0414 (a rule answers it, and its callers compare with it)
from .names import FileGroupId
from .read_written import read_written


@dataclass(frozen=True, slots=True)
class CommittedWrites:
    """`Timeline.is_committed` for tasks, without all else that a timeline has.

    A write that is neither ``completed`` nor ``pending`` counts as archived if it is older than ``first``. ``seen`` is
    the moment in the past that the timeline shows, None for the present: an archived write counts as committed if it
    was complete then.
    """

    completed: frozenset[str]
    pending: frozenset[str]
    first: str
    seen: Seen | None

    @classmethod
    def of(cls, timeline: Timeline) -> CommittedWrites:
        """Return the writes of a timeline."""
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

    shares_logs = True

    def makers(self, files: Iterable[DataFile], completed: Timeline, open_log: OpenLog | None = None) -> frozenset[str]:
        """Return the requested times of the instants that wrote some files: the names of base files say it.

        Of log files the completed writes do, and the blocks if ``open_log`` is given.
        """
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
        """Return the slices: each log file goes to the newest base file whose time is not greater than its own."""
        by_time = {file.instant_time: file for file in sorted(bases, key=lambda file: file.instant_time)}
        ordered = sorted(logs, key=lambda log: log.name.order)
        times = list(by_time)
        # Log files older than all base files make up a slice without a base file.
        if ordered and (not times or ordered[0].named_time < times[0]):
            times.insert(0, ordered[0].named_time)
        logs_by_slice: dict[str, list[LogFile]] = {time: [] for time in times}
        for log in ordered:
            logs_by_slice[times[bisect_right(times, log.named_time) - 1]].append(log)
        return tuple(FileSlice(group, time, by_time.get(time), tuple(logs_by_slice[time])) for time in times)

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


class SliceRule(Protocol):
    """How makers and slices follow from the files of a file group.

    Attributes:
        shares_logs: Whether several instants append to one log file, in which a dead writer may have left a torn block.
    """

    @property
    def shares_logs(self) -> bool: ...

    def makers(self, files: Iterable[DataFile], completed: Timeline, open_log: OpenLog | None = None) -> frozenset[str]:
        """Return the requested times of the instants that wrote some files, as names or completed writes say.

        With ``open_log`` it opens the log files of which neither says who wrote them.
        """

    def may_be_of(self, file: DataFile, requested_time: str) -> bool:
        """Return whether an instant may have written a file, going by its name alone."""

    def shows(self, file: DataFile, sees: Callable[[str], bool], until: str | None = None) -> bool:
        """Return whether a file is part of what readers see; ``sees`` says whether they see an instant.

        ``until`` is the time of the newest instant that they see; None if it does not matter.
        """

    def slices(
        self, group: FileGroupId, bases: Sequence[BaseFile], logs: Sequence[LogFile], completed_at: CompletedAt
    ) -> tuple[FileSlice, ...]:
        """Return the slices, the oldest first, of a file group's committed files; it has one base file an instant."""

    def slice_after(self, before: FileSlice | None, group: FileGroupId, files: Sizes) -> FileSlice | None:
        """Return the newest slice of a file group once a commit wrote these files, by path and size.

        None if they are neither one base file nor log files of rows for the slice ``before``.
        """

    def is_merged(self, log: LogFile, plan_time: str, completed_at: CompletedAt) -> bool:
        """Return whether a log file is of the slice that a compaction requested at some time merges."""

    def comes_before(self, log: LogFile, requested_time: str) -> bool:
        """Return whether a log file is read before those that an instant of some time adds to its slice."""

    def counting(self, timeline: Timeline) -> Callable[[str], bool]:
        """Return of which instants the blocks count in log files of committed slices; it travels to tasks."""

    def reach(self, logs: Iterable[LogFile], timeline: Timeline) -> str:
        """Return until which requested time readers would put some log files on a new base file; empty for never."""


class ByCompletionTime:
    """The rule from table version 8 on: the name of a log file has the delta commit that wrote it.

    The file goes with the newest base file whose instant had been requested when the delta commit completed. Compaction
    merges what is complete when it is requested, and an append in flight then completes later: so compactions and
    appends need not wait for each other. Log files without such a base file make up the first slice of their file
    group, which has none. Source: ``HoodieFileGroup.getBaseInstantTime``.
    """

    shares_logs = False

    def makers(self, files: Iterable[DataFile], completed: Timeline, open_log: OpenLog | None = None) -> frozenset[str]:
        return frozenset(file.named_time for file in files)

    def may_be_of(self, file: DataFile, requested_time: str) -> bool:
        return file.named_time == requested_time

    def shows(self, file: DataFile, sees: Callable[[str], bool], until: str | None = None) -> bool:
        return sees(file.named_time)

    def slices(
        self, group: FileGroupId, bases: Sequence[BaseFile], logs: Sequence[LogFile], completed_at: CompletedAt
    ) -> tuple[FileSlice, ...]:
        """Return the slices: a log file goes to the newest base file requested before its delta commit completed.

        The slices are in order of time. ``bases`` and ``logs`` are the files of ``group``, in any order, and
        ``completed_at`` gives the completion time of a delta commit.
        """
        by_time = {file.instant_time: file for file in sorted(bases, key=lambda file: file.instant_time)}
        if not logs:
            return tuple(FileSlice(group, time, base) for time, base in by_time.items())
        times = list(by_time)
        logs_by_base: dict[str | None, list[LogFile]] = {}
        for log in sorted(logs, key=lambda log: log.name.order):
            logs_by_base.setdefault(_base_time(log, times, completed_at), []).append(log)
        without_base = tuple(logs_by_base.pop(None, ()))
        first_slice = (FileSlice(group, without_base[0].named_time, None, without_base),) if without_base else ()
        return (
            *first_slice,
            *(FileSlice(group, time, base, tuple(logs_by_base.get(time, ()))) for time, base in by_time.items()),
        )

    def slice_after(self, before: FileSlice | None, group: FileGroupId, files: Sizes) -> FileSlice | None:
        return slice_with(before, group, files)

    def is_merged(self, log: LogFile, plan_time: str, completed_at: CompletedAt) -> bool:
        return completed_at(log.named_time) < plan_time

    def comes_before(self, log: LogFile, requested_time: str) -> bool:
        return log.named_time < requested_time

    def counting(self, timeline: Timeline) -> Callable[[str], bool]:
        # Such a slice has log files of committed instants alone.
        return every_instant

    def reach(self, logs: Iterable[LogFile], timeline: Timeline) -> str:
        # An archived delta commit completed before any instant that is about to complete was requested.
        writes = map(timeline.write_at, {log.named_time for log in logs})
        return max((write.completion_time or "" for write in writes if write is not None), default="")


class ByEitherName(ByCompletionTime):
    """The rule of a table that came out of version 6, whose old log files keep the names that they had there.

    The instant in such a name is that of a base file, or the first of its file group, and was complete before the next
    write was requested. So the file goes to the slice where it was, as if that instant had written it; Apache Hudi 1.x
    places it alike. What counts in it is decided block by block, as several instants appended to it.
    """

    shares_logs = True

    def makers(self, files: Iterable[DataFile], completed: Timeline, open_log: OpenLog | None = None) -> frozenset[str]:
        """Return the requested times of the instants that wrote some files, as in version 6.

        A log file that no completed write states, and that is not opened, counts as made by the instant in its name.
        """
        every_file = tuple(files)
        makers = _BY_NAME.makers(every_file, completed, open_log)
        if open_log is not None:
            return makers
        logs = [file for file in every_file if isinstance(file, LogFile)]
        written = read_written(completed) if logs else None
        return makers.union(log.named_time for log in logs if written is not None and written.stated(log) is None)

    def may_be_of(self, file: DataFile, requested_time: str) -> bool:
        return _BY_NAME.may_be_of(file, requested_time)

    def counting(self, timeline: Timeline) -> Callable[[str], bool]:
        return CommittedWrites.of(timeline)


def _base_time(log: LogFile, times: Sequence[str], completed_at: CompletedAt) -> str | None:
    """Return the base file's time that a log file goes with, None for none; ``times`` are in order."""
    count = bisect_right(times, log.named_time)
    # An instant completes after it is requested, so the completion time matters only if a younger base file exists.
    if count < len(times):
        count = bisect_right(times, completed_at(log.named_time))
    return times[count - 1] if count else None


_BY_NAME = ByName()
_RULES: Mapping[type[Layout], SliceRule] = {
    LayoutV1: _BY_NAME,
    LayoutV2: ByCompletionTime(),
    UpgradeLayout: ByEitherName(),
}


def slice_rule(timeline: Timeline) -> SliceRule:
    """Return the rule of a table, for code that has no more of the table's format than a timeline."""
    return rule_of(type(timeline.files.layout))


def rule_of(layout: type[Layout]) -> SliceRule:
    """Return the rule for tables whose timeline has a layout."""
    return _RULES[layout]
