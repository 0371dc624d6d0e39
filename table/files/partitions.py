"""Partitions of a table: the metafile that makes a folder one, and their listing.

Source: ``org.apache.hudi.common.model.HoodiePartitionMetadata`` and ``FileSystemBackedTableMetadata``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import CorruptFileError, InvalidOptionError, PartitionValueError
from ...storage.base import FileInfo, Folder, Storage, refuse_links
from ...storage.threads import for_each
from ..config.java_properties import format_properties, parse_properties

METAFILE = ".hoodie_partition_metadata"
_COMMIT_TIME = "commitTime"
_DEPTH = "partitionDepth"
_META_FOLDER = ".hoodie"
_NUMBER = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """What a partition's metafile says; ``depth`` counts the folders from the table's root to the partition's files."""

    instant_time: str
    depth: int


def write_partition_metafile(storage: Storage, partition_path: str, instant_time: str) -> bool:
    """Make a folder a partition, unless it is already; True when this call did it.

    Raises `PartitionValueError` if a partition lies above or below it, as unescaped slashes in partition values make
    them: Apache Hudi would see only the upper partition.
    """
    depth = len(partition_path.split("/")) if partition_path else 0
    path = metafile_of(partition_path)
    data = partition_metafile(instant_time, depth)
    if not storage.create(path, data):
        return False
    relative = _relative_partition(storage, partition_path)
    if relative is not None:
        storage.delete(path)
        raise PartitionValueError(
            f"The partitions {partition_path!r} and {relative!r} of {storage.uri('')} lie one inside the other.",
            "Change the values, or make the table with hoodie.datasource.write.partitionpath.urlencode=true.",
        )
    return True


def partition_metafile(instant_time: str, depth: int) -> bytes:
    """Return the content of a partition's metafile."""
    return format_properties({_COMMIT_TIME: instant_time, _DEPTH: str(depth)}, "partition metadata")


def parse_partition_metafile(data: bytes, where: str) -> PartitionMetadata:
    """Return what a metafile says; CorruptFileError if it lacks anything. ``where`` names the file in the error."""
    try:
        properties = parse_properties(data)
    except ValueError:
        properties = {}
    instant_time, depth = properties.get(_COMMIT_TIME, ""), properties.get(_DEPTH, "")
    if not _NUMBER.fullmatch(instant_time) or not _NUMBER.fullmatch(depth):
        raise CorruptFileError(
            f"The partition metafile {where} does not say {_COMMIT_TIME} and {_DEPTH}.",
            "Restore it, or copy the metafile of another partition of the same depth.",
        )
    return PartitionMetadata(instant_time, int(depth))


def list_partitions(storage: Storage) -> list[str]:
    """Return the paths of all partitions, sorted; [""] for an unpartitioned table."""
    return sorted(walk_partitions(storage))


def walk_partitions(
    storage: Storage,
    left_out: Callable[[str], bool] = lambda folder: False,
    instead: Callable[[Sequence[str]], dict[str, tuple[FileInfo, ...]] | None] = lambda level: None,
) -> dict[str, tuple[FileInfo, ...]]:
    """Return the files of every partition by its path, with one listing of each folder.

    ``left_out`` names partitions that are not listed; it must be false for a folder above partitions. Before the walk
    lists the folders of a level, ``instead`` may return the files of the whole table, which ends the walk, or None. As
    for Apache Hudi, a folder without a metafile is no partition, and neither is a folder below a partition.
    """

    def look(folder: str) -> Folder | None:
        return None if folder and left_out(folder) else storage.look(folder)

    files_by_partition: dict[str, tuple[FileInfo, ...]] = {}
    level = [""]
    while level:
        answer = instead(level)
        if answer is not None:
            return answer
        next_level: list[str] = []
        for folder, content in zip(level, for_each(storage, look, level), strict=True):
            if content is None:
                continue
            refuse_links(storage.path, folder, content.links)
            if is_partition(folder, content.files):
                files_by_partition[folder] = content.files
            else:
                # The table's root alone has Hudi's own folder.
                next_level += [_join(folder, name) for name in content.folders if folder or name != _META_FOLDER]
        level = next_level
    return files_by_partition


def is_partition(folder: str, files: Iterable[FileInfo]) -> bool:
    """Return whether a folder is a partition: whether a metafile is among its files."""
    metafile = metafile_of(folder)
    return any(info.path == metafile for info in files)


def _relative_partition(storage: Storage, partition_path: str) -> str | None:
    """Return a partition above or below ``partition_path`` in the tree of folders; None if there is none.

    The root of the table ("") has none: an unpartitioned table has no other partitions.
    """
    if not partition_path:
        return None
    names = partition_path.split("/")
    for length in range(len(names)):
        parent = "/".join(names[:length])
        if storage.exists(metafile_of(parent)):
            return parent
    waiting = [_join(partition_path, name) for name in storage.look(partition_path).folders]
    while waiting:
        child = waiting.pop()
        content = storage.look(child)
        if is_partition(child, content.files):
            return child
        waiting += [_join(child, name) for name in content.folders]
    return None


def metafile_of(folder: str) -> str:
    return _join(folder, METAFILE)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def choose_partitions(table_path: str, partitions: Sequence[str], named: Sequence[str] | None) -> list[str]:
    """Return the partitions of a table that a caller names, in the table's order; all of them with None.

    Raises `InvalidOptionError` for a name that is no partition.
    """
    if named is None:
        return [*partitions]
    unknown = [path for path in named if path not in partitions]
    if unknown:
        raise InvalidOptionError(
            f"The table {table_path} has no partition {unknown[0]!r}.",
            "Name partitions by their paths below the table's root, as the meta column _hoodie_partition_path has "
            "them.",
        )
    return [path for path in partitions if path in set(named)]
