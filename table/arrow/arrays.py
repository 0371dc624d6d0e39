"""Small tools on Arrow arrays that pyarrow lacks: plain layout, masks and bitmaps, spans, arrays from parts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Lengths = np.ndarray[Any, np.dtype[np.int64]]


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array that is not dictionary-encoded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # pyarrow keeps an empty or oversized column chunked
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def mask(array: pa.BooleanArray) -> Mask:
    """Return a boolean array for numpy, null as False."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def bitmap(valid: pa.BooleanArray | None) -> Any:
    """Return a validity bitmap that starts at bit 0; None, as Arrow has it, if every value is valid."""
    if valid is None:
        return None
    bits = valid.to_numpy(zero_copy_only=False)
    return None if bits.all() else pa.py_buffer(np.packbits(bits, bitorder="little"))


def span_of(ordered: pa.StringArray, least: str | None, greatest: str | None) -> tuple[int, int]:
    """Return start and end of the strings, sorted by bytes, between two texts, both included; None for no bound."""
    positions = range(len(ordered))
    end = len(ordered)
    if greatest is not None:
        end = bisect_left(positions, True, key=lambda position: ordered[position].as_py() > greatest)  # O(log n)
    start = 0
    if least is not None:
        start = bisect_left(positions, True, hi=end, key=lambda at: ordered[at].as_py() >= least)  # O(log n)
    return start, end


def without_nulls(array: pa.Array) -> pa.Array:
    """Return a flat array without its validity bitmap; each null becomes an arbitrary value of the type."""
    if array.null_count == 0:
        return array
    return pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], 0, array.offset)


def list_array(kind: pa.DataType, valid: pa.BooleanArray | None, lengths: Lengths, values: pa.Array) -> pa.Array:
    """Return an array of a list or map type; ``values`` are the elements of all lists, or the entries of all maps."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    narrow = pa.py_buffer(offsets.astype(np.int32))
    return pa.Array.from_buffers(kind, len(lengths), [bitmap(valid), narrow], children=[values])


def struct_array(
    kind: pa.StructType, length: int, valid: pa.BooleanArray | None, children: Sequence[pa.Array]
) -> pa.Array:
    """Return an array of a struct type, made of one child array for each field; ``valid`` None means no null."""
    return pa.Array.from_buffers(kind, length, [bitmap(valid)], children=list(children))
