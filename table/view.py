"""Which file slices a reader may see: the newest committed base file of every live file group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from ..storage.base import FileInfo, Storage
from ..storage.parallel import for_each
from ..timeline.codec import read_commit
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .names import BaseFileName, WriteToken
from .partitions import is_partition, walk_partitions

FileGroups = frozenset[tuple[str, str]]


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
        replaced: What `read_replaced` found.
        listings: The files of partitions, by path, where they are known already.
        cleaned: Base files that a clean took away since, by partition path; none of them is shown, see `lost`.
    """

    def __init__(
        self,
        storage: Storage,
        timeline: Timeline,
        replaced: FileGroups,
        listings: Mapping[str, tuple[FileInfo, ...]] | None = None,
        cleaned: Mapping[str, tuple[BaseFile, ...]] | None = None,
    ) -> None:
        self._storage = storage
        self._timeline = timeline
        self._replaced = replaced
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
        """Return the base files that `slices` would show of one partition, had no clean taken them away."""
        cleaned = self._cleaned.get(partition_path)
        if not cleaned:
            return []
        files = list(_base_files(self._files(partition_path)))
        present = {file.path for file in files}
        newest = self._newest(partition_path, [*files, *cleaned])
        return [newest[file_id] for file_id in sorted(newest) if newest[file_id].path not in present]

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


def open_view(storage: Storage, timeline: Timeline) -> FileView:
    """Return the view of the table as of ``timeline``, having read which file groups were replaced."""
    return FileView(storage, timeline, read_replaced(storage, timeline))


def read_replaced(storage: Storage, timeline: Timeline) -> FileGroups:
    """Return the file groups that the completed replacecommits of a timeline took away."""
    replacing = [instant for instant in timeline.completed if instant.action == "replacecommit"]
    return _EMPTY.union(*for_each(storage, partial(_replaced, storage, timeline), replacing))


def _replaced(storage: Storage, timeline: Timeline, instant: Instant) -> FileGroups:
    """Return the file groups that a completed replacecommit took away; the body of one never changes."""
    name = storage.path, timeline.layout.folder, instant
    known = _KNOWN.get(name)
    if known is None:
        groups = read_commit(storage, timeline.layout, instant).replaced
        known = frozenset((partition, file_id) for partition, file_ids in groups.items() for file_id in file_ids)
        if sum(map(len, _KNOWN.values())) + len(known) > _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[name] = known
    return known


_EMPTY: FileGroups = frozenset()
# A process runs many tasks, each of which would read the same bodies again.
_KNOWN: dict[tuple[str, str, Instant], FileGroups] = {}
_MOST_KNOWN = 100_000


def _age(file: BaseFile) -> tuple[str, WriteToken]:
    return file.instant_time, WriteToken.parse(file.write_token)


def _base_files(listing: Iterable[FileInfo]) -> Iterator[BaseFile]:
    for info in listing:
        name = BaseFileName.parse(info.path.rpartition("/")[2])
        if name is not None:
            yield BaseFile(info.path, info.size, name.file_id, str(name.write_token), name.instant_time)
