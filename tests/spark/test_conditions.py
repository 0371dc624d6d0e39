"""Conditions of `HudiTable.to_df`: the rows are those of a filter, and files that cannot hold any are left out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable
from pyhudi.connector.conditions.condition import parse_condition
from pyhudi.connector.source.carried_options import parse_predicates, spell_predicates
from pyhudi.connector.source.parquet_scan import IGNORED, read_list
from pyhudi.errors import InvalidOptionError
from pyhudi.reader.skipping.predicates import Compare, OneOf, OnExpression
from pyhudi.reader.snapshot import open_snapshot
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drawn.conditions import DAYS, check_random_conditions, kept_here, make_table
from support.seams import patch_seam

pytestmark = pytest.mark.oldest

READ_ANYWHERE = [
    *("n < id", "id <= n", "price = price", "price > n", "price <> 1.5", "price < 'NaN'", "NOT price > 1", "m = 1.5"),
    *("m * 2 > price", "id + n = 3", "n - id < -100", "-n = -5", "id / 2 = 19.5", "n <=> NULL", "n <=> id", "NOT flag"),
    *("flag", "flag OR n = 1", "NOT (flag AND n = 1)", "n IN (1, NULL)", "n NOT IN (1, 2)", "n NOT IN (1, NULL)"),
    *(
        "Name LIKE '%b%'",
        "Name LIKE 'a_'",
        "Name NOT LIKE 'a%'",
        "name = 'NULL'",
        r"Name = 'é\\n'",
        r"p = 'O\'Neil (x'",
    ),
    *("p || Name = 'aab'", 'p = "B b"', "day > DATE '2024-01-03'", "day BETWEEN '2024-01-02' AND '2024-01-04'"),
    *("local < TIMESTAMP_NTZ '2024-03-10 10:20:00'", "local > day", "price >= 1e0 AND price < 1e11", "Name = ''"),
    *("id = 38L", "price = 3D", "m = 12.30BD", "n == 2", "NOT n = 2 OR n IS NULL", "NOT NOT n = 2", "Name < p"),
]
BY_DAY: dict[str, Any] = {"partition_fields": ("day",), "bucket_count": None, "index_type": "SIMPLE"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of three partitions with four buckets each."""
    path = tmp_path_factory.mktemp("conditions") / "t"
    make_table(path)
    return str(path)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def test_no_file_is_left_out_that_has_rows(spark: SparkSession, made: str) -> None:
    check_random_conditions(spark, made, examples=1)


def test_a_text_means_without_spark_what_it_means_in_spark(spark: SparkSession, made: str) -> None:
    """NaN, nulls, escapes, and values of two columns included."""
    snapshot = open_snapshot(made)
    frame = HudiTable(spark, made).to_df()

    rows = frame.select("id", *(sf.expr(text).alias(f"c{at}") for at, text in enumerate(READ_ANYWHERE))).collect()

    for at, text in enumerate(READ_ANYWHERE):
        assert kept_here(text, snapshot) == sorted(row["id"] for row in rows if row[at + 1]), text


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, BY_DAY], ids=["buckets", "days"])
def test_of_many_conditions_none_leaves_out_too_much(
    spark: SparkSession, tmp_path: Path, shape: dict[str, Any]
) -> None:
    make_table(tmp_path / "t", **shape)
    check_random_conditions(spark, str(tmp_path / "t"), examples=3)


def col(name: str) -> Column:
    return sf.col(name)


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("p = 'a'", 4),
        ("P = 'a' AND length(Name) > 1", 4),
        ("p LIKE 'O%'", 4),
        ("p IN ('a', 'B b')", 8),
        ("p = 'a' OR p = 'O\\'Neil (x'", 8),
        ("NOT (p = 'a' OR p = 'B b')", 4),
        ("p IS NULL", 0),
        ("id = 7", 1),
        ("id = 7 AND upper(Name) = 'A AND (B'", 1),
        ("p = 'a' and case when id = 7 and n = 1 then true else false end /* odd */", 4),
        ("id IN (7, 45)", 4),
        ("id IN (7L, 45L)", 4),
        ("id = 7 OR id = 45 AND n IS NULL", 3),
        ("id BETWEEN 10 AND 20 AND p = 'a'", 4),
        ("id < 40", 4),
        ("id < 10.0BD + 1", 12),
        ("price > 1e9D", 12),
        ("m > 99", 0),
        ("day >= '2025-01-01'", 0),
        ("at >= '2024-03-10 01:00:00' AND id < 40", 4),
        ("at >= '2024-03-10 09:00:00' AND id < 40", 0),
        ("at > TIMESTAMP '2025-01-01 00:00:00'", 0),
        ("at < '9999-12-31 23:59:59' AND p = 'a'", 4),
        ("p = 'a' AND at NOT IN (TIMESTAMP '9999-12-31 23:59:59', TIMESTAMP '2024-01-01 00:00:00')", 4),
        ("Name = 'no one'", 12),
        (lambda: (col("p") == "O'Neil (x") & (sf.upper("Name") == "X, Y"), 4),
        (lambda: (col("p") == "a") & col("Name").contains("AND ("), 4),
        (lambda: col("id").isin(7, 45), 4),
        (lambda: col("p").startswith("a") | (col("p") == "B b"), 8),
        (lambda: ~col("p").isin("a", "B b"), 4),
        (lambda: col("price") > 1e11, 12),
        (lambda: sf.lit("2025-01-01").cast("date") <= col("day"), 12),
        (lambda: col("day") >= sf.lit("2025-01-01"), 0),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_what_is_understood_leaves_out_files(
    spark: SparkSession, made: str, where: str | Callable[[], Column], files: int
) -> None:
    asked = where if isinstance(where, str) else where()
    snapshot = open_snapshot(made)

    found = parse_condition(spark, asked, snapshot)

    assert len(snapshot.slices_of_keys(found.predicates)) == files, found.predicates


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("lower(Name) = 'ab'", [("lower", (), Compare("Name", "=", "ab"))]),
        ("'ab' > upper(Name)", []),
        ("upper(Name) IN ('AB', 'X')", [("upper", (), OneOf("Name", ("AB", "X")))]),
        ("NOT substr(Name, 1, 2) < 'b'", [("substring", ("1", "2"), Compare("Name", ">=", "b"))]),
        ("year(day) = 2024L AND id = 7", [("year", (), Compare("day", "=", 2024))]),
        ("dayofmonth(day) <> 3", [("day", (), Compare("day", "!=", 3))]),
        (
            "year(day) BETWEEN 2020 AND 2021",
            [("year", (), Compare("day", ">=", 2020)), ("year", (), Compare("day", "<=", 2021))],
        ),
        ("from_unixtime(id) = '1970-01-01 00:00:07'", None),
        (lambda: sf.date_add("day", 1) == sf.lit(DAYS[0]), [("date_add", ("1",), Compare("day", "=", DAYS[0]))]),
        (lambda: sf.trim("Name") == "ab", [("trim", (), Compare("Name", "=", "ab"))]),
        ("date_format(day, 'yyyy-MM') = '2024-01'", [("date_format", ("yyyy-MM",), Compare("day", "=", "2024-01"))]),
        ("lower(p || Name) = 'ab'", []),
        ("regexp_replace(Name, 'a', 'b') = 'ab'", []),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_functions_of_a_column_are_understood_for_indexes_of_them(
    spark: SparkSession, made: str, where: str | Callable[[], Column], said: list[Any] | None
) -> None:
    """Other sources leave no file out by them, and they travel to the data source."""
    snapshot = open_snapshot(made)
    format_of_seconds = ("from_unixtime", ("yyyy-MM-dd HH:mm:ss",), Compare("id", "=", "1970-01-01 00:00:07"))

    predicates = parse_condition(spark, where if isinstance(where, str) else where(), snapshot).predicates

    on_expressions = [one for one in predicates if isinstance(one, OnExpression)]
    assert [(one.function, one.arguments, one.predicate) for one in on_expressions] == (
        [format_of_seconds] if said is None else said
    )
    assert len(snapshot.slices_of_keys(on_expressions)) == len(snapshot.slices())
    assert parse_predicates(spell_predicates(predicates), snapshot.schema) == predicates


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_rows_are_those_of_a_filter(
    spark: SparkSession, tmp_path: Path, table_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_table(tmp_path / "t", table_type=table_type)
    table = HudiTable(spark, tmp_path / "t")
    changed = table.to_df(meta=False).where("id % 3 = 0").withColumn("n", sf.lit(100)).withColumn("Name", sf.lit("new"))
    table.upsert(changed)
    first, second = (row.completed for row in table.history().orderBy("instant").collect())
    where = "p = 'a' AND Name = 'new' AND id < 30"

    with caplog.at_level(logging.INFO, logger="pyhudi"):
        filtered = table.to_df(["n"], where=where)

    assert filtered.columns == ["n"]
    assert [row.n for row in filtered.collect()] == [100] * 10
    assert "leave out 8 of 12 file slices" in caplog.text
    assert ids(table.to_df(["id"], where=where, as_of=first)) == []
    assert ids(table.to_df(where=sf.col("n") < 2, as_of=first)) == ids(table.to_df(as_of=first).where("n < 2"))
    assert ids(table.to_df(where="n = 100 AND p = 'B b'", since=first)) == list(range(42, 80, 3))
    assert ids(table.to_df(where="n <=> 100", until=second, since="earliest")) == list(range(0, 120, 3))
    assert ids(table.to_df(where={"n": [100, None], "p": "a"})) == ids(
        table.to_df().where("(n = 100 or n is null) and p = 'a'")
    )
    assert not any(name.startswith("_hoodie") for name in table.to_df(meta=False, where=where).columns)
    assert table.to_df(["_hoodie_record_key"], meta=False).columns == ["_hoodie_record_key"]


@pytest.mark.parametrize(
    "where", ["other = 1", "id +", "n", "", sf.expr], ids=["other", "cut off", "n", "none", "expr"]
)
def test_a_condition_that_spark_refuses_is_named(spark: SparkSession, made: str, where: Any) -> None:
    asked = where if isinstance(where, str) else sf.col("nobody") == 7
    with pytest.raises(InvalidOptionError, match="does not fit the table") as raised:
        HudiTable(spark, made).to_df(where=asked)
    assert made in str(raised.value)
    assert (asked if isinstance(asked, str) else "nobody") in str(raised.value)


def test_a_column_of_another_frame_is_told_to_be_one(spark: SparkSession, made: str) -> None:
    table = HudiTable(spark, made)
    with pytest.raises(InvalidOptionError, match=r"Name columns as functions\.col does"):
        table.to_df(where=table.to_df().id == 7)


def test_many_files_are_handed_over_in_a_list(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which Spark looks none up; where it takes no list, the data source reads them, as of the same moment."""
    make_table(tmp_path / "t")
    table = HudiTable(spark, tmp_path / "t")
    alone = table.to_df()
    patch_seam(monkeypatch, "files that are not handed over in a list", 3)
    patch_seam(monkeypatch, "most files that Spark looks up", 3)
    listed = table.to_df()
    spark.conf.set(IGNORED, "true")
    try:
        by_source = table.to_df()
        with pytest.raises(Exception, match="passed-over"):
            read_list(spark, [], alone.schema, {"recursiveFileLookup": "true"}).collect()
    finally:
        spark.conf.unset(IGNORED)
    table.delete("p = 'a'")

    assert sorted(listed.inputFiles()) == sorted(alone.inputFiles())
    assert not by_source.inputFiles()
    for frame in (listed, by_source):
        assert frame.schema == alone.schema
        assert sorted(map(str, frame.collect())) == sorted(map(str, alone.collect()))
    assert ids(table.to_df(where="id % 3 = 0 AND p = 'B b'")) == list(range(42, 80, 3))
    assert table.to_df().count() == 80
