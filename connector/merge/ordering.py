"""Ordering values as Spark compares them: made so that the greater one is the one that wins in a Hudi table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from ...table.schema.fields import find_field

if TYPE_CHECKING:
    from pyspark.sql import Column


def ordering_of(columns: Sequence[tuple[Column, str]], schema: pa.Schema) -> Column:
    """Return one value for several ordering fields, the first of which decides first; null is the least.

    Args:
        columns: The values, each with the name of its field.
        schema: The table's columns.
    """
    return sf.struct(*(_comparable(column, find_field(schema, name)).alias(name) for column, name in columns))


def _comparable(column: Column, field: pa.Field | None) -> Column:
    kind = pa.null() if field is None else field.type
    if pa.types.is_floating(kind):
        # To Spark -0.0 and 0.0 are equal; in the order of ``Double.compareTo`` one is below the other.
        return sf.struct(column.alias("value"), (column.cast("string") != "-0.0").alias("positive"))
    if pa.types.is_binary(kind):
        return _by_signed_bytes(column)
    return column


def _by_signed_bytes(column: Column) -> Column:
    """Return a text that orders as bytes from -128 to 127 do: two digits for each, behind a letter for its sign."""
    pairs = sf.regexp_replace(sf.hex(column), "(..)", ",$1")
    below = sf.regexp_replace(pairs, ",([89A-F])", "a$1")
    return sf.regexp_replace(below, ",([0-7])", "b$1")
