"""The bytes of single rows: a few wide rows among narrow rows, taken many times, would take all memory."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_Sizes: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


def row_sizes(rows: pa.RecordBatch) -> _Sizes:
    """Return about how many bytes each row takes."""
    sizes: _Sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        sizes += _sizes_of_values(column)
    return sizes


def _sizes_of_values(values: pa.Array) -> _Sizes:
    """Return about how many bytes each value takes, with all that lists and structs hold."""
    types, kind = pa.types, values.type
    if not len(values):
        return np.zeros(0, np.int64)
    if types.is_string(kind) or types.is_binary(kind):
        sizes: _Sizes = pc.fill_null(pc.binary_length(values), 0).to_numpy().astype(np.int64)
        return sizes
    if types.is_struct(kind):
        parts: _Sizes = np.zeros(len(values), np.int64)
        for part in values.flatten():
            parts += _sizes_of_values(part)
        return parts
    if types.is_list(kind) or types.is_map(kind):
        elements = [values.keys, values.items] if types.is_map(kind) else [values.values]
        ends = np.append(0, np.cumsum(sum(map(_sizes_of_values, elements))))
        starts: _Sizes = ends[values.offsets.to_numpy()]
        return starts[1:] - starts[:-1]
    # Values of any other type have one size.
    return np.full(len(values), values.nbytes // len(values) + 1, np.int64)
