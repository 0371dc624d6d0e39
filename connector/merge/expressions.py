"""Turns SQL text, Columns and plain values into Columns, and Spark's analysis errors into errors of pyhudi."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as T  # noqa: N812 (the name that Spark's own documentation uses)

from ...errors import InvalidOptionError, MissingColumnError, PyHudiError, SchemaMismatchError
from ...methods.merging.clauses import Value
from ...table.schema.casts import whole_bound
from ...table.schema.types import children
from ..conditions.values import carried_value

_UNKNOWN = ("UNRESOLVED", "AMBIGUOUS", "FIELD_NOT_FOUND", "CANNOT_RESOLVE", "MISSING_ATTRIBUTES")
_NESTED = (T.StructType, T.ArrayType, T.MapType)
# Each type holds every value of the types before it; Spark accepts the loss of digits in floating types.
_WIDER = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Raise an error of pyhudi if Spark does not understand an expression; ``what`` names the expression."""
    try:
        yield
    except PyHudiError:
        raise
    except AnalysisException as error:
        message = (error.getMessage() or str(error)).strip().partition("\n")[0].partition(" SQLSTATE")[0].rstrip(".")
        if (error.getCondition() or "").startswith(_UNKNOWN):
            raise MissingColumnError(
                f"{what} names a column that neither side has, or that both sides have: {message}.",
                "Write source.<column> for the source's rows and target.<column> for the table's rows. A clause about "
                "one side alone cannot name columns of the other side. A text that is a value needs quotes of its own: "
                "\"'Bergen'\".",
            ) from error
        raise InvalidOptionError(f"{what} is invalid in Spark: {message}.", "Correct it.") from error
    except PySparkException as error:
        raise InvalidOptionError(f"{what} is invalid in Spark: {error}.", "Correct it.") from error


def as_column(value: Value, what: str) -> Column:
    """Return a value as a Column: text is SQL, any other plain value is a literal.

    ``what`` names the value in an error. Raises `InvalidOptionError` for a value of which Spark makes no literal.
    """
    if isinstance(value, Column):
        return value
    with explained(what):
        if isinstance(value, str):
            return sf.expr(value)
        try:
            return sf.lit(carried_value(value))
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise InvalidOptionError(
                f"{what} is of Python's type {type(value).__name__}, and Spark makes no literal of it.",
                "Give a Column, such as functions.lit(str(value)), or SQL text.",
            ) from error


def value_named(name: str, method: str) -> str:
    """Return how errors call the value that a method gets for a column or field."""
    return f"The value of {name!r} in {method}"


def with_fields(
    column: str | Column, data_type: pa.DataType, new_values: Mapping[tuple[str, ...], Value], what: str
) -> Column:
    """Return a struct with other values in fields, given by their paths; other fields of a null struct are null.

    ``column`` is the struct, of the type ``data_type``, and ``what`` names the values in an error.
    """
    column = as_column(column, what)
    fields = []
    for field in children(data_type):
        inner = {path[1:]: value for path, value in new_values.items() if path[0] == field.name}
        stored_value = column.getField(field.name)
        # A path that is empty now was that of this field; a longer path leads into it.
        if () in inner:
            new_value = as_column(inner[()], value_named(field.name, what))
        else:
            new_value = with_fields(stored_value, field.type, inner, what) if inner else stored_value
        fields.append(new_value.alias(field.name))
    return sf.struct(*fields)


def check_condition(frame: DataFrame, condition: Column, what: str) -> None:
    """Refuse a condition that is not boolean, or that the columns of ``frame`` do not resolve."""
    with explained(what):
        condition_type = frame.select(condition).schema.fields[0].dataType
    if not isinstance(condition_type, (T.BooleanType, T.NullType)):
        raise InvalidOptionError(
            f"{what} is of the type {condition_type.simpleString()}, which is neither true nor false.",
            "Compare it with something.",
        )


def cast_values(
    frame: DataFrame, values: Mapping[str, Column], kinds: T.StructType, what: str, table: str
) -> dict[str, Column]:
    """Return values in the types of their columns; a value that its column cannot hold fails the query.

    With ``spark.sql.ansi.enabled=false`` Spark's own cast wraps large numbers and turns other text into null. pyhudi's
    result must not depend on that setting. ``kinds`` has the types of the table's columns; ``what`` names the values in
    an error. Raises `MissingColumnError` for a column that ``frame`` lacks, and
    `SchemaMismatchError` if Spark has no cast, or would cast a struct by position.
    """
    # One call names all columns: each call to Spark's own process takes as long as the work behind it.
    with explained(what):
        value_fields = frame.select(*values.values()).toDF(*values).schema.fields
    cast: dict[str, Column] = {}
    for field in value_fields:
        column_type = kinds[field.name].dataType
        if not _may_cast(field.dataType, column_type):
            raise SchemaMismatchError(
                f"{what} gives the column {field.name!r} of the table {table}, of the type "
                f"{column_type.simpleString()}, a value of the type {field.dataType.simpleString()}, which it cannot "
                "take.",
                "Cast the value, or name the fields of a struct as the column has them, in their order.",
            )
        error_start = (
            f"{what} gives the column {field.name!r} of the table {table}, of the type {column_type.simpleString()}, "
        )
        cast[field.name] = _cast(values[field.name], field.dataType, column_type, error_start)
    # Spark analyses the casts here, so that an error names ``what``.
    changed_columns = [column for name, column in cast.items() if column is not values[name]]
    if changed_columns:
        with explained(what):
            _ = frame.select(*changed_columns).schema
    return cast


def _cast(value: Column, from_type: T.DataType, to_type: T.DataType, error_start: str) -> Column:
    """Return a value of ``from_type`` in ``to_type``; a value that does not fit fails the query.

    ``error_start`` begins the text of that error: it names the column and its type.
    """
    if from_type == to_type:
        return value
    if isinstance(from_type, _NESTED) and _casts_floats_to_integers(from_type, to_type):
        return _cast_inside(value, from_type, to_type, error_start)
    if _always_fits(from_type, to_type):
        return value.cast(to_type)
    shortened = sf.substring(sf.regexp_replace(value.cast("string"), r"\s+", " "), 1, 100)
    text = f"PyHudiError[{SchemaMismatchError.code}]: {error_start}the value '"
    # Spark appends a text of its own, which the line break separates.
    failure = sf.raise_error(
        sf.concat(sf.lit(text), shortened, sf.lit("', which it cannot hold. Give another value.\n"))
    )
    converted = value.try_cast(to_type)
    if isinstance(from_type, T.StringType) and isinstance(to_type, (T.IntegerType, T.LongType)):
        # As in every other write, text counts as a number only in the canonical spelling of the number.
        converted = sf.when(converted.cast("string") == value, converted)
    failing = value.isNotNull()
    if _casts_floats_to_integers(from_type, to_type):
        # As in every other write, NaN counts as missing, and a fraction as no whole number.
        bound = whole_bound(pa.float32() if isinstance(from_type, T.FloatType) else pa.float64())
        converted = sf.when((sf.abs(value) < bound) & (sf.rint(value) == value), converted)
        failing = failing & ~sf.isnan(value)
    return sf.coalesce(converted, sf.when(failing, failure).cast(to_type))


def _cast_inside(value: Column, from_type: T.DataType, to_type: T.DataType, error_start: str) -> Column:
    """Return a nested value with the values inside of it cast one by one; `_may_cast` says that both have one shape.

    The arguments are as of `_cast`.
    """
    if isinstance(from_type, T.StructType) and isinstance(to_type, T.StructType):
        fields = [
            _cast(value.getField(field.name), field.dataType, other.dataType, error_start).alias(other.name)
            for field, other in zip(from_type.fields, to_type.fields, strict=True)
        ]
        return sf.when(value.isNotNull(), sf.struct(*fields))
    if isinstance(from_type, T.ArrayType) and isinstance(to_type, T.ArrayType):
        inner = from_type.elementType, to_type.elementType
        return sf.transform(value, lambda element: _cast(element, *inner, error_start))
    if isinstance(from_type, T.MapType) and isinstance(to_type, T.MapType):
        kinds = from_type.valueType, to_type.valueType
        # The cast of the whole is one of its keys.
        return sf.transform_values(value, lambda _, item: _cast(item, *kinds, error_start)).cast(to_type)
    # No other type has values inside.
    return value.cast(to_type)


def _casts_floats_to_integers(from_type: T.DataType, to_type: T.DataType) -> bool:
    """Return whether floating values become integers, at any depth."""
    if isinstance(from_type, T.StructType) and isinstance(to_type, T.StructType):
        pairs = zip(from_type.fields, to_type.fields, strict=True)
        return any(_casts_floats_to_integers(field.dataType, other.dataType) for field, other in pairs)
    if isinstance(from_type, T.ArrayType) and isinstance(to_type, T.ArrayType):
        return _casts_floats_to_integers(from_type.elementType, to_type.elementType)
    if isinstance(from_type, T.MapType) and isinstance(to_type, T.MapType):
        return _casts_floats_to_integers(from_type.valueType, to_type.valueType)
    return isinstance(from_type, (T.FloatType, T.DoubleType)) and isinstance(to_type, (T.IntegerType, T.LongType))


def _always_fits(from_type: T.DataType, to_type: T.DataType) -> bool:
    """Return whether a cast needs no check, because it keeps every value.

    Spark casts nested types by its own rules, so they need none here. A null, and text of any value, always fit.
    """
    if isinstance(from_type, (T.NullType, *_NESTED)) or isinstance(to_type, (T.StringType, T.BinaryType)):
        return True
    kinds = [type(from_type), type(to_type)]
    return all(kind in _WIDER for kind in kinds) and _WIDER.index(kinds[0]) <= _WIDER.index(kinds[1])


def _may_cast(from_type: T.DataType, to_type: T.DataType) -> bool:
    """Return whether pyhudi leaves a cast to Spark: nothing becomes nested or scalar, no struct one of other fields.

    Spark casts structs by position, so the names of their fields must be equal, apart from case, and in the same order.
    """
    if isinstance(from_type, T.NullType) or (not isinstance(from_type, _NESTED) and not isinstance(to_type, _NESTED)):
        return True
    if isinstance(from_type, T.StructType) and isinstance(to_type, T.StructType):
        names: list[Sequence[str]] = [[name.lower() for name in kind.names] for kind in (from_type, to_type)]
        pairs = zip(from_type.fields, to_type.fields, strict=False)
        return names[0] == names[1] and all(_may_cast(field.dataType, other.dataType) for field, other in pairs)
    if isinstance(from_type, T.ArrayType) and isinstance(to_type, T.ArrayType):
        return _may_cast(from_type.elementType, to_type.elementType)
    if isinstance(from_type, T.MapType) and isinstance(to_type, T.MapType):
        return _may_cast(from_type.keyType, to_type.keyType) and _may_cast(from_type.valueType, to_type.valueType)
    return False


def by_number(choices: Sequence[tuple[Value, Column, int]], number: Column) -> Column:
    """Return a Column that selects a value by a number: each choice has the user's value, its Column and its number.

    Choices with one SQL text share a Column.
    """
    numbers: dict[Any, tuple[Column, list[int]]] = {}
    for value, column, choice_number in choices:
        numbers.setdefault(value if isinstance(value, str) else id(value), (column, []))[1].append(choice_number)
    # The value of the least number needs no condition of its own: most rows take the first clause.
    *rarer_choices, (default, _) = sorted(numbers.values(), key=lambda choice: -choice[1][0])
    chosen = default
    for column, places in rarer_choices:
        chosen = sf.when(number.isin(places), column).otherwise(chosen)
    return chosen
