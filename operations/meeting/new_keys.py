"""Keys that two writers added at the same time, each to another file group, under an index that allows any file group.

Neither writer found the key, so each added it, and their file groups do not show this conflict. The keys of both
writers are read only if another write completed meanwhile, and are held as hashes of 8 bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import Storage, split
from ...table.arrow.arrays import plain
from ...table.arrow.string_hash import hash64
from ...table.files.base_file import open_base
from ...table.files.file_group import BaseFile, DataFile, FileSlice, data_file
from ...table.files.logs.log_contents import BlockContent
from ...table.files.logs.whole_log import read_log
from ...table.files.names import FileGroupId
from ...table.files.read_written import read_written
from ...table.files.view import FileView
from ...table.schema.columns import META_COLUMNS, RECORD_KEY
from ...timeline.timeline import Timeline

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

MOST_HASHES = 16_000_000
_COMMIT_TIME = META_COLUMNS[0]
_COLUMNS = pa.schema([pa.field(_COMMIT_TIME, pa.string()), pa.field(RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class NewKeys:
    """Where a write put keys that it had looked up and not found.

    Attributes:
        files: The number of rows of each file with such keys, by path.
        anywhere: Whether keys are unique in the whole table, not only within their partition.
        logs: The same for log files appended to the file groups of found keys. Such a key may be deleted there, and
            after a compaction that completed meanwhile other writers take it for new.
        partitions: Partitions of the rows whose keys were looked up.
    """

    files: Mapping[str, int]
    anywhere: bool
    logs: Mapping[FileGroupId, Mapping[str, int]] = field(default_factory=dict)
    partitions: frozenset[str] = frozenset()

    def with_logs_of(self, compacted: Collection[FileGroupId]) -> NewKeys:
        """Return the new keys together with those in log files of file groups that were compacted meanwhile."""
        logs = (self.logs[group] for group in sorted(compacted) if group in self.logs)
        return replace(self, files={path: rows for counts in (self.files, *logs) for path, rows in counts.items()})


@dataclass(frozen=True, slots=True)
class Twin:
    """A record key that two writes added: this write to a partition, the other to the file group ``group``."""

    record_key: str
    partition_path: str
    group: FileGroupId


def find_twin(
    storage: Storage,
    timeline: Timeline,
    our_keys: NewKeys,
    instant_time: str,
    their_groups: Collection[FileGroupId],
    times: Collection[str],
) -> Twin | None:
    """Return a key that this write and another write added to different file groups; None if there is no such key.

    ``our_keys`` has the files in which this write put keys that it had not found, and ``timeline``, listed now, shows
    the newest slices of the other file groups. ``instant_time`` is the requested time of this write, and ``times`` are
    those of other writes, which changed the file groups ``their_groups``.
    """
    scopes: dict[str | None, list[str]] = {}
    # If keys are unique in the whole table, the scope is None: all partitions.
    for path in sorted(our_keys.files):
        scopes.setdefault(None if our_keys.anywhere else split(path)[0], []).append(path)
    view: FileView | None = None
    for scope, files in scopes.items():
        groups_in_scope = sorted(group for group in their_groups if scope is None or group.partition_path == scope)
        if not groups_in_scope:
            continue
        view = view or FileView(timeline, read_written(timeline))
        # If a group is gone, another of these writes replaced it, and its file groups hold the rows that remain.
        file_slices = [
            file_slice
            for group in groups_in_scope
            if (file_slice := view.slices(group.partition_path).get(group.file_id)) is not None
        ]
        search = _Search(storage, files, instant_time, file_slices, frozenset(times))
        twin = search.run(sum(our_keys.files[path] for path in files))
        if twin is not None:
            return twin
    return None


@dataclass(frozen=True, slots=True)
class _Search:
    """Compares the new keys of some files of this write with those that the writes at `times` put into file slices."""

    storage: Storage
    files: Collection[str]
    instant_time: str
    file_slices: Collection[FileSlice]
    times: frozenset[str]

    def run(self, count: int) -> Twin | None:
        """Return the first key that both added; None for none.

        ``count`` is the number of own keys; more than `MOST_HASHES` are compared in several passes, each over a part of
        the hashes.
        """
        parts = count // MOST_HASHES + 1
        for part in range(parts):
            own_hashes = self._own_hashes(part, parts)
            for file_slice in self.file_slices:
                for keys in _keys_written_at(self.storage, file_slice.data_files, self.times):
                    same_hash_keys = keys.filter(pa.array(np.isin(hash64(keys), own_hashes)))
                    twin = self._confirmed(same_hash_keys, file_slice) if len(same_hash_keys) else None
                    if twin is not None:
                        return twin
        return None

    def _own_hashes(self, part: int, parts: int) -> Hashes:
        """Return the hashes of this write's keys that belong to one of several parts, each once and sorted."""
        hashes_of_files = [np.zeros(0, np.uint64)]
        for _, keys in self._own_keys():
            hashes = hash64(keys)
            hashes_of_files.append(hashes[hashes % np.uint64(parts) == part])
        return np.unique(np.concatenate(hashes_of_files))

    def _confirmed(self, same_hash_keys: pa.Array, file_slice: FileSlice) -> Twin | None:
        """Return the first of the other write's keys that this write has, too; None if only their hashes are equal."""
        for path, keys in self._own_keys():
            same_keys = keys.filter(pc.is_in(keys, same_hash_keys))
            if len(same_keys):
                return Twin(same_keys[0].as_py(), split(path)[0], file_slice.group)  # one value, for the error
        return None

    def _own_keys(self) -> Iterator[tuple[str, pa.Array]]:
        """Yield the record keys that this write put into its files, in batches, with the path of the file."""
        for path in self.files:
            file = data_file(path)
            if file is not None:
                for keys in _keys_written_at(self.storage, [file], {self.instant_time}):
                    yield path, keys


def _keys_written_at(storage: Storage, files: Iterable[DataFile], times: Collection[str]) -> Iterator[pa.Array]:
    """Yield the record keys of those rows of files that writes at some times wrote, in batches."""
    for file in files:
        if isinstance(file, BaseFile):
            with open_base(storage, file) as reader:
                yield from _keys_of_times(reader.batches(_COLUMNS), times)
            continue
        for block in read_log(storage, file):
            if block.is_data:
                yield from _keys_of_times(BlockContent(storage, block).rows(_COLUMNS), times)


def _keys_of_times(batches: Iterable[pa.RecordBatch], times: Collection[str]) -> Iterator[pa.Array]:
    """Yield the record keys of the rows whose commit time is among some times."""
    wanted_times = pa.array(sorted(times), pa.string())
    for batch in batches:
        is_wanted = pc.is_in(plain(batch.column(_COMMIT_TIME)), wanted_times)
        yield plain(batch.column(RECORD_KEY)).filter(is_wanted)
