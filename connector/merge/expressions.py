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
        said = (error.getMessage() or str(error)).strip().partition("\n")[0].partition(" SQLSTATE")[0].rstrip(".")
        if (error.getCondition() or "").startswith(_UNKNOWN):
            raise MissingColumnError(
                f"{what} names a column that neither side has, or that both sides have: {said}.",
                "Write source.<column> for the source's rows and target.<column> for the table's rows. A clause about "
                "one side alone cannot name columns of the other side. A text that is a value needs quotes of its own: "
                "\"'Bergen'\".",
            ) from error
        raise InvalidOptionError(f"{what} is invalid in Spark: {said}.", "Correct it.") from error
    except PySparkException as error:
        raise InvalidOptionError(f"{what} is invalid in Spark: {error}.", "Correct it.") from error


def as_column(value: Value, what: str) -> Column:
    """Return a value as a Column: text is SQL, any other plain value is a literal."""
    if isinstance(value, Column):
        return value
    with explained(what):
        return sf.expr(value) if isinstance(value, str) else sf.lit(value)


def with_fields(column: str | Column, kind: pa.DataType, given: Mapping[tuple[str, ...], Value], what: str) -> Column:
    """Return a struct with other values in fields, given by their paths; other fields of a null struct are null."""
    column = as_column(column, what)
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


def check_condition(frame: DataFrame, condition: Column, what: str) -> None:
    """Refuse a condition that is not boolean, or that the columns of ``frame`` do not resolve."""
    with explained(what):
        kind = frame.select(condition).schema.fields[0].dataType
    if not isinstance(kind, (T.BooleanType, T.NullType)):
        raise InvalidOptionError(
            f"{what} is of the type {kind.simpleString()}, which is neither true nor false.",
            "Compare it with something.",
        )


def cast_values(
    frame: DataFrame, values: Mapping[str, Column], kinds: T.StructType, what: str, table: str
) -> dict[str, Column]:
    """Return values in the types of their columns; a value that its column cannot hold fails the query.

    With ``spark.sql.ansi.enabled=false`` Spark's own cast wraps large numbers and turns other text into null. pyhudi's
    result must not depend on that setting. Raises `MissingColumnError` for a column that ``frame`` lacks, and
    `SchemaMismatchError` if Spark has no cast, or would cast a struct by position.
    """
    # One call names all columns: each call to Spark's own process takes as long as the work behind it.
    with explained(what):
        given = frame.select(*values.values()).toDF(*values).schema.fields
    cast: dict[str, Column] = {}
    for field in given:
        wanted = kinds[field.name].dataType
        if not _fits(field.dataType, wanted):
            raise SchemaMismatchError(
                f"{what} gives the column {field.name!r} of the table {table}, of the type {wanted.simpleString()}, a "
                f"value of the type {field.dataType.simpleString()}, which it cannot take.",
                "Cast the value, or name the fields of a struct as the column has them, in their order.",
            )
        whose = f"{what} gives the column {field.name!r} of the table {table}, of the type {wanted.simpleString()}, "
        cast[field.name] = _cast(values[field.name], field.dataType, wanted, whose)
    changed = [column for name, column in cast.items() if column is not values[name]]
    if changed:
        with explained(what):
            _ = frame.select(*changed).schema
    return cast


def _cast(value: Column, given: T.DataType, wanted: T.DataType, whose: str) -> Column:
    """Return a value in another type; a value that the type cannot hold fails the query with an error of pyhudi."""
    if given == wanted:
        return value
    if isinstance(given, _NESTED) and _has_floats_for_whole(given, wanted):
        return _cast_inside(value, given, wanted, whose)
    if _always_fits(given, wanted):
        return value.cast(wanted)
    shown = sf.substring(sf.regexp_replace(value.cast("string"), r"\s+", " "), 1, 100)
    text = f"PyHudiError[{SchemaMismatchError.code}]: {whose}the value '"
    # Spark appends a text of its own, which the line break separates.
    failure = sf.raise_error(sf.concat(sf.lit(text), shown, sf.lit("', which it cannot hold. Give another value.\n")))
    converted = value.try_cast(wanted)
    if isinstance(given, T.StringType) and isinstance(wanted, (T.IntegerType, T.LongType)):
        # As in every other write, text counts as a number only in the canonical spelling of the number.
        converted = sf.when(converted.cast("string") == value, converted)
    failing = value.isNotNull()
    if _has_floats_for_whole(given, wanted):
        # As in every other write, NaN counts as missing, and a fraction as no whole number.
        bound = whole_bound(pa.float32() if isinstance(given, T.FloatType) else pa.float64())
        converted = sf.when((sf.abs(value) < bound) & (sf.rint(value) == value), converted)
        failing = failing & ~sf.isnan(value)
    return sf.coalesce(converted, sf.when(failing, failure).cast(wanted))


def _cast_inside(value: Column, given: T.DataType, wanted: T.DataType, whose: str) -> Column:
    """Return a nested value with the values inside of it cast one by one; `_fits` says that both have one shape."""
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        fields = [
            _cast(value.getField(field.name), field.dataType, other.dataType, whose).alias(other.name)
            for field, other in zip(given.fields, wanted.fields, strict=True)
        ]
        return sf.when(value.isNotNull(), sf.struct(*fields))
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        inner = given.elementType, wanted.elementType
        return sf.transform(value, lambda element: _cast(element, *inner, whose))
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        kinds = given.valueType, wanted.valueType
        return sf.transform_values(value, lambda _, item: _cast(item, *kinds, whose))
    return value.cast(wanted)


def _has_floats_for_whole(given: T.DataType, wanted: T.DataType) -> bool:
    """Return whether floating values come into whole numbers, at any depth."""
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        pairs = zip(given.fields, wanted.fields, strict=True)
        return any(_has_floats_for_whole(field.dataType, other.dataType) for field, other in pairs)
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _has_floats_for_whole(given.elementType, wanted.elementType)
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        return _has_floats_for_whole(given.valueType, wanted.valueType)
    return isinstance(given, (T.FloatType, T.DoubleType)) and isinstance(wanted, (T.IntegerType, T.LongType))


def _always_fits(given: T.DataType, wanted: T.DataType) -> bool:
    """Return whether a cast keeps every value; Spark casts nested types by its own rules."""
    if isinstance(given, (T.NullType, *_NESTED)) or isinstance(wanted, (T.StringType, T.BinaryType)):
        return True
    kinds = [type(given), type(wanted)]
    return all(kind in _WIDER for kind in kinds) and _WIDER.index(kinds[0]) <= _WIDER.index(kinds[1])


def _fits(given: T.DataType, wanted: T.DataType) -> bool:
    """Return whether a cast keeps the names of fields: Spark casts structs by position."""
    if isinstance(given, T.NullType) or (not isinstance(given, _NESTED) and not isinstance(wanted, _NESTED)):
        return True
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        names: list[Sequence[str]] = [[name.lower() for name in kind.names] for kind in (given, wanted)]
        pairs = zip(given.fields, wanted.fields, strict=False)
        return names[0] == names[1] and all(_fits(field.dataType, other.dataType) for field, other in pairs)
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _fits(given.elementType, wanted.elementType)
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        return _fits(given.keyType, wanted.keyType) and _fits(given.valueType, wanted.valueType)
    return False


def by_number(choices: Sequence[tuple[Value, Column, int]], number: Column) -> Column:
    """Return a Column that selects a value by a number: each choice has the user's value, its Column and its number."""
    numbers: dict[Any, tuple[Column, list[int]]] = {}
    for given, column, at in choices:
        numbers.setdefault(given if isinstance(given, str) else id(given), (column, []))[1].append(at)
    *others, (last, _) = sorted(numbers.values(), key=lambda found: -found[1][0])
    chosen = last
    for column, places in others:
        chosen = sf.when(number.isin(places), column).otherwise(chosen)
    return chosen
