"""Bounds of partitions that are no wider than those of their files together; commits only widen bounds.

Source: ``HoodieMetadataPayload.createPartitionStatsRecords`` and ``HoodieTableMetadataUtil.mergeColumnStats``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from ..schema.types import children
from .bounds import added_up
from .bounds_of_files import Integers, places_of
from .encoding import BOUNDS_OF_PARTITION
from .merging import BOUNDS, KEY, TYPE
from .record_keys import COLUMN_DIGITS, hash_of_column, hash_of_partition, key_of_partition

_LEAST, _GREATEST, _TIGHT = "minValue", "maxValue", "isTightBound"


def tight_bounds(
    records: pa.StructArray, files: Mapping[str, Sequence[str]], columns: Sequence[str]
) -> pa.StructArray | None:
    """Return the records of ``partition_stats`` of the partitions that have tight bounds; None if none has.

    A partition has none if a file of it lacks the bounds of a column, or if the bounds of a column are of two types.

    Args:
        records: Records of ``column_stats``, among others those of the files.
        files: The names of all files in the newest slices, at least one a partition, by the paths of the partitions.
        columns: The indexed columns.
    """
    paths, counts = list(files), np.array([len(names) for names in files.values()], dtype=np.int64)
    owners = np.repeat(np.arange(len(paths)), counts)
    numbers, rows = _numbered(records, files, owners, columns)
    bounds = records.field(BOUNDS).take(pa.array(rows))
    is_whole = _whole(bounds, numbers, np.repeat(counts, len(columns)))
    tight = np.asarray(is_whole.reshape(len(paths), len(columns)).all(axis=1))
    chosen = tight[numbers // len(columns)]
    numbers, bounds = numbers[chosen], bounds.filter(pa.array(chosen))
    if not len(numbers):
        return None
    # Of each column in a partition the last record tells the type of the values, a record with bounds if there is any.
    order = np.lexsort((_wrapper_of(bounds, _LEAST) >= 0, numbers))
    numbers, bounds = numbers[order], bounds.take(pa.array(order))
    last = np.flatnonzero(np.diff(numbers, append=-1))
    added = added_up(_changed(bounds, {_TIGHT: _same(False, len(bounds))}), numbers, last)
    of_partition, of_column = numbers[last] // len(columns), numbers[last] % len(columns)
    names = pa.array(map(key_of_partition, paths), pa.string()).take(pa.array(of_partition))
    added = _changed(added, {"fileName": names, _TIGHT: _same(True, len(last))})
    begins = pa.array(map(hash_of_column, columns), pa.string()).take(pa.array(of_column))
    ends = pa.array(map(hash_of_partition, paths), pa.string()).take(pa.array(of_partition))
    types = pa.array(np.full(len(last), BOUNDS_OF_PARTITION, dtype=np.int32))
    keys = pc.binary_join_element_wise(begins, ends, "")
    return pa.StructArray.from_arrays([keys, types, added], [KEY, TYPE, BOUNDS])


def _numbered(
    records: pa.StructArray, files: Mapping[str, Sequence[str]], owners: Integers, columns: Sequence[str]
) -> tuple[Integers, Integers]:
    """Return which records are of the files and columns, and of each the number of its partition and column."""
    paths = pa.array(list(files), pa.string()).take(pa.array(owners))
    key_ends = places_of(paths, pa.array([name for names in files.values() for name in names], pa.string()))
    keys, begins = records.field(KEY), pa.array(map(hash_of_column, columns), pa.string())
    of_file = pc.index_in(pc.utf8_slice_codeunits(keys, COLUMN_DIGITS), value_set=key_ends)
    of_column = pc.index_in(pc.utf8_slice_codeunits(keys, 0, COLUMN_DIGITS), value_set=begins)
    valid = pc.and_(pc.and_(of_file.is_valid(), of_column.is_valid()), records.field(BOUNDS).is_valid())
    rows = np.flatnonzero(mask(valid))
    at, column = (each.take(pa.array(rows)).to_numpy().astype(np.int64) for each in (of_file, of_column))
    return owners[at] * len(columns) + column, rows


def _whole(bounds: pa.StructArray, numbers: Integers, counts: Integers) -> Mask:
    """Return for which numbers as many records as files say all of their values, and in one type."""
    least, greatest = (_wrapper_of(bounds, name) for name in (_LEAST, _GREATEST))
    nulls, values = (pc.fill_null(bounds.field(name), -1).to_numpy() for name in ("nullCount", "valueCount"))
    # Some writers leave bounds out that they do not know.
    says_all = (least == greatest) & ((least >= 0) | ((values >= 0) & (nulls >= values)))
    types, has_bounds = _types(bounds, least), least >= 0
    lowest, highest = np.full(len(counts), np.iinfo(np.int64).max), np.full(len(counts), -1)
    np.minimum.at(lowest, numbers[has_bounds], types[has_bounds])
    np.maximum.at(highest, numbers[has_bounds], types[has_bounds])
    is_of_one_type = highest <= lowest
    return np.asarray((np.bincount(numbers[says_all], minlength=len(counts)) == counts) & is_of_one_type)


def _wrapper_of(bounds: pa.StructArray, name: str) -> Integers:
    """Return the number of the type in which each record wraps a bound, -1 if it has none."""
    wrapped, wrappers = bounds.field(name), np.full(len(bounds), -1, dtype=np.int64)
    for number, field in enumerate(children(wrapped.type)):
        wrappers[mask(pc.struct_field(wrapped, [field.name]).is_valid())] = number
    return wrappers


def _types(bounds: pa.StructArray, of_least: Integers) -> Integers:
    """Return a number for the type of each record's bounds: how they are wrapped, and what the record says of it."""
    parts = [pa.array(of_least).cast(pa.string())]
    if "valueType" in [field.name for field in children(bounds.type)]:
        told = bounds.field("valueType")
        names = [field.name for field in children(told.type)] if pa.types.is_struct(told.type) else []
        parts += [pc.struct_field(told, [name]).cast(pa.string()) for name in names]
    texts = pc.binary_join_element_wise(*parts, " ", null_handling="replace", null_replacement="")
    return np.asarray(texts.dictionary_encode().indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _changed(bounds: pa.StructArray, columns: Mapping[str, pa.Array]) -> pa.StructArray:
    """Return bounds with other columns; a column that they lack comes last."""
    every = {**{field.name: bounds.field(field.name) for field in children(bounds.type)}, **columns}
    return pa.StructArray.from_arrays(list(every.values()), list(every))


def _same(value: bool, count: int) -> pa.BooleanArray:
    return pa.array(np.full(count, value))
