"""The bucket index of a table whose writers may be of two releases, which parse some record keys differently.

Apache Hudi 0.15 and 1.x write tables of version 6 side by side, and cut keys that hold ``,`` or ``:`` in different ways
before they hash them. Nothing in the table says which of the two a writer is. If the two put a key into different
buckets, a stored row of the key shows its bucket, and a new key goes by the rule that stored keys of this kind follow.
A table that was upgraded since still has such rows, but only writers of 1.x, so that new keys go by their rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, cast

import numpy as np
import pyarrow as pa

from ..errors import BucketMisfitError
from ..table.arrow.arrays import plain
from ..table.arrow.string_hash import string_buffers
from ..table.config import property_keys as key
from ..table.files.file_group import FileSlice
from ..table.files.names import FileGroupId
from ..table.files.view import FileView
from ..table.keys.generator import KeyPart
from .base import Buckets, Positions
from .bucket import BucketIndex, Hashes, hashes_to_buckets
from .key_parser import KeyParser, separate_values
from .slice_keys import SliceKeys, WantedKeys

# How many file slices are read for keys that show by which rule the table's writers go.
_SLICES_LOOKED_INTO = 32
_NEITHER = -1
_COLON = ord(":")
_RELEASES = (KeyParser.RELEASE_1, KeyParser.RELEASE_0)

Choice = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class ParsedTwiceIndex(BucketIndex):
    """A bucket index that asks stored rows if two releases disagree.

    It keeps what it learns of the table's files, and travels without that.

    Attributes:
        release_0_writes: Whether Apache Hudi 0.x may write the table.
    """

    release_0_writes: bool = True

    def buckets(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the buckets on which both releases agree; raises `BucketMisfitError` for a key without one."""
        # Without the numbers of partitions there are no stored rows to ask, so that any one partition path will do.
        paths = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), len(record_keys)), pa.array([""]))
        return replace(self, numbers=None).buckets_in(paths, record_keys, parts)

    def buckets_in(self, paths: pa.DictionaryArray, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the bucket of each key; stored rows decide if the two releases choose different buckets.

        Apache Hudi 0.x and 1.x parse some record keys differently. Without ``parts``, the values of the key's columns,
        record keys are parsed. Raises `BucketMisfitError` if stored rows do not tell which of the two buckets it is.
        """
        first, second = (self._index_of_release(release) for release in _RELEASES)
        buckets = first.buckets_in(paths, record_keys, parts)
        if self._agree(record_keys, parts):
            return buckets
        buckets_of_0 = second.buckets_in(paths, record_keys, parts)
        differing = np.flatnonzero(buckets != buckets_of_0)
        if len(differing):
            at = pa.array(differing)
            by_release = [buckets[differing], buckets_of_0[differing]]
            doubts = KeyDoubts(plain(record_keys).take(at).cast(pa.string()), paths.take(at), by_release)
            buckets[differing] = np.choose(self._stored_keys.choice(doubts), by_release)
        return buckets

    @cached_property
    def _stored_keys(self) -> _StoredKeys:
        return _StoredKeys(self)

    def rescaled(
        self, record_keys: pa.Array, parts: Sequence[KeyPart], source: FileGroupId, old: int, new: int
    ) -> Buckets:
        """Return the new bucket of each key by the release that put it into the file group; by 1.x if both would.

        ``old`` and ``new`` are the numbers of buckets of the partition before and after a rescale.
        """
        hashes = self._index_of_release(KeyParser.RELEASE_1).hashes(record_keys, parts)
        if not self._agree(record_keys, parts):
            hashes_of_0 = self._index_of_release(KeyParser.RELEASE_0).hashes(record_keys, parts)
            bucket = self.number_of(source)
            hashes = np.where((hashes % old != bucket) & (hashes_of_0 % old == bucket), hashes_of_0, hashes)
        return hashes_to_buckets(hashes, new)

    def candidates(self, record_keys: pa.Array) -> tuple[Hashes, ...]:
        """Return the hashes of the keys by each release, one array if all are equal."""
        first, second = (self._index_of_release(release) for release in _RELEASES)
        hashes = (first.hashes(record_keys),)
        return hashes if self._agree(record_keys) else (*hashes, second.hashes(record_keys))

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return the positions of the keys that neither release puts into the file group."""
        first, second = (self._index_of_release(release).misfits(record_keys, group) for release in _RELEASES)
        return np.intersect1d(first, second, assume_unique=True)

    def _agree(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> bool:
        """Return whether both releases surely find the same values in all keys: none has a colon, or no value has."""
        if separate_values(parts, self.hash_fields or self.record_key_fields) is not None:
            return True
        data, _ = string_buffers(plain(record_keys))
        return not (data == _COLON).any()

    def _index_of_release(self, release: KeyParser) -> BucketIndex:
        """Return the index by the rule of one release, which never asks stored rows."""
        return BucketIndex(self.bucket_count, self.record_key_fields, self.hash_fields, release, self.numbers)


@dataclass(frozen=True)
class KeyDoubts:
    """Record keys of which two releases make two buckets; ``by_release`` has those of 1.x, then those of 0.x."""

    keys: pa.StringArray
    paths: pa.DictionaryArray
    by_release: list[Buckets]

    @cached_property
    def named(self) -> list[str]:
        """The partitions that the codes of ``paths`` stand for."""
        named: list[str] = self.paths.dictionary.to_pylist()  # O(partitions)
        return named

    def at(self, row: int) -> str:
        """Return the words for one key, for an error."""
        first, second = (int(buckets[row]) for buckets in self.by_release)
        named, path = self.keys[row].as_py(), self.paths[row].as_py()  # one value each, for the error
        return (
            f"The record key {named!r} in the partition {path!r} belongs to bucket {first} by the rules of Apache Hudi "
            f"1.x and to bucket {second} by those of 0.x"
        )


@dataclass(frozen=True)
class _StoredKeys:
    """Asks the files of a table in which of two buckets keys are; a table that is being made has none."""

    index: ParsedTwiceIndex

    def choice(self, doubts: KeyDoubts) -> Choice:
        """Return for each key whose rule it follows: 0 for 1.x, 1 for 0.x; `BucketMisfitError` if nothing tells."""
        stored = [self._are_stored(doubts, buckets) for buckets in doubts.by_release]
        stored_twice = np.flatnonzero(stored[0] & stored[1])
        if len(stored_twice):
            raise BucketMisfitError(
                f"{doubts.at(int(stored_twice[0]))}, and the table{self._table_words} has it in both.",
                "Delete one of the two rows with the release of Apache Hudi that wrote it, or rewrite the table with "
                "mode overwrite.",
            )
        choice = np.where(stored[0], 0, np.where(stored[1], 1, _NEITHER))
        new_keys = np.flatnonzero(choice == _NEITHER)
        if len(new_keys):
            choice[new_keys] = self._rule_of_new_keys(doubts, int(new_keys[0]))
        return choice

    @property
    def _table_words(self) -> str:
        return "" if self._view is None else f" {self._view.storage.path}"

    @cached_property
    def _view(self) -> FileView | None:
        return None if self.index.numbers is None else self.index.numbers.view()

    def _are_stored(self, doubts: KeyDoubts, buckets: Buckets) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return whether each key is stored in the bucket of ``buckets`` at its position."""
        are_stored = np.zeros(len(buckets), np.bool_)
        codes = doubts.paths.indices.to_numpy(zero_copy_only=False)
        # Each number is that of a pair: a partition and one of its buckets.
        places = codes.astype(np.int64) << 32 | buckets
        for place in np.unique(places).tolist():  # O(file groups)
            stored = self._keys_of_partition(doubts.named[place >> 32]).get(place & 0xFFFFFFFF)
            if stored is not None:
                rows = np.flatnonzero(places == place)
                keys = doubts.keys.take(pa.array(rows))
                wanted = WantedKeys.of(keys.unique().sort())
                are_stored[rows] = np.isin(wanted.probe.find(keys), stored.hits(wanted).positions)
        return are_stored

    @cached_property
    def _keys_by_bucket(self) -> dict[str, dict[int, SliceKeys]]:
        """The keys of each file slice by partition path and bucket, of partitions that rows go to."""
        return {}

    def _keys_of_partition(self, partition_path: str) -> dict[int, SliceKeys]:
        """Return the keys of each bucket's slice in a partition; they are opened when they are read."""
        if partition_path not in self._keys_by_bucket:
            slices_by_bucket = (
                (self.index.number_of(file_slice.group), file_slice)
                for file_slice in self._slices_of_partition(partition_path)
            )
            self._keys_by_bucket[partition_path] = {
                bucket: self._keys_of(file_slice) for bucket, file_slice in slices_by_bucket if bucket is not None
            }
        return self._keys_by_bucket[partition_path]

    def _slices_of_partition(self, partition_path: str) -> Iterable[FileSlice]:
        """Return the slices of a partition; none of a table in the making."""
        return () if self._view is None else self._view.slices(partition_path).values()

    def _keys_of(self, file_slice: FileSlice) -> SliceKeys:
        view = cast(FileView, self._view)
        return SliceKeys(view.storage, file_slice, view.sees)

    def _rule_of_new_keys(self, doubts: KeyDoubts, row: int) -> int:
        """Return by whose rule new keys go: 0 for 1.x and 1 for 0.x. If 0.x may write the table, stored keys decide.

        Raises `BucketMisfitError` for the key of a row if these follow none, or both.
        """
        if not self.index.release_0_writes:
            return _RELEASES.index(KeyParser.RELEASE_1)
        rules = self._rules_of_stored(doubts.named)
        if len(rules) == 1:
            return rules.pop()
        why = "follow both rules" if rules else "show neither"
        raise BucketMisfitError(
            f"{doubts.at(row)}. The stored keys of the table{self._table_words} {why}, so that another writer may "
            "not find the row.",
            "Write such keys with the release of Apache Hudi that wrote the table, or rewrite the table with mode "
            f"overwrite and {key.INDEX_TYPE}={key.SIMPLE}.",
        )

    def _rules_of_stored(self, paths: Sequence[str]) -> set[int]:
        """Return which rules stored keys follow, 0 for 1.x, 1 for 0.x, by some slices, those of ``paths`` first.

        It is empty if none of these keys tells the rules apart.
        """
        rules: set[int] = set()
        for file_slice in islice(self._nearest_first(paths), _SLICES_LOOKED_INTO):
            group = file_slice.group
            if group not in self._rules_by_group:
                self._rules_by_group[group] = self._rules_of(file_slice)
            rules |= self._rules_by_group[group]
            if len(rules) > 1:
                # Further slices add no rule.
                break
        return rules

    @cached_property
    def _rules_by_group(self) -> dict[FileGroupId, set[int]]:
        """The rules that the keys of each file group follow, of file groups whose keys are read."""
        return {}

    def _rules_of(self, file_slice: FileSlice) -> set[int]:
        """Return which rules put keys of a slice where they are: 0 for 1.x, 1 for 0.x, or both.

        Only keys that the two rules put into two buckets tell the rules apart.
        """
        rules: set[int] = set()
        count, bucket = self.index.count_of(file_slice.partition_path), self.index.number_of(file_slice.group)
        keys_of = self._keys_of(file_slice)
        # Without the number of buckets nothing tells where the rules put keys.
        for keys in chain(keys_of.of_base(), keys_of.of_logs()) if count else ():
            candidates = self.index.candidates(keys)
            if len(candidates) > 1:
                buckets = [hashes_to_buckets(hashes, count or 1) for hashes in candidates]
                differ = buckets[0] != buckets[1]
                rules |= {rule for rule, of_rule in enumerate(buckets) if np.any(differ & (of_rule == bucket))}
        return rules

    def _nearest_first(self, paths: Sequence[str]) -> Iterator[FileSlice]:
        """Yield the slices of some partitions, then all others."""
        for path in paths:
            yield from self._slices_of_partition(path)
        for path in () if self._view is None else self._view.partitions():
            yield from self._slices_of_partition(path) if path not in paths else ()
