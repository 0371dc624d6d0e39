"""Decodes Avro rows column by column: the values of many rows at one position are read at once, far faster than by row.

Of lists and maps the first items of all rows are read at once, then the second items. Rows with very long lists go to
fastavro.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...arrow.arrays import list_array, struct_array
from ...schema.types import children
from .avro_bytes import Integers, Octets
from .decimals import decimals

_LENGTH = 4
_CHUNK_ROWS = 16_384
_LONGEST_NUMBER = 10
# The longest list that is decoded by columns: each item is a step over all rows of a chunk.
_MOST_ITEMS = 1_000


def row_starts(data: Octets) -> Integers | None:
    """Return where rows begin, each with its length in four bytes in front, and where the last whole row ends.

    None if the first row is too long to be found in this way, or breaks off. Every pair of zeros may begin a length, so
    each pair is linked to the position behind the row that would begin there. Doubling the links finds all rows in a
    few steps, though a row's beginning follows from the row before.
    """
    candidates = np.flatnonzero((data[:-3] == 0) & (data[1:-2] == 0))
    if len(candidates) == 0 or candidates[0] != 0:
        return None
    candidate_ends = candidates + _LENGTH + (data[candidates + 2].astype(np.int64) << 8) + data[candidates + 3]
    next_candidate = np.searchsorted(candidates, candidate_ends)
    nowhere = len(candidates)
    is_start = np.append(candidates, -1)[next_candidate] == candidate_ends
    jump = np.append(np.where(is_start, next_candidate, nowhere), nowhere)
    reached = np.zeros(1, dtype=np.int64)
    while reached[-1] != nowhere:
        reached = np.concatenate((reached, jump[reached]))
        jump = jump[jump]
    reached = reached[reached != nowhere]
    end = candidate_ends[reached[-1]]
    starts: Integers = np.append(candidates[reached], end)
    starts = starts if end <= len(data) else starts[:-1]
    return starts if len(starts) > 1 else None


def takes_bytes(avro: Any) -> bool:
    """Return whether each value of a type has at least one byte, and none of its types is named elsewhere.

    Rows of other schemas are decoded one by one.
    """
    if isinstance(avro, list):
        return all(branch == "null" or takes_bytes(branch) for branch in avro)
    if isinstance(avro, str):
        return avro in _NUMBERS or avro in _WIDTHS or avro in ("bytes", "string", "boolean")
    base = avro["type"]
    if base == "record":
        return bool(avro["fields"]) and all(takes_bytes(field["type"]) for field in avro["fields"])
    if base == "array":
        return takes_bytes(avro["items"])
    if base == "map":
        return takes_bytes(avro["values"])
    return bool(avro["size"] > 0) if base == "fixed" else takes_bytes(base)


def decode(
    data: Octets,
    starts: Integers,
    record: dict[str, Any],
    columns: pa.Schema,
    names: Collection[str],
    one_by_one: Callable[[bytes, int], Iterator[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    """Yield the columns ``names`` of rows whose schema `takes_bytes`; ``one_by_one`` decodes rows with long lists.

    ``starts`` are the positions from `row_starts`, ``record`` is the schema in Avro, and ``columns`` has all of its
    fields in Arrow's types.
    """
    for first_row in range(0, len(starts) - 1, _CHUNK_ROWS):
        ends = starts[first_row + 1 : first_row + 1 + _CHUNK_ROWS]
        rows = AvroPositions(data, starts[first_row : first_row + len(ends)] + _LENGTH, ends)
        try:
            yield _batch(rows, record, columns, names)
        except TooManyError:
            yield from one_by_one(data[starts[first_row] : ends[-1]].tobytes(), len(ends))


class TooManyError(Exception):
    """A list has more items than can well be read one after another."""


def _batch(rows: AvroPositions, record: dict[str, Any], columns: pa.Schema, names: Collection[str]) -> pa.RecordBatch:
    """Return the columns ``names`` of a chunk's rows; ValueError if a row does not end where its length says."""
    fields = zip(record["fields"], columns, strict=True)
    arrays = [rows.read(avro["type"], field, wanted=field.name in names) for avro, field in fields]
    if (rows.at != rows.ends).any():
        raise ValueError("a row in it does not end where it says")
    chosen = pa.struct([field for field in columns if field.name in names])
    structs = struct_array(chosen, len(rows.at), None, [values for values in arrays if values is not None])
    return pa.RecordBatch.from_struct_array(structs)


@dataclass(slots=True)
class AvroPositions:
    """A position in each of many rows, before a value of the same type; ``ends`` are the rows' ends."""

    data: Octets
    at: Integers
    ends: Integers

    def read(self, avro: Any, field: pa.Field, *, wanted: bool) -> pa.Array | None:
        """Return the next value of each row, None if it is not wanted, and move behind it.

        ``avro`` is the type of the value, a list for a union, and ``field`` the same in Arrow.
        """
        if not isinstance(avro, list):
            return self._value(avro, field.type, wanted)
        branch = self._numbers()
        if ((branch < 0) | (branch >= len(avro))).any():
            raise ValueError("a value in it is of no type")
        if len(avro) - ("null" in avro) > 1:
            return self._one_of(avro, branch, field.type, wanted)
        if "null" not in avro:
            return self._value(avro[0], field.type, wanted)
        valid = branch != avro.index("null")
        value_type = next(branch for branch in avro if branch != "null")
        if valid.all():
            return self._value(value_type, field.type, wanted)
        rows = self._at_rows(valid)
        values = rows._value(value_type, field.type, wanted)
        self.at[valid] = rows.at
        if values is None:
            return None
        if not valid.any():
            return pa.nulls(len(valid), field.type)
        # Each row that has a value takes the next value; the other rows take null.
        return values.take(pa.array(np.maximum(np.cumsum(valid) - 1, 0), mask=~valid))

    def _one_of(self, avro: list[Any], branch: Integers, kind: pa.DataType, wanted: bool) -> pa.Array | None:
        """Return values of one of several types as structs with a field for each type; all other fields are null.

        Each type is a record of one field, whose value it wraps.
        """
        columns, types = [], iter(children(kind))
        for number, wrapper in enumerate(avro):
            if wrapper == "null":
                continue
            has_branch, field = branch == number, next(types)
            rows = self._at_rows(has_branch)
            values = rows.read(wrapper["fields"][0]["type"], field, wanted=wanted)
            self.at[has_branch] = rows.at
            if values is not None and len(values):
                # Each row of this type takes the next value; the other rows take null.
                values = values.take(pa.array(np.maximum(np.cumsum(has_branch) - 1, 0), mask=~has_branch))
            columns.append(pa.nulls(len(branch), field.type) if values is None or not len(values) else values)
        if not wanted:
            return None
        valid = pa.array(branch != avro.index("null")) if "null" in avro else None
        return struct_array(kind, len(branch), valid, columns)

    def _value(self, avro: Any, kind: pa.DataType, wanted: bool) -> pa.Array | None:
        """Return the next value of each row, which no union wraps, and move behind it; None if it is not wanted.

        ``avro`` is the value's type, a name or the JSON of a schema, and ``kind`` the same in Arrow. Raises ValueError
        for a number that is too large for its type.
        """
        base = avro if isinstance(avro, str) else avro["type"]
        if not isinstance(base, str):
            return self._value(base, kind, wanted)
        if base == "record":
            fields = zip(avro["fields"], children(kind), strict=True)
            parts = [self.read(child["type"], field, wanted=wanted) for child, field in fields]
            return struct_array(kind, len(self.at), None, parts) if wanted else None
        if base == "array":
            return self._lists(avro["items"], kind.value_field, kind, wanted)
        if base == "map":
            entry = {"type": "record", "fields": [{"type": "string"}, {"type": avro["values"]}]}
            entries = pa.field("entries", pa.struct(children(kind)), nullable=False)
            return self._lists(entry, entries, kind, wanted)
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
            self._move(lengths)
            return self._binary(lengths, kind) if wanted else None
        width = avro["size"] if base == "fixed" else _WIDTHS.get(base, 1)
        lengths = np.full(len(self.at), width, dtype=np.int64)
        self._move(lengths)
        if not wanted:
            return None
        if base == "fixed":
            return self._binary(lengths, kind)
        octets = self.data[(self.at - width)[:, None] + np.arange(width)]
        if base == "boolean":
            return pa.array(octets[:, 0] == 1)
        return pa.array(octets.view("<f4" if base == "float" else "<f8")[:, 0])

    def _lists(self, avro: Any, items: pa.Field, kind: pa.DataType, wanted: bool) -> pa.Array | None:
        """Return the next list of each row: its items come in blocks, each with their number in front, and then a 0.

        ``avro`` is the Avro type of an item, ``items`` the same in Arrow, and ``kind`` the Arrow type of the lists or
        maps. If they are not ``wanted``, only the positions move, and the result is None. Raises `TooManyError` for a
        very long list, upon which the caller decodes the rows one by one.
        """
        list_of_item, parts = [np.zeros(0, dtype=np.int64)], [pa.array([], items.type)]
        open_lists = np.arange(len(self.at))
        while len(open_lists):
            counts = self._counts(open_lists)
            open_lists, counts = open_lists[counts > 0], counts[counts > 0]
            rows, remaining = open_lists, counts
            while len(rows):
                if len(list_of_item) > _MOST_ITEMS:
                    raise TooManyError
                next_items = self._at_rows(rows)
                values = next_items.read(avro, items, wanted=wanted)
                self.at[rows] = next_items.at
                list_of_item.append(rows)
                parts.extend([] if values is None else [values])
                rows, remaining = rows[remaining > 1], remaining[remaining > 1] - 1
        if not wanted:
            return None
        # The first items of all lists come first, then the second items: a stable sort puts those of a list together.
        rows = np.concatenate(list_of_item)
        in_order = pa.concat_arrays(parts).take(pa.array(np.argsort(rows, kind="stable")))
        return list_array(kind, None, np.bincount(rows, minlength=len(self.at)), in_order)

    def _counts(self, rows: Integers) -> Integers:
        """Return how many items the next block of each of some lists has, and move behind that number."""
        positions = self._at_rows(rows)
        counts = positions._numbers()
        has_size = np.flatnonzero(counts < 0)
        if len(has_size):
            with_size = positions._at_rows(has_size)
            # Behind a negative count comes the size of the block in bytes, which nothing here needs.
            with_size._numbers()
            positions.at[has_size] = with_size.at
        self.at[rows] = positions.at
        items: Integers = np.abs(counts)
        if (items > positions.ends - positions.at).any():
            raise ValueError("a list in it has more items than its row has bytes")
        return items

    def _at_rows(self, rows: Any) -> AvroPositions:
        """Return the positions of some rows."""
        return AvroPositions(self.data, self.at[rows], self.ends[rows])

    def _move(self, lengths: Integers) -> None:
        """Move behind a value of so many bytes in each row."""
        if ((lengths < 0) | (lengths > self.ends - self.at)).any():
            raise ValueError("a value in it is longer than its row")
        self.at = self.at + lengths

    def _numbers(self) -> Integers:
        """Return the next number of each row, and move behind it.

        Avro spells a number by seven bits a byte, the lowest first, and has its sign in the lowest bit.
        """
        if (self.at >= self.ends).any():
            raise ValueError("a row in it breaks off")
        octets = self.data[self.at]
        unsigned = (octets & 0x7F).astype(np.uint64)
        lengths = np.ones(len(octets), dtype=np.int64)
        unfinished = np.flatnonzero(octets >= 0x80)
        for group in range(1, _LONGEST_NUMBER):
            if len(unfinished) == 0:
                break
            position = self.at[unfinished] + group
            if (position >= self.ends[unfinished]).any():
                raise ValueError("a row in it breaks off")
            octets = self.data[position]
            unsigned[unfinished] |= (octets & 0x7F).astype(np.uint64) << np.uint64(7 * group)
            lengths[unfinished] += 1
            unfinished = unfinished[octets >= 0x80]
        if len(unfinished):
            raise ValueError("a number in it has no end")
        self.at = self.at + lengths
        values: Integers = (unsigned >> np.uint64(1)).view(np.int64) ^ -(unsigned & np.uint64(1)).view(np.int64)
        return values

    def _binary(self, lengths: Integers, kind: pa.DataType) -> pa.Array:
        """Return the last ``lengths`` bytes before each position, as texts, bytes or decimals."""
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.repeat(self.at - lengths - offsets[:-1], lengths)
        positions += np.arange(len(positions))
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data[positions])]
        if pa.types.is_decimal(kind):
            return decimals(pa.Array.from_buffers(pa.binary(), len(lengths), buffers), kind)
        array = pa.Array.from_buffers(kind, len(lengths), buffers)
        array.validate(full=True)
        return array


_NUMBERS = {"int": np.int32, "long": np.int64}
_WIDTHS = {"float": 4, "double": 8}
