"""Bounds of one column that several records state: those after the last tight one add up.

Source: ``HoodieMetadataPayload.mergeColumnStatsRecords`` and ``HoodieTableMetadataUtil.mergeColumnStats``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, struct_array
from ..files.logs.decimals import decimals
from ..schema.types import children

Integers = np.ndarray[Any, np.dtype[np.int64]]
_LEAST, _GREATEST = "minValue", "maxValue"
_COUNTS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_TIGHT, _DELETED, _KIND = "isTightBound", "isDeleted", "valueType"
# The type of decimals in ``HoodieValueTypeInfo``, whose bytes are in another order than the numbers.
_DECIMAL = 10
_WHOLE = pa.decimal128(38, 0)


def added_up(records: pa.StructArray, numbers: Integers, last: Integers) -> pa.StructArray:
    """Return the bounds of each number, which stands for a key: ``numbers`` has that of each record.

    Records are in the order of their age. A tight or deleted record begins anew, and those after it widen its bounds
    and add to its counts. The result is in the order of ``last``, the last row of each number.
    """
    names = [field.name for field in children(records.type)]
    restarts = np.zeros(len(records), dtype=np.bool_)
    for name in (_TIGHT, _DELETED):
        if name in names:
            restarts |= pc.fill_null(records.field(name), False).to_numpy(zero_copy_only=False)
    first_counting = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
    rows = np.flatnonzero(restarts)
    first_counting[numbers[rows]] = rows
    counting = np.arange(len(records)) >= first_counting[numbers]
    newest = records.take(pa.array(last))
    columns = {name: newest.field(name) for name in names}
    position = np.full(len(first_counting), -1, dtype=np.int64)
    position[numbers[last]] = np.arange(len(last))
    owners = position[numbers]
    for name in _COUNTS:
        values = pc.fill_null(records.field(name), 0).to_numpy(zero_copy_only=False)
        columns[name] = pa.array(np.bincount(owners[counting], values[counting], len(last)).astype(np.int64))
    mixed = np.zeros(len(last), dtype=np.bool_)
    for name in (_LEAST, _GREATEST):
        rows_with_extreme = _extremes(records, name, owners, counting, mixed)
        columns[name] = records.field(name).take(rows_with_extreme)
    # Bounds of two types have no order, so that the record loses them.
    valid = pa.array(~mixed) if not newest.null_count else pc.and_(newest.is_valid(), pa.array(~mixed))
    return struct_array(newest.type, len(newest), valid, [*columns.values()])


def _extremes(records: pa.StructArray, name: str, owners: Integers, counting: Mask, mixed: Mask) -> pa.Array:
    """Return which record has the least or the greatest bound of each key, null if no record has a bound.

    ``name`` is the field of the bounds. ``owners`` has the position of each record's key among the keys, and
    ``counting`` says which records count. Keys with bounds of two types are marked in ``mixed``.
    """
    first_rows = np.full(len(mixed), -1, dtype=np.int64)
    wrapped = records.field(name)
    for field in children(wrapped.type):
        values = wrapped.field(field.name)
        if pa.types.is_nested(field.type) or values.null_count == len(values):
            continue
        rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False) & counting)
        comparable = _comparable(values.take(pa.array(rows)), records, rows, field.name)
        table = pa.table({"owner": owners[rows], "value": comparable})
        direction = "ascending" if name == _LEAST else "descending"
        order = pc.sort_indices(table, [("owner", "ascending"), ("value", direction)]).to_numpy()
        whose = owners[rows][order]
        starts = np.flatnonzero(np.diff(whose, prepend=-1))
        mixed[whose[starts]] |= first_rows[whose[starts]] >= 0
        first_rows[whose[starts]] = rows[order][starts]
    return pa.array(first_rows, mask=first_rows < 0)


def comparable(values: pa.Array) -> pa.Array:
    """Return values that compare as bounds do: floating point numbers as integers, NaN being the greatest."""
    if not pa.types.is_floating(values.type):
        return values
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    doubles = pc.fill_null(values, 0.0).to_numpy().astype(np.float64)
    doubles = np.where(np.isnan(doubles), np.nan, doubles)
    bits = doubles.view(np.int64)
    return pa.array(np.where(bits < 0, np.int64(-(1 << 63)) - bits - 1, bits), mask=is_null)


def _comparable(values: pa.Array, records: pa.StructArray, rows: Integers, wrapper: str) -> pa.Array:
    """Return bounds, which have one wrapper in common, as values that Arrow orders as they are ordered.

    ``rows`` are the positions of their ``records``, which say whether bytes are decimals.
    """
    values = comparable(values)
    if wrapper != "Bytes" or not len(values) or _KIND not in [field.name for field in children(records.type)]:
        return values
    type_ordinals = records.field(_KIND).field("typeOrdinal").take(pa.array(rows))
    is_decimal = pc.fill_null(pc.equal(type_ordinals, _DECIMAL), False).to_numpy(zero_copy_only=False)
    # No column has decimals and other bytes, so that each needs an order among its own kind alone.
    ranks = np.zeros(len(values), dtype=np.int64)
    for chosen, kind in ((is_decimal, _WHOLE), (~is_decimal, None)):
        of_kind = values.filter(pa.array(chosen))
        ranks[chosen] = _ranks(of_kind if kind is None else decimals(of_kind, kind))
    return pa.array(ranks)


def _ranks(values: pa.Array) -> Integers:
    """Return the rank of each value; equal values share a rank."""
    ranks: Integers = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks
