"""Values that columns are to have: as predicates of the reader, and as a condition of Spark.

They are of types that Python, Arrow and Spark compare alike: whole numbers, decimals, strings, booleans and dates. A
number of any Python type is compared with a column of any number type; columns of floating numbers leave no file out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...errors import InvalidOptionError, MissingColumnError
from ...reader.predicates import AnyOf, IsNull, OneOf, Predicate, comparable
from ...reader.pruning import can_hold, has_one_spelling
from ...table.schema.types import sql_name
from ..source.spark_types import to_spark

# A column's name and its value, or some values of which it may have any.
Given: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Mapping[str, list[Any]]


def values_of(where: Given) -> Values:
    """Return the values of each column as Python has them, whoever gave one or several."""
    return {name: [_plain(one) for one in _several(given)] for name, given in where.items()}


def predicates_of(where: Values, schema: pa.Schema, path: str) -> tuple[Predicate, ...]:
    """Return what rows have to satisfy whose columns are to have some values.

    Args:
        where: By the name of the column; None stands for null.
        schema: The table's columns.
        path: The table's, for messages.

    Raises:
        MissingColumnError: The table has no such column.
        InvalidOptionError: The column cannot be compared, or a value is none of its type.
    """
    found: list[Predicate] = []
    for name, given in where.items():
        _check(name, given, schema, path)
        kind = schema.field(name).type
        if pa.types.is_floating(kind):
            continue
        values = [_as(kind, one) for one in given]
        if None not in values:
            found.append(OneOf(name, tuple(values)))
        else:
            here = tuple(one for one in values if one is not None)
            found.append(AnyOf(((OneOf(name, here),), (IsNull(name),))) if here else IsNull(name))
    return tuple(found)


def condition_of(where: Values, schema: pa.Schema) -> Column:
    """Return the same as a condition of Spark; the values have passed `predicates_of`, and there are some."""
    return reduce(Column.__and__, (_condition(schema.field(name), values) for name, values in where.items()))


def _several(given: Any) -> Iterable[Any]:
    return given if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else (given,)


def _plain(value: Any) -> Any:
    """Return a value of numpy or pandas as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _as(kind: pa.DataType, value: Any) -> Any:
    """Return a number as a column of a number type compares with it; any other value as it is.

    A number with a fraction stays as it is: it is none of a column of whole numbers.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not math.isfinite(value):
        return value
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(repr(value)) if isinstance(value, float) else value
    return int(value) if pa.types.is_integer(kind) and value == int(value) else value


def _check(name: str, values: Sequence[Any], schema: pa.Schema, path: str) -> None:
    if name not in schema.names:
        raise MissingColumnError(
            f"The table {path} has no column {name!r} to be compared; it has {', '.join(map(repr, schema.names))}.",
            "Correct the name, which counts in upper and lower case.",
        )
    kind = schema.field(name).type
    if not has_one_spelling(kind) and not pa.types.is_floating(kind):
        raise InvalidOptionError(
            f"The column {name!r} of the table {path} has the type {sql_name(kind)}, whose values are not looked up.",
            "Filter the DataFrame.",
        )
    wrong = next((one for one in values if one is not None and comparable(_as(kind, one), kind) is None), None)
    if wrong is not None:
        raise InvalidOptionError(
            f"The column {name!r} of the table {path} has the type {sql_name(kind)}, of which {wrong!r} is no value.",
            "Give values of the column's own type.",
        )


def _condition(field: pa.Field, values: Sequence[Any]) -> Column:
    kind = to_spark(pa.schema([field])).fields[0].dataType
    column = sf.col(field.name)
    compared = (_as(field.type, one) for one in values if one is not None)
    here = [sf.lit(one).cast(kind) for one in compared if can_hold(field.type, one)]
    condition = column.isin(here) if here else sf.lit(False)
    return condition | column.isNull() if None in values else condition
