"""Values by column name as a condition: as predicates of the reader, and as a Spark Column.

Columns may have types that Python, Arrow and Spark compare alike: whole numbers, decimals, strings, booleans and dates.
A number of any Python type may be compared with any number column. Columns of floating-point numbers skip no files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...errors import InvalidOptionError, MissingColumnError
from ...reader.skipping.predicates import AnyOf, IsNull, OneOf, Predicate, comparable
from ...reader.skipping.pruning import can_hold, has_one_spelling
from ...table.schema.types import sql_name
from ..source.spark_types import to_spark

# By column name a value, or several values of which any may match.
Given: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WantedValues:
    """Wanted values of a table's columns.

    Attributes:
        values: Python values by column name; None means null.
        schema: The table's columns.
    """

    values: Mapping[str, list[Any]]
    schema: pa.Schema

    @classmethod
    def of(cls, where: Given, schema: pa.Schema, path: str) -> WantedValues:
        """Return a user's values, checked against the table's columns.

        Raises `MissingColumnError` for an unknown column, and `InvalidOptionError` for a column that cannot be compared
        or a value that does not fit its type.
        """
        values = {name: [_plain(value) for value in _several(given)] for name, given in where.items()}
        for name, value in values.items():
            if name not in schema.names:
                raise MissingColumnError(
                    f"The table {path} has no column {name!r} to be compared; it has "
                    f"{', '.join(map(repr, schema.names))}.",
                    "Correct the name, which counts in upper and lower case.",
                )
            kind = schema.field(name).type
            column = f"The column {name!r} of the table {path} has the type {sql_name(kind)}"
            if not has_one_spelling(kind) and not pa.types.is_floating(kind):
                raise InvalidOptionError(f"{column}, which a mapping in where cannot compare.", "Filter the DataFrame.")
            wrong = next(
                (element for element in value if element is not None and comparable(_as(kind, element), kind) is None),
                None,
            )
            if wrong is not None:
                raise InvalidOptionError(
                    f"{column}, and {wrong!r} is no value of it.", "Give values of the column's own type."
                )
        return cls(values, schema)

    def predicates(self) -> tuple[Predicate, ...]:
        predicates: list[Predicate] = []
        for name, given in self.values.items():
            kind = self.schema.field(name).type
            if pa.types.is_floating(kind):
                continue
            values = [_as(kind, value) for value in given]
            if None not in values:
                predicates.append(OneOf(name, tuple(values)))
            else:
                here = tuple(value for value in values if value is not None)
                predicates.append(AnyOf(((OneOf(name, here),), (IsNull(name),))) if here else IsNull(name))
        return tuple(predicates)

    def condition(self) -> Column:
        return reduce(Column.__and__, map(self._condition, self.values))

    def _condition(self, name: str) -> Column:
        field, values, column = self.schema.field(name), self.values[name], sf.col(name)
        kind = to_spark(pa.schema([field])).fields[0].dataType
        compared = (_as(field.type, value) for value in values if value is not None)
        here = [sf.lit(value).cast(kind) for value in compared if can_hold(field.type, value)]
        condition = column.isin(here) if here else sf.lit(False)
        return condition | column.isNull() if None in values else condition


def _several(given: Any) -> Iterable[Any]:
    return given if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else (given,)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as(kind: pa.DataType, value: Any) -> Any:
    """Return a number in the form in which a column of this type compares it; other values unchanged.

    A number with a fraction stays, because no value of a column of whole numbers equals it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not math.isfinite(value):
        return value
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(repr(value)) if isinstance(value, float) else value
    return int(value) if pa.types.is_integer(kind) and value == int(value) else value
