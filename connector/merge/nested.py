"""Structs of which some fields get other values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from ...table.schema.types import children
from .expressions import Value, as_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column


def with_fields(column: Column, kind: pa.DataType, given: Mapping[tuple[str, ...], Value], what: str) -> Column:
    """Return a struct of which some fields have other values; of a struct that is null the others are null.

    Args:
        column: The struct.
        kind: Its type.
        given: The values, by the names that lead to a field.
        what: Names who gives them, for messages.

    Raises:
        InvalidOptionError: Spark does not understand a value.
    """
    fields = []
    for field in children(kind):
        inner = {path[1:]: value for path, value in given.items() if path[0] == field.name}
        old = column.getField(field.name)
        if () in inner:
            made = as_column(inner[()], what)
        else:
            made = with_fields(old, field.type, inner, what) if inner else old
        fields.append(made.alias(field.name))
    return sf.struct(*fields)
