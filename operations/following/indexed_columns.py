"""Which columns the metadata table keeps bounds of, and of which it stops to where an instant changes them."""

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

# What rewrites rows in the columns that the table had when it was planned.
_KEEP_COLUMNS = frozenset({"compaction", "logcompaction", "clustering", "clean"})


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns whose bounds an instant writes.

    Attributes:
        names: All that the definition names.
        fields: Those that the table has, with the types of their bounds.
        typed: Whether records say the types of values.
        gone: Those that the instant drops, or gives another type: their bounds are kept no more.
        written: The columns of the files that the instant wrote.
    """

    names: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    typed: bool
    gone: tuple[str, ...]
    written: pa.Schema

    def has_type(self, field: pa.Field) -> bool:
        """Return whether the files of the instant have a column in the type of its bounds, or not at all."""
        return field.name not in self.written.names or self.written.field(field.name).type == field.type


def indexed_columns(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """Return the columns whose bounds the metadata table keeps; none without such a partition, or a definition."""
    if not set(BOUNDED) & set(written_partitions(config)):
        return ()
    try:
        definition = bounds_definition(storage)
    except TableConfigError:
        # The commit takes the bounds out of use.
        return ()
    return () if definition is None else definition.columns


def bounds_definition(storage: Storage) -> IndexDefinition | None:
    """Return what says which columns have bounds; None if nothing does. Raises as `index_definitions`."""
    return index_definitions(storage).get(COLUMN_STATS)


def columns_of(
    seen: SeenTable, instant: Instant, changes: FileChanges, definition: IndexDefinition | None
) -> IndexedColumns | None:
    """Return the columns whose bounds an instant writes; None if no definition says which."""
    if definition is None:
        return None
    newest = newest_schema(seen.timeline)
    schema = seen.schema if newest is None else newest[1]
    before = with_meta(pa.schema([]) if schema is None else schema)
    written = with_meta(arrow_schema(changes.columns)) if changes.columns else before
    is_older = newest is not None and newest[0].requested_time > instant.requested_time
    after = before if instant.action in _KEEP_COLUMNS or is_older else written
    typed = is_typed(seen.table.config, definition)
    types = {name: _bounded_type(after, name, typed=typed) for name in definition.columns}
    gone = [name for name in definition.columns if name in before.names and _changes(before, name, types)]
    fields = [pa.field(name, kind) for name, kind in types.items() if kind is not None and name not in gone]
    return IndexedColumns(definition.columns, tuple(fields), typed, tuple(gone), written)


def _bounded_type(schema: pa.Schema, name: str, *, typed: bool) -> pa.DataType | None:
    if name not in schema.names:
        return None
    kind = schema.field(name).type
    return kind if can_be_bounded(kind, typed=typed) else None


def _changes(before: pa.Schema, name: str, types: Mapping[str, pa.DataType | None]) -> bool:
    return bool(types[name] != before.field(name).type)
