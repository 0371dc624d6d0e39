"""The simple bucket index: a record key's hash, modulo the number of buckets of its partition, is its file group.

Source: ``org.apache.hudi.index.bucket.BucketIdentifier``; RFC-29.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..errors import NullKeyError, UnsupportedTableError
from ..table.arrow.string_hash import java_string_hash
from ..table.files.names import FileGroupId, bucket_of, new_bucket_file_id
from ..table.files.view import FileView
from ..table.keys.generator import KeyPart
from .base import Buckets, Positions
from .key_parser import KeyParser, parse_record_keys, separate_values

_CHUNK_ROWS = 32_768

Hashes = np.ndarray[Any, np.dtype[np.uint32]]


class NumberOfBuckets(Protocol):
    """The numbers of buckets of all partitions at one moment; see `pyhudi.table.buckets.numbers`."""

    def view(self) -> FileView | None:
        """Return the table's file slices, for an index that has to look into them; None if there are none yet."""

    def of(self, partition_path: str) -> int | None:
        """Return the number of a partition; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """A bucket is one file group of each partition; empty `hash_fields` means that all record key fields are hashed.

    Attributes:
        bucket_count: The number of buckets of a partition without a number of its own.
        numbers: The numbers of all partitions at one moment; None if all have ``bucket_count``.
    """

    bucket_count: int
    record_key_fields: tuple[str, ...]
    hash_fields: tuple[str, ...] = ()
    parser: KeyParser = KeyParser.RELEASE_1
    numbers: NumberOfBuckets | None = None

    def __post_init__(self) -> None:
        if self.bucket_count < 1:
            raise ValueError(f"a bucket index has at least one bucket, not {self.bucket_count}")

    @property
    def is_global(self) -> bool:
        return False

    @property
    def needs_lookup(self) -> bool:
        return False

    @property
    def can_index_log_files(self) -> bool:
        return True

    def count_of(self, partition_path: str) -> int | None:
        """Return the number of buckets of a partition; None if it is unknown."""
        return self.bucket_count if self.numbers is None else self.numbers.of(partition_path)

    def buckets(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the bucket of each record key in a partition without a number of its own, from 0 on.

        Raises `NullKeyError` for a null key and `DataError` for a key that is not valid UTF-8.
        """
        return hashes_to_buckets(self.hashes(record_keys, parts), self.bucket_count)

    def buckets_in(self, paths: pa.DictionaryArray, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the bucket of each of n keys in its own partition, of n paths.

        Raises as `buckets`, and `UnsupportedTableError` for a partition whose number is unknown.
        """
        hashes = self.hashes(record_keys, parts)
        partitions = paths.dictionary.to_pylist()  # O(partitions)
        counts = [self.count_of(path) for path in partitions]
        if None in counts:
            raise UnsupportedTableError(
                f"The partition {partitions[counts.index(None)]!r} has no number of buckets on which Java and "
                "Python agree.",
                "Write it with Apache Hudi, or give its partition columns values without an end of a line.",
            )
        if len(set(counts)) < 2:
            # All partitions have the same number, or there is neither a partition nor a key.
            return hashes_to_buckets(hashes, counts[0] or 1) if counts else hashes.view(np.int32)
        hashes %= np.array(counts, np.uint32)[paths.indices.to_numpy(zero_copy_only=False)]
        return np.asarray(hashes.view(np.int32))

    def rescaled(
        self, record_keys: pa.Array, parts: Sequence[KeyPart], source: FileGroupId, old: int, new: int
    ) -> Buckets:
        """Return the new bucket of each key of a file group whose partition has ``old`` buckets and gets ``new``.

        ``source`` and ``old`` decide only in `ParsedTwiceIndex`, where two releases may hash a key differently.
        """
        return hashes_to_buckets(self.hashes(record_keys, parts), new)

    def hashes(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Hashes:
        """Return the hash of each record key, of which the number of buckets makes the bucket.

        ``parts`` are the fields of the keys with their values, if the caller has them; without them the keys are
        parsed. Raises `NullKeyError` for a null key and `DataError` for a key that is not valid UTF-8.
        """
        if pa.types.is_dictionary(record_keys.type):
            record_keys = record_keys.dictionary_decode()
        if record_keys.null_count:
            raise NullKeyError(
                f"{record_keys.null_count} of {len(record_keys)} record keys are null and belong to no bucket.",
                "Fill the key columns; a table without meta columns (hoodie.populate.meta.fields=false) has no keys.",
            )
        fields = self.hash_fields or self.record_key_fields
        # The parts may tell the values that a parser would find in the keys.
        values = separate_values(parts, fields)
        if values is not None:
            return _low_bits(combined_hash([java_string_hash(value) for value in values]))
        hashes = np.empty(len(record_keys), np.uint32)
        for start in range(0, len(record_keys), _CHUNK_ROWS):
            lists = parse_record_keys(record_keys.slice(start, _CHUNK_ROWS), fields, self.parser)
            hashes[start : start + len(lists)] = _low_bits(java_list_hash(lists))
        return hashes

    def candidates(self, record_keys: pa.Array) -> tuple[Hashes, ...]:
        """Return the hashes by which the keys may be stored: for every key one hash, or one of each of two rules."""
        return (self.hashes(record_keys),)

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return the positions of the keys of other buckets; all if the file group's id holds no bucket.

        The result is empty if the number of buckets of the partition is unknown.
        """
        bucket, count = self.number_of(group), self.count_of(group.partition_path)
        if count is None:
            return np.zeros(0, np.int64)
        is_misfit = hashes_to_buckets(self.hashes(record_keys), count) != (-1 if bucket is None else bucket)
        return np.flatnonzero(is_misfit).astype(np.int64)

    def prunes(self, record_keys: pa.Array) -> Callable[[FileGroupId], bool]:
        """Return a test of file groups that are of other buckets than all of some keys; raises as `buckets`.

        A file group of another number of buckets, or of a writer with another index, may hold any key.
        """
        hashes = np.concatenate(self.candidates(record_keys))
        count_of = cache(self.count_of)
        buckets_of = cache(lambda count: frozenset((hashes % np.uint32(count)).tolist()))

        def holds_none(group: FileGroupId) -> bool:
            count, bucket = count_of(group.partition_path), self.number_of(group)
            return count is not None and bucket is not None and bucket < count and bucket not in buckets_of(count)

        return holds_none

    def number_of(self, group: FileGroupId) -> int | None:
        """Return the bucket in a file group's id; it may exceed the bucket count of a table that has fewer by now."""
        return bucket_of(group.file_id)

    def place(self, instant_time: str, partition_path: str, number: int) -> FileGroupId:
        """Return the file group of a new bucket, whose id begins with the bucket's number."""
        return FileGroupId(partition_path, new_bucket_file_id(instant_time, partition_path, number))

    def rival_key(self, group: FileGroupId) -> str:
        """Return the name of the file group's bucket, as two writers conflict that open a file group each for it.

        It is the name of the file group if its id holds no bucket.
        """
        bucket = bucket_of(group.file_id)
        return f"file group {group.file_id}" if bucket is None else f"bucket {bucket}"


def _low_bits(hashes: Buckets) -> Hashes:
    """Return Java's hashes without their sign bit, as ``hash & Integer.MAX_VALUE`` does."""
    return np.asarray(hashes.view(np.uint32) & np.uint32(0x7FFFFFFF))


def hashes_to_buckets(hashes: Hashes, count: int) -> Buckets:
    """Return the bucket of each hash, out of ``count`` buckets; they overwrite the hashes, to save memory."""
    hashes %= np.uint32(count)
    return np.asarray(hashes.view(np.int32))


def combined_hash(hashes: Sequence[Buckets]) -> Buckets:
    """Return Java's ``List.hashCode`` of n lists of one length, given n hashes for each position in the lists."""
    of_lists = np.ones(len(hashes[0]), np.uint32)
    for elements in hashes:
        of_lists *= np.uint32(31)
        of_lists += elements.view(np.uint32)
    return np.asarray(of_lists.view(np.int32))


def java_list_hash(lists: pa.LargeListArray) -> Buckets:
    """Return Java's ``List.hashCode`` of lists of strings: from 1 on, ``h = 31 * h + hash``, 32 bits, null counts 0."""
    hashes = java_string_hash(lists.flatten()).view(np.uint32)
    bounds = lists.offsets.to_numpy()
    bounds = bounds - bounds[0]
    lengths = np.diff(bounds)
    longest = int(lengths.max(initial=0))
    if longest and longest * len(lengths) == len(hashes):
        return combined_hash([hashes[position::longest].view(np.int32) for position in range(longest)])
    # An element is multiplied by 31 once for each element behind it; a list's sum is a difference of running sums.
    powers = np.full(longest + 1, 31, np.uint32)
    powers[0] = 1
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    distance = np.repeat(bounds[1:], lengths) - 1 - np.arange(bounds[-1])
    sums = np.zeros(len(hashes) + 1, np.uint32)
    np.cumsum(hashes * powers[distance], out=sums[1:])
    sums = sums[bounds[1:]] - sums[bounds[:-1]] + powers[lengths]
    return np.asarray(sums.view(np.int32))
