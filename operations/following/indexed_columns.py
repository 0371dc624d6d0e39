"""The columns whose bounds the metadata table keeps, or drops because an instant changes the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ...errors import TableConfigError
from ...storage.base import Storage
from ...table.config import TableConfig
from ...table.latest_schema import newest_schema
from ...table.metadata.bounds_records import can_be_bounded
from ...table.metadata.index_definitions import IndexDefinition, index_definitions, is_typed
from ...table.metadata.kinds import COLUMN_STATS, PARTITION_STATS
from ...table.schema.columns import arrow_schema, with_meta
from ...table.seen_table import SeenTable
from ...timeline.instants import Instant
from .follower import FileChanges
from .partitions_in_use import written_partitions

BOUNDED = (COLUMN_STATS, PARTITION_STATS)
"""The partitions of the metadata table that have bounds of columns."""

# The actions of instants that keep the columns of the table.
_KEEP_COLUMNS = frozenset({"compaction", "logcompaction", "clustering", "clean"})


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns whose bounds an instant writes.

    Attributes:
        names: All columns that the definition names.
        fields: The named columns that the table has, with the types of their bounds.
        typed: Whether records have the types of values.
        gone: Columns that the instant drops or gives another type, so that their bounds are dropped.
        written: The columns of the files that the instant wrote.
    """

    names: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    typed: bool
    gone: tuple[str, ...]
    written: pa.Schema

    def has_type(self, field: pa.Field) -> bool:
        """Return whether the files of the instant have a column with the type of its bounds, or lack the column."""
        return field.name not in self.written.names or self.written.field(field.name).type == field.type


def indexed_columns(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """Return the columns whose bounds the metadata table keeps; none without a partition or definition for them."""
    if not set(BOUNDED) & set(written_partitions(config)):
        return ()
    try:
        definition = bounds_definition(storage)
    except TableConfigError:
        # The commit takes the bounds out of use.
        return ()
    return () if definition is None else definition.columns


def bounds_definition(storage: Storage) -> IndexDefinition | None:
    """Return the definition of the columns that have bounds; None without one. Raises as `index_definitions`."""
    return index_definitions(storage).get(COLUMN_STATS)


def columns_of(
    seen: SeenTable, instant: Instant, changes: FileChanges, definition: IndexDefinition | None
) -> IndexedColumns | None:
    """Return the columns whose bounds an instant writes; None without a definition.

    ``seen`` is the table with one listing of its timeline, and ``changes`` what the instant does to its files and
    columns. ``definition`` names the columns that have bounds.
    """
    if definition is None:
        return None
    newest_commit = newest_schema(seen.timeline)
    schema = seen.schema if newest_commit is None else newest_commit[1]
    columns_before = with_meta(pa.schema([]) if schema is None else schema)
    written_columns = with_meta(arrow_schema(changes.columns)) if changes.columns else columns_before
    # The table keeps the columns of the write with the greatest requested time.
    is_older = newest_commit is not None and newest_commit[0].requested_time > instant.requested_time
    columns_after = columns_before if instant.action in _KEEP_COLUMNS or is_older else written_columns
    typed = is_typed(seen.table.config, definition)
    types = {name: _bounded_type(columns_after, name, typed=typed) for name in definition.columns}
    gone_columns = [
        name for name in definition.columns if name in columns_before.names and _changes(columns_before, name, types)
    ]
    fields = [pa.field(name, kind) for name, kind in types.items() if kind is not None and name not in gone_columns]
    return IndexedColumns(definition.columns, tuple(fields), typed, tuple(gone_columns), written_columns)


def _bounded_type(schema: pa.Schema, name: str, *, typed: bool) -> pa.DataType | None:
    """Return the type of a column's bounds; None without the column, or if its type can have no bounds."""
    if name not in schema.names:
        return None
    kind = schema.field(name).type
    return kind if can_be_bounded(kind, typed=typed) else None


def _changes(columns_before: pa.Schema, name: str, types: Mapping[str, pa.DataType | None]) -> bool:
    """Return whether a column's bounds get another type than the column had, or end: ``types`` has None for the end."""
    return bool(types[name] != columns_before.field(name).type)
