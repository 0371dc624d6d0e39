"""Values that columns are to have: as predicates of the reader, and as a condition of Spark.

They are of types that Python, Arrow and Spark compare alike: whole numbers, decimals, strings, booleans and dates. A
number of any Python type is compared with a column of any number type; columns of floating numbers leave no file out.
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
from ...reader.predicates import AnyOf, IsNull, OneOf, Predicate, comparable
from ...reader.pruning import can_hold, has_one_spelling
from ...table.schema.types import sql_name
from ..source.spark_types import to_spark

# A column's name and its value, or some values of which it may have any.
Given: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WantedValues:
    """The values that columns of a table are to have.

    Attributes:
        values: As Python has them, by the name of the column; None stands for null.
        schema: The table's columns.
    """

    values: Mapping[str, list[Any]]
    schema: pa.Schema

    @classmethod
    def of(cls, where: Given, schema: pa.Schema, path: str) -> WantedValues:
        """Return the values that a user gives, one or several of each column.

        Args:
            where: What the user gives.
            schema: The table's columns.
            path: The table's, for messages.

        Raises:
            MissingColumnError: The table has no such column.
            InvalidOptionError: The column cannot be compared, or a value is none of its type.
        """
        values = {name: [_plain(one) for one in _several(given)] for name, given in where.items()}
        for name, some in values.items():
            if name not in schema.names:
                raise MissingColumnError(
                    f"The table {path} has no column {name!r} to be compared; it has "
                    f"{', '.join(map(repr, schema.names))}.",
                    "Correct the name, which counts in upper and lower case.",
                )
            kind = schema.field(name).type
            column = f"The column {name!r} of the table {path} has the type {sql_name(kind)}"
            if not has_one_spelling(kind) and not pa.types.is_floating(kind):
                raise InvalidOptionError(f"{column}, whose values are not looked up.", "Filter the DataFrame.")
            wrong = next((one for one in some if one is not None and comparable(_as(kind, one), kind) is None), None)
            if wrong is not None:
                raise InvalidOptionError(
                    f"{column}, of which {wrong!r} is no value.", "Give values of the column's own type."
                )
        return cls(values, schema)

    def predicates(self) -> tuple[Predicate, ...]:
        """Return what the rows satisfy."""
        found: list[Predicate] = []
        for name, given in self.values.items():
            kind = self.schema.field(name).type
            if pa.types.is_floating(kind):
                continue
            values = [_as(kind, one) for one in given]
            if None not in values:
                found.append(OneOf(name, tuple(values)))
            else:
                here = tuple(one for one in values if one is not None)
                found.append(AnyOf(((OneOf(name, here),), (IsNull(name),))) if here else IsNull(name))
        return tuple(found)

    def condition(self) -> Column:
        """Return the same as a condition of Spark; there is at least one column."""
        return reduce(Column.__and__, map(self._condition, self.values))

    def _condition(self, name: str) -> Column:
        field, values, column = self.schema.field(name), self.values[name], sf.col(name)
        kind = to_spark(pa.schema([field])).fields[0].dataType
        compared = (_as(field.type, one) for one in values if one is not None)
        here = [sf.lit(one).cast(kind) for one in compared if can_hold(field.type, one)]
        condition = column.isin(here) if here else sf.lit(False)
        return condition | column.isNull() if None in values else condition


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
