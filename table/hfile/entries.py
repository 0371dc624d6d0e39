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
        starts, key_sizes, value_sizes = self._positions()
        return self._of(starts, key_sizes, value_sizes)

    def find(self, keys: Sequence[bytes]) -> Entries:
        """Return the entries of some keys, each once."""
        chosen = self._few(keys) if len(keys) <= _FEW else self._many(keys)
        return self._some(chosen)

    def with_prefixes(self, prefixes: Sequence[bytes]) -> Entries:
        """Return the entries whose keys begin with one of some prefixes."""
        wanted = [prefix for prefix in prefixes if prefix in self._content]
        if not wanted:
            return NONE
        keys = self._keys()
        chosen = pc.starts_with(keys, wanted[0])
        for prefix in wanted[1:]:
            chosen = pc.or_(chosen, pc.starts_with(keys, prefix))
        return self._some(np.flatnonzero(chosen.to_numpy(zero_copy_only=False)))

    def _few(self, keys: Sequence[bytes]) -> Integers:
        """Return which entries have some keys: only what looks like one of them needs all entries' positions."""
        numbers = []
        for key in keys:
            looks = len(key).to_bytes(2, "big") + key + _AFTER_KEY
            at = self._content.find(looks)
            while at >= 0:
                # A value may hold the same bytes as a key.
                position = at - _BEFORE_SIZE
                starts = self._positions()[0]
                entry = int(np.searchsorted(starts, position))
                if entry < len(starts) and starts[entry] == position:
                    numbers.append(entry)
                    break
                at = self._content.find(looks, at + 1)
        return np.unique(np.array(numbers, dtype=np.int64))

    def _many(self, keys: Sequence[bytes]) -> Integers:
        chosen = pc.is_in(self._keys(), value_set=pa.array(keys, pa.binary()))
        return np.flatnonzero(chosen.to_numpy(zero_copy_only=False))

    def _keys(self) -> pa.BinaryArray:
        starts, key_sizes, _ = self._positions()
        return _binary(self._content, starts + _BEFORE_KEY, key_sizes)

    def _some(self, chosen: Integers) -> Entries:
        if len(chosen) == 0:
            return NONE
        return self._of(*(positions[chosen] for positions in self._positions()))

    def _of(self, starts: Integers, key_sizes: Integers, value_sizes: Integers) -> Entries:
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
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    if len(data) < FRAME:
        raise ValueError("for it breaks off in its first entry")
    first = _number(data, np.array([_BEFORE_SIZE]), 2)
    ends = np.flatnonzero(data[: 1 - len(_AFTER_KEY)] == _AFTER_KEY[1]) - 1
    ends = ends[ends >= _BEFORE_KEY + first]
    chain = _linked(data, _with_ends(data, ends - _BEFORE_KEY - first))
    if chain is None:
        positions = np.flatnonzero((data[: -FRAME + 1] == 0) & (data[1 : -FRAME + 2] == 0))
        chain = _linked(data, _with_ends(data, positions))
    if chain is None:
        raise ValueError("for its entries do not follow one another to its end")
    return chain


def _with_ends(data: Bytes, at: Integers) -> Integers:
    """Return those of some positions at which something like an entry begins.

    It has two sizes of its key, which agree, and after the key what all keys have.
    """
    sizes = _number(data, at + _BEFORE_SIZE, 2)
    end = at + _BEFORE_KEY + sizes
    looks = _number(data, at + 2, 2) == sizes + _BESIDE_KEY
    looks &= (sizes <= MOST_OF_A_KEY) & (end + len(_AFTER_KEY) < len(data))
    at, end = at[looks], end[looks]
    keeps = _number(data, end, 8) == int.from_bytes(_AFTER_KEY[:8], "big")
    keeps &= _number(data, end + 8, 2) == int.from_bytes(_AFTER_KEY[8:], "big")
    kept_positions: Integers = at[keeps]
    return kept_positions


def _linked(data: Bytes, at: Integers) -> tuple[Integers, Integers, Integers] | None:
    """Return the chain of entries from the first byte to the last, with their sizes; None if there is none."""
    sizes, values = _number(data, at + _BEFORE_SIZE, 2), _number(data, at + 4, 4)
    follows = at + sizes + values + FRAME
    if len(at) == 0 or at[0] != 0:
        return None
    if not np.array_equal(follows[:-1], at[1:]):
        # A value may hold what looks like an entry.
        chain = _chain(at, follows)
        at, sizes, values, follows = at[chain], sizes[chain], values[chain], follows[chain]
    if follows[-1] != len(data) or data[follows - 1].any() or data[at].any() or data[at + 1].any():
        return None
    return at, sizes, values


def _number(data: Bytes, at: Integers, size: int) -> Integers:
    """Return the numbers of some bytes at some positions."""
    at_each_byte: Integers = np.ndarray((len(data) - size + 1,), f">u{size}", data, strides=(1,))
    return at_each_byte[at].astype(np.int64)


def _chain(at: Integers, follows: Integers) -> Integers:
    """Return the positions that the first leads to, one after the other.

    Doubling the links finds them in a few steps.
    """
    nowhere = len(at)
    position = np.searchsorted(at, follows)
    links = np.append(at, -1)[position] == follows
    jump = np.append(np.where(links, position, nowhere), nowhere)
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
    """Return the bytes of entries, one after the other, and where each begins and the last ends."""
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
    end = starts + _BEFORE_KEY + key_sizes
    for position, value in enumerate(tail):  # O(bytes of the end)
        data[end + position] = value
    if len(starts):
        for content, begins, sizes in (
            (keys, starts + _BEFORE_KEY, key_sizes),
            (values, end + len(tail), value_sizes),
        ):
            inside = _inside(begins, sizes)
            data[: len(inside)][inside] = content
    return data.tobytes(), positions


def _encoded(numbers: Integers, kind: str) -> Bytes:
    encoded = numbers.astype(kind)
    return encoded.view(np.uint8).reshape(len(numbers), encoded.itemsize)


def _bytes(array: pa.BinaryArray) -> tuple[Bytes, Integers]:
    """Return the bytes of a column, one after the other, and the size of each value."""
    _, offsets, data = array.buffers()
    if len(array) == 0:
        return np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64)
    ends = np.frombuffer(offsets, dtype=np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
    whole = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return whole[ends[0] : ends[-1]], np.diff(ends)
