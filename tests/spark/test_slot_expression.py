"""The slot that Spark computes is the one that Python computes, value by value."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import from_spark
from pyhudi.connector.placement.key_text import KeyText
from pyhudi.connector.placement.slot_expression import slot_expression
from pyhudi.connector.placement.slots import Placement
from pyhudi.errors import ColumnValueError
from pyhudi.table.buckets.numbers import BucketNumbers, BucketRule
from pyhudi.table.config import TableConfig
from pyhudi.table.config.key_types import KeyGeneratorType, PartitionType
from pyhudi.table.config.table_settings import TableSettings
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.oldest

LONG_AND_TEXT = pa.schema([("long", pa.int64()), ("d", pa.string())])
EDGES = [
    *(sign * (10**power - less) for power in range(19) for less in (0, 1) for sign in (1, -1)),
    *(sign * 2**power - less for power in (7, 15, 31, 32, 63) for less in (0, 1) for sign in (1, -1)),
]
PLAIN = pa.schema([("long", pa.int64()), ("n", pa.int32()), ("q", pa.int32())])
PARTITIONS = ["a", "", "日本", None, "__HIVE_DEFAULT_PARTITION__", "x=y", "2024"]


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    """Whole numbers of every width and length, with some nulls."""
    draw = random.Random(7)
    longs = [one for one in EDGES if -(2**63) <= one < 2**63]
    longs += [draw.randrange(-(2**63), 2**63) >> draw.randrange(63) for _ in range(2_000)]
    rows = [
        (one, *(_cut(one, bits) if draw.random() < 0.9 else None for bits in (32, 16, 8)), draw.choice(PARTITIONS))
        for one in longs
    ]
    schema = "long long, `an int` int, short short, byte byte, p string"
    made = ["*", "short q", "date_add(date'1970-01-01', short) d", "long > 0 yes"]
    return spark.createDataFrame(rows, schema).selectExpr(*made).cache()


def _cut(number: int, bits: int) -> int:
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


# Expressions are found as Java finds them, which is what Spark's SQL does.
RULES = (
    (("^a$", 3),),
    (("^x=y$", 5), ("=", 2), ("(?i)^[A-C]", 4), (r"^日\w*本$", 6), ("^20", 9), ("^.", 8)),
    (("^__HIVE", 11), ("^$", 12)),
)


def placement(schema: pa.Schema | None = None, **table: Any) -> Placement:
    return Placement(TableConfig.new(TableSettings(name="t", bucket_count=7, **table)), schema, 13)


def check(numbers: DataFrame, where: Placement) -> None:
    """Assert that Spark computes the slots, and that they are Python's."""
    expression = slot_expression(where, numbers.schema)
    assert expression is not None
    found = [row[0] for row in numbers.select(expression).collect()]
    [batch] = numbers.select(*(f"`{name}`" for name in where.columns)).toArrow().combine_chunks().to_batches()
    assert found == where.slots(batch).tolist()


@pytest.mark.parametrize("rules", RULES)
def test_spark_takes_the_number_of_buckets_of_the_rows_partition(
    numbers: DataFrame, rules: tuple[tuple[str, int], ...]
) -> None:
    where = placement(record_key_fields=["long"], partition_fields=["p"])

    check(numbers, replace(where, numbers=BucketNumbers(BucketRule("20260101000000000", 7, rules))))


def test_so_many_expressions_are_left_to_python(numbers: DataFrame) -> None:
    rules = tuple((f"^p{number}$", 3) for number in range(99))
    where = placement(record_key_fields=["long"], partition_fields=["p"])

    assert slot_expression(replace(where, numbers=BucketNumbers(BucketRule("", 7, rules))), numbers.schema) is None


@pytest.mark.parametrize(
    "table",
    [
        {"record_key_fields": ["long"]},
        {"record_key_fields": ["long"], "partition_fields": ["p"]},
        {"record_key_fields": ["long"], "partition_fields": ["p", "q"], "version": 8},
        {"record_key_fields": ["long"], "partition_fields": ["d"], "hive_style": True},
        {"record_key_fields": ["long", "an int", "short", "byte"], "partition_fields": ["p", "q"]},
        {"record_key_fields": ["byte", "long"], "partition_fields": ["p", "d"], "hive_style": True},
        {"record_key_fields": ["long", "short"], "hash_fields": ["short"]},
        {"record_key_fields": ["long", "short", "long"]},
        {
            "record_key_fields": ["long"],
            "partition_fields": ["p"],
            "key_generator": KeyGeneratorType.NON_PARTITION,
        },
    ],
    ids=lambda table: "-".join(map(str, table.values())),
)
def test_spark_finds_the_slot_that_python_finds(numbers: DataFrame, table: dict[str, Any]) -> None:
    check(numbers, placement(**table))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_tables_types_may_be_wider(spark: SparkSession, numbers: DataFrame, ansi: str) -> None:
    wide = pa.schema([("long", pa.int64()), ("an int", pa.int64()), ("q", pa.int32()), ("p", pa.string())])
    where = placement(wide, record_key_fields=["long", "an int"], partition_fields=["q", "p"])
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        check(numbers, where)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_text_of_numbers_and_wider_numbers_find_the_slot_of_the_tables_numbers(
    spark: SparkSession, numbers: DataFrame, ansi: str
) -> None:
    """So do the keys and paths by which rows are looked up."""
    kept = pa.schema([("long", pa.int64()), ("an int", pa.int32()), ("q", pa.int32())])
    where = placement(kept, record_key_fields=["long", "an int"], partition_fields=["q"])
    text = numbers.selectExpr("string(long) long", "bigint(`an int`) `an int`", "string(q) q")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        check(text, where)
        named, plain = text.withColumnRenamed("an int", "n"), {"record_key_fields": ["long", "n"]}
        where = placement(PLAIN, **plain, partition_fields=["q"])
        spelt = KeyText.of(where, named.schema)
        assert spelt is not None
        table = named.selectExpr("long", "n", "q", spelt.key, spelt.path).toArrow()
        [batch] = table.combine_chunks().to_batches()
        keys, paths = where.spelled(batch.select(where.columns))
        assert (batch.column(3).to_pylist(), batch.column(4).to_pylist()) == (keys.to_pylist(), paths.to_pylist())
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id string", ["07", " 7", "7 ", "+7", "-0", "7.0", "", "x", "7\n", "2147483648", "it's \\"]),
        ("id bigint", [1 << 31, -(1 << 31) - 1]),
    ],
    ids=["text", "wider"],
)
def test_a_key_that_is_no_number_of_the_table_fails_the_query(
    spark: SparkSession, ansi: str, column: str, values: list[Any]
) -> None:
    """Else a row that is looked up might never reach the task that refuses it. Null is the key's own affair."""
    where = placement(pa.schema([("id", pa.int32())]), record_key_fields=["id"])
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for value in values:
            rows = spark.createDataFrame([(value,)], column)
            spelt = KeyText.of(where, rows.schema)
            assert spelt is not None
            with pytest.raises(PySparkException) as failed:
                rows.selectExpr(spelt.key).collect()
            error = from_spark(failed.value)
            assert isinstance(error, ColumnValueError)
            assert "Column 'id' is" in str(error)
            assert " ".join(str(value).split()) in str(error)
            assert str(error).count("hoodie.pyhudi.schema.number.to.text=true") == 1
        [[none]] = spark.createDataFrame([(None,)], column).selectExpr(spelt.key).collect()
        assert none is None
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize(
    "table",
    [
        {"record_key_fields": ["p"]},
        {"record_key_fields": ["long", "p"]},
        {"record_key_fields": ["long"], "partition_fields": ["p", "q"]},  # the key is then spelt with its name
        {"record_key_fields": ["long"], "partition_fields": ["p"], "url_encode": True},
        {"record_key_fields": ["long"], "partition_fields": ["yes"]},
        {"record_key_fields": ["long"], "partition_fields": ["d"], "partition_types": [PartitionType.TIMESTAMP]},
        {"record_key_fields": ["long"], "schema": pa.schema([("long", pa.string())])},
        {"record_key_fields": ["long"], "partition_fields": ["d"], "schema": LONG_AND_TEXT},
    ],
    ids=lambda table: "-".join(map(str, table.values())),
)
def test_python_is_asked_where_texts_could_differ(numbers: DataFrame, table: dict[str, Any]) -> None:
    assert slot_expression(placement(**table), numbers.schema) is None
