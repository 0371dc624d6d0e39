"""Columns that a write adds or makes wider, as values that a commit can keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from .types import children, sql_name


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A column that a write added to its table, or to which it gave a wider type.

    Attributes:
        column: Its name, dotted inside structs, lists (``element``) and maps (``value``).
        before: Its type before the write in Spark's SQL; empty if the write added the column.
    """

    column: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.column} {self.before} -> {self.after}" if self.before else f"{self.column} {self.after} (new)"


def changes_between(before: pa.Schema, after: pa.Schema) -> tuple[SchemaChange, ...]:
    """Return the columns that a later schema adds or makes wider, in its order; both schemas are canonical."""
    return tuple(_changes(list(before), list(after), ""))


def _changes(before: Sequence[pa.Field], after: Sequence[pa.Field], path: str) -> Iterator[SchemaChange]:
    """Yield what later fields add or make wider; ``path`` is that of the enclosing column with a dot."""
    types = {field.name: field.type for field in before}
    for field in after:
        name = f"{path}{field.name}"
        if field.name not in types:
            yield SchemaChange(name, "", sql_name(field.type))
        elif pa.types.is_nested(field.type) and types[field.name].id == field.type.id:
            yield from _changes(_inner(types[field.name]), _inner(field.type), f"{name}.")
        elif types[field.name] != field.type:
            yield SchemaChange(name, sql_name(types[field.name]), sql_name(field.type))


def _inner(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields inside a type that may change; of a map's entries only the value."""
    return [kind.item_field] if pa.types.is_map(kind) else children(kind)


def format_changes(changes: Iterable[SchemaChange]) -> str:
    """Return changes as JSON, which `parse_changes` reads."""
    return json.dumps([[change.column, change.before, change.after] for change in changes])


def parse_changes(content: object) -> tuple[SchemaChange, ...]:
    """Return the changes of parsed JSON; none if `format_changes` did not write it."""
    if not isinstance(content, list):
        return ()
    if not all(
        isinstance(change, list) and len(change) == 3 and all(isinstance(text, str) for text in change)
        for change in content
    ):
        return ()
    return tuple(SchemaChange(*change) for change in content)
