"""Which base and log files of one file group make up a slice: a rule of its own for each way of naming log files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol

from ...timeline.layout import Layout, LayoutV2
from .file_group import BaseFile, FileSlice, LogFile
from .names import FileGroupId


class SliceRule(Protocol):
    """How the slices of a file group follow from its files."""

    def slices(
        self,
        group: FileGroupId,
        bases: Sequence[BaseFile],
        logs: Sequence[LogFile],
        completed_at: Callable[[str], str],
    ) -> tuple[FileSlice, ...]:
        """Return the slices, the oldest first, of a file group's committed files; it has one base file an instant."""


class ByCompletionTime:
    """The rule from table version 8 on, where a log file has the delta commit that wrote it in its name.

    It belongs to the newest base file whose instant had been requested when the delta commit completed. A compaction
    merges what is complete when it is requested, and an append in flight then completes later: so compactions and
    appends need not wait for each other. Log files without such a base file make up the first slice of their file
    group, which has none. Source: ``HoodieFileGroup.getBaseInstantTime``.
    """

    def slices(
        self,
        group: FileGroupId,
        bases: Sequence[BaseFile],
        logs: Sequence[LogFile],
        completed_at: Callable[[str], str],
    ) -> tuple[FileSlice, ...]:
        by_time = {file.instant_time: file for file in sorted(bases, key=lambda file: file.instant_time)}
        if not logs:
            return tuple(FileSlice(group, time, base) for time, base in by_time.items())
        times = list(by_time)
        placed: dict[str | None, list[LogFile]] = {}
        for log in sorted(logs, key=lambda log: log.name.order):
            placed.setdefault(_base_time(log, times, completed_at), []).append(log)
        first = tuple(placed.pop(None, ()))
        without = (FileSlice(group, first[0].instant_time, None, first),) if first else ()
        return (
            *without,
            *(FileSlice(group, time, base, tuple(placed.get(time, ()))) for time, base in by_time.items()),
        )


def _base_time(log: LogFile, times: Sequence[str], completed_at: Callable[[str], str]) -> str | None:
    """Return the base file's time that a log file goes with, None for none; ``times`` are in order."""
    known = bisect_right(times, log.instant_time)
    # An instant completes after it is requested, so the completion time matters only if a younger base file exists.
    if known < len(times):
        known = bisect_right(times, completed_at(log.instant_time))
    return times[known - 1] if known else None


def slice_rule(layout: Layout) -> SliceRule:
    return _RULES[type(layout)]


_RULES: dict[type[Layout], SliceRule] = {LayoutV2: ByCompletionTime()}
