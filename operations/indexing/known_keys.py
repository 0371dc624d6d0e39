"""The record keys of file slices, as hashes, that this process knows between the batches of streams.

A slice is identified by the paths and sizes of its files, which never change. A commit, compaction, rollback or restore
by any process gives a file group other files, and a replaced file group has no slice. So a lookup that finds another
slice than the known slice reads it. A key counts as absent from a slice only if the process knows all keys of the
slice. The keys are stored by file group, so that a lookup finds a key of several file groups in each of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from ...index.base import Index, KeyedRows, Tags
from ...index.gathered_keys import GatheredKeys, Room
from ...index.lookup import TableLookup, Unit
from ...index.slice_keys import Hits, SliceKeys
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.merging.key_set import KeyHashes, KeySet
from ...table.seen_table import SeenTable
from ...table.table import Table

# A lookup keeps the file groups of the last lookups: else tables that exceed the bound together would evict each other.
_RECENT = 8

TableName = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class SliceName:
    """What identifies the contents of a file slice.

    Attributes:
        files: Paths and sizes; no two writers give files with different contents the same path.
    """

    group: FileGroupId
    base_time: str
    files: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, file_slice: FileSlice) -> SliceName:
        files = frozenset((file.path, file.size) for file in file_slice.data_files)
        return cls(file_slice.group, file_slice.base_time, files)

    def is_newer(self, other: SliceName) -> bool:
        """Return whether this slice came after another slice of the same file group; appends add files to a slice."""
        return (self.base_time, len(self.files)) > (other.base_time, len(other.files))


@dataclass(slots=True)
class _KnownSlice:
    """A slice, its keys, and the number of the last lookup that used them, as `KnownSlices.begin` counts lookups."""

    name: SliceName
    keys: KeySet
    last: int


class KnownSlices:
    """The newest known slice of each file group of all tables; slices that no lookup used lately are dropped first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[TableName, dict[FileGroupId, _KnownSlice]] = {}
        self._lookups = 0

    @property
    def nbytes(self) -> int:
        """How many bytes of keys all tables have together."""
        with self._lock:
            return sum(known.keys.nbytes for known in self._all())

    def begin(self) -> None:
        """Count one more lookup."""
        with self._lock:
            self._lookups += 1

    def has(self, table: TableName) -> bool:
        """Return whether any slice of a table is known."""
        return table in self._tables

    def keys_of(self, table: TableName, name: SliceName) -> KeySet | None:
        """Return the keys of a slice, and count this as use; None if the process does not know this very slice.

        An older slice of the same file group is dropped, because no later lookup asks for it.
        """
        with self._lock:
            groups = self._tables.get(table, {})
            entry = groups.get(name.group)
            if entry is None:
                return None
            if entry.name != name:
                if name.is_newer(entry.name):
                    self._drop(table, name.group)
                return None
            entry.last = self._lookups
            return entry.keys

    def room(self, most: int) -> Room:
        """Return the bytes that new slices may take, if all slices together may take ``most``.

        Only slices that the last lookups used count: `keep` drops others first.
        """
        with self._lock:
            recent = (known.keys.nbytes for known in self._all() if known.last > self._lookups - _RECENT)
            return Room(most - sum(recent))

    def keep(self, table: TableName, slices: Mapping[SliceName, KeySet], most: int) -> None:
        """Keep the keys of slices, of which the last of a file group wins, and drop others beyond ``most`` bytes."""
        with self._lock:
            groups = self._tables.setdefault(table, {})
            for name, keys in slices.items():
                groups[name.group] = _KnownSlice(name, keys, self._lookups)
            nbytes = sum(known.keys.nbytes for known in self._all())
            known_slices = [(path, known) for path, groups in self._tables.items() for known in groups.values()]
            for path, entry in sorted(known_slices, key=lambda place: place[1].last):
                if nbytes <= most:
                    break
                nbytes -= entry.keys.nbytes
                self._drop(path, entry.name.group)

    def forget(self, table: TableName) -> None:
        """Drop all slices of a table, because another table is made at its path."""
        with self._lock:
            self._tables.pop(table, None)

    def forget_all(self) -> None:
        """Drop all slices, for a forked child process: a thread that changes the parent's is not in the child."""
        self._lock, self._tables = threading.Lock(), {}

    def _all(self) -> list[_KnownSlice]:
        return [known for groups in self._tables.values() for known in groups.values()]

    def _drop(self, table: TableName, group: FileGroupId) -> None:
        """Drop the known slice of a file group, and the table once it has no other; the caller holds the lock."""
        groups = self._tables[table]
        del groups[group]
        if not groups:
            del self._tables[table]


KNOWN_SLICES = KnownSlices()
os.register_at_fork(after_in_child=KNOWN_SLICES.forget_all)


@dataclass
class KeysOfWrite:
    """What one write knows of the table's keys, and what it adds to `KNOWN_SLICES` once it is complete.

    Attributes:
        fills: Whether its lookup keeps the keys of slices that it reads, for a later batch.
        read: The slices whose keys its lookups read.
        written: The slices that its current attempt makes.
    """

    table: TableName
    index: TableLookup
    fills: bool
    room: Room
    read: dict[SliceName, KeySet] = field(default_factory=dict)
    written: dict[SliceName, KeySet] = field(default_factory=dict)

    def keys_of(self, file_slice: FileSlice) -> KeySet | None:
        """Return the keys of a slice, known before or read by this write; None if neither has them."""
        name = SliceName.of(file_slice)
        keys = KNOWN_SLICES.keys_of(self.table, name)
        return self.read.get(name) if keys is None else keys

    def tag(self, rows: KeyedRows, seen: SeenTable) -> Tags:
        """Return the file groups of each row's key; it reads only slices whose keys are unknown."""
        return self.index.tag_by(rows, seen.view, partial(self._look, seen))

    def complete(self) -> None:
        """Keep the keys that the write read and wrote, after its instant completed."""
        KNOWN_SLICES.keep(self.table, {**self.read, **self.written}, self.index.settings.cache_bytes)

    def hits(self, units: Sequence[Unit]) -> dict[int, Hits]:
        """Return the hits of the units with known slices, by the positions of the units; the others have to be read."""
        hits: dict[int, Hits] = {}
        hashes: dict[int, _OrderedHashes] = {}
        for number, (wanted_keys, file_slice) in enumerate(units):
            keys = self.keys_of(file_slice)
            if keys is not None:
                # The units of one search share their array of keys, so it is ordered once.
                of_search = hashes.get(id(wanted_keys)) or hashes.setdefault(
                    id(wanted_keys), _OrderedHashes.of(wanted_keys)
                )
                hits[number] = of_search.hits(keys)
        return hits

    def add_read(self, file_slice: FileSlice, hits: Hits) -> None:
        """Add the keys of a slice that a lookup read, if the lookup was to gather them and there was room for all."""
        if hits.all_keys is not None:
            self.read[SliceName.of(file_slice)] = hits.all_keys

    def _look(self, seen: SeenTable, units: Sequence[Unit]) -> list[Hits]:
        """Return the hits of each unit, in order; it reads only the slices whose keys are unknown."""
        hits = self.hits(units)
        rest = [number for number in range(len(units)) if number not in hits]
        storage, sees = seen.storage, seen.view.sees
        gathered = [GatheredKeys(self.room) if self.fills else None for _ in rest]
        read_hits = self.index.look_here(
            [
                (units[number][0], SliceKeys(storage, units[number][1], sees, keys))
                for number, keys in zip(rest, gathered, strict=True)
            ]
        )
        for number, of_slice in zip(rest, read_hits, strict=True):
            self.add_read(units[number][1], of_slice)
            hits[number] = of_slice
        return [hits[number] for number in range(len(units))]


@dataclass(frozen=True, slots=True)
class _OrderedHashes:
    """The hashes of wanted keys in the order of the fastest search, with the position of each key."""

    hashes: KeyHashes
    positions: np.ndarray[tuple[int], np.dtype[np.int64]]

    @classmethod
    def of(cls, keys: pa.StringArray) -> _OrderedHashes:
        hashes = KeyHashes.of(keys)
        order = np.argsort(hashes.first)
        return cls(hashes.take(order), order)

    def hits(self, keys: KeySet) -> Hits:
        """Return which of the wanted keys a slice with some keys holds."""
        return Hits(np.sort(self.positions[keys.holds(self.hashes)]))


def keys_of_write(table: Table, index: Index, *, fills: bool, is_new: bool = False) -> KeysOfWrite | None:
    """Return what a write knows of the table's keys; None if it knows none and is not to keep any.

    It keeps none if the index does not look keys up in the table's files, or if the settings leave no bytes for keys.
    ``fills`` is True for a batch of a stream, because another batch follows, and ``is_new`` if the write makes the
    table.
    """
    if not isinstance(index, TableLookup) or not index.settings.cache_bytes:
        return None
    config = table.config
    # This distinguishes the table from others, and from an earlier table at its path.
    name = table.storage.uri(""), config.name, config.record_key_fields, config.partition_fields
    if is_new:
        KNOWN_SLICES.forget(name)
    if not fills and not KNOWN_SLICES.has(name):
        return None
    KNOWN_SLICES.begin()
    return KeysOfWrite(name, index, fills, KNOWN_SLICES.room(index.settings.cache_bytes))
