"""Point lookups by Spark: files that certainly hold none of the keys are not read, and the rows are the same."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyhudi import HudiTable
from pyhudi.errors import InvalidOptionError, MissingColumnError
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import DataFrame, Row, SparkSession
from support.drive import write
from support.recorded.fixture_tables import unpack

OPTION = "hoodie.pyhudi.read.filter.pushdown"


@pytest.fixture(scope="module")
def blooms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Apache Hudi's tables with ranges and filters, by their type."""
    folder = tmp_path_factory.mktemp("lookups")
    return {short: unpack(f"v9_lookup_bloom_{short}", folder) for short in ("cow", "mor")}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("p", "id", "name").collect())


@pytest.fixture(scope="module")
def shown(spark: SparkSession, blooms: dict[str, str]) -> dict[str, tuple[list[Row], set[Any]]]:
    """All rows of each table, and the partitions and keys of those that its base files show."""
    tables = {short: HudiTable(spark, path) for short, path in blooms.items()}
    return {
        short: (table.to_df().collect(), {row[:2] for row in rows(table.to_df(read_optimized=True))})
        for short, table in tables.items()
    }


@pytest.mark.parametrize("short", ["cow", "mor"])
@pytest.mark.parametrize(
    "where",
    [
        {"id": "k003"},
        {"id": ["k003", "k046", "nowhere"], "p": "a"},
        {"id": "\U000100001"},
        {"_hoodie_record_key": ("k045", "k011")},
        {"p": {"c"}},
        {"name": [None, "later"], "p": ["a", "b"]},
        {"id": []},
    ],
    ids=str,
)
def test_the_rows_with_some_values_are_those_of_a_filter(spark: SparkSession, blooms, shown, short: str, where) -> None:
    table, (every, of_bases) = HudiTable(spark, blooms[short]), shown[short]
    wanted = {name: {given} if isinstance(given, str) else set(given) for name, given in where.items()}
    expected = [row for row in every if all(row[name] in values for name, values in wanted.items())]

    filtered = table.to_df(where=where)

    assert filtered.columns == table.to_df().columns
    assert rows(filtered) == sorted((row["p"], row["id"], row["name"]) for row in expected)
    assert {row[:2] for row in rows(table.to_df(where=where, read_optimized=True))} <= of_bases
    names = table.to_df(["name"], where=where)
    assert names.columns == ["name"]
    assert Counter(row["name"] for row in names.collect()) == Counter(row["name"] for row in expected)


def test_spark_is_handed_the_files_alone_that_may_hold_a_key(spark: SparkSession, blooms) -> None:
    table = HudiTable(spark, blooms["cow"])
    whole = len(table.to_df().inputFiles())

    assert len(table.to_df(where={"id": "k003"}).inputFiles()) < whole / 2
    assert len(table.to_df(where={"id": "k003x"}).inputFiles()) < whole / 2
    assert len(table.to_df(where={"p": "c"}).inputFiles()) == 1
    first = table.history().orderBy("instant").first()["instant"]
    assert len(table.to_df(where={"id": "k043"}, as_of=first).inputFiles()) == 0, "it came with the second write"


def test_a_pushed_filter_leaves_out_files_by_the_key(spark: SparkSession, blooms, pushing) -> None:
    """Each query by a load() of its own: those of one share what Spark planned last."""

    def read(condition: str = "true") -> DataFrame:
        return spark.read.format("pyhudi").option(OPTION, "true").load(blooms["cow"]).where(condition)

    assert [row.name for row in read("id = 'k003'").collect()] == ["last"]
    assert read("id = 'nowhere'").rdd.getNumPartitions() == 1
    assert read("id = 'k003'").rdd.getNumPartitions() < read().rdd.getNumPartitions()


def test_spark_still_plans_all_uses_of_one_load_by_its_last_filter(spark: SparkSession, blooms, pushing) -> None:
    """Of which the documentation warns; once Spark does otherwise, it need not."""
    df = spark.read.format("pyhudi").option(OPTION, "true").load(blooms["cow"])
    apart = [spark.read.format("pyhudi").load(blooms["cow"]).where(f"p = '{one}'").count() for one in "cb"]

    assert df.where("p = 'c'").union(df.where("p = 'b'")).count() == apart[1] < sum(apart)


def test_values_of_every_type_that_keys_have_are_found(spark: SparkSession, tmp_path: Path) -> None:
    ids = range(40)
    data = pa.table(
        {
            "n": pa.array(ids, pa.int32()),
            "d": pa.array([datetime.date(2024, 1, 1) + datetime.timedelta(one) for one in ids]),
            "m": pa.array([Decimal(one * 10) for one in ids], pa.decimal128(10, 0)),
            "b": pa.array([one % 2 == 0 for one in ids]),
        }
    )
    asked = TableSettings(record_key_fields=("n", "d", "m", "b"), bucket_count=8, table_type="MERGE_ON_READ")
    write(tmp_path / "t", data, table=asked)
    write(tmp_path / "t", data.slice(0, 20))
    table = HudiTable(spark, tmp_path / "t")
    key = {"n": np.int64(7), "d": datetime.date(2024, 1, 8), "m": [Decimal("70.0"), Decimal("70.5")], "b": False}

    assert [row.n for row in table.to_df(where=key).collect()] == [7]
    assert table.to_df(where={**key, "n": [8, 2**40]}).collect() == []
    assert len(table.to_df(where=key, read_optimized=True).inputFiles()) == 1


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ({"other": 1}, MissingColumnError),
        ({"id": 7}, InvalidOptionError),
        ({"ts": "7"}, InvalidOptionError),
        ({"ts": True}, InvalidOptionError),
        ({"id": [b"k003"]}, InvalidOptionError),
    ],
)
def test_what_cannot_be_looked_for_is_named(spark: SparkSession, blooms, where, error) -> None:
    name = next(iter(where))

    with pytest.raises(error, match=f"'{name}'") as raised:
        HudiTable(spark, blooms["cow"]).to_df(where=where)
    assert blooms["cow"] in str(raised.value)
