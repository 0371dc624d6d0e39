from __future__ import annotations

import datetime
import pickle
import re
from decimal import Decimal
from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyhudi.connector.source.writer import HudiWriter
from pyhudi.errors import (
    MissingColumnError,
    MissingOptionError,
    NullKeyError,
    OptionConflictError,
    PlacementError,
    PyHudiError,
    SchemaMismatchError,
    UnknownOptionError,
    UnsupportedOptionError,
    UnsupportedTypeError,
    from_spark,
)
from pyhudi.options.parsing import parse_options
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as T  # noqa: N812
from support.drive import rows_of
from support.readers import rows_by_hudi_rs


def save(df: DataFrame, path: Path | str, mode: str = "append", **options: str) -> None:
    keyed = {"recordkey": "id", "buckets": "2", **{key.replace("__", "."): value for key, value in options.items()}}
    df.write.format("pyhudi").options(**keyed).mode(mode).save(str(path))


def raised(df: DataFrame, path: Path | str, mode: str = "append", **options: str) -> PyHudiError:
    with pytest.raises(PySparkException) as caught:
        save(df, path, mode, **options)
    lines = [line for line in str(caught.value).splitlines() if line.strip() and "SQLSTATE" not in line]
    assert re.fullmatch(r".*PyHudiError\[[A-Z_]+\]: .*", lines[-1]), lines[-3:]
    error = from_spark(caught.value)
    assert error is not None
    return error


def numbers(spark: SparkSession, start: int, end: int, n: int = 0) -> DataFrame:
    return spark.range(start, end, numPartitions=4).selectExpr("id", f"cast({n} as int) n", "concat('p', id % 2) p")


def test_a_plain_write_makes_a_table_that_hudi_rs_reads(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"

    save(numbers(spark, 0, 10), path, partitionby="p")
    save(numbers(spark, 5, 15, n=1), path)

    expected = [(n, int(n >= 5), f"p{n % 2}") for n in range(15)]
    assert rows_of(path, "id", "n", "p") == expected
    assert rows_by_hudi_rs(path, "id", "n", "p") == expected
    assert sorted(one.name for one in path.iterdir()) == [".hoodie", "p0", "p1"]


def test_overwrite_replaces_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(numbers(spark, 0, 10), path)

    save(numbers(spark, 20, 22), path, mode="overwrite")

    assert rows_of(path, "id") == [(20,), (21,)]
    assert rows_by_hudi_rs(path, "id") == [(20,), (21,)]


def test_deletes_need_only_the_key(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(numbers(spark, 0, 5), path)

    save(spark.range(2, 9), path, operation="delete")

    assert rows_of(path, "id") == [(0,), (1,)]


def test_every_type_survives_the_way_to_disk_and_back(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    schema = """
        id int not null, by tinyint, sh smallint, lo bigint, fl float, do double, bo boolean, st string, bi binary,
        de decimal(20,3), da date, ts timestamp, nt timestamp_ntz, ar array<array<int>>,
        ma map<string, struct<x: int>>, su struct<a: int not null, b: array<string>>
    """
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    full = (
        *(1, -3, -8, 2**40, 1.5, -2.25, True, "é日本", b"\x00\xff", Decimal("-12.345")),
        *(datetime.date(1, 1, 1), moment, moment, [[1], [], None], {"k": (7,), "l": None}, (5, ["x", None])),
    )
    source = spark.createDataFrame([full, (2, *[None] * 15)], schema)
    save(source, path)

    read = spark.read.format("pyhudi").load(str(path)).select(*source.columns)

    expected = source.withColumn("by", sf.col("by").cast("int")).withColumn("sh", sf.col("sh").cast("int"))
    assert read.sort("id").collect() == expected.sort("id").collect()
    assert HudiTable(spark, str(path)).to_df(source.columns).sort("id").collect() == expected.sort("id").collect()
    assert [field.dataType.typeName() for field in read.schema] == [f.dataType.typeName() for f in expected.schema]


def test_the_sessions_time_zone_does_not_change_a_moment(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone == "America/Los_Angeles"
    save(spark.sql("select 1 id, timestamp'2024-07-01T12:00:00Z' ts"), path)

    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        read = spark.read.format("pyhudi").load(str(path)).select(sf.unix_micros("ts")).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    assert read[0][0] == 1719835200 * 1_000_000


def test_the_greater_ordering_value_wins_whatever_the_order_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    df = spark.range(100, numPartitions=4).selectExpr("id % 10 id", "id ts", "id v")

    save(df.orderBy(sf.desc("ts")), path, orderby="ts")
    save(spark.sql("select cast(1 as bigint) id, cast(5 as bigint) ts, cast(-1 as bigint) v"), path)

    assert rows_of(path, "id", "v") == [(n, 90 + n) for n in range(10)]


def test_one_write_is_one_instant_however_many_tasks_it_has(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(numbers(spark, 0, 1_000), path)

    assert len(list((path / ".hoodie" / "timeline").glob("*.commit"))) == 1
    assert len({row[0] for row in rows_of(path, "_hoodie_commit_time")}) == 1
    assert len({row[0] for row in rows_of(path, "_hoodie_commit_seqno")}) == 1_000


@pytest.mark.oldest
@pytest.mark.parametrize(
    ("columns", "options", "error"),
    [
        (("id", "n"), {"recordkey": "idx"}, MissingColumnError),
        (("id", "n"), {"partitionby": "q"}, MissingColumnError),
        (("id", "n"), {"recordkey": ""}, MissingOptionError),
        (("id", "n"), {"operation": "cluster"}, UnsupportedOptionError),
        (("id", "n"), {"hoodie__datasource__write__recordkey__fields": "id"}, UnknownOptionError),
        (("id", "parse_json('1') v"), {}, UnsupportedTypeError),
        (("id", "interval '1' day i"), {}, UnsupportedTypeError),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_task(
    spark: SparkSession, tmp_path: Path, columns: tuple[str, ...], options: dict[str, str], error: type[PyHudiError]
) -> None:
    df = numbers(spark, 0, 3).selectExpr(*columns)

    assert type(raised(df, tmp_path / "t", **options)) is error
    assert not (tmp_path / "t").exists()


def test_options_that_disagree_with_the_table_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(numbers(spark, 0, 3), path)

    assert type(raised(numbers(spark, 0, 3), path, buckets="3")) is OptionConflictError
    assert type(raised(numbers(spark, 0, 3), path, recordkey="n")) is OptionConflictError
    assert type(raised(numbers(spark, 0, 3).drop("n"), path)) is SchemaMismatchError


@pytest.mark.oldest
def test_a_bad_row_fails_the_write_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(numbers(spark, 0, 10), path)
    before = sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())
    bad = numbers(spark, 0, 1_000, n=9).withColumn("id", sf.when(sf.col("id") != 777, sf.col("id")))

    assert type(raised(bad, path)) is NullKeyError

    after = sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())
    assert [name for name in after if name not in before and "/.pyhudi/" not in f"/{name}"] == []
    assert rows_of(path, "n") == [(0,)] * 10


def test_a_write_that_only_colocation_can_bear_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for advice in ("HudiTable.create", "pyhudi.colocate"):
        error = raised(numbers(spark, 0, 1_000), path, hoodie__pyhudi__commit__merge__max__bytes="1")

        assert type(error) is PlacementError
        assert advice in str(error)
        save(numbers(spark, 0, 1), path)


@pytest.mark.oldest
def test_an_empty_dataframe_makes_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"

    save(numbers(spark, 0, 0), path)

    assert rows_of(path, "id") == []


@pytest.mark.oldest
def test_what_travels_to_every_task_is_small(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for day in range(3):
        save(numbers(spark, 0, 50, n=day).withColumn("p", sf.col("id").cast("string")), path, partitionby="p")

    writer = HudiWriter.planned(str(path), parse_options({}), numbers(spark, 0, 1).schema, overwrite=False)

    assert len(pickle.dumps(writer)) < 64 << 10


def test_a_write_id_makes_a_replay_harmless(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for _ in range(2):
        save(numbers(spark, 0, 3), path, hoodie__pyhudi__write__id="batch-7")

    assert len(list((path / ".hoodie" / "timeline").glob("*.commit"))) == 1


def test_a_table_can_be_read_and_written_back(spark: SparkSession, tmp_path: Path) -> None:
    """The meta columns that a read brings along are not taken for data."""
    path = tmp_path / "t"
    save(numbers(spark, 0, 5), path)

    save(spark.read.format("pyhudi").load(str(path)).withColumn("n", sf.lit(7)), path)

    assert rows_of(path, "id", "n") == [(n, 7) for n in range(5)]


@pytest.mark.oldest
def test_a_collated_key_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    schema = T.StructType([T.StructField("id", T.StringType("UNICODE_CI"))])

    error = raised(spark.createDataFrame([("a",)], schema), tmp_path / "t")

    assert type(error) is UnsupportedTypeError
    assert "column id" in str(error)


def test_a_table_may_generate_its_keys(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(0, 10, numPartitions=3).write.format("pyhudi").options(operation="insert").mode("append").save(path)
    spark.range(10, 12, numPartitions=1).write.format("pyhudi").mode("append").save(path)
    table = HudiTable(spark, path)

    assert table.delete(table.to_df().where("id in (3, 10)")).deletes == 2
    read = spark.read.format("pyhudi").load(path)
    assert sorted(row.id for row in read.collect()) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 11]
    assert read.select("_hoodie_record_key").distinct().count() == 10


def test_partitions_may_be_made_of_times(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.sql("select id, timestamp_seconds(id * 86400) at from range(60)")
    options = {
        "recordkey": "id",
        "partitionby": "at",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
        "hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyy-MM",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    rows.write.format("pyhudi").options(**options).mode("append").save(path)
    assert HudiTable(spark, path).upsert(rows.where("id < 5")).updates == 5

    read = spark.read.format("pyhudi").load(path)
    assert read.where("at >= timestamp'1970-01-31 00:00:00Z'").count() == 30
    assert sorted(row[0] for row in read.select("_hoodie_partition_path").distinct().collect()) == [
        "1970-01",
        "1970-02",
        "1970-03",
    ]
