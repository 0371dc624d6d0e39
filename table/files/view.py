"""Which file slices a reader may see: the committed base and log files of every live file group."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ...storage.base import FileInfo, Storage, join
from ...timeline.archive.completions import CompletionTimes
from ...timeline.layout import Layout, LayoutV2
from ...timeline.timeline import Timeline
from .file_group import BaseFile, DataFile, FileGroup, FileSlice, LogFile, data_file
from .names import FileGroupId, WriteToken
from .partitions import is_partition, walk_partitions
from .written import Written


class SliceRule(Protocol):
    """How the slices of a file group follow from its files: a rule of its own for each way of naming log files."""

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


class FileView:
    """The file slices of a table as of one timeline, which decides what is committed.

    ``listings`` has the files of partitions that were listed already; ``cleaned`` has files that a clean took away
    since, which only `lost` returns. Both are by partition path.
    """

    def __init__(
        self,
        timeline: Timeline,
        written: Written,
        listings: Mapping[str, tuple[FileInfo, ...]] | None = None,
        cleaned: Mapping[str, tuple[DataFile, ...]] | None = None,
    ) -> None:
        self.timeline = timeline
        self._written = written
        self._replaced = written.replaced
        self._listings = dict(listings or {})
        self._cleaned = dict(cleaned or {})
        self._committed: dict[str, bool] = {}
        self._rule = slice_rule(timeline.files.layout)
        self._completed_at = CompletionTimes(timeline)

    @property
    def storage(self) -> Storage:
        return self.timeline.storage

    def partitions(self) -> list[str]:
        """Return the paths of all partitions, sorted; their files, which the walk lists, are kept."""
        self._listings = walk_partitions(self.storage)
        return sorted(self._listings)

    def is_partition(self, partition_path: str) -> bool:
        return is_partition(partition_path, self._files(partition_path))

    def slices(self, partition_path: str) -> dict[str, FileSlice]:
        """Return the newest committed slice of every live file group of one partition, by file id."""
        return {file_id: group.newest for file_id, group in self.groups(partition_path).items()}

    def groups(self, partition_path: str) -> dict[str, FileGroup]:
        """Return every live file group of one partition with all its committed slices, by file id."""
        return self._groups(partition_path, _data_files(self._files(partition_path)))

    def replaced_groups(self, partition_path: str) -> dict[str, FileGroup]:
        """Return the replaced file groups of one partition with those of their committed slices that exist."""
        return self._groups(partition_path, _data_files(self._files(partition_path)), replaced=True)

    def lost(self, partition_path: str) -> list[DataFile]:
        """Return the files that `slices` would show of one partition if they existed; a clean may have taken them."""
        present = {info.path for info in self._files(partition_path)}
        absent = [
            path
            for file_id, name in self._written.names(partition_path)
            if (path := join(partition_path, name)) not in present and (partition_path, file_id) not in self._replaced
        ]
        cleaned = self._cleaned.get(partition_path, ())
        if not absent and not cleaned:
            return []
        named = {file for file in (*map(data_file, absent), *cleaned) if file is not None and file.path not in present}
        groups = self._groups(partition_path, [*_data_files(self._files(partition_path)), *named])
        return [file for group in groups.values() for file in group.newest.data_files if file.path not in present]

    def named_partitions(self) -> list[str]:
        """Return the partitions, existing or not, in which completed writes name files of live file groups."""
        return self._written.partitions

    def _groups(
        self, partition_path: str, files: Iterable[DataFile], *, replaced: bool = False
    ) -> dict[str, FileGroup]:
        found: dict[str, list[DataFile]] = {}
        for file in files:
            is_replaced = (partition_path, file.file_id) in self._replaced
            if is_replaced == replaced and self.sees(file.instant_time):
                found.setdefault(file.file_id, []).append(file)
        return {file_id: self._group(FileGroupId(partition_path, file_id), found[file_id]) for file_id in sorted(found)}

    def _group(self, group: FileGroupId, files: list[DataFile]) -> FileGroup:
        """Return a file group of its files; of two base files of one instant, the later attempt's counts."""
        bases: dict[str, BaseFile] = {}
        for file in files:
            if isinstance(file, BaseFile):
                known = bases.get(file.instant_time)
                if known is None or _attempt(file) > _attempt(known):
                    bases[file.instant_time] = file
        stated = [replace(base, stated=self._written.stated_size(base)) for base in bases.values()]
        logs = [replace(file, stated=self._written.stated(file)) for file in files if isinstance(file, LogFile)]
        return FileGroup(group, self._rule.slices(group, stated, logs, self._completed_at))

    def _files(self, partition_path: str) -> tuple[FileInfo, ...]:
        if partition_path not in self._listings:
            self._listings[partition_path] = tuple(self.storage.list(partition_path))
        return self._listings[partition_path]

    def sees(self, instant_time: str) -> bool:
        known = self._committed.get(instant_time)
        if known is None:
            known = self._committed[instant_time] = self.timeline.is_committed(instant_time)
        return known

    def all_slices(self) -> list[FileSlice]:
        return [file_slice for partition in self.partitions() for file_slice in self.slices(partition).values()]


def _attempt(file: BaseFile) -> WriteToken:
    return WriteToken.parse(file.write_token)


def _data_files(listing: Iterable[FileInfo]) -> Iterator[DataFile]:
    found = (data_file(info.path, info.size) for info in listing)
    return (file for file in found if file is not None)
