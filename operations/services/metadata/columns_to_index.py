"""The columns whose bounds a new `column_stats` keeps.

Source: ``HoodieTableMetadataUtil.getColumnsToIndex``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ....errors import InvalidOptionError, MissingColumnError, UnsupportedTableError
from ....table.config import TableConfig
from ....table.metadata.bounds_records import can_be_bounded
from ....table.metadata.index_definitions import is_typed
from ....table.seen_table import SeenTable

ALWAYS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
"""The columns that Apache Hudi always indexes."""

# So many others it indexes if the user names none.
_MOST_OTHERS = 32


def columns_to_index(seen: SeenTable, named_columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns to index: the meta columns first, then the named columns, or the table's first columns.

    Raises:
        MissingColumnError: The table lacks a named column.
        InvalidOptionError: Values of a named column's type have no bounds.
        UnsupportedTableError: The table has no columns yet.
    """
    schema = seen.schema
    if schema is None:
        raise UnsupportedTableError(
            f"The table {seen.table.path} has no rows and no columns yet, so that none can be indexed.",
            "Write rows first, or build 'files' alone.",
        )
    bounded = bounded_columns(seen)
    if named_columns is not None:
        _refuse_unbounded(seen.table.config, seen.table.path, schema, bounded, named_columns)
    chosen = bounded[:_MOST_OTHERS] if named_columns is None else named_columns
    return tuple(dict.fromkeys([*ALWAYS, *chosen]))


def bounded_columns(seen: SeenTable) -> list[str]:
    """Return the columns of a table that can have bounds."""
    typed = is_typed(seen.table.config)
    return [field.name for field in seen.schema or () if can_be_bounded(field.type, typed=typed)]


def _refuse_unbounded(
    config: TableConfig, path: str, schema: pa.Schema, bounded: Sequence[str], named_columns: Sequence[str]
) -> None:
    """Raise `MissingColumnError` or `InvalidOptionError` for a named column that has no bounds.

    The user named the columns ``named_columns``; the table at ``path`` has those of ``schema``, and can keep the least
    and greatest values of the ``bounded`` columns.
    """
    for name in named_columns:
        if name in ALWAYS or name in bounded:
            continue
        if name not in schema.names:
            raise MissingColumnError(
                f"The table {path} has no column {name!r} to index; it has {', '.join(schema.names)}.",
                "Name columns of the table.",
            )
        raise InvalidOptionError(
            f"The column {name!r} of the table {path} has the type {schema.field(name).type}, of which "
            f"column_stats keeps no bounds in tables of version {config.version}.",
            f"Name other columns, such as {', '.join(bounded[:3]) or 'none'}.",
        )
