"""The file slices that may hold the rows of some keys, and which of the keys each may hold; opens no data file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...errors import TableConfigError, UnsupportedTableError
from ...index.registry import placing_index_for
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ..plan import SlicePart, Split
from ..snapshot import Snapshot
from .sought_keys import SoughtKeys

# Returns the file slices of a partition with those of its keys that each may hold.
_SliceFinder = Callable[[str, pa.StringArray, Sequence[FileSlice]], Iterator[tuple[FileSlice, pa.StringArray]]]


@dataclass(frozen=True, slots=True)
class SoughtPart:
    """A file slice, and the keys to look for in it: unique, in the order of their bytes."""

    part: SlicePart
    keys: pa.StringArray

    @property
    def size(self) -> int:
        return self.part.size


@dataclass(frozen=True, slots=True)
class SoughtSplit:
    """What a single task reads; ``by`` is as in `SoughtKeys`."""

    parts: tuple[SoughtPart, ...]
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SoughtSlices:
    """The file slices that may hold rows of the keys, each with at least one key."""

    keyed_slices: tuple[tuple[FileSlice, pa.StringArray], ...]
    by: tuple[str, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot, sought: SoughtKeys) -> SoughtSlices:
        """Return the slices for some keys, chosen by partition and, in a table with buckets, by the keys' hashes."""
        keys_of = sought.by_partition(snapshot.config, snapshot.schema)
        find_slices = _slice_finder(snapshot)
        keyed_slices: list[tuple[FileSlice, pa.StringArray]] = []
        for path, slices in _by_partition(snapshot.slices()):
            keys = keys_of(path)
            if len(keys):
                keyed_slices += find_slices(path, keys, slices)
        return cls(tuple(keyed_slices), sought.by)

    @property
    def size(self) -> int:
        return sum(file_slice.size for file_slice in self.slices)

    @property
    def pairs(self) -> int:
        """The number of pairs of a slice and a key that is looked for in it."""
        return sum(len(keys) for _, keys in self.keyed_slices)

    @property
    def slices(self) -> list[FileSlice]:
        return [file_slice for file_slice, _ in self.keyed_slices]

    def splits(self, plan: Iterable[Split]) -> list[SoughtSplit]:
        """Return a plan of reading the slices, none of which is cut, with the keys to look for in each."""
        keys = {file_slice.files[0]: keys for file_slice, keys in self.keyed_slices}
        return [
            SoughtSplit(tuple(SoughtPart(part, keys[part.path]) for part in split.parts), self.by) for split in plan
        ]


def _by_partition(slices: Iterable[FileSlice]) -> Iterator[tuple[str, list[FileSlice]]]:
    """Return slices by their partition, in the order in which the partitions come."""
    by_path: dict[str, list[FileSlice]] = {}
    for file_slice in slices:
        by_path.setdefault(file_slice.partition_path, []).append(file_slice)
    return iter(by_path.items())


def _all_with_keys(
    path: str, keys: pa.StringArray, slices: Sequence[FileSlice]
) -> Iterator[tuple[FileSlice, pa.StringArray]]:
    """Return all slices, each with all keys."""
    return ((file_slice, keys) for file_slice in slices)


def _slice_finder(snapshot: Snapshot) -> _SliceFinder:
    """Return the function that finds, among a partition's slices, those that may hold keys, each with these keys.

    It goes by the buckets of the keys, of which the partition has as many as at the moment that ``snapshot`` shows. In
    a table without buckets it returns all slices, each with all keys.
    """
    try:
        index = placing_index_for(snapshot.config)
    except (UnsupportedTableError, TableConfigError):
        # A table can be read without the index that writes it.
        index = None
    if index is None:
        return _all_with_keys
    numbers = snapshot.bucket_numbers()

    def by_bucket(
        path: str, keys: pa.StringArray, slices: Sequence[FileSlice]
    ) -> Iterator[tuple[FileSlice, pa.StringArray]]:
        """Yield the slices of the keys' buckets, each with its keys; ``slices`` are those of the partition ``path``.

        If the number of its buckets is unknown, yield all slices, each with all keys.
        """
        count = numbers.of(path)
        if count is None:
            yield from _all_with_keys(path, keys, slices)
            return
        candidates = index.candidates(keys)
        buckets = np.concatenate(candidates) % np.uint32(count)
        order = np.argsort(buckets, kind="stable")
        bounds = np.searchsorted(buckets[order], np.arange(count + 1))
        for file_slice in slices:
            bucket = index.number_of(FileGroupId(path, file_slice.file_id))
            if bucket is None or bucket >= count:
                # A file group of an older number of buckets, or of a writer with another index, may hold any key.
                yield file_slice, keys
            elif bounds[bucket] < bounds[bucket + 1]:
                positions = order[bounds[bucket] : bounds[bucket + 1]]
                if len(candidates) > 1:
                    # The hashes of all keys by one rule come before those by the other.
                    positions = np.unique(positions % len(keys))
                yield file_slice, keys.take(pa.array(positions))

    return by_bucket
