"""Values that columns are to have: as predicates of the reader, as a condition of Spark, and as the text of an option.

They are of types that Python, Arrow and Spark compare alike, and of which texts can be made and read back: whole
numbers, decimals, strings, booleans and dates.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...errors import InvalidOptionError, MissingColumnError
from ...reader.predicates import IsNull, OneOf, Predicate, comparable
from ...reader.pruning import can_hold, has_one_spelling
from ...table.schema.types import sql_name
from .paths import WHERE
from .spark_types import to_spark

# A column's name and its value, or some values of which it may have any.
Where: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Mapping[str, list[Any]]


def values_of(where: Where) -> Values:
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
    for name, values in where.items():
        _check(name, values, schema, path)
        if None not in values:
            found.append(OneOf(name, tuple(values)))
        elif set(values) == {None}:
            found.append(IsNull(name))
    return tuple(found)


def condition_of(where: Values, schema: pa.Schema) -> Column:
    """Return the same as a condition of Spark; the values have passed `predicates_of`, and there are some."""
    return reduce(Column.__and__, (_condition(schema.field(name), values) for name, values in where.items()))


def spell(where: Values) -> str:
    """Return the same as text; the values have passed `predicates_of`."""
    return json.dumps(where, default=str)


def parse(text: str, schema: pa.Schema, path: str) -> tuple[Predicate, ...]:
    """Return the predicates that a text of `spell` stands for.

    Raises:
        InvalidOptionError: It is none; somebody else than `HudiTable` gave it.
    """
    try:
        said = json.loads(text)
        read = {name: [_read(value, schema.field(name).type) for value in values] for name, values in said.items()}
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
        raise InvalidOptionError(
            f"The option {WHERE}={text!r} holds no values that HudiTable.to_df has noted.",
            "Leave it out, and filter the DataFrame.",
        ) from error
    return predicates_of(read, schema, path)


def _several(given: Any) -> Iterable[Any]:
    return given if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else (given,)


def _plain(value: Any) -> Any:
    """Return a value of numpy or pandas as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _check(name: str, values: Sequence[Any], schema: pa.Schema, path: str) -> None:
    if name not in schema.names:
        raise MissingColumnError(
            f"The table {path} has no column {name!r} to be compared; it has {', '.join(map(repr, schema.names))}.",
            "Correct the name, which counts in upper and lower case.",
        )
    kind = schema.field(name).type
    if not has_one_spelling(kind):
        raise InvalidOptionError(
            f"The column {name!r} of the table {path} has the type {sql_name(kind)}, whose values are not looked up.",
            "Filter the DataFrame.",
        )
    wrong = next((one for one in values if one is not None and comparable(one, kind) is None), None)
    if wrong is not None:
        raise InvalidOptionError(
            f"The column {name!r} of the table {path} has the type {sql_name(kind)}, of which {wrong!r} is no value.",
            "Give values of the column's own type.",
        )


def _condition(field: pa.Field, values: Sequence[Any]) -> Column:
    kind = to_spark(pa.schema([field])).fields[0].dataType
    column = sf.col(field.name)
    here = [sf.lit(one).cast(kind) for one in values if one is not None and can_hold(field.type, one)]
    condition = column.isin(here) if here else sf.lit(False)
    return condition | column.isNull() if None in values else condition


def _read(value: Any, kind: pa.DataType) -> Any:
    if value is None or not isinstance(value, str):
        return value
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(value)
    return Decimal(value) if pa.types.is_decimal(kind) else value
