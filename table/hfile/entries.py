"""The entries of an HFile's data block: a key and a value each, as Arrow columns.

    size of the key 4 | size of the value 4 | size of the row key 2 | row key | family, timestamp, type 10 | value | 0

The size of the key counts the row key, the number of its bytes, and the ten bytes end it, which are the same in all
entries. All numbers are big-endian. Source: ``HFileDataBlock`` and ``KeyValue`` of Apache HBase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# No family, the newest of timestamps, and the type of a put.
_AFTER_KEY = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
_BEFORE_KEY = 10
_BEFORE_SIZE = 8
# All bytes of an entry but those of its row key and its value.
FRAME = _BEFORE_KEY + len(_AFTER_KEY) + 1
# What the size of a key counts beside the row key.
_BESIDE_KEY = 2 + len(_AFTER_KEY)
MOST_OF_A_KEY = (1 << 15) - 1
# As many keys are searched as bytes; with more it is faster to have a column of all keys.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Entries:
    """Keys and values, both binary, in the order of their file; no key appears twice."""

    keys: pa.BinaryArray
    values: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.keys)


NONE = Entries(pa.array([], pa.binary()), pa.array([], pa.binary()))


def joined(parts: Sequence[Entries]) -> Entries:
    """Return the entries of all parts, in their order."""
    if not parts:
        return NONE
    return Entries(pa.concat_arrays([part.keys for part in parts]), pa.concat_arrays([part.values for part in parts]))


class DataBlock:
    """A data block's content, whose entries are found on first use."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._bytes = np.frombuffer(content, dtype=np.uint8)
        self._all_positions: tuple[Integers, Integers, Integers] | None = None

    def all(self) -> Entries:
        """Return all entries."""
        starts, key_sizes, value_sizes = self._positions()
        return self._entries_of(starts, key_sizes, value_sizes)

    def find(self, keys: Sequence[bytes]) -> Entries:
        """Return the entries of some keys, each once."""
        numbers = self._positions_of_few(keys) if len(keys) <= _FEW else self._positions_of_many(keys)
        return self._entries_at(numbers)

    def with_prefixes(self, prefixes: Sequence[bytes]) -> Entries:
        """Return the entries whose keys begin with one of some prefixes."""
        # A prefix whose bytes occur nowhere begins no key.
        occurring = [prefix for prefix in prefixes if prefix in self._content]
        if not occurring:
            return NONE
        keys = self._keys()
        begins = pc.starts_with(keys, occurring[0])
        for prefix in occurring[1:]:
            begins = pc.or_(begins, pc.starts_with(keys, prefix))
        return self._entries_at(np.flatnonzero(begins.to_numpy(zero_copy_only=False)))

    def _positions_of_few(self, keys: Sequence[bytes]) -> Integers:
        """Return which entries have some keys; the positions of all entries are read only if a key's bytes occur."""
        numbers = []
        for key in keys:
            # No file has a longer key, and its size might not fit into two bytes.
            if len(key) > MOST_OF_A_KEY:
                continue
            encoded_key = len(key).to_bytes(2, "big") + key + _AFTER_KEY
            start = self._content.find(encoded_key)
            while start >= 0:
                # A value may hold the same bytes as a key.
                position = start - _BEFORE_SIZE
                starts = self._positions()[0]
                entry = int(np.searchsorted(starts, position))
                if entry < len(starts) and starts[entry] == position:
                    numbers.append(entry)
                    break
                start = self._content.find(encoded_key, start + 1)
        return np.unique(np.array(numbers, dtype=np.int64))

    def _positions_of_many(self, keys: Sequence[bytes]) -> Integers:
        """Return which entries have some keys, by a column of all keys."""
        has_key = pc.is_in(self._keys(), value_set=pa.array(keys, pa.binary()))
        return np.flatnonzero(has_key.to_numpy(zero_copy_only=False))

    def _keys(self) -> pa.BinaryArray:
        """Return the row keys of all entries."""
        starts, key_sizes, _ = self._positions()
        return _binary(self._content, starts + _BEFORE_KEY, key_sizes)

    def _entries_at(self, chosen: Integers) -> Entries:
        """Return the entries with some numbers."""
        if len(chosen) == 0:
            return NONE
        return self._entries_of(*(positions[chosen] for positions in self._positions()))

    def _entries_of(self, starts: Integers, key_sizes: Integers, value_sizes: Integers) -> Entries:
        """Return the entries that begin at some bytes, by the sizes of their row keys and of their values."""
        keys = starts + _BEFORE_KEY
        values = keys + key_sizes + len(_AFTER_KEY)
        return Entries(_binary(self._content, keys, key_sizes), _binary(self._content, values, value_sizes))

    def _positions(self) -> tuple[Integers, Integers, Integers]:
        """Return where entries begin, and the sizes of their row keys and of their values."""
        if self._all_positions is None:
            self._all_positions = _positions_in(self._bytes)
        return self._all_positions


def _positions_in(data: Bytes) -> tuple[Integers, Integers, Integers]:
    """Return the positions of a block's entries; ValueError if it is not made of entries.

    Where an entry begins follows from the entry before. But each key has the same ten bytes after it, and in most
    blocks all keys are of one size. Other blocks take longer.
    """
    if len(data) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    if len(data) < FRAME:
        raise ValueError("for it breaks off in its first entry")
    # First try the bytes in front of whatever looks like the end of a key, as if all keys were of the first one's size.
    first_key_size = _number(data, np.array([_BEFORE_SIZE]), 2)
    ends = np.flatnonzero(data[: 1 - len(_AFTER_KEY)] == _AFTER_KEY[1]) - 1
    ends = ends[ends >= _BEFORE_KEY + first_key_size]
    chain = _linked(data, _with_ends(data, ends - _BEFORE_KEY - first_key_size))
    if chain is None:
        # Then try each pair of zeros: the size of a key has four bytes, and is small.
        positions = np.flatnonzero((data[: -FRAME + 1] == 0) & (data[1 : -FRAME + 2] == 0))
        chain = _linked(data, _with_ends(data, positions))
    if chain is None:
        raise ValueError("for its entries do not follow one another to its end")
    return chain


def _with_ends(data: Bytes, starts: Integers) -> Integers:
    """Return those of some positions at which something like an entry begins.

    It has two sizes of its key, which agree, and after the key what all keys have.
    """
    sizes = _number(data, starts + _BEFORE_SIZE, 2)
    key_ends = starts + _BEFORE_KEY + sizes
    may_begin = _number(data, starts + 2, 2) == sizes + _BESIDE_KEY
    may_begin &= (sizes <= MOST_OF_A_KEY) & (key_ends + len(_AFTER_KEY) < len(data))
    starts, key_ends = starts[may_begin], key_ends[may_begin]
    has_ending = _number(data, key_ends, 8) == int.from_bytes(_AFTER_KEY[:8], "big")
    has_ending &= _number(data, key_ends + 8, 2) == int.from_bytes(_AFTER_KEY[8:], "big")
    begins: Integers = starts[has_ending]
    return begins


def _linked(data: Bytes, starts: Integers) -> tuple[Integers, Integers, Integers] | None:
    """Return where the entries begin that follow each other from the first byte to the last, and two sizes of each.

    These are the sizes of the row key and of the value. ``starts`` are positions at which entries may begin. None if no
    such chain of entries takes up all bytes.
    """
    sizes, values = _number(data, starts + _BEFORE_SIZE, 2), _number(data, starts + 4, 4)
    entry_ends = starts + sizes + values + FRAME
    if len(starts) == 0 or starts[0] != 0:
        return None
    if not np.array_equal(entry_ends[:-1], starts[1:]):
        # A value may hold what looks like an entry.
        chain = _chain(starts, entry_ends)
        starts, sizes, values, entry_ends = starts[chain], sizes[chain], values[chain], entry_ends[chain]
    # An entry ends with a 0, and the two highest bytes of its key's size are 0.
    if entry_ends[-1] != len(data) or data[entry_ends - 1].any() or data[starts].any() or data[starts + 1].any():
        return None
    return starts, sizes, values


def _number(data: Bytes, positions: Integers, size: int) -> Integers:
    """Return the numbers of ``size`` bytes each, the highest first, at some positions."""
    from_each_byte: Integers = np.ndarray((len(data) - size + 1,), f">u{size}", data, strides=(1,))
    return from_each_byte[positions].astype(np.int64)


def _chain(starts: Integers, entry_ends: Integers) -> Integers:
    """Return the numbers of the entries that follow each other from the first on.

    Doubling the links finds them in a few steps.
    """
    nowhere = len(starts)
    next_start = np.searchsorted(starts, entry_ends)
    is_start = np.append(starts, -1)[next_start] == entry_ends
    jump = np.append(np.where(is_start, next_start, nowhere), nowhere)
    linked = np.zeros(1, dtype=np.int64)
    while linked[-1] != nowhere:
        linked = np.concatenate((linked, jump[linked]))
        jump = jump[jump]
    positions: Integers = linked[linked != nowhere]
    return positions


def _binary(content: bytes, starts: Integers, sizes: Integers) -> pa.BinaryArray:
    """Return some ranges of bytes, in their order, as a column."""
    # Ranges and the gaps between them are one column without a copy, of which Arrow takes every second value.
    offsets = np.stack((starts, starts + sizes), axis=1).astype(np.int32).ravel()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    with_gaps = pa.Array.from_buffers(pa.binary(), max(len(offsets) - 1, 0), buffers)
    return with_gaps.take(pa.array(np.arange(0, len(offsets), 2)))


def _inside(starts: Integers, sizes: Integers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which bytes, from the first stretch to the last, lie in one of them."""
    lengths = np.empty(2 * len(starts), dtype=np.int64)
    lengths[0::2] = np.diff(starts + sizes, prepend=0) - sizes
    lengths[1::2] = sizes
    return np.repeat(np.tile(np.array([False, True]), len(starts)), lengths)


def encode(entries: Entries) -> tuple[bytes, Integers]:
    """Return the bytes of n entries, one after the other, and n + 1 positions: where each begins and the last ends.

    An entry has the sizes, its key, the constant parts of HBase's keys, and its value.
    """
    keys, key_sizes = _bytes(entries.keys)
    values, value_sizes = _bytes(entries.values)
    positions = np.concatenate(([0], np.cumsum(key_sizes + value_sizes + FRAME)))
    starts = positions[:-1]
    data = np.zeros(int(positions[-1]), dtype=np.uint8)
    head = np.empty((len(starts), _BEFORE_KEY), dtype=np.uint8)
    head[:, 0:4] = _encoded(key_sizes + _BESIDE_KEY, ">u4")
    head[:, 4:8] = _encoded(value_sizes, ">u4")
    head[:, 8:10] = _encoded(key_sizes, ">u2")
    tail = np.frombuffer(_AFTER_KEY, dtype=np.uint8)
    for position in range(_BEFORE_KEY):  # O(bytes of the beginning)
        data[starts + position] = head[:, position]
    key_ends = starts + _BEFORE_KEY + key_sizes
    for position, value in enumerate(tail):  # O(bytes of the end)
        data[key_ends + position] = value
    if len(starts):
        for content, begins, sizes in (
            (keys, starts + _BEFORE_KEY, key_sizes),
            (values, key_ends + len(tail), value_sizes),
        ):
            inside = _inside(begins, sizes)
            data[: len(inside)][inside] = content
    return data.tobytes(), positions


def _encoded(numbers: Integers, dtype: str) -> Bytes:
    """Return numbers as rows of bytes, each number by a type of NumPy such as ``>u4``."""
    encoded = numbers.astype(dtype)
    return encoded.view(np.uint8).reshape(len(numbers), encoded.itemsize)


def _bytes(array: pa.BinaryArray) -> tuple[Bytes, Integers]:
    """Return the bytes of a column, one after the other, and the size of each value."""
    _, offsets, data = array.buffers()
    if len(array) == 0:
        return np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64)
    ends = np.frombuffer(offsets, dtype=np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
    octets = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return octets[ends[0] : ends[-1]], np.diff(ends)
