"""Which file slices a reader may see: the newest committed base file of every live file group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...storage.base import FileInfo, Storage, join
from ...timeline.timeline import Timeline
from .names import BaseFileName, WriteToken
from .partitions import is_partition, walk_partitions
from .written import Written


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file as its name and the listing describe it.

    Attributes:
        path: Relative to the table's root.
        size: Bytes.
        file_id: The file group's id.
        write_token: Which task attempt wrote it.
        instant_time: Requested time of the instant that wrote it.
    """

    path: str
    size: int
    file_id: str
    write_token: str
    instant_time: str

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One file group as it stands at one instant."""

    partition_path: str
    file_id: str
    base: BaseFile


class FileView:
    """The file slices of a table as of one timeline.

    Args:
        storage: Rooted at the table.
        timeline: Decides which instants are committed.
        written: What the timeline's completed writes say of files.
        listings: The files of partitions, by path, where they are known already.
        cleaned: Base files that a clean took away since, by partition path; none of them is shown, see `lost`.
    """

    def __init__(
        self,
        storage: Storage,
        timeline: Timeline,
        written: Written,
        listings: Mapping[str, tuple[FileInfo, ...]] | None = None,
        cleaned: Mapping[str, tuple[BaseFile, ...]] | None = None,
    ) -> None:
        self._storage = storage
        self._timeline = timeline
        self._written = written
        self._replaced = written.replaced
        self._listings = dict(listings or {})
        self._cleaned = dict(cleaned or {})
        self._committed: dict[str, bool] = {}

    def partitions(self) -> list[str]:
        """Return the paths of all partitions, sorted; their files, which are found on the way, are kept."""
        self._listings = walk_partitions(self._storage)
        return sorted(self._listings)

    def is_partition(self, partition_path: str) -> bool:
        """Return whether a folder has the metafile that makes it a partition."""
        return is_partition(partition_path, self._files(partition_path))

    def slices(self, partition_path: str) -> dict[str, FileSlice]:
        """Return the newest committed slice of every live file group of one partition, by file id."""
        newest = self._newest(partition_path, _base_files(self._files(partition_path)))
        return {file_id: FileSlice(partition_path, file_id, newest[file_id]) for file_id in sorted(newest)}

    def lost(self, partition_path: str) -> list[BaseFile]:
        """Return the base files that `slices` would show of one partition, were they there.

        A clean may have taken them away, or they are those that completed writes name and nobody finds.
        """
        present = {info.path for info in self._files(partition_path)}
        absent = [
            path
            for file_id, name in self._written.newest.get(partition_path, {}).items()
            if (path := join(partition_path, name)) not in present and (partition_path, file_id) not in self._replaced
        ]
        cleaned = self._cleaned.get(partition_path, ())
        if not absent and not cleaned:
            return []
        named = (file for file in map(base_file, absent) if file is not None)
        newest = self._newest(partition_path, [*_base_files(self._files(partition_path)), *named, *cleaned])
        return [newest[file_id] for file_id in sorted(newest) if newest[file_id].path not in present]

    def named_partitions(self) -> list[str]:
        """Return the partitions in which completed writes left files of live file groups, whether or not they exist."""
        return [
            partition
            for partition, names in self._written.newest.items()
            if any((partition, file_id) not in self._replaced for file_id in names)
        ]

    def _newest(self, partition_path: str, files: Iterable[BaseFile]) -> dict[str, BaseFile]:
        newest: dict[str, BaseFile] = {}
        for file in files:
            if (partition_path, file.file_id) in self._replaced or not self._is_committed(file.instant_time):
                continue
            known = newest.get(file.file_id)
            if known is None or _age(file) > _age(known):
                newest[file.file_id] = file
        return newest

    def _files(self, partition_path: str) -> tuple[FileInfo, ...]:
        if partition_path not in self._listings:
            self._listings[partition_path] = tuple(self._storage.list(partition_path))
        return self._listings[partition_path]

    def _is_committed(self, instant_time: str) -> bool:
        known = self._committed.get(instant_time)
        if known is None:
            known = self._committed[instant_time] = self._timeline.is_committed(instant_time)
        return known

    def all_slices(self) -> list[FileSlice]:
        """Return the slices of all partitions, in order of partition path and file id."""
        return [piece for partition in self.partitions() for piece in self.slices(partition).values()]


def base_file(path: str, size: int = 0) -> BaseFile | None:
    """Return what the path of a base file says, None where it is none."""
    name = BaseFileName.parse(path.rpartition("/")[2])
    return None if name is None else BaseFile(path, size, name.file_id, str(name.write_token), name.instant_time)


def _age(file: BaseFile) -> tuple[str, WriteToken]:
    return file.instant_time, WriteToken.parse(file.write_token)


def _base_files(listing: Iterable[FileInfo]) -> Iterator[BaseFile]:
    found = (base_file(info.path, info.size) for info in listing)
    return (file for file in found if file is not None)
