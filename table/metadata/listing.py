"""A listing of a table's files by the partition ``files`` of its metadata table, if folders would cost more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import CorruptFileError
from ...storage.base import FileInfo, Storage, split
from ..files.listing import Files, Listed, Needed, StoreListing
from .at_hand import MetadataAtHand
from .kinds import FILES
from .record_keys import PARTITIONS, ROOT, key_of_partition

if TYPE_CHECKING:
    from .metadata_table import MetadataPartition

# To open the metadata table takes as long as so many folders: on a disk as measured, over a network by the number of
# requests.
_LEAST_ON_DISK = 1_000
_LEAST_REMOTE = 20
# On a disk a file of the metadata table takes as long as so many folders.
_FOLDERS_A_FILE = 10

_FILES_OF = "filesystemMetadata"

Question = Callable[["MetadataPartition"], dict[str, Files]]


@dataclass(frozen=True, slots=True)
class MetadataListing:
    """Asks the metadata table if that needs fewer requests than folders do, and it can answer; else lists folders.

    ``files`` states facts of files, which are true of any moment. Their times are unknown.
    """

    storage: Storage
    metadata: MetadataAtHand

    def files(self, partition_path: str) -> Files:
        return self._folder_listing.files(partition_path)

    def of(self, partition_paths: Sequence[str]) -> Listed:
        """List some partitions: by the metadata table if it answers, else by their folders."""
        answer = self._files_by_metadata(len(partition_paths), partial(_files_of_partitions, partition_paths))
        if answer is None:
            return self._folder_listing.of(partition_paths)
        return Listed({path: answer.get(path, ()) for path in partition_paths}, by_folders=False)

    def partitions(self, needed: Needed | None = None) -> Listed:
        """List the partitions that a query needs, by default all.

        At each level of folders with many folders, it asks the metadata table first.
        """
        return self._folder_listing.walked(needed, partial(self._files_below_folders, needed))

    def doubt(self, path: str) -> None:
        """Do without the metadata table, which is wrong about a file."""
        what = f"It lacks the file {path}, or says another size than the write that made the file."
        self.metadata.doubt(CorruptFileError(what, ""))

    def _files_below_folders(self, needed: Needed | None, level: Sequence[str]) -> dict[str, Files] | None:
        """Return the files of the partitions below some folders by partition path, as the metadata table names them.

        ``level`` has folders of one depth; ``needed`` tells which partitions a query needs, None for all. Return None
        if the folders themselves are to be listed.
        """
        if len(level) < _least_folders(self.storage):
            return None
        if needed is None:
            return self._files_by_metadata(len(level), _files_of_all)
        # A folder that the query names, and does not need, costs no request.
        requests = sum(needed.accepts(folder) or folder not in needed.named for folder in level)
        return self._files_by_metadata(requests, partial(_files_of_needed, needed, level))

    def _files_by_metadata(self, folders: int, question: Question) -> dict[str, Files] | None:
        """Return the files of partitions by partition path, as ``question`` reads them from the metadata table.

        Return None if that takes longer than to list ``folders`` folders, or if the metadata table is missing, damaged
        or behind its table.
        """
        if folders < _least_folders(self.storage) or FILES not in self.metadata.table.config.metadata_partitions:
            return None
        metadata = self.metadata.trusted
        if metadata is None:
            return None
        # To read a file of the metadata table takes as long as to list so many folders.
        folders_per_file = 1 if self.storage.remote else _FOLDERS_A_FILE

        def answer_if_cheaper(files: MetadataPartition) -> dict[str, Files] | None:
            files_to_read = sum(len(file_slice.data_files) for file_slice in files.slices.values())
            return question(files) if files_to_read * folders_per_file < folders else None

        return metadata.ask(FILES, answer_if_cheaper)

    @property
    def _folder_listing(self) -> StoreListing:
        return StoreListing(self.storage)


def lists_any(files: MetadataPartition, paths: Collection[str]) -> bool:
    """Return whether the list of files names one of some data files, such as files that are about to be deleted."""
    listed = _files_of_partitions(sorted({split(path)[0] for path in paths}), files)
    return not {info.path for infos in listed.values() for info in infos}.isdisjoint(paths)


def _least_folders(storage: Storage) -> int:
    """Return from how many folders on the metadata table answers sooner."""
    return _LEAST_REMOTE if storage.remote else _LEAST_ON_DISK


def _files_of_all(files: MetadataPartition) -> dict[str, Files]:
    """Return the files of every partition that the metadata table knows, by partition path."""
    # Not only those of the record that names all partitions: a clean may take one from it while a write adds files.
    files_by_key = _files_by_key(files.records())
    # It takes out the record that holds names of partitions, and no files.
    _take_names(files_by_key)
    return {_partition_path(key): infos for key, infos in files_by_key.items()}


def _files_of_partitions(paths: Sequence[str], files: MetadataPartition) -> dict[str, Files]:
    """Return the files of some partitions by partition path; a partition without a record is left out."""
    files_by_key = _files_by_key(files.find(pa.array([key_of_partition(path) for path in paths], pa.string())))
    return {_partition_path(key): infos for key, infos in files_by_key.items()}


def _files_of_needed(needed: Needed, level: Sequence[str], files: MetadataPartition) -> dict[str, Files]:
    """Return the files of the partitions that a query needs, by partition path; ``level`` has folders of one depth.

    These folders are looked up together with the names of all partitions: they are partitions, too, unless the
    partitions lie deeper. Commits name, in ``needed.named``, those that a clean took from the names while a write added
    files.
    """
    folders_to_ask = {folder for folder in level if needed.accepts(folder)}
    files_by_key = _files_by_key(
        files.find(pa.array([PARTITIONS, *map(key_of_partition, folders_to_ask)], pa.string()))
    )
    names = {*_take_names(files_by_key), *needed.named}
    partitions: dict[str, Files] = {name: () for name in names if needed.accepts(name)}
    deeper = [name for name in partitions if name not in folders_to_ask]
    files_deeper = _files_of_partitions(deeper, files) if deeper else {}
    return {**partitions, **{_partition_path(key): infos for key, infos in files_by_key.items()}, **files_deeper}


def _take_names(files_by_key: dict[str, Files]) -> list[str]:
    """Take the record of all partitions out of the records, and return the partitions that it names.

    Raises `CorruptFileError` if it is missing: each list of files begins with it.
    """
    if PARTITIONS not in files_by_key:
        raise CorruptFileError("It has no record that names all partitions.", "")
    return [_partition_path(info.path) for info in files_by_key.pop(PARTITIONS)]


def _partition_path(key: str) -> str:
    return "" if key == ROOT else key


def _files_by_key(records: Iterable[pa.StructArray]) -> dict[str, Files]:
    """Return the files that each record names, by the record's key: that of a partition, or `PARTITIONS`.

    The record `PARTITIONS` names all partitions, as if they were files. Raises `CorruptFileError` if a file has no
    size, as no file that a write left has.
    """
    files_by_key: dict[str, Files] = {}
    for part in records:
        if part.type.get_field_index(_FILES_OF) < 0:
            raise CorruptFileError("Its records name no files.", "")
        maps = part.field(_FILES_OF)
        keys = part.field("key").to_pylist()  # O(partitions)
        names = maps.keys.to_pylist()  # O(files)
        sizes = maps.items.field("size").to_pylist()  # O(files)
        offsets = maps.offsets.to_pylist()  # O(partitions)
        for key, start, end in zip(keys, offsets, offsets[1:], strict=False):
            files_by_key[key] = _infos_of_record(key, names[start:end], sizes[start:end])
    return files_by_key


def _infos_of_record(key: str, names: list[str], sizes: list[int]) -> Files:
    """Return the files of one record in the order of their paths; ``names`` and ``sizes`` have an entry for each.

    Of the record of all partitions return these in its own order, as files without bytes whose paths are the names.
    """
    if key == PARTITIONS:
        return tuple(FileInfo(name, 0, 0.0) for name in names)
    folder_prefix = "" if key == ROOT else f"{key}/"
    if min(sizes, default=1) <= 0:
        name = names[sizes.index(min(sizes))]
        raise CorruptFileError(f"It says of the file {folder_prefix}{name} that it has no bytes.", "")
    return tuple(FileInfo(folder_prefix + name, size, 0.0) for name, size in sorted(zip(names, sizes, strict=True)))
