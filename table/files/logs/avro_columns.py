"""Rows in Avro decoded column by column: what stands at the same place in many rows is read at once.

It is far faster than row by row. Lists and maps, of which each row has as many items as it likes, are left to fastavro.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...arrow.arrays import struct_array
from ...schema.types import children
from .avro_bytes import Integers, Octets
from .decimals import decimals

_LENGTH = 4
_CHUNK_ROWS = 16_384
_CHUNK_BYTES = 64 << 20
_LONGEST_NUMBER = 10
# Places where a row might begin, beside each one where one does; more are a schema of little but nulls.
_MOST_CANDIDATES = 24


def row_starts(data: Octets, count: int) -> Integers | None:
    """Return where rows begin, each with its length in four bytes in front; None where it cannot be told so.

    A row's beginning is known once that of the row before it is. So all places that may be one, those of a length that
    begins with two zeros, are told what follows them, and then what follows that: twice as many rows each time.
    """
    maybe = np.flatnonzero((data[:-3] == 0) & (data[1:-2] == 0))
    if count == 0 or len(maybe) == 0 or maybe[0] != 0 or len(maybe) > _MOST_CANDIDATES * count:
        return None
    follows = maybe + _LENGTH + (data[maybe + 2].astype(np.int64) << 8) + data[maybe + 3]
    place = np.searchsorted(maybe, follows)
    nowhere = len(maybe)
    known = np.append(maybe, -1)[place] == follows
    jump = np.append(np.where(known, place, nowhere), nowhere)
    reached = np.zeros(1, dtype=np.int64)
    while len(reached) < count:
        reached = np.concatenate((reached, jump[reached]))
        jump = jump[jump]
    reached = reached[:count]
    if (reached == nowhere).any() or follows[reached[-1]] != len(data):
        return None
    return np.append(maybe[reached], len(data))


def is_flat(avro: Any) -> bool:
    """Return whether a type has neither lists nor maps, nor types that are named elsewhere."""
    if isinstance(avro, list):
        return all(is_flat(one) for one in avro)
    if isinstance(avro, str):
        return avro in _NUMBERS or avro in _WIDTHS or avro in ("null", "bytes", "string", "boolean")
    if avro["type"] == "record":
        return all(is_flat(field["type"]) for field in avro["fields"])
    return avro["type"] == "fixed" or (avro["type"] not in ("array", "map") and is_flat(avro["type"]))


def decode(
    data: Octets, starts: Integers, record: dict[str, Any], columns: pa.Schema, names: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield rows.

    Args:
        data: The rows, each with its length in front.
        starts: Where they begin, and where the last one ends.
        record: Their schema, which `is_flat`.
        columns: Its columns, of the types that they take in Arrow.
        names: Which columns are wanted.

    Raises:
        ValueError: They are damaged; or pyarrow's, which is one.
    """
    chosen = [field for field in columns if field.name in names]
    first, last = 0, len(starts) - 1
    while first < last:
        end = min(first + _CHUNK_ROWS, last)
        end = max(first + 1, min(end, int(np.searchsorted(starts, starts[first] + _CHUNK_BYTES)) - 1))
        rows = _Rows(data, starts[first:end] + _LENGTH, starts[first + 1 : end + 1])
        found: list[pa.Array] = []
        for avro, field in zip(record["fields"], columns, strict=True):
            values = rows.read(avro["type"], field, wanted=field.name in names)
            if values is not None:
                found.append(values)
        if (rows.at != rows.ends).any():
            raise ValueError("a row in it does not end where it says")
        yield pa.RecordBatch.from_struct_array(struct_array(pa.struct(chosen), end - first, None, found))
        first = end


@dataclass(slots=True)
class _Rows:
    """Places in as many rows, all before the same value.

    Attributes:
        data: All bytes.
        at: Where the next value of each row is.
        ends: Where each row ends.
    """

    data: Octets
    at: Integers
    ends: Integers

    def read(self, avro: Any, field: pa.Field, *, wanted: bool) -> pa.Array | None:
        """Return the next value of each row, None where it is not wanted, and go behind it."""
        if not isinstance(avro, list):
            return self._value(avro, field.type, wanted)
        branch = self._numbers()
        if ((branch < 0) | (branch >= len(avro))).any():
            raise ValueError("a value in it is of no type")
        if "null" not in avro:
            return self._value(avro[0], field.type, wanted)
        valid = branch != avro.index("null")
        other = next(one for one in avro if one != "null")
        if valid.all():
            return self._value(other, field.type, wanted)
        rows = _Rows(self.data, self.at[valid], self.ends[valid])
        values = rows._value(other, field.type, wanted)
        self.at[valid] = rows.at
        if values is None:
            return None
        if not valid.any():
            return pa.nulls(len(valid), field.type)
        return values.take(pa.array(np.maximum(np.cumsum(valid) - 1, 0), mask=~valid))

    def _value(self, avro: Any, kind: pa.DataType, wanted: bool) -> pa.Array | None:
        base = avro if isinstance(avro, str) else avro["type"]
        if not isinstance(base, str):
            return self._value(base, kind, wanted)
        if base == "record":
            fields = zip(avro["fields"], children(kind), strict=True)
            parts = [self.read(one["type"], field, wanted=wanted) for one, field in fields]
            return struct_array(kind, len(self.at), None, parts) if wanted else None
        if base in _NUMBERS:
            values = self._numbers()
            if not wanted:
                return None
            narrow = values.astype(_NUMBERS[base])
            if (narrow != values).any():
                raise ValueError("a number in it is too large")
            return pa.array(narrow).view(kind)
        if base in ("bytes", "string"):
            lengths = self._numbers()
            return self._binary(lengths, kind) if self._pass(lengths) and wanted else None
        width = avro["size"] if base == "fixed" else _WIDTHS.get(base, 1)
        lengths = np.full(len(self.at), width, dtype=np.int64)
        if not self._pass(lengths) or not wanted:
            return None
        if base == "fixed":
            return self._binary(lengths, kind)
        octets = self.data[(self.at - width)[:, None] + np.arange(width)]
        if base == "boolean":
            return pa.array(octets[:, 0] == 1)
        return pa.array(octets.view("<f4" if base == "float" else "<f8")[:, 0])

    def _pass(self, lengths: Integers) -> bool:
        """Go behind so many bytes of each row."""
        if ((lengths < 0) | (lengths > self.ends - self.at)).any():
            raise ValueError("a value in it is longer than its row")
        self.at = self.at + lengths
        return True

    def _numbers(self) -> Integers:
        """Return the next number of each row, and go behind it."""
        if (self.at >= self.ends).any():
            raise ValueError("a row in it breaks off")
        octets = self.data[self.at]
        found = (octets & 0x7F).astype(np.uint64)
        lengths = np.ones(len(octets), dtype=np.int64)
        more = np.flatnonzero(octets >= 0x80)
        for group in range(1, _LONGEST_NUMBER):
            if len(more) == 0:
                break
            place = self.at[more] + group
            if (place >= self.ends[more]).any():
                raise ValueError("a row in it breaks off")
            octets = self.data[place]
            found[more] |= (octets & 0x7F).astype(np.uint64) << np.uint64(7 * group)
            lengths[more] += 1
            more = more[octets >= 0x80]
        if len(more):
            raise ValueError("a number in it has no end")
        self.at = self.at + lengths
        values: Integers = (found >> np.uint64(1)).view(np.int64) ^ -(found & np.uint64(1)).view(np.int64)
        return values

    def _binary(self, lengths: Integers, kind: pa.DataType) -> pa.Array:
        """Return the bytes that were gone behind last."""
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.repeat(self.at - lengths - offsets[:-1], lengths)
        places += np.arange(len(places))
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data[places])]
        if pa.types.is_decimal(kind):
            return decimals(pa.Array.from_buffers(pa.binary(), len(lengths), buffers), kind)
        found = pa.Array.from_buffers(kind, len(lengths), buffers)
        found.validate(full=True)
        return found


_NUMBERS = {"int": np.int32, "long": np.int64}
_WIDTHS = {"float": 4, "double": 8}
