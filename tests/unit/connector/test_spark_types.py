from __future__ import annotations

import inspect

import pyarrow as pa
import pytest
from pyhudi.connector.source.spark_types import requested_schema, select, to_arrow, to_spark
from pyhudi.errors import MissingColumnError, SchemaMismatchError, UnsupportedTypeError
from pyhudi.table.schema.columns import canonical, with_meta
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

pytestmark = pytest.mark.oldest

ALL = T.StructType(
    [
        T.StructField("bo", T.BooleanType()),
        T.StructField("it", T.IntegerType(), nullable=False),
        T.StructField("lo", T.LongType()),
        T.StructField("fl", T.FloatType()),
        T.StructField("do", T.DoubleType()),
        T.StructField("de", T.DecimalType(38, 18)),
        T.StructField("st", T.StringType()),
        T.StructField("bi", T.BinaryType()),
        T.StructField("da", T.DateType()),
        T.StructField("ts", T.TimestampType()),
        T.StructField("nt", T.TimestampNTZType()),
        T.StructField("ar", T.ArrayType(T.ArrayType(T.LongType(), False))),
        T.StructField("ma", T.MapType(T.StringType(), T.StructType([T.StructField("x", T.IntegerType())]), False)),
        T.StructField("su", T.StructType([T.StructField("a", T.IntegerType(), False)])),
    ]
)
SMALL = T.StructType([T.StructField("by", T.ByteType()), T.StructField("sh", T.ShortType())])


@pytest.mark.parametrize("schema", [ALL, SMALL])
def test_arrow_types_are_those_that_spark_sends(schema: T.StructType) -> None:
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}

    assert to_arrow(schema).equals(to_arrow_schema(schema, **zone))


def test_a_tables_columns_come_back_nullable_throughout() -> None:
    table = canonical(to_arrow(ALL))

    spark = to_spark(table)

    assert [field.dataType.typeName() for field in spark] == [field.dataType.typeName() for field in ALL]
    assert "not null" not in spark.treeString().lower()
    assert "nullable = false" not in spark.treeString()
    assert "containsNull = false" not in spark.treeString()
    assert canonical(to_arrow(spark)).types == [_nullable(kind) for kind in table.types]


def _nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), _nullable(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in kind])
    return kind


def test_small_integers_are_ints_in_a_table() -> None:
    assert to_spark(canonical(to_arrow(SMALL))).simpleString() == "struct<by:int,sh:int>"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (T.NullType(), "c"),
        (T.DayTimeIntervalType(), "c"),
        (T.YearMonthIntervalType(), "c"),
        (T.CalendarIntervalType(), "c"),
        (T.VariantType(), "c"),
        (T.StringType("UNICODE_CI"), "c"),
        (T.StructType([]), "c"),
        (T.MapType(T.IntegerType(), T.StringType()), "c"),
        (T.ArrayType(T.NullType()), "c.element"),
        (T.MapType(T.StringType(), T.VariantType()), "c.value"),
        (T.StructType([T.StructField("a", T.ArrayType(T.DayTimeIntervalType()))]), "c.a.element"),
    ],
)
def test_a_type_that_no_table_holds_is_named_with_its_path(kind: T.DataType, path: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=rf"column {path} has the type"):
        to_arrow(T.StructType([T.StructField("c", kind)]))


@pytest.mark.parametrize("name", ["TimeType", "GeometryType", "GeographyType"])
def test_types_of_younger_sparks_are_refused(name: str) -> None:
    if not hasattr(T, name):
        pytest.skip(f"this Spark has no {name}")
    kind = getattr(T, name)() if name == "TimeType" else getattr(T, name)(4326)

    with pytest.raises(UnsupportedTypeError):
        to_arrow(T.StructType([T.StructField("c", kind)]))


def test_fixed_length_strings_are_strings() -> None:
    schema = T.StructType([T.StructField("a", T.CharType(3)), T.StructField("b", T.VarcharType(9))])

    assert to_arrow(schema).types == [pa.string(), pa.string()]


TABLE = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("s", pa.struct([pa.field("a", pa.int32(), nullable=False)])),
        pa.field("l", pa.list_(pa.field("element", pa.string()))),
        pa.field("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def test_times_of_milliseconds_are_spark_timestamps() -> None:
    """Flink makes such tables."""
    table = pa.schema([("t", pa.timestamp("ms", "UTC")), ("l", pa.timestamp("ms"))])

    asked = to_spark(table)

    assert asked.simpleString() == "struct<t:timestamp,l:timestamp_ntz>"
    assert requested_schema(table, asked, "t").types == [pa.timestamp("us", "UTC"), pa.timestamp("us")]
    with pytest.raises(SchemaMismatchError, match=r"t \| timestamp \| timestamp_ntz"):
        requested_schema(table, struct("t", T.TimestampNTZType()), "t")


def test_a_type_of_the_users_own_is_refused_by_the_name_of_its_class() -> None:
    class PointUDT(T.UserDefinedType):
        @classmethod
        def sqlType(cls) -> T.DataType:  # noqa: N802 (Spark's name)
            return T.StructType([T.StructField("x", T.DoubleType())])

    with pytest.raises(UnsupportedTypeError, match=r"column c\.element has the type udt.*PointUDT"):
        to_arrow(T.StructType([T.StructField("c", T.ArrayType(PointUDT()))]))


def struct(text_name: str, kind: T.DataType, nullable: bool = True) -> T.StructType:
    return T.StructType([T.StructField(text_name, kind, nullable)])


def test_columns_come_in_the_order_asked_for() -> None:
    assert select(TABLE, ["n", "id"], "t").names == ["n", "id"]


def test_a_column_that_the_table_lacks_is_named() -> None:
    with pytest.raises(MissingColumnError, match="'nn'"):
        select(TABLE, ["nn"], "t")
    with pytest.raises(MissingColumnError, match="'ID'"):
        requested_schema(TABLE, struct("ID", T.IntegerType()), "t")


@pytest.mark.parametrize(
    "asked",
    [
        struct("id", T.IntegerType()),
        struct("id", T.IntegerType(), nullable=False),
        struct("s", T.StructType([T.StructField("a", T.IntegerType())])),
        struct("s", T.StructType([T.StructField("a", T.IntegerType(), nullable=False)])),
        struct("l", T.ArrayType(T.StringType())),
        struct("m", T.MapType(T.StringType(), T.LongType())),
    ],
)
def test_a_schema_with_the_tables_types_may_be_laxer_about_null(asked: T.StructType) -> None:
    assert requested_schema(TABLE, asked, "t").equals(to_arrow(asked))


def test_some_fields_of_a_struct_may_be_asked_for() -> None:
    table = pa.schema([("s", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.int64())])))])
    fields = [T.StructField("c", T.LongType()), T.StructField("a", T.IntegerType())]
    asked = struct("s", T.ArrayType(T.StructType(fields)))

    assert requested_schema(table, asked, "t").equals(to_arrow(asked))


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (struct("id", T.LongType()), "id | int | bigint | ask for int and cast afterwards"),
        (struct("id", T.ShortType()), "smallint"),
        (struct("n", T.LongType(), nullable=False), "bigint not null"),
        (struct("s", T.StructType([T.StructField("b", T.IntegerType())])), "struct<b:int>"),
        (struct("l", T.ArrayType(T.StringType(), False)), "array<string>"),
        (struct("m", T.MapType(T.StringType(), T.LongType(), False)), "map<string,bigint>"),
    ],
)
def test_a_schema_with_other_types_is_refused_with_both(asked: T.StructType, shown: str) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        requested_schema(TABLE, asked, "t")

    assert shown in caught.value.what


def test_an_empty_table_that_tells_no_columns_has_those_that_are_asked_for() -> None:
    asked = struct("anything", T.IntegerType())

    assert requested_schema(with_meta(pa.schema([])), asked, "t").equals(to_arrow(asked))
