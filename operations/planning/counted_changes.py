"""Changed rows counted by place without an engine: if they are few, or if there is no engine.

For many rows, Spark finds the same counts and conflicts by a shuffle (`connector/merge/counting.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.arrays import Mask, mask
from .changed_rows import ChangedRows, RowPlace

# What a changed row does at a place: it updates the row there, deletes it, moves it away, or enters. A row of the table
# that is UNCHANGED does nothing, and counts among the rows of its key.
STAYS, GOES, LEAVES, COMES, UNCHANGED = range(5)
# OPEN: a value of the row makes a partial update keep the stored value. UNPROVEN: the row comes to a place at which the
# table may have a row. SHIFTED: the row changes its partition and, under a global index, keeps its place.
COLUMNS = ("role", "key", "path", "row", "older", "open", "unproven", "shifted")
ROLE, KEY, PATH, ROW, OLDER, OPEN, UNPROVEN, SHIFTED = COLUMNS
# Numbers in the order of the ordering values, for rows that enter the places of others.
RANK = "rank"
_ROLES = {"stays": STAYS, "goes": GOES, "leaves": LEAVES, "comes": COMES}
_SUMMED = (*_ROLES, UNPROVEN, SHIFTED)
_ENTERS_OPEN = "enters_open"

Counts = np.ndarray[Any, np.dtype[np.int64]]


def count_changes(entries: pa.Table, *, anywhere: bool) -> ChangedRows | None:
    """Return the counts of changed rows and their conflicts; None if rows must be compared by ordering values.

    Args:
        entries: What each row does at a place, as for `ChangedPlaces.of`, without `RANK`.
        anywhere: Whether a key alone is a place, whatever its partition.
    """
    places = ChangedPlaces.of(entries, anywhere=anywhere)
    return None if places.replaced.any() else places.counted()


@dataclass(frozen=True, slots=True)
class ChangedPlaces:
    """The places that rows leave or enter, or at which they stay, with what happens at each.

    Attributes:
        places: The record key and the partition path of each place, and how many stored rows it has.
        sums: By role and flag, how many rows of each place have it.
        outdone: The places at which the entering row is older than the leaving row.
    """

    places: pa.Table
    sums: Mapping[str, Counts]
    outdone: Mask

    @classmethod
    def of(cls, entries: pa.Table, *, anywhere: bool) -> ChangedPlaces:
        """Return the places of some rows.

        Args:
            entries: What each row does at a place, with `COLUMNS`; a row that moves has an entry at each of its two
                places. ``row`` distinguishes the table's rows of one key, and ``older`` is about rows that stay. With
                `RANK`, rows that enter are compared with those that they replace.
            anywhere: Whether a key alone is a place, whatever its partition.
        """
        entries = entries.combine_chunks()
        role = entries.column(ROLE)
        stays, comes = pc.equal(role, STAYS), pc.equal(role, COMES)
        columns = {
            **{name: entries.column(name) for name in (KEY, PATH, ROW)},
            **{name: pc.equal(role, number).cast(pa.int64()) for name, number in _ROLES.items()},
            **{name: pc.and_(_is_set(entries, name), stays).cast(pa.int64()) for name in (OLDER, OPEN)},
            _ENTERS_OPEN: pc.and_(_is_set(entries, OPEN), comes).cast(pa.int64()),
            **{name: _is_set(entries, name).cast(pa.int64()) for name in (UNPROVEN, SHIFTED)},
        }
        summed = (*_SUMMED, OLDER, OPEN, _ENTERS_OPEN)
        aggregates: list[tuple[str, str]] = [*((name, "sum") for name in summed), (ROW, "count_distinct")]
        if RANK in entries.column_names:
            rank = entries.column(RANK)
            columns |= {"new": pc.if_else(comes, rank, None), "old": pc.if_else(pc.invert(comes), rank, None)}
            aggregates += [("new", "max"), ("old", "max")]
        grouped = pa.table(columns).group_by([KEY] if anywhere else [KEY, PATH])
        places = grouped.aggregate([*aggregates, *([(PATH, "min")] if anywhere else [])])
        if anywhere:
            places = places.rename_columns([PATH if name == f"{PATH}_min" else name for name in places.column_names])
        outdone = np.zeros(places.num_rows, np.bool_)
        if RANK in entries.column_names:
            outdone = mask(pc.less(places.column("new_max"), places.column("old_max")).combine_chunks())
        return cls(places, {name: places.column(f"{name}_sum").to_numpy() for name in summed}, outdone)

    @property
    def replaced(self) -> Mask:
        """The places that one row leaves and another enters."""
        left_places: Mask = self.sums["goes"] + self.sums["leaves"] > 0
        return left_places & (self.sums["comes"] > 0)

    @property
    def deleted_often(self) -> Mask:
        """The places at which several changes delete a row."""
        several_deletes: Mask = self.sums["goes"] > 1
        return several_deletes

    def at(self, where: Mask) -> pa.Table:
        """Return the keys and partition paths of the places for which ``where`` is set."""
        return self.places.select([KEY, PATH]).filter(pa.array(where))

    def counted(self) -> ChangedRows:
        """Return the counts, and the first place of each conflict."""
        sums, replaced = self.sums, self.replaced
        changes, goes, comes = sums["stays"] + sums["leaves"], sums["goes"], sums["comes"]
        several_changes = (changes > 0) & (changes + goes > 1)
        held_twice = self.places.column(f"{ROW}_count_distinct").to_numpy() > 1
        # Several rows of a source may delete one row of the table.
        deleted = np.where(changes > 0, 0, np.where(held_twice, goes, np.minimum(goes, 1)))
        forbidden: Mapping[str, Mask] = {
            "matched_often": several_changes & ~held_twice,
            # If a row enters a place, the deletes there are left out, so the row would replace all rows of the place.
            "held_twice": (several_changes | (comes > 0)) & held_twice,
            "crowded": sums["stays"] + comes > 1,
            "keeps_old": (sums[OPEN] > 0) | (replaced & (sums[_ENTERS_OPEN] > 0)),
            "older": (sums[OLDER] > 0) | (replaced & self.outdone),
        }
        totals = {name: int(sums[name].sum()) for name in _SUMMED}
        totals |= {"deleted": int(deleted.sum()), "replaced": int(np.count_nonzero(replaced))}
        # At a replaced place, this write takes away the stored row that would be in the way.
        totals |= {"again": int(np.count_nonzero(self.deleted_often)), UNPROVEN: int(sums[UNPROVEN][~replaced].sum())}
        totals["copied"] = int(np.count_nonzero(held_twice & (changes + goes > 0)))
        return ChangedRows.of(totals, {name: self._first_place(places) for name, places in forbidden.items()})

    def _first_place(self, where: Mask) -> RowPlace | None:
        """Return the least of some places with a key; None for none. The write itself refuses rows without a key."""
        places = self.at(where & mask(self.places.column(KEY).is_valid()))
        if not places.num_rows:
            return None
        row = places.take(pc.sort_indices(places, [(KEY, "ascending"), (PATH, "ascending")])[:1])
        key, path = row[KEY][0].as_py(), row[PATH][0].as_py()  # one value each, for the error
        return RowPlace(key, path or "")


def _is_set(entries: pa.Table, name: str) -> pa.ChunkedArray:
    """Return which entries have a flag; a null counts as unset."""
    return pc.fill_null(entries.column(name), False)


__all__ = ["COLUMNS", "COMES", "GOES", "LEAVES", "RANK", "STAYS", "UNCHANGED", "ChangedPlaces", "count_changes"]
