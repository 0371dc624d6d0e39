"""Which file slices a reader may see: the committed base and log files of every live file group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...storage.base import FileInfo, Storage, join
from ...timeline.archive.completions import CompletionTimes
from ...timeline.timeline import Timeline
from .file_group import BaseFile, DataFile, FileGroup, FileSlice, LogFile, data_file, every_instant
from .listing import FileListing, StoreListing
from .names import FileGroupId, WriteToken
from .partitions import is_partition
from .slice_rule import slice_rule
from .written import Written


class FileView:
    """The file slices of a table as of one timeline, which decides what is committed.

    ``written`` is what the completed writes of the timeline say. ``listings`` has the files of partitions that were
    listed already, and ``listing`` lists others, by default the store. ``cleaned`` has files that a clean took away
    since, which only `lost` returns.
    """

    def __init__(
        self,
        timeline: Timeline,
        written: Written,
        listings: Mapping[str, tuple[FileInfo, ...]] | None = None,
        cleaned: Mapping[str, tuple[DataFile, ...]] | None = None,
        listing: FileListing | None = None,
    ) -> None:
        self.timeline = timeline
        self._listing: FileListing = listing or StoreListing(timeline.storage)
        self._written = written
        self._replaced = written.replaced
        self._listings = dict(listings or {})
        self._cleaned = dict(cleaned or {})
        self._committed: dict[str, bool] = {}
        self._rule, self._until = slice_rule(timeline), timeline.completed_until
        self._completed_at = CompletionTimes(timeline)
        self._counts = self._rule.counting(timeline)

    @property
    def storage(self) -> Storage:
        return self.timeline.storage

    def partitions(self) -> list[str]:
        """Return the paths of all partitions, sorted; their files, which the walk lists, are kept."""
        self._listings = dict(self._listing.partitions().files)
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

    def listed_file_ids(self, partition_path: str) -> tuple[str, ...]:
        """Return the ids of all file groups of which a partition has a file, committed or not, sorted."""
        return tuple(sorted({file.file_id for file in _data_files(self._files(partition_path))}))

    def listed_logs(self, partition_path: str) -> list[LogFile]:
        """Return all log files of a partition, committed or not."""
        return [file for file in _data_files(self._files(partition_path)) if isinstance(file, LogFile)]

    def lost(self, partition_path: str) -> list[DataFile]:
        """Return the files that `slices` would show of one partition if they existed; a clean may have taken them."""
        present = {info.path for info in self._files(partition_path)}
        # What completed writes name of live file groups.
        absent = [
            path
            for file_id, name in self._written.names(partition_path)
            if (path := join(partition_path, name)) not in present and (partition_path, file_id) not in self._replaced
        ]
        cleaned = self._cleaned.get(partition_path, ())
        if not absent and not cleaned:
            return []
        missing_files = {
            file for file in (*map(data_file, absent), *cleaned) if file is not None and file.path not in present
        }
        # A missing file counts only if it would be in a newest slice beside the files that exist.
        groups = self._groups(partition_path, [*_data_files(self._files(partition_path)), *missing_files])
        return [file for group in groups.values() for file in group.newest.data_files if file.path not in present]

    def named_partitions(self) -> list[str]:
        """Return the partitions, existing or not, in which completed writes name files of live file groups."""
        return self._written.partitions

    def _groups(
        self, partition_path: str, files: Iterable[DataFile], *, replaced: bool = False
    ) -> dict[str, FileGroup]:
        """Return the file groups that readers see, or with ``replaced`` the replaced ones that they saw, by file id."""
        files_by_id: dict[str, list[DataFile]] = {}
        shows = self.shows
        for file in files:
            is_replaced = (partition_path, file.file_id) in self._replaced
            if is_replaced == replaced and shows(file):
                files_by_id.setdefault(file.file_id, []).append(file)
        return {
            file_id: self._group(FileGroupId(partition_path, file_id), files_by_id[file_id])
            for file_id in sorted(files_by_id)
        }

    def _group(self, group: FileGroupId, files: list[DataFile]) -> FileGroup:
        """Return a file group of its files; of two base files of one instant, the later attempt's counts."""
        bases: dict[str, BaseFile] = {}
        for file in files:
            if isinstance(file, BaseFile):
                same_instant = bases.get(file.instant_time)
                if same_instant is None or _attempt(file) > _attempt(same_instant):
                    bases[file.instant_time] = file
        stated = [replace(base, stated=self._written.stated_size(base)) for base in bases.values()]
        logs = [replace(file, stated=self._written.stated(file)) for file in files if isinstance(file, LogFile)]
        slices = self._rule.slices(group, stated, logs, self._completed_at)
        # That is what a slice has by default.
        if self._counts is every_instant:
            return FileGroup(group, slices)
        return FileGroup(group, tuple(replace(file_slice, counts=self._counts) for file_slice in slices))

    def _files(self, partition_path: str) -> tuple[FileInfo, ...]:
        """Return the files of a partition, which is listed once in the life of the view."""
        if partition_path not in self._listings:
            self._listings[partition_path] = self._listing.files(partition_path)
        return self._listings[partition_path]

    def shows(self, file: DataFile) -> bool:
        """Return whether a file, of change data too, is of a slice that readers see or saw."""
        return self._rule.shows(file, self.sees, self._until)

    def sees(self, instant_time: str) -> bool:
        """Return whether readers see an instant; the answer is kept, as many files have the same instant."""
        is_committed = self._committed.get(instant_time)
        if is_committed is None:
            is_committed = self._committed[instant_time] = self.timeline.is_committed(instant_time)
        return is_committed

    def all_slices(self) -> list[FileSlice]:
        """Return the newest committed slices of all partitions."""
        return [file_slice for partition in self.partitions() for file_slice in self.slices(partition).values()]


def _attempt(file: BaseFile) -> WriteToken:
    """Return which attempt of which task wrote a base file; a later attempt is greater."""
    return WriteToken.parse(file.write_token)


def _data_files(listing: Iterable[FileInfo]) -> Iterator[DataFile]:
    """Return the base and log files among listed files."""
    files = (data_file(info.path, info.size) for info in listing)
    return (file for file in files if file is not None)
