"""Values by column name as a condition: as predicates of the reader, and as a Spark Column.

Columns may have types that Python, Arrow and Spark compare alike: whole numbers, decimals, strings, booleans and dates.
A number of any Python type may be compared with any number column. Columns of floating-point numbers skip no files.
"""

from __future__ import annotations

import datetime
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
ValuesByColumn: TypeAlias = Mapping[str, Any]


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
    def of(cls, where: ValuesByColumn, schema: pa.Schema, path: str) -> WantedValues:
        """Return a user's values, ``where``, checked against the table's columns, ``schema``.

        ``path`` is the table's path, for errors.
        Raises `MissingColumnError` for an unknown column, and `InvalidOptionError` for a column that cannot be compared
        or a value that does not fit its type.
        """
        values = {name: [_python_value(value) for value in _several(wanted)] for name, wanted in where.items()}
        for name, value in values.items():
            if name not in schema.names:
                raise MissingColumnError(
                    f"The table {path} has no column {name!r} to be compared; it has "
                    f"{', '.join(map(repr, schema.names))}.",
                    "Correct the name, which counts in upper and lower case.",
                )
            column_type = schema.field(name).type
            column = f"The column {name!r} of the table {path} has the type {sql_name(column_type)}"
            if not has_one_spelling(column_type) and not pa.types.is_floating(column_type):
                raise InvalidOptionError(f"{column}, which a mapping in where cannot compare.", "Filter the DataFrame.")
            misfit = next(
                (element for element in value if element is not None and not _fits(column_type, element)), None
            )
            if misfit is not None:
                raise InvalidOptionError(
                    f"{column}, and {misfit!r} is no value of it.", "Give values of the column's own type."
                )
        return cls(values, schema)

    def predicates(self) -> tuple[Predicate, ...]:
        """Return a predicate for each column, except those of floating-point numbers, which skip no files."""
        predicates: list[Predicate] = []
        for name, wanted in self.values.items():
            column_type = self.schema.field(name).type
            if pa.types.is_floating(column_type):
                continue
            values = [_comparable_number(column_type, value) for value in wanted]
            if None not in values:
                predicates.append(OneOf(name, tuple(values)))
            else:
                present_values = tuple(value for value in values if value is not None)
                predicates.append(
                    AnyOf(((OneOf(name, present_values),), (IsNull(name),))) if present_values else IsNull(name)
                )
        return tuple(predicates)

    def condition(self) -> Column:
        return reduce(Column.__and__, map(self._condition, self.values))

    def _condition(self, name: str) -> Column:
        """Return the condition that a column has a wanted value; a value that it cannot hold matches nothing."""
        field, values, column = self.schema.field(name), self.values[name], sf.col(name)
        spark_type = to_spark(pa.schema([field])).fields[0].dataType
        compared = (_comparable_number(field.type, value) for value in values if value is not None)
        present_values = [
            sf.lit(carried_value(value)).cast(spark_type) for value in compared if can_hold(field.type, value)
        ]
        condition = column.isin(present_values) if present_values else sf.lit(False)
        return condition | column.isNull() if None in values else condition


def carried_value(value: Any) -> Any:
    """Return a value in a form in which it reaches Spark's own process; ValueError for a decimal that is no number."""
    if isinstance(value, list):
        return [carried_value(element) for element in value]
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        # As a date of Java, a day of the first years is refused, and one of October 1582 becomes another.
        return sf.lit(value.isoformat()).cast("date")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError(f"{value} is no number")
    # An int reaches Spark in up to 64 bits.
    is_long = isinstance(value, int) and not -(2**63) <= value < 2**63
    return Decimal(value) if is_long else value


def repeatable(condition: Any) -> Any:
    """Return a condition of which each attempt at a write reads the same; an iterator gives its values only once.

    Values by column name become lists where they are iterables. Any other condition is returned unchanged.
    """
    if not isinstance(condition, Mapping):
        return condition
    return {name: list(wanted) if _is_several(wanted) else wanted for name, wanted in condition.items()}


def _several(wanted: Any) -> Iterable[Any]:
    """Return wanted values as several; a text is a single value."""
    return wanted if _is_several(wanted) else (wanted,)


def _is_several(wanted: Any) -> bool:
    return isinstance(wanted, Iterable) and not isinstance(wanted, (str, bytes))


def _python_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _fits(column_type: pa.DataType, value: Any) -> bool:
    """Return whether a value may be compared with a column of this type."""
    try:
        return comparable(_comparable_number(column_type, value), column_type) is not None
    except OverflowError:
        # A whole number may be greater than all floating-point numbers.
        return False


def _comparable_number(column_type: pa.DataType, value: Any) -> Any:
    """Return a number in the form in which a column of this type compares it; other values unchanged.

    A number with a fraction stays, because no value of a column of whole numbers equals it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return value
    if not (math.isfinite(value) if isinstance(value, float) else Decimal(value).is_finite()):
        return value
    if pa.types.is_floating(column_type):
        return float(value)
    if pa.types.is_decimal(column_type):
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return int(value) if pa.types.is_integer(column_type) and value == int(value) else value
