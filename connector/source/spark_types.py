"""Converts between Spark's types and Arrow's: types that a Hudi table can hold, and columns as Spark shows them.

Spark types are matched by class name, so that types newer than Spark 4.0 (TIME, GEOMETRY, GEOGRAPHY) are refused
by name without an import.

A read declares every column, element and field nullable, like Spark's own file sources: a table's ``NOT NULL`` is a
rule for writers.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 (the name that Spark's own documentation uses)

from ...errors import ColumnDifference, MissingColumnError, SchemaMismatchError, UnsupportedTypeError
from ...table.schema.columns import without_meta

_TO_ARROW: dict[str, pa.DataType] = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "StringType": pa.string(),
    "CharType": pa.string(),
    "VarcharType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
    "TimestampNTZType": pa.timestamp("us"),
}

_TO_SPARK: dict[pa.DataType, T.DataType] = {
    pa.bool_(): T.BooleanType(),
    pa.int8(): T.ByteType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.string(): T.StringType(),
    pa.binary(): T.BinaryType(),
    pa.date32(): T.DateType(),
    pa.timestamp("us", "UTC"): T.TimestampType(),
    pa.timestamp("us"): T.TimestampNTZType(),
    # Only tables of other engines have milliseconds.
    pa.timestamp("ms", "UTC"): T.TimestampType(),
    pa.timestamp("ms"): T.TimestampNTZType(),
}


def to_arrow(schema: T.StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark sends rows of ``schema`` to a data source, timestamps in UTC.

    Raises `UnsupportedTypeError` for a type that a Hudi table cannot hold, with the path to the column.
    """
    return pa.schema([_to_arrow_field(field, ()) for field in schema.fields])


def to_spark(schema: pa.Schema) -> T.StructType:
    """Return the Spark schema of canonical Arrow columns, with everything nullable."""
    return T.StructType([T.StructField(field.name, _to_spark_type(field.type)) for field in schema])


def select(table: pa.Schema, columns: Sequence[str], where: str) -> pa.Schema:
    """Return the named columns of a table, in this order; a `MissingColumnError` names absent columns."""
    absent_names = [name for name in columns if name not in table.names]
    if absent_names:
        raise MissingColumnError(
            f"The table {where} has no column {', '.join(map(repr, absent_names))}; it has {', '.join(table.names)}.",
            "Ask for columns of the table, in its own spelling.",
        )
    return pa.schema([table.field(name) for name in columns])


def requested_schema(table: pa.Schema, asked: T.StructType, where: str) -> pa.Schema:
    """Return the Arrow schema of a read that has the Spark schema ``asked``, given by the user or by the read itself.

    ``table`` has the canonical columns with meta columns; only those if an empty table has no columns yet. Raises
    `MissingColumnError` or `UnsupportedTypeError` for a wrong column, and `SchemaMismatchError` if a column has another
    type or may be null in the table only.
    """
    requested = to_arrow(asked)
    table_columns = select(table if without_meta(table) else requested, [field.name for field in asked.fields], where)
    differences = []
    for ours, theirs, field in zip(table_columns, asked.fields, requested, strict=True):
        if not _shows(ours, field):
            table_type = _type_name(to_spark(pa.schema([ours])))
            todo = f"ask for {table_type} and cast afterwards"
            differences.append(ColumnDifference(ours.name, table_type, _type_name(T.StructType([theirs])), todo))
    if differences:
        raise SchemaMismatchError(
            f"The schema given for reading {where} does not fit the table", "Or leave the schema out.", differences
        )
    return requested


def _shows(ours: pa.Field, asked: pa.Field) -> bool:
    """Return whether a column can be read as the requested field: of the same type, and at least as nullable.

    Like columns of a table, fields of a struct may be absent or in another order.
    """
    if ours.nullable and not asked.nullable:
        return False
    mine, theirs = ours.type, asked.type
    if pa.types.is_struct(mine) and pa.types.is_struct(theirs):
        fields = {field.name: field for field in mine}
        return all(field.name in fields and _shows(fields[field.name], field) for field in theirs)
    if pa.types.is_map(mine) and pa.types.is_map(theirs):
        return bool(mine.key_type == theirs.key_type) and _shows(mine.item_field, theirs.item_field)
    if pa.types.is_list(mine) and pa.types.is_list(theirs):
        return _shows(mine.value_field, theirs.value_field)
    if pa.types.is_timestamp(mine) and pa.types.is_timestamp(theirs):
        return bool(mine.tz == theirs.tz)
    return bool(mine == theirs)


def _type_name(schema: T.StructType) -> str:
    """Return the type of a single column in Spark's spelling, and whether it may be null."""
    field = schema.fields[0]
    return field.dataType.simpleString() + ("" if field.nullable else " not null")


def _to_arrow_field(field: T.StructField, outer: tuple[str, ...]) -> pa.Field:
    return pa.field(field.name, _to_arrow_type(field.dataType, (*outer, field.name)), nullable=field.nullable)


def _to_arrow_type(kind: T.DataType, path: tuple[str, ...]) -> pa.DataType:
    """Return the Arrow type of a Spark type; ``path`` names the column in the error for an unsupported type."""
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        element = _to_arrow_type(kind.elementType, (*path, "element"))
        return pa.list_(pa.field("element", element, nullable=kind.containsNull))
    if isinstance(kind, T.MapType):
        key = _to_arrow_type(kind.keyType, (*path, "key"))
        if key != pa.string():
            raise _unsupported(path, kind, "a map in a Hudi table has keys of type string")
        value = pa.field("value", _to_arrow_type(kind.valueType, (*path, "value")), nullable=kind.valueContainsNull)
        return pa.map_(pa.field("key", key, nullable=False), value)
    if isinstance(kind, T.StructType):
        if not kind.fields:
            raise _unsupported(path, kind, "a struct needs a field")
        return pa.struct([_to_arrow_field(field, path) for field in kind.fields])
    if isinstance(kind, T.StringType) and getattr(kind, "collation", "UTF8_BINARY") not in {None, "UTF8_BINARY"}:
        raise _unsupported(path, kind, "a Hudi table compares strings byte by byte, without a collation")
    if isinstance(kind, T.UserDefinedType):
        raise _unsupported(path, kind, f"a Hudi table does not know {type(kind).__name__}")
    arrow = _TO_ARROW.get(type(kind).__name__)
    if arrow is None:
        raise _unsupported(path, kind, "a Hudi table has no such type")
    return arrow


def _unsupported(path: tuple[str, ...], kind: T.DataType, reason: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"The column {'.'.join(path)} has the type {kind.simpleString()}, which cannot be stored: {reason}.",
        "Cast the column to another type, or drop it.",
    )


def _to_spark_type(kind: pa.DataType) -> T.DataType:
    if pa.types.is_decimal(kind):
        return T.DecimalType(kind.precision, kind.scale)
    if pa.types.is_struct(kind):
        return T.StructType([T.StructField(field.name, _to_spark_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return T.MapType(T.StringType(), _to_spark_type(kind.item_type))
    if pa.types.is_list(kind):
        return T.ArrayType(_to_spark_type(kind.value_type))
    return _TO_SPARK[kind]
