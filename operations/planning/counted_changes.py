"""Changed rows counted by place without an engine, where they are few.

For many rows `connector/merge/counting.py` has Spark find the same counts and conflicts, by a shuffle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.arrays import Mask, mask
from .changed_rows import ChangedRows, RowPlace

# What a changed row does at a place: it updates the row there, deletes it, moves it away, or enters.
STAYS, GOES, LEAVES, COMES = range(4)
COLUMNS = ("role", "key", "path", "row", "older", "open", "unproven", "shifted")
ROLE, KEY, PATH, ROW, OLDER, OPEN, UNPROVEN, SHIFTED = COLUMNS
_ROLES = {"stays": STAYS, "goes": GOES, "leaves": LEAVES, "comes": COMES}
_SUMMED = (*_ROLES, UNPROVEN, SHIFTED)

Counts = np.ndarray[Any, np.dtype[np.int64]]


def count_changes(entries: pa.Table, *, anywhere: bool) -> ChangedRows | None:
    """Return the counts of changed rows and their conflicts; None where rows have to be compared by ordering values.

    Args:
        entries: What each row does at a place, with `COLUMNS`: a row that moves has an entry at each of its places.
            ``row`` tells the table's rows of one key apart, ``older`` and ``open`` are conflicts of rows that stay.
        anywhere: Whether a key alone is a place, whatever its partition.
    """
    entries = entries.combine_chunks()
    role = entries.column(ROLE)
    stays = pc.equal(role, STAYS)
    columns = {
        **{name: entries.column(name) for name in (KEY, PATH, ROW)},
        **{name: pc.equal(role, number).cast(pa.int64()) for name, number in _ROLES.items()},
        **{name: pc.and_(_is_set(entries, name), stays).cast(pa.int64()) for name in (OLDER, OPEN)},
        **{name: _is_set(entries, name).cast(pa.int64()) for name in (UNPROVEN, SHIFTED)},
    }
    sums: list[tuple[str, str]] = [(name, "sum") for name in (*_SUMMED, OLDER, OPEN)]
    grouped = pa.table(columns).group_by([KEY] if anywhere else [KEY, PATH])
    places = grouped.aggregate([*sums, (ROW, "count_distinct"), *([(PATH, "min")] if anywhere else [])])
    if anywhere:
        places = places.rename_columns([PATH if name == f"{PATH}_min" else name for name in places.column_names])
    return _found(places, {name: places.column(f"{name}_sum").to_numpy() for name, _ in sums})


def _found(places: pa.Table, sums: Mapping[str, Counts]) -> ChangedRows | None:
    changes, goes, comes = sums["stays"] + sums["leaves"], sums["goes"], sums["comes"]
    if ((goes + sums["leaves"] > 0) & (comes > 0)).any():
        return None
    several, twice = (changes > 0) & (changes + goes > 1), places.column(f"{ROW}_count_distinct").to_numpy() > 1
    # Several rows of a source may delete one row of the table.
    deleted = np.where(changes > 0, 0, np.where(twice, goes, np.minimum(goes, 1)))
    wrong: Mapping[str, Mask] = {
        "matched_often": several & ~twice,
        "held_twice": several & twice,
        "crowded": sums["stays"] + comes > 1,
        "kept": sums[OPEN] > 0,
        "older": sums[OLDER] > 0,
    }
    totals = {name: int(sums[name].sum()) for name in _SUMMED}
    return ChangedRows.of(
        {**totals, "deleted": int(deleted.sum()), "replaced": 0, "again": int(np.count_nonzero(goes > 1))},
        {name: _first(places, found) for name, found in wrong.items()},
    )


def _first(places: pa.Table, wrong: Mask) -> RowPlace | None:
    """Return the least of some places; the write refuses a row without a key, and names it."""
    found = places.select([KEY, PATH]).filter(pa.array(wrong & mask(places.column(KEY).is_valid())))
    if not found.num_rows:
        return None
    row = found.take(pc.sort_indices(found, [(KEY, "ascending"), (PATH, "ascending")])[:1])
    key, path = row[KEY][0].as_py(), row[PATH][0].as_py()  # one value each, for the error
    return RowPlace(key, path or "")


def _is_set(entries: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.fill_null(entries.column(name), False)


__all__ = ["COLUMNS", "COMES", "GOES", "LEAVES", "STAYS", "count_changes"]
