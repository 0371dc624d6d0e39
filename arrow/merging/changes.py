"""Joins both sides and applies the first clause that holds: a row of changes for each place that a row leaves or takes.

A row of changes has the columns of the table with their new values; for a deleted row, only the columns that a
delete needs. A row that moves makes two rows of changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DuplicateKeyError
from ...methods.merging.changed_table import SOURCE, TARGET, UNNAMED, ChangedTable
from ...methods.merging.clauses import ClauseKind, Side
from ...operations.planning.changed_rows import RowPlace
from ...operations.planning.counted_changes import COMES, GOES, LEAVES, STAYS
from ...table.arrow.arrays import Mask, mask
from ...table.config.property_keys import IGNORE_DEFAULTS, MERGE_ON_READ
from ...table.merging.deletes import deleted
from ...table.merging.winners import base_wins
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY, SEQUENCE_NUMBER
from ...table.schema.fields import root_of, values_of
from .clause_terms import ReadyClause, chosen
from .matching import RowMatch
from .source import places_of

# Columns of a row of changes besides those of the table, as `ChangedPlaces` takes them. ``moved`` tells a row that
# comes from elsewhere in the table. A row is OLDER if its stored row has the greater ordering value, OPEN if a
# placeholder would keep a stored value, UNPROVEN if the table may hold a row at the place that it enters, and SHIFTED
# if it stays and its path changes alone.
ROLE, PLACE_KEY, PLACE_PATH, ROW = "_pyhudi_role", "_pyhudi_place_key", "_pyhudi_place_path", "_pyhudi_row"
OLDER, OPEN, UNPROVEN, SHIFTED = "_pyhudi_older", "_pyhudi_open", "_pyhudi_unproven", "_pyhudi_shifted"
MOVED = "_pyhudi_moved"
_FLAGS = (OLDER, OPEN, UNPROVEN, SHIFTED, MOVED)
_MORE = pa.schema(
    [
        *((ROLE, pa.int8()), (PLACE_KEY, pa.string()), (PLACE_PATH, pa.string()), (ROW, pa.string())),
        *((name, pa.bool_()) for name in _FLAGS),
    ]
)
# A source is joined with at least so many rows of the table at once, so that it is hashed few times.
_ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 64 << 20


@dataclass(frozen=True, slots=True)
class ClauseChanges:
    """What some clauses change."""

    table: ChangedTable
    match: RowMatch
    clauses: Sequence[ReadyClause]

    @property
    def schema(self) -> pa.Schema:
        """The columns of rows of changes."""
        return pa.schema([*(field.with_nullable(True) for field in self.table.schema), *_MORE])

    @property
    def stored_columns(self) -> list[str]:
        """The columns of the table that are read."""
        prefix = f"{TARGET}."
        clause_columns = self.match.columns.union(*(ready.columns for ready in self.clauses))
        needed = {name.removeprefix(prefix) for name in clause_columns if name.startswith(prefix)}
        # Placeholders are compared with the stored values of all columns.
        kept_names = self.table.schema.names if self.table.leaves_open else map(root_of, self.table.kept_of_deletes)
        needed |= {RECORD_KEY, PARTITION_PATH, SEQUENCE_NUMBER, *({*kept_names} & {*self.table.schema.names})}
        return sorted(needed)

    @property
    def _source_columns_of_pairs(self) -> list[str]:
        """The columns of the source that its rows with a match need; such a row is taken once for each match."""
        matched = [ready.columns for ready in self.clauses if ready.clause.side is Side.MATCHED]
        return sorted(name for name in self.match.columns.union(*matched) if name.startswith(f"{SOURCE}."))

    def of_stored(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the changes of rows of the table that match no row of a source."""
        return self._changes_of_side(Side.BY_SOURCE, _with_side_names(TARGET, rows))

    def of_source(self, source: pa.RecordBatch, stored_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the changes of rows of a source and of the rows of the table that may match them."""
        source_matched = np.zeros(source.num_rows, np.bool_)
        source_rows = _with_side_names(SOURCE, source)
        narrow_rows = source_rows.select(self._source_columns_of_pairs)
        # Whether a clause takes rows of the table that match no row of the source.
        by_source = any(ready.clause.side is Side.BY_SOURCE for ready in self.clauses)
        for batch in _joined_batches(stored_batches, source.num_rows):
            stored_rows, stored_matched = _with_side_names(TARGET, batch), np.zeros(batch.num_rows, np.bool_)
            for source_positions, stored_positions in self.match.pairs(narrow_rows, stored_rows):
                pairs = _side_by_side(
                    narrow_rows.take(pa.array(source_positions)), stored_rows.take(pa.array(stored_positions))
                )
                holds = self.match.holds(pairs)
                source_matched[source_positions[holds]] = True
                stored_matched[stored_positions[holds]] = True
                yield from self._changes_of_side(Side.MATCHED, pairs if holds.all() else pairs.filter(pa.array(holds)))
            if by_source:
                yield from self._changes_of_side(Side.BY_SOURCE, stored_rows.filter(pa.array(~stored_matched)))
        yield from self._changes_of_side(Side.NOT_MATCHED, source_rows.filter(pa.array(~source_matched)))

    def _changes_of_side(self, side: Side, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the changes of joined rows of a side: each row takes the first clause for that side that holds."""
        numbers = chosen(self.clauses, side, rows)
        for number, ready in enumerate(self.clauses):
            is_taken = numbers == number
            if is_taken.any():
                yield from _ClauseRows(self, ready, rows.filter(pa.array(is_taken))).changes()


@dataclass(frozen=True, slots=True)
class _ClauseRows:
    """Joined rows that a clause of a merge takes."""

    merge: ClauseChanges
    ready: ReadyClause
    rows: pa.RecordBatch

    def changes(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes of the rows; a row whose new values mark it as a delete is deleted at its old place."""
        table = self.merge.table
        clause_kind = self.ready.clause.kind
        columns = self.ready.new_columns(self.rows, pa.schema([field.with_nullable(True) for field in table.schema]))
        new_rows = pa.RecordBatch.from_arrays(columns, names=table.schema.names)
        if clause_kind is ClauseKind.DELETE:
            yield self._rows_of_changes(GOES, new_rows, *self._old_places())
            return
        marked = deleted(new_rows, table.config.delete_marker)
        if marked.any():
            # A row whose new values mark it as a delete goes; as an insert it changes nothing.
            if clause_kind is ClauseKind.UPDATE:
                yield from self._rows_where(marked)._deletes_by_marks(new_rows.filter(pa.array(marked)))
            yield from self._rows_where(~marked)._changes_of_live_rows(new_rows.filter(pa.array(~marked)))
            return
        yield from self._changes_of_live_rows(new_rows)

    def _changes_of_live_rows(self, new_rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the changes of rows that are no deletes; a row that moves makes two changes.

        Under a global index, a row whose path alone changes stays, and counts as shifted.
        """
        if self.ready.clause.kind is ClauseKind.INSERT:
            keys, paths = places_of(new_rows, self.merge.table)
            opens = self._has_placeholder(new_rows) if self.merge.table.leaves_open else None
            yield self._rows_of_changes(
                COMES, new_rows, keys, paths, open_rows=opens, unproven=self._unproven(new_rows), has_stored_row=False
            )
            return
        old_keys, old_paths = self._old_places()
        if self.ready.keeps_place:
            yield self._changes_in_place(new_rows, old_keys, old_paths, None)
            return
        keys, paths = places_of(new_rows, self.merge.table)
        path_differs = _differ(paths, old_paths)
        leaves = _differ(keys, old_keys) if self.merge.table.is_global else _differ(keys, old_keys) | path_differs
        stays = pa.array(~leaves)
        if not leaves.all():
            unmoved = self._rows_where(~leaves)
            places = old_keys.filter(stays), old_paths.filter(stays)
            yield unmoved._changes_in_place(new_rows.filter(stays), *places, path_differs[~leaves])
        if leaves.any():
            leaves_array = pa.array(leaves)
            moving, moved = self._rows_where(leaves), new_rows.filter(leaves_array)
            yield moving._rows_of_changes(
                LEAVES, moving._rows_for_deletes(), old_keys.filter(leaves_array), old_paths.filter(leaves_array)
            )
            opens = moving._has_placeholder(moved) if self.merge.table.leaves_open else None
            everywhere = np.ones(moved.num_rows, np.bool_)
            yield moving._rows_of_changes(
                *(COMES, moved, keys.filter(leaves_array), paths.filter(leaves_array)),
                open_rows=opens,
                unproven=everywhere,
                moved=everywhere,
                has_stored_row=False,
            )

    def _changes_in_place(
        self, new_rows: pa.RecordBatch, keys: pa.Array, paths: pa.Array, shifted: Mask | None
    ) -> pa.RecordBatch:
        """Return the changes of updated rows that keep their places; ``shifted`` marks those with another path."""
        older = open_rows = None
        ordering = self.merge.table.ordering_fields
        if ordering:
            older = base_wins(
                [self._stored_values(name) for name in ordering], [values_of(new_rows, name) for name in ordering]
            )
        if self.merge.table.leaves_open:
            open_rows = self._has_new_placeholder(new_rows)
        return self._rows_of_changes(STAYS, new_rows, keys, paths, older=older, open_rows=open_rows, shifted=shifted)

    def _deletes_by_marks(self, new_rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield deletes of rows by their new values, at their old places."""
        roots = {root for _, root in self.merge.table.place_roots}
        columns = [
            self.rows.column(f"{TARGET}.{name}") if name in roots else new_rows.column(name)
            for name in new_rows.schema.names
        ]
        yield self._rows_of_changes(
            GOES, pa.RecordBatch.from_arrays(columns, names=new_rows.schema.names), *self._old_places()
        )

    def _rows_of_changes(
        self,
        role: int,
        new_rows: pa.RecordBatch,
        keys: pa.Array,
        paths: pa.Array,
        *,
        older: Mask | None = None,
        open_rows: Mask | None = None,
        unproven: Mask | None = None,
        shifted: Mask | None = None,
        moved: Mask | None = None,
        has_stored_row: bool = True,
    ) -> pa.RecordBatch:
        """Return rows of changes that have one role at their places.

        Args:
            role: What the rows do at the places: one of COMES, GOES, LEAVES and STAYS.
            new_rows: The rows with their new values.
            keys: The record keys of the places.
            paths: The partition paths of the places.
            older: Which rows have a lesser ordering value than their stored rows; None for none, as for all masks.
            open_rows: Which rows have a placeholder that would keep a stored value.
            unproven: Which rows enter a place where the table may hold a row.
            shifted: Which rows stay, while their path changes.
            moved: Which rows come from elsewhere in the table.
            has_stored_row: Whether the joined rows have a row of the table each.
        """
        count = new_rows.num_rows
        # A delete or an update must find its row by the columns of the row.
        # Without `keeps_place`, rows that stay have been compared with their old places already.
        if has_stored_row and (role != STAYS or self.ready.keeps_place):
            self._refuse_other_spelling(new_rows, keys, paths)
        numbers = self.rows.column(f"{TARGET}.{SEQUENCE_NUMBER}") if has_stored_row else pa.nulls(count, pa.string())
        flags = [
            pa.array(np.zeros(count, np.bool_) if marked is None else marked)
            for marked in (older, open_rows, unproven, shifted, moved)
        ]
        roles = pa.array(np.full(count, role, np.int8))
        return pa.RecordBatch.from_arrays(
            [*new_rows.columns, roles, keys, paths, numbers, *flags], schema=self.merge.schema
        )

    def _refuse_other_spelling(self, rows: pa.RecordBatch, keys: pa.Array, paths: pa.Array) -> None:
        """Refuse stored rows whose columns make another key or path than they have, because a write would miss them.

        A copy-on-write table needs no such check, because its write counts the rows that it replaces.
        """
        table = self.merge.table
        if table.config.table_type != MERGE_ON_READ:
            return
        made_keys, made_paths = places_of(rows, table)
        differs = _differ(made_keys, keys) if table.is_global else _differ(made_keys, keys) | _differ(made_paths, paths)
        if differs.any():
            position = int(np.flatnonzero(differs)[0])
            stored_place, computed_place = (
                RowPlace(key[position].as_py(), path[position].as_py() or "")  # one value each
                for key, path in ((keys, paths), (made_keys, made_paths))
            )
            raise DuplicateKeyError(
                f"The table {table.path} holds a row with {stored_place}, but its columns make {computed_place}. A "
                "change of this row would leave it as it is and add another row.",
                "Leave such rows out by the conditions; validate() names rows with other keys than their columns'.",
            )

    def _rows_where(self, chosen_rows: Mask) -> _ClauseRows:
        """Return those of the rows that a mask chooses, for the same clause."""
        return _ClauseRows(self.merge, self.ready, self.rows.filter(pa.array(chosen_rows)))

    def _old_places(self) -> tuple[pa.Array, pa.Array]:
        """Return the keys and partition paths that the stored rows have."""
        return self.rows.column(f"{TARGET}.{RECORD_KEY}"), self.rows.column(f"{TARGET}.{PARTITION_PATH}")

    def _stored_values(self, name: str) -> pa.Array:
        """Return the stored values of a field."""
        column, *inner = name.split(".")
        values = self.rows.column(f"{TARGET}.{column}")
        return pc.struct_field(values, inner) if inner else values

    def _rows_for_deletes(self) -> pa.RecordBatch:
        """Return the stored rows as far as a delete of them needs."""
        schema, kept_names = self.merge.table.schema, self.merge.table.kept_of_deletes
        columns = [
            self.rows.column(f"{TARGET}.{field.name}")
            if field.name in kept_names
            else pa.nulls(self.rows.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, names=schema.names)

    def _unproven(self, new_rows: pa.RecordBatch) -> Mask:
        """Return for which inserted rows the table may hold a row at their place, although they have no match.

        A null equals nothing, but two rows with a null in a part of the key may have one key. Rows without a
        partition's name share a partition. A match by computed keys and paths finds both.
        """
        unproven = np.full(new_rows.num_rows, not self.ready.proves_new, np.bool_)
        if self.merge.match.by_key:
            return unproven
        table = self.merge.table
        for name in table.place_fields:
            values = values_of(new_rows, name)
            unproven |= mask(pc.is_null(values))
            if name in table.config.partition_fields and pa.types.is_string(values.type):
                unproven |= mask(pc.is_in(values, value_set=pa.array(UNNAMED)))
        return unproven

    def _has_placeholder(self, new_rows: pa.RecordBatch) -> Mask:
        """Return which rows have a placeholder in some column."""
        opens = np.zeros(new_rows.num_rows, np.bool_)
        for name in new_rows.schema.names:
            placeholder = left_open(self.merge.table, name, new_rows.column(name))
            opens |= False if placeholder is None else placeholder
        return opens

    def _has_new_placeholder(self, new_rows: pa.RecordBatch) -> Mask:
        """Return which rows have a placeholder in a column of which their stored row has a value."""
        opens = np.zeros(new_rows.num_rows, np.bool_)
        for name in new_rows.schema.names:
            placeholder = left_open(self.merge.table, name, new_rows.column(name))
            stored_placeholder = left_open(self.merge.table, name, self.rows.column(f"{TARGET}.{name}"))
            if placeholder is not None and stored_placeholder is not None:
                opens |= placeholder & ~stored_placeholder
        return opens


def left_open(table: ChangedTable, name: str, values: pa.Array) -> Mask | None:
    """Return which values of a column are placeholders, which keep the stored value; None if the column has none.

    The partial update mode of the table says which values these are. The columns of keys, partitions and order have
    none, nor has the delete flag.
    """
    mode, word = table.config.partial_update_mode, table.config.unavailable_value
    if mode is None or name in table.kept_of_deletes:
        return None
    if mode == IGNORE_DEFAULTS:
        return mask(pc.is_null(values))
    if word is None or not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return None
    return mask(pc.equal(values, pa.scalar(word).cast(values.type)))


def _joined_batches(batches: Iterator[pa.RecordBatch], source_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield stored rows in batches of at least as many rows as the source has, ``source_rows``, if memory allows.

    The source is hashed once for each batch that comes out. The last batch may have fewer rows.
    """
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count >= max(source_rows, _ROWS_AT_ONCE) or size >= _BYTES_AT_ONCE:
            yield pa.concat_batches(waiting)
            waiting, count, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


def _with_side_names(side: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.rename_columns([f"{side}.{name}" for name in rows.schema.names])


def _side_by_side(ours: pa.RecordBatch, theirs: pa.RecordBatch) -> pa.RecordBatch:
    """Return joined rows with the columns of both sides."""
    return pa.RecordBatch.from_arrays([*ours.columns, *theirs.columns], [*ours.schema.names, *theirs.schema.names])


def _differ(values: pa.Array, other_values: pa.Array) -> Mask:
    """Return a mask of the places at which two texts differ; nulls are equal."""
    nulls = pc.and_(pc.is_null(values), pc.is_null(other_values))
    is_same: Any = pc.or_(nulls, pc.fill_null(pc.equal(values, other_values), False))
    return ~mask(is_same)
