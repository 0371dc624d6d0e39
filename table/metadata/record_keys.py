"""Keys of records of a metadata table: base64 texts of hashes of columns, partitions and file names.

A hash of a column or of a partition is XXH64, that of a file name MD5. Source:
``org.apache.hudi.metadata.HoodieMetadataPayload``, ``org.apache.hudi.common.util.hash`` and the xxHash specification.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import b64encode
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

NULL, END = "\0", "$"
_ESCAPED = r"([\\$\x00])"
# What precedes the record key, and what an escape is.
_BEFORE_KEY = r"(?s)^(?:[^\\$]|\\.)*\$"
_ESCAPE = r"(?s)\\(.)"


def escaped(texts: pa.StringArray) -> pa.StringArray:
    """Return texts as keys of a secondary index spell them: a backslash in front of the characters that end parts."""
    return pc.replace_substring_regex(texts, _ESCAPED, r"\\\1")


def beginnings(values: pa.StringArray) -> pa.StringArray:
    """Return how the keys of a secondary index begin for rows with some values: with the value and `END`."""
    return pc.binary_join_element_wise(pc.fill_null(escaped(values), NULL), END, "")


def escaped_record_keys(keys: pa.StringArray) -> pa.StringArray:
    """Return the part of keys of a secondary index behind their values: the record keys, escaped."""
    return pc.replace_substring_regex(keys, _BEFORE_KEY, "")


def record_keys_in(keys: pa.StringArray) -> pa.StringArray:
    """Return the record keys in keys of a secondary index."""
    return pc.replace_substring_regex(escaped_record_keys(keys), _ESCAPE, r"\1")


ROOT = "."
"""What the metadata table calls the partition of a table that has none."""

PARTITIONS = "__all_partitions__"
"""The key of the record that names all partitions of a table."""

COLUMN_DIGITS = 12
"""How many characters of a key of bounds are the column's; as many are the partition's."""


def partition_hashes_in(keys: pa.StringArray) -> pa.StringArray:
    """Return the hashes of partitions in keys of bounds, which are hashes of column, partition and file in a row."""
    return pc.utf8_slice_codeunits(keys, COLUMN_DIGITS, 2 * COLUMN_DIGITS)


_MASK = (1 << 64) - 1
_SEED = 0xFFFFFFFFDABADABA
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_STRIPE = 32


def key_of_partition(partition_path: str) -> str:
    """Return the key of a partition in the partition ``files``."""
    return partition_path or ROOT


@lru_cache(maxsize=4096)
def hash_of_column(column: str) -> str:
    """Return how a key of bounds begins: 12 characters for the column."""
    return _base64(xxh64(column.encode()).to_bytes(8, "big"))


@lru_cache(maxsize=65_536)
def hash_of_partition(partition_path: str) -> str:
    """Return the 12 characters of a key that name a partition of the table."""
    return _base64(xxh64(key_of_partition(partition_path).encode()).to_bytes(8, "big"))


def hash_of_file(name: str) -> str:
    """Return the 24 characters of a key that name a file, by the last part of its path."""
    return _base64(hashlib.md5(name.encode(), usedforsecurity=False).digest())


def key_of_file_bounds(column: str, partition_path: str, name: str) -> str:
    """Return the key of the bounds of one column in one file, in ``column_stats``."""
    return hash_of_column(column) + hash_of_partition(partition_path) + hash_of_file(name)


def key_of_partition_bounds(column: str, partition_path: str) -> str:
    """Return the key of the bounds of one column in one partition, in ``partition_stats``."""
    return hash_of_column(column) + hash_of_partition(partition_path)


def key_of_filter(partition_path: str, name: str) -> str:
    """Return the key of a base file's bloom filter, in ``bloom_filters``."""
    return hash_of_partition(partition_path) + hash_of_file(name)


def xxh64(data: bytes, seed: int = _SEED) -> int:
    """Return the XXH64 of a few bytes; by default with Apache Hudi's seed."""
    first, second, third, fourth, fifth = _PRIMES
    at = 0
    if len(data) >= _STRIPE:
        lanes = [seed + first + second, seed + second, seed, seed - first]
        while at + _STRIPE <= len(data):
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += _STRIPE
        mixed = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            mixed = ((mixed ^ _round(0, lane)) * first + fourth) & _MASK
    else:
        mixed = (seed + fifth) & _MASK
    mixed = (mixed + len(data)) & _MASK
    while at + 8 <= len(data):
        mixed = (_rotated(mixed ^ _round(0, *struct.unpack_from("<Q", data, at)), 27) * first + fourth) & _MASK
        at += 8
    if at + 4 <= len(data):
        mixed ^= (*struct.unpack_from("<I", data, at),)[0] * first & _MASK
        mixed = (_rotated(mixed, 23) * second + third) & _MASK
        at += 4
    for byte in data[at:]:
        mixed = _rotated(mixed ^ (byte * fifth & _MASK), 11) * first & _MASK
    mixed = (mixed ^ (mixed >> 33)) * second & _MASK
    mixed = (mixed ^ (mixed >> 29)) * third & _MASK
    return mixed ^ (mixed >> 32)


def _round(lane: int, word: int) -> int:
    """Return the next state of a lane of XXH64, given a word of 8 bytes."""
    return _rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotated(word: int, bits: int) -> int:
    """Return a word of 64 bits rotated to the left."""
    word &= _MASK
    return (word << bits | word >> (64 - bits)) & _MASK


def _base64(digest: bytes) -> str:
    return b64encode(digest).decode("ascii")
