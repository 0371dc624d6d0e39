"""Rows of changes counted and checked by their places, and turned into the rows that a write takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...methods.merging.changed_table import ChangedTable
from ...operations.planning.changed_rows import ChangedRows, RowPlace, check_changed_rows, held_elsewhere
from ...operations.planning.counted_changes import COLUMNS, COMES, GOES, KEY, LEAVES, PATH, RANK, ChangedPlaces
from ...table.arrow.arrays import Mask, mask, plain
from ...table.arrow.string_hash import hash64
from ...table.config.property_keys import MERGE_ON_READ
from ...table.merging.deletes import IS_DELETED
from ...table.merging.winners import joint_ranks
from ...table.schema.columns import ARRIVES, INSERTED, PARTITION_PATH, RECORD_KEY
from ...table.schema.columns import MOVED as MOVED_HERE
from ...table.schema.columns import STAYS as STAYS_HERE
from ...table.schema.fields import values_of
from .changes import MOVED, OLDER, OPEN, PLACE_KEY, PLACE_PATH, ROLE, ROW, SHIFTED, UNPROVEN

_COLUMNS = dict(zip(COLUMNS, (ROLE, PLACE_KEY, PLACE_PATH, ROW, OLDER, OPEN, UNPROVEN, SHIFTED), strict=True))
_NUMBER = "number"
_NO_PLACES = pa.table({KEY: pa.array([], pa.string()), PATH: pa.array([], pa.string())})


@dataclass(frozen=True, slots=True)
class CheckedChanges:
    """Changes that one write can carry out.

    Attributes:
        open_changes: Returns the rows of changes, each time all of them.
        counted: Their counts.
        replaced: The places that one row leaves and another row enters.
        deleted_again: The places where several changes delete a row.
    """

    table: ChangedTable
    open_changes: Callable[[], Iterator[pa.RecordBatch]]
    counted: ChangedRows
    replaced: pa.Table
    deleted_again: pa.Table

    @classmethod
    def of(
        cls,
        table: ChangedTable,
        changes: Callable[[], Iterator[pa.RecordBatch]],
        rows_at: Callable[[pa.Table], Iterator[pa.RecordBatch]],
        memory: int,
    ) -> CheckedChanges:
        """Count changes, and refuse those that one write cannot carry out.

        Args:
            table: The table.
            changes: Returns the rows of changes, each time all of them.
            rows_at: Returns the keys and partition paths of the table's rows at some places, and possibly of more rows.
            memory: The bytes that the entries of places may take; more are counted in several passes over the changes.

        Raises:
            DuplicateKeyError: A row would change in two ways, or a key would have several rows.
            OlderRowError: A new row is older than the row that it replaces.
            OptionConflictError: A value makes a partial update keep the stored value.
        """
        # One pass counts all, unless the entries take too many bytes.
        entries, size = [], 0
        for batch in changes():
            entries.append(_entries_of(batch, table))
            size += entries[-1].nbytes
            if size > memory:
                break
        if size <= memory:
            parts = [_CountedPlaces.of(table, entries)]
        else:
            passes = _pass_count(changes(), table, memory)
            parts = [
                _CountedPlaces.of(
                    table, [_entries_of_pass(_entries_of(batch, table), number, passes) for batch in changes()]
                )
                for number in range(passes)
            ]
        changed = reduce(ChangedRows.plus, (part.changed for part in parts))
        check_changed_rows(changed, table.path)
        for part in parts:
            part.refuse_occupied_places(rows_at)
        replaced, deleted_again = (
            pa.concat_tables([getattr(part, name) for part in parts]) for name in ("replaced", "deleted_again")
        )
        return cls(table, changes, changed, replaced, deleted_again)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows to write."""
        fields = [field.with_nullable(True) for field in self.table.schema if field.name != IS_DELETED]
        if self._has_deletes or IS_DELETED in self.table.schema.names:
            fields.append(pa.field(IS_DELETED, pa.bool_()))
        return pa.schema([*fields, *([pa.field(ARRIVES, pa.int8(), nullable=False)] if self._notes_arrivals else [])])

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows to write: of the table's columns, with the delete flag if there are deletes.

        A delete has the ordering value of the row that it deletes, so it wins. A place that another row enters needs no
        delete, because the new row replaces the old row. A row of the table gets at most one delete.
        """
        deleted_again: list[pa.RecordBatch] = []
        for batch in self.open_changes():
            roles = batch.column(ROLE).to_numpy()
            is_delete = (roles == GOES) | (roles == LEAVES)
            needs_no_delete = is_delete & _among(batch, self.replaced, self._place_columns)
            repeated = (roles == GOES) & ~needs_no_delete & _among(batch, self.deleted_again, self._place_columns)
            if repeated.any():
                deleted_again.append(batch.filter(pa.array(repeated)))
            rows = batch.filter(pa.array(~needs_no_delete & ~repeated))
            if rows.num_rows:
                yield self._rows_for_write(rows)
        if deleted_again:
            yield self._rows_for_write(_first_of_each(pa.Table.from_batches(deleted_again)))

    @property
    def _place_columns(self) -> list[str]:
        return [KEY] if self.table.is_global else [KEY, PATH]

    @property
    def _has_deletes(self) -> bool:
        return bool(self.counted.counts.deletes or self.counted.left)

    @property
    def _notes_arrivals(self) -> bool:
        """Whether the rows say how each comes to its place: a delete in log files may outdo a row that comes there."""
        if self.table.config.table_type != MERGE_ON_READ or not self.table.ordering_fields:
            return False
        return bool(self.counted.counts.inserts or self.counted.left)

    def _rows_for_write(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of changes as a write takes them: in the columns of `schema`, with the marks that it may have."""
        roles = changes.column(ROLE).to_numpy()
        is_delete = (roles == GOES) | (roles == LEAVES)
        columns = []
        for name in self.schema.names:
            if name == IS_DELETED:
                marked = mask(changes.column(name)) if name in self.table.schema.names else False
                columns.append(pa.array(is_delete | marked))
            elif name == ARRIVES:
                moved = mask(changes.column(MOVED))
                arrival = np.where(roles != COMES, STAYS_HERE, np.where(moved, MOVED_HERE, INSERTED))
                columns.append(pa.array(arrival.astype(np.int8)))
            else:
                columns.append(changes.column(name))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class _CountedPlaces:
    """What happens at some places, with the places that later checks need.

    Attributes:
        changed: The counts.
        replaced: The places that one row leaves and another row enters.
        deleted_again: The places where several changes delete a row.
        comes: The places that rows enter where the table may hold a row.
        left_places: The places that rows leave.
    """

    table: ChangedTable
    changed: ChangedRows
    replaced: pa.Table
    deleted_again: pa.Table
    comes: pa.Table
    left_places: pa.Table

    @classmethod
    def of(cls, table: ChangedTable, batches: list[pa.Table]) -> _CountedPlaces:
        """Count what happens at some places, and keep the places for later checks.

        Args:
            table: The table that the changes are about.
            batches: Entries as of `_entries_of`: what each change does at a place. All entries of a place are among
                them; without batches all counts are 0. Ranks replace ordering values, which may have several columns.
        """
        if not batches:
            return cls(table, ChangedRows(), _NO_PLACES, _NO_PLACES, _NO_PLACES, _NO_PLACES)
        entries = pa.concat_tables(batches).combine_chunks()
        # `_entries_of` puts the values of the ordering fields behind these columns.
        ordering = [name for name in entries.column_names if name not in COLUMNS]
        if ordering:
            ranks = joint_ranks([plain(entries.column(name)) for name in ordering], entries.num_rows)
            entries = entries.select(COLUMNS).append_column(RANK, pa.array(ranks))
        places = ChangedPlaces.of(entries, anywhere=table.is_global)
        role = entries.column("role")
        # The write itself refuses rows without a key.
        unproven = pc.and_(pc.fill_null(entries.column("unproven"), False), pc.is_valid(entries.column(KEY)))
        comes = entries.filter(unproven).select([KEY, PATH])
        leaves = entries.filter(pc.or_(pc.equal(role, GOES), pc.equal(role, LEAVES))).select([KEY, PATH])
        return cls(table, places.counted(), places.at(places.replaced), places.at(places.deleted_often), comes, leaves)

    def refuse_occupied_places(self, rows_at: Callable[[pa.Table], Iterator[pa.RecordBatch]]) -> None:
        """Refuse a row that enters a place where the table holds a row that stays."""
        if not self.changed.unproven:
            return
        place_columns = [KEY] if self.table.is_global else [KEY, PATH]
        for batch in rows_at(self.comes.rename_columns([RECORD_KEY, PARTITION_PATH])):
            rows = pa.Table.from_batches([batch]).select([RECORD_KEY, PARTITION_PATH]).rename_columns([KEY, PATH])
            occupied = rows.join(self.comes.select(place_columns), place_columns, join_type="left semi")
            occupied = (
                occupied.join(self.left_places.select(place_columns), place_columns, join_type="left anti")
                if self.left_places.num_rows
                else occupied
            )
            if occupied.num_rows:
                key, path = occupied[KEY][0].as_py(), occupied[PATH][0].as_py()  # one value each, for the error
                raise held_elsewhere(RowPlace(key, path or ""), self.table.path)


def _entries_of(changes: pa.RecordBatch, table: ChangedTable) -> pa.Table:
    """Return what rows of changes do at their places, with the values by which rows are ordered."""
    columns = {name: changes.column(column) for name, column in _COLUMNS.items()}
    ordering = {f"order{number}": values_of(changes, name) for number, name in enumerate(table.ordering_fields)}
    return pa.table({**columns, **ordering})


def _pass_count(changes: Iterator[pa.RecordBatch], table: ChangedTable, memory: int) -> int:
    """Return in how many passes the entries of all changes fit into memory."""
    size: int = sum(_entries_of(batch, table).nbytes for batch in changes)
    return -(-size // memory)


def _entries_of_pass(entries: pa.Table, number: int, passes: int) -> pa.Table:
    """Return the entries whose keys belong to pass ``number`` of so many ``passes``, by the hashes of the keys."""
    hashes = hash64(pc.fill_null(entries.column(KEY), ""))
    return entries.filter(pa.array(hashes % np.uint64(passes) == np.uint64(number)))


def _among(changes: pa.RecordBatch, places: pa.Table, place_columns: list[str]) -> Mask:
    """Return which rows of changes are at some of the places."""
    among = np.zeros(changes.num_rows, np.bool_)
    if places.num_rows:
        rows = pa.table({KEY: changes.column(PLACE_KEY), PATH: changes.column(PLACE_PATH)})
        rows = rows.append_column(_NUMBER, pa.array(np.arange(changes.num_rows)))
        among[
            rows.join(places.select(place_columns), place_columns, join_type="left semi").column(_NUMBER).to_numpy()
        ] = True
    return among


def _first_of_each(deletes: pa.Table) -> pa.RecordBatch:
    """Return the first of the deletes of each row of the table."""
    numbered = deletes.append_column(_NUMBER, pa.array(np.arange(deletes.num_rows)))
    first_numbers = (
        numbered.group_by([PLACE_KEY, PLACE_PATH, ROW]).aggregate([(_NUMBER, "min")]).column(f"{_NUMBER}_min")
    )
    rows = deletes.take(pc.array_take(plain(first_numbers), pc.sort_indices(first_numbers)))
    return pa.RecordBatch.from_arrays([plain(column) for column in rows.columns], schema=rows.schema)
