"""How the columns of a base file are written: which with a dictionary, and which with statistics.

Parquet C++ builds a dictionary until it passes a size (``dictionary_pagesize_limit``) and writes plain values from
there on. A column whose dictionary would be given up pays for the building and gains nothing, not even on disk. So does
a column of few rows in which hardly a value comes again, though its dictionary is kept.
"""

from __future__ import annotations

import math
from collections.abc import Container

import numpy as np
import pyarrow as pa

from ..schema.columns import SEQUENCE_NUMBER
from ..schema.types import children, is_list

_SAMPLE = 4096
_DICTIONARY_BYTES = 1 << 20
# How often a value has to occur, on average, for an index in its place to be smaller and as fast.
_LEAST_USES = 3


def dictionary_columns(rows: pa.Table, sorted_by: Container[str] = ()) -> list[str]:
    """Return the flat columns that a dictionary makes smaller, going by the first row group.

    Columns of fixed width by which the rows lie in order get none: a row group has a narrow range of their values, and
    Spark's reader, for a condition on a column, reads 64 KiB for the dictionary of each row group that bounds admit.
    """
    sorted_numbers = {
        field.name for field in rows.schema if field.name in sorted_by and pa.types.is_primitive(field.type)
    }
    return [field.name for field in rows.schema if field.name not in sorted_numbers and _pays(rows.column(field.name))]


def statistics_columns(schema: pa.Schema, without_nan: Container[str] = ()) -> list[str]:
    """Return the Parquet paths of the leaves that get bounds: all but sequence numbers, and numbers that may be NaN.

    No query looks for rows by sequence numbers. Arrow leaves NaN out of a bound, as Parquet wants it. Spark orders
    NaN above every number, so that its reader, which Apache Hudi uses too, would skip row groups with NaNs.
    """
    leaves = (leaf for field in schema for leaf in _leaves(field))
    bounded = [path for path, kind in leaves if path in without_nan or not pa.types.is_floating(kind)]
    return [path for path in bounded if path != SEQUENCE_NUMBER]


def _leaves(field: pa.Field, outer: str = "") -> list[tuple[str, pa.DataType]]:
    """Return the Parquet path and the type of each column that is not nested in a field, or the field's own."""
    path, kind = f"{outer}{field.name}", field.type
    group = ".key_value" if pa.types.is_map(kind) else ".list" if is_list(kind) else ""
    return [leaf for child in children(kind) for leaf in _leaves(child, f"{path}{group}.")] or [(path, kind)]


def _pays(column: pa.ChunkedArray) -> bool:
    """Return whether a dictionary makes a flat column smaller and stays below the size at which Parquet gives it up."""
    if pa.types.is_nested(column.type):
        return False
    if pa.types.is_dictionary(column.type) or column.null_count == len(column):
        # Its values repeat, or it has none.
        return True
    sample = _sample(column)
    values, distinct = len(column) - column.null_count, float(_distinct(sample))
    if len(sample) < len(column):
        distinct = min(estimate_distinct(len(sample) - sample.null_count, int(distinct)), values)
    return distinct * _LEAST_USES <= values and bool(distinct * sample.nbytes < _DICTIONARY_BYTES * len(sample))


def _distinct(values: pa.Array | pa.ChunkedArray) -> int:
    """Return how many distinct values there are, null not counted."""
    # In half the time of `pyarrow.compute.count_distinct`.
    return len(values.unique()) - bool(values.null_count)


def _sample(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values from all over a column; taken chunk by chunk, because a take from many would copy them first."""
    step = max(1, len(column) // _SAMPLE)
    if step == 1:
        return column
    chunks = [chunk.take(pa.array(np.arange(0, len(chunk), step))) for chunk in column.chunks if len(chunk)]
    return pa.chunked_array(chunks, column.type)


def estimate_distinct(values: int, distinct: int) -> float:
    """Return how many distinct values a column has, going by ``distinct`` among ``values`` sampled evenly from it.

    D equally frequent values show ``D * (1 - exp(-n / D))`` among n; solved for D by Newton's method. Infinite if
    the sample holds no value twice.
    """
    if distinct >= values:
        return math.inf
    guess = float(distinct)
    for _ in range(20):
        missed = math.exp(-values / guess)
        guess -= (guess * (1 - missed) - distinct) / (1 - missed * (1 + values / guess))
    return guess
