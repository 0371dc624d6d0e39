"""The simple bucket index: a record key's hash, modulo a fixed number of buckets, is its file group.

Source: ``org.apache.hudi.index.bucket.BucketIdentifier``; RFC-29.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..errors import NullKeyError
from ..table.arrow.string_hash import java_string_hash
from ..table.files.names import FileGroupId, bucket_of, new_bucket_file_id
from ..table.keys.generator import KeyPart
from .base import Buckets, Positions
from .key_parser import KeyParser, parse_record_keys, separate_values

_CHUNK_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """A bucket is one file group of each partition; empty `hash_fields` means that all record key fields are hashed."""

    bucket_count: int
    record_key_fields: tuple[str, ...]
    hash_fields: tuple[str, ...] = ()
    parser: KeyParser = KeyParser.RELEASE_1

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

    def buckets(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the bucket of each record key, from 0 to the number of buckets less one.

        Raises `NullKeyError` for a null key and `DataError` for a key that is not valid UTF-8.
        """
        if pa.types.is_dictionary(record_keys.type):
            record_keys = record_keys.dictionary_decode()
        if record_keys.null_count:
            raise NullKeyError(
                f"{record_keys.null_count} of {len(record_keys)} record keys are null and belong to no bucket.",
                "Fill the key columns; a table without meta columns (hoodie.populate.meta.fields=false) has no keys.",
            )
        fields = self.hash_fields or self.record_key_fields
        values = separate_values(parts, fields)
        if values is not None:
            return self._numbers(combined_hash([java_string_hash(value) for value in values]))
        buckets = np.empty(len(record_keys), np.int32)
        for start in range(0, len(record_keys), _CHUNK_ROWS):
            lists = parse_record_keys(record_keys.slice(start, _CHUNK_ROWS), fields, self.parser)
            buckets[start : start + len(lists)] = self._numbers(java_list_hash(lists))
        return buckets

    def _numbers(self, hashes: Buckets) -> Buckets:
        numbers = hashes.view(np.uint32) & np.uint32(0x7FFFFFFF)
        numbers %= np.uint32(self.bucket_count)
        return np.asarray(numbers.view(np.int32))

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return the positions of the keys of other buckets; all where the file group's id holds no bucket."""
        bucket = self.number_of(group)
        wrong = self.buckets(record_keys) != (-1 if bucket is None else bucket)
        return np.flatnonzero(wrong).astype(np.int64)

    def number_of(self, group: FileGroupId) -> int | None:
        """Return the bucket in a file group's id; it may exceed the bucket count of a table that has fewer by now."""
        return bucket_of(group.file_id)

    def place(self, instant_time: str, partition_path: str, number: int) -> FileGroupId:
        return FileGroupId(partition_path, new_bucket_file_id(instant_time, partition_path, number))

    def rival_key(self, group: FileGroupId) -> str:
        bucket = bucket_of(group.file_id)
        return f"file group {group.file_id}" if bucket is None else f"bucket {bucket}"


def combined_hash(hashes: Sequence[Buckets]) -> Buckets:
    """Return Java's ``List.hashCode`` of n lists of one length, given n hashes for each place in the lists."""
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
    powers = np.full(longest + 1, 31, np.uint32)
    powers[0] = 1
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    distance = np.repeat(bounds[1:], lengths) - 1 - np.arange(bounds[-1])
    sums = np.zeros(len(hashes) + 1, np.uint32)
    np.cumsum(hashes * powers[distance], out=sums[1:])
    sums = sums[bounds[1:]] - sums[bounds[:-1]] + powers[lengths]
    return np.asarray(sums.view(np.int32))
