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
from ...table.schema.fields import columns_named

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


def select(table: pa.Schema, columns: Sequence[str], table_path: str) -> pa.Schema:
    """Return the named columns of a table, in this order.

    Raises `MissingColumnError` for absent columns, and `DuplicateColumnError` for a column that comes twice.
    """
    absent_names = [name for name in columns if name not in table.names]
    if absent_names:
        raise MissingColumnError(
            f"The table {table_path} has no column {', '.join(map(repr, absent_names))}; it has "
            f"{', '.join(table.names)}.",
            "Ask for columns of the table, in its own spelling.",
        )
    return columns_named(columns, table, f"table {table_path}")


def requested_schema(table: pa.Schema, spark_schema: T.StructType, table_path: str) -> pa.Schema:
    """Return the Arrow schema of a read with a Spark schema, which the user or the read itself gives.

    ``table`` has the canonical columns with meta columns; only those if an empty table has no columns yet. Raises
    `MissingColumnError` or `UnsupportedTypeError` for a wrong column, and `SchemaMismatchError` if a column has another
    type or may be null in the table only.
    """
    requested_columns = to_arrow(spark_schema)
    table_columns = select(
        table if without_meta(table) else requested_columns, [field.name for field in spark_schema.fields], table_path
    )
    differences = []
    for ours, theirs, field in zip(table_columns, spark_schema.fields, requested_columns, strict=True):
        if not _is_readable_as(ours, field):
            table_type = _type_name(to_spark(pa.schema([ours])))
            todo = f"ask for {table_type} and cast afterwards"
            differences.append(ColumnDifference(ours.name, table_type, _type_name(T.StructType([theirs])), todo))
    if differences:
        raise SchemaMismatchError(
            f"The schema given for reading {table_path} does not fit the table", "Or leave the schema out.", differences
        )
    return requested_columns


def _is_readable_as(ours: pa.Field, requested: pa.Field) -> bool:
    """Return whether a column can be read as the requested field: of the same type, and at least as nullable.

    Like columns of a table, fields of a struct may be absent or in another order.
    """
    if ours.nullable and not requested.nullable:
        return False
    mine, theirs = ours.type, requested.type
    if pa.types.is_struct(mine) and pa.types.is_struct(theirs):
        fields = {field.name: field for field in mine}
        return all(field.name in fields and _is_readable_as(fields[field.name], field) for field in theirs)
    if pa.types.is_map(mine) and pa.types.is_map(theirs):
        return bool(mine.key_type == theirs.key_type) and _is_readable_as(mine.item_field, theirs.item_field)
    if pa.types.is_list(mine) and pa.types.is_list(theirs):
        return _is_readable_as(mine.value_field, theirs.value_field)
    if pa.types.is_timestamp(mine) and pa.types.is_timestamp(theirs):
        return bool(mine.tz == theirs.tz)
    return bool(mine == theirs)


def _type_name(schema: T.StructType) -> str:
    """Return the type of a single column in Spark's spelling, and whether it may be null."""
    field = schema.fields[0]
    return field.dataType.simpleString() + ("" if field.nullable else " not null")


def _to_arrow_field(field: T.StructField, outer: tuple[str, ...]) -> pa.Field:
    return pa.field(field.name, _to_arrow_type(field.dataType, (*outer, field.name)), nullable=field.nullable)


def _to_arrow_type(data_type: T.DataType, path: tuple[str, ...]) -> pa.DataType:
    """Return the Arrow type of a Spark type; raises `UnsupportedTypeError` for a type that Hudi lacks.

    ``path`` has the name of the column and of each part that leads to a nested type, for the error.
    """
    if isinstance(data_type, T.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, T.ArrayType):
        element = _to_arrow_type(data_type.elementType, (*path, "element"))
        return pa.list_(pa.field("element", element, nullable=data_type.containsNull))
    if isinstance(data_type, T.MapType):
        key = _to_arrow_type(data_type.keyType, (*path, "key"))
        if key != pa.string():
            raise _unsupported(path, data_type, "a map in a Hudi table has keys of type string")
        value = pa.field(
            "value", _to_arrow_type(data_type.valueType, (*path, "value")), nullable=data_type.valueContainsNull
        )
        return pa.map_(pa.field("key", key, nullable=False), value)
    if isinstance(data_type, T.StructType):
        if not data_type.fields:
            raise _unsupported(path, data_type, "a struct needs a field")
        return pa.struct([_to_arrow_field(field, path) for field in data_type.fields])
    if isinstance(data_type, T.StringType) and getattr(data_type, "collation", "UTF8_BINARY") not in {
        None,
        "UTF8_BINARY",
    }:
        raise _unsupported(path, data_type, "a Hudi table compares strings byte by byte, without a collation")
    if isinstance(data_type, T.UserDefinedType):
        raise _unsupported(path, data_type, f"a Hudi table does not know {type(data_type).__name__}")
    arrow = _TO_ARROW.get(type(data_type).__name__)
    if arrow is None:
        raise _unsupported(path, data_type, "a Hudi table has no such type")
    return arrow


def _unsupported(path: tuple[str, ...], data_type: T.DataType, reason: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"The column {'.'.join(path)} has the type {data_type.simpleString()}, which cannot be stored: {reason}.",
        "Cast the column to another type, or drop it.",
    )


def _to_spark_type(data_type: pa.DataType) -> T.DataType:
    """Return the Spark type of a canonical Arrow type."""
    if pa.types.is_decimal(data_type):
        return T.DecimalType(data_type.precision, data_type.scale)
    if pa.types.is_struct(data_type):
        return T.StructType([T.StructField(field.name, _to_spark_type(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return T.MapType(T.StringType(), _to_spark_type(data_type.item_type))
    if pa.types.is_list(data_type):
        return T.ArrayType(_to_spark_type(data_type.value_type))
    return _TO_SPARK[data_type]
