from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as spark_datasource
from pyspark.sql import functions as sf
from support.drive import write
from support.recorded.fixture_tables import unpack
from support.sessions import PUSHDOWN

pytestmark = pytest.mark.oldest

OPTION = "hoodie.pyhudi.read.filter.pushdown"


@pytest.fixture(params=[False, True], ids=["pushdown off", "pushdown on"])
def pushdown(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[bool]:
    if request.param and not hasattr(spark_datasource, "EqualTo"):
        pytest.skip("filters are pushed since Spark 4.1")
    spark.conf.set(PUSHDOWN, str(request.param).lower())
    yield request.param
    spark.conf.unset(PUSHDOWN)


def tasks(df: DataFrame) -> int:
    return df.rdd.getNumPartitions()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 rows in 3 partitions of 4 buckets."""
    path = str(tmp_path_factory.mktemp("pushdown") / "t")
    ids = list(range(300))
    rows = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": [f"p{n % 3}" for n in ids],
            "day": pa.array([datetime.date(2024, 1, 1) + datetime.timedelta(n % 30) for n in ids]),
            "at": pa.array([datetime.datetime(2024, 1, 1, n % 24) for n in ids], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(n) / 4 for n in ids], pa.decimal128(10, 2)),
            "maybe": pa.array([None if n % 2 else n for n in ids], pa.int32()),
        }
    )
    asked = TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=4)
    write(path, rows, table=asked)
    return path


CONDITIONS: list[tuple[str, Callable[[int], bool]]] = [
    ("id = 7", lambda n: n == 7),
    ("id in (7, 8, 9) and p = 'p1'", lambda n: n == 7),
    ("p = 'p2'", lambda n: n % 3 == 2),
    ("p <> 'p2'", lambda n: n % 3 != 2),
    ("p like 'p%' and id < 3", lambda n: n < 3),
    ("day > date'2024-01-29'", lambda n: n % 30 == 29),
    ("at = timestamp'2024-01-01T05:00:00Z'", lambda n: n % 24 == 5),
    ("price between 1.5 and 2.25", lambda n: 6 <= n <= 9),
    ("maybe is null", lambda n: n % 2 == 1),
    ("maybe is not null and maybe >= 298", lambda n: n == 298),
    ("maybe <=> null and id < 4", lambda n: n in (1, 3)),
    ("not (maybe > 5) and id < 9", lambda n: n in (0, 2, 4)),
    ("id = -1", lambda n: False),
]


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_a_filter_that_is_pushed_keeps_the_same_rows(
    spark: SparkSession, table: str, pushing: None, condition: str, expected: Callable[[int], bool]
) -> None:
    df = spark.read.format("pyhudi").option(OPTION, "true").load(table).where(condition)

    assert sorted(row.id for row in df.collect()) == [n for n in range(300) if expected(n)]


def test_filters_that_are_not_pushed_find_the_same_rows(spark: SparkSession, table: str) -> None:
    """Spark asks them itself of all rows, which it is handed once."""
    held = (sf.expr(condition).alias(str(number)) for number, (condition, _) in enumerate(CONDITIONS))
    rows = spark.read.format("pyhudi").option(OPTION, "true").load(table).select("id", *held).collect()

    for number, (condition, expected) in enumerate(CONDITIONS):
        assert sorted(row.id for row in rows if row[number + 1]) == [n for n in range(300) if expected(n)], condition


def test_partitions_and_buckets_that_cannot_match_get_no_task(spark: SparkSession, table: str, pushdown: bool) -> None:
    df = spark.read.format("pyhudi").option(OPTION, "true").load(table)

    assert tasks(df) == 12
    assert tasks(df.where("p = 'p1'")) == (4 if pushdown else 12)
    assert tasks(df.where("p = 'p1' and id = 7")) == (1 if pushdown else 12)
    # One of the three buckets begins with a greater key.
    assert tasks(df.where("id = 7")) == (2 if pushdown else 12)


def test_tables_of_apache_hudi_are_filtered_too(spark: SparkSession, tmp_path: Path, pushdown: bool) -> None:
    df = spark.read.format("pyhudi").option(OPTION, "true").load(unpack("v9_cow_hive_urlencoded", tmp_path))

    assert [row.id for row in df.where("s = 'x/y'").collect()] == [1]
    assert [row.id for row in df.where("s is null").collect()] == [2]
    assert tasks(df.where("s = 'x/y'")) == (1 if pushdown else 4)


def test_one_load_serves_many_queries_unless_it_is_asked_to_take_filters(
    spark: SparkSession, table: str, pushdown: bool
) -> None:
    """Spark plans all uses of a source that takes filters by those that it pushed last."""
    df = spark.read.format("pyhudi").load(table)

    assert df.where("p = 'p1' and id = 7").count() == 1
    assert df.count() == 300
    assert df.where("p = 'p1'").union(df.where("p = 'p2'")).count() == 200
