"""Columns, and fields inside columns, by Apache Hudi's dotted names."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DuplicateColumnError, MissingColumnError


def root_of(name: str) -> str:
    """Return the column of a dotted name."""
    return name.partition(".")[0]


def find_field(schema: pa.Schema, name: str) -> pa.Field | None:
    """Return a field, nullable if it or any enclosing field is; None if the schema has no such field."""
    column, *inner = name.split(".")
    if column not in schema.names:
        return None
    enclosing = schema.field(column)
    for part in inner:
        kind = enclosing.type
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        field = kind.field(part)
        enclosing = field.with_nullable(field.nullable or enclosing.nullable)
    return enclosing


def values_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the values of an existing field; null if an enclosing value is null."""
    column, *inner = name.split(".")
    values = batch.column(column)
    return pc.struct_field(values, inner) if inner else values


def columns_named(names: Sequence[str], schema: pa.Schema, what: str) -> pa.Schema:
    """Return the fields of some columns of a ``schema``; ``what`` has them, in the errors.

    Raises `MissingColumnError` for a name that it lacks, and `DuplicateColumnError` for a name that comes twice.
    """
    fields: dict[str, pa.Field] = {}
    for name in names:
        if name in fields:
            raise DuplicateColumnError(f"A read names the column {name!r} of the {what} twice.", "Name it once.")
        if schema.get_field_index(name) < 0:
            raise MissingColumnError(f"The {what} has no column {name!r}.", f"It has {', '.join(schema.names)}.")
        fields[name] = schema.field(name)
    return pa.schema(fields.values())
