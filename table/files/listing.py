"""The listings from which a view gets the files of partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...storage.base import FileInfo, Storage
from ...storage.threads import for_each
from .partitions import metafile_of, walk_partitions

Files = tuple[FileInfo, ...]
# Returns the files of every partition below the folders of one level; None if the folders are to be listed.
Instead = Callable[[Sequence[str]], dict[str, Files] | None]


@dataclass(frozen=True, slots=True)
class Listed:
    """The files of some partitions by path; ``by_folders`` if the store itself listed them."""

    files: Mapping[str, Files]
    by_folders: bool = True


@dataclass(frozen=True, slots=True)
class Needed:
    """Which partitions a query needs; ``named`` are partitions for certain, and not folders above partitions."""

    accepts: Callable[[str], bool]
    named: Collection[str] = ()

    def is_partition(self, storage: Storage, folder: str) -> bool:
        """Return whether a folder is a partition; a file in it tells, unless the query names it."""
        return folder in self.named or storage.exists(metafile_of(folder))


class FileListing(Protocol):
    """Lists the files of a table."""

    def files(self, partition_path: str) -> Files:
        """Return the files of one partition, sorted by path."""

    def of(self, partition_paths: Sequence[str]) -> Listed:
        """Return the files of some partitions."""

    def partitions(self, needed: Needed | None = None) -> Listed:
        """Return the files of every partition, or of those that a query needs."""


@dataclass(frozen=True, slots=True)
class StoreListing:
    """Lists folders, one after the other; each costs a request."""

    storage: Storage

    def files(self, partition_path: str) -> Files:
        return tuple(self.storage.list(partition_path))

    def of(self, partition_paths: Sequence[str]) -> Listed:
        files = for_each(self.storage, self.files, partition_paths)
        return Listed(dict(zip(partition_paths, files, strict=True)))

    def partitions(self, needed: Needed | None = None) -> Listed:
        return self.walked(needed)

    def walked(self, needed: Needed | None, instead: Instead = lambda level: None) -> Listed:
        """Return what `partitions` returns, unless ``instead`` answers for a level of folders and all below it.

        ``instead`` gets the folders of a level before they are listed, and returns None to have them listed.
        """
        answers: list[dict[str, Files]] = []

        def instead_of_listing(level: Sequence[str]) -> dict[str, Files] | None:
            """Return what ``instead`` returns, and remember whether it ever answered."""
            answer = instead(level)
            if answer is not None:
                answers.append(answer)
            return answer

        def left_out(folder: str) -> bool:
            """Return whether a folder is a partition that the query does not need."""
            return needed is not None and not needed.accepts(folder) and needed.is_partition(self.storage, folder)

        return Listed(walk_partitions(self.storage, left_out, instead_of_listing), not answers)
