"""How a write changes a table's columns: which it adds and which it makes wider, as values that a commit can keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from .types import children, sql_name


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One column that a write added to its table, or to which it gave a wider type.

    Attributes:
        column: Its name, dotted inside structs, lists (``element``) and maps (``value``).
        before: Its type before the write, as Spark's SQL spells it; empty where the write added the column.
        after: Its type since then.
    """

    column: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.column} {self.before} -> {self.after}" if self.before else f"{self.column} {self.after} (new)"


def changes_between(before: pa.Schema, after: pa.Schema) -> tuple[SchemaChange, ...]:
    """Return every column that a later schema of a table has more or wider, in its order.

    Args:
        before: The columns before a write, canonical.
        after: The columns since then.
    """
    return tuple(_changes(list(before), list(after), ""))


def _changes(before: Sequence[pa.Field], after: Sequence[pa.Field], path: str) -> Iterator[SchemaChange]:
    known = {field.name: field.type for field in before}
    for field in after:
        name = f"{path}{field.name}"
        if field.name not in known:
            yield SchemaChange(name, "", sql_name(field.type))
        elif pa.types.is_nested(field.type) and known[field.name].id == field.type.id:
            yield from _changes(_inner(known[field.name]), _inner(field.type), f"{name}.")
        elif known[field.name] != field.type:
            yield SchemaChange(name, sql_name(known[field.name]), sql_name(field.type))


def _inner(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields inside a type by which changes are named; those of a map's entry are its value's alone."""
    return [kind.item_field] if pa.types.is_map(kind) else children(kind)


def format_changes(changes: Iterable[SchemaChange]) -> str:
    """Return changes as JSON, which `parse_changes` takes."""
    return json.dumps([[change.column, change.before, change.after] for change in changes])


def parse_changes(found: object) -> tuple[SchemaChange, ...]:
    """Return the changes that some JSON holds; none where `format_changes` did not write it."""
    if not isinstance(found, list):
        return ()
    if not all(isinstance(one, list) and len(one) == 3 and all(isinstance(text, str) for text in one) for one in found):
        return ()
    return tuple(SchemaChange(*one) for one in found)
