from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import (
    CorruptFileError,
    MissingColumnError,
    OptionConflictError,
    PyHudiError,
    SchemaMismatchError,
    TableNotFoundError,
    UnknownOptionError,
    from_spark,
)
from pyhudi.operations.planning.request import TableSettings
from pyhudi.table.schema.columns import META_COLUMNS
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812
from support.drive import write
from support.recorded.fixture_tables import unpack


def load(spark: SparkSession, path: str, schema: T.StructType | str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("pyhudi").options(**options)
    return (reader if schema is None else reader.schema(schema)).load(path)


def raised(df_maker) -> PyHudiError:
    with pytest.raises(PySparkException) as caught:
        df_maker().collect()
    error = from_spark(caught.value)
    assert error is not None, str(caught.value)
    return error


def test_every_type_of_apache_hudi_reaches_spark(spark: SparkSession, tmp_path: Path) -> None:
    df = load(spark, unpack("v9_cow_types", tmp_path))

    rows = {(row.p, row.id): row for row in df.collect()}
    assert sorted(rows) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    for partition in ("a", "b"):
        row = rows[partition, 1]
        assert (row.sh, row.lo, row.fl, row.do, row.bo, row.st) == (-8, 2**40, 1.5, -2.25, True, "é日本")
        assert (bytes(row.bi), row.de, row.de2) == (
            b"\x00\xff",
            Decimal("12.30"),
            Decimal("-1234567890.0123456789"),
        )
        assert row.da == datetime.date(2024, 2, 29)
        assert row.nt == datetime.datetime(2024, 2, 29, 12, 34, 56, 789123)
        assert row.ts.timestamp() == 1709210096.789123
        assert (row.ar, tuple(row.st2), row.ma) == ([1, 2], (5, "x"), {"k": 9, "l": None})
        assert [(one.x, one.y) for one in row.nested] == [(1, ["u", "v"]), (2, [])]
        empty = rows[partition, 2].asDict()
        assert {empty[name] for name in df.columns[5:] if name not in {"id", "p"}} == {None}


def test_meta_columns_come_first_and_everything_may_be_null(spark: SparkSession, tmp_path: Path) -> None:
    df = load(spark, unpack("v9_cow_types", tmp_path))

    assert tuple(df.columns[:5]) == META_COLUMNS
    assert "nullable = false" not in df.schema.treeString()
    assert "containsNull = false" not in df.schema.treeString()


def test_the_option_columns_chooses_and_orders(spark: SparkSession, tmp_path: Path) -> None:
    df = load(spark, unpack("v9_cow_evolved", tmp_path), columns="extra,id")

    assert df.columns == ["extra", "id"]
    assert sorted((row.id, row.extra) for row in df.collect())[:2] == [(0, None), (1, "new")]


def test_a_schema_of_the_users_own_chooses_too(spark: SparkSession, tmp_path: Path) -> None:
    df = load(spark, unpack("v9_cow_evolved", tmp_path), "n long, id int")

    assert sorted(df.collect())[0] == (0, 0)
    assert df.columns == ["n", "id"]


def test_a_not_null_that_the_table_does_not_promise_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = unpack("v9_cow_evolved", tmp_path)
    schema = T.StructType([T.StructField("extra", T.StringType(), nullable=False)])

    assert isinstance(raised(lambda: load(spark, path, schema)), SchemaMismatchError)


@pytest.mark.oldest
def test_a_not_null_that_the_table_promises_can_be_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    fields = [pa.field("id", pa.int32(), nullable=False), pa.field("s", pa.struct([pa.field("x", pa.int32(), False)]))]
    rows = pa.Table.from_pylist([{"id": 1, "s": {"x": 7}}, {"id": 2, "s": None}], pa.schema(fields))
    write(path, rows, table=TableSettings(record_key_fields=("id",), bucket_count=1))
    strict = T.StructType(
        [
            T.StructField("id", T.IntegerType(), nullable=False),
            T.StructField("s", T.StructType([T.StructField("x", T.IntegerType(), nullable=False)])),
        ]
    )

    for schema in (None, strict):
        read = sorted(load(spark, path, schema).select("id", "s").collect())
        assert [(row.id, row.s and row.s.x) for row in read] == [(1, 7), (2, None)]


@pytest.mark.oldest
@pytest.mark.parametrize(
    ("schema", "options", "error"),
    [
        ("nope int", {}, MissingColumnError),
        (None, {"columns": "nope"}, MissingColumnError),
        ("id long", {}, SchemaMismatchError),
        ("id int", {"columns": "n"}, OptionConflictError),
        (None, {"colums": "id"}, UnknownOptionError),
    ],
)
def test_what_cannot_be_read_is_refused_in_our_own_words(
    spark: SparkSession, tmp_path: Path, schema: str | None, options: dict[str, str], error: type[PyHudiError]
) -> None:
    path = unpack("v9_cow_evolved", tmp_path)

    assert type(raised(lambda: load(spark, path, schema, **options))) is error


def test_a_missing_table_is_no_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    assert type(raised(lambda: load(spark, str(tmp_path / "nothing")))) is TableNotFoundError


@pytest.mark.oldest
def test_a_damaged_file_fails_the_query_and_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = Path(unpack("v9_cow_evolved", tmp_path))
    newest = max(path.glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])
    newest.write_bytes(newest.read_bytes()[:-50])

    error = raised(lambda: load(spark, str(path)))

    assert type(error) is CorruptFileError
    assert newest.name in str(error)


@pytest.mark.oldest
def test_the_last_line_that_the_user_sees_is_ours(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, str(tmp_path / "nothing"))

    lines = [line for line in str(caught.value).splitlines() if line.strip() and "SQLSTATE" not in line]
    assert re.fullmatch(r".*PyHudiError\[TABLE_NOT_FOUND\]: .*", lines[-1])


@pytest.mark.oldest
def test_a_dataframe_shows_the_table_as_it_was_when_it_was_made(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    asked = TableSettings(record_key_fields=("id",), bucket_count=2)
    write(path, pa.table({"id": [1, 2], "n": [1, 1]}), table=asked)
    df = load(spark, path)

    write(path, pa.table({"id": [2, 3], "n": [9, 9]}))

    assert sorted((row.id, row.n) for row in df.collect()) == [(1, 1), (2, 1)]
    assert sorted((row.id, row.n) for row in load(spark, path).collect()) == [(1, 1), (2, 9), (3, 9)]


def test_a_table_without_rows_reads_as_such(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    asked = TableSettings(record_key_fields=("id",), bucket_count=2)
    write(path, pa.table({"id": [1], "n": [1]}), table=asked)
    write(path, pa.table({"id": [1]}), operation="delete")

    df = load(spark, path)

    assert df.collect() == []
    assert df.columns[5:] == ["id", "n"]


def test_counting_and_aggregating_need_no_column_in_particular(spark: SparkSession, tmp_path: Path) -> None:
    df = load(spark, unpack("v9_cow_evolved", tmp_path))

    assert df.count() == 6
    assert df.groupBy("extra").count().count() == 2


@pytest.mark.oldest
def test_sql_reads_through_a_temporary_view(spark: SparkSession, tmp_path: Path) -> None:
    path = unpack("v9_cow_evolved", tmp_path)
    spark.sql(f"create or replace temporary view evolved using pyhudi options (path '{path}', columns 'id')")

    assert sorted(row.id for row in spark.sql("select * from evolved where id > 3").collect()) == [4, 5]


@pytest.mark.oldest
def test_a_catalogs_table_is_refused_when_it_is_made(spark: SparkSession, tmp_path: Path) -> None:
    path = unpack("v9_cow_evolved", tmp_path)

    with pytest.raises(PySparkException, match=r"PyHudiError\[UNSUPPORTED_OPTION\].*TEMPORARY VIEW"):
        spark.sql(f"create table evolved_table using pyhudi options (path '{path}')")
