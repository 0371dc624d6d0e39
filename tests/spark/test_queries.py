"""Time travel, changes and SQL through Spark; what each query shows is tested in `tests/unit/reader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyhudi.errors import (
    MissingOptionError,
    OptionConflictError,
    PyHudiError,
    UnreadableTimeError,
    UnsupportedOptionError,
    from_spark,
)
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from support.made.cleaning import archive, clean
from support.models.past import Past

AS_OF = "as.of.instant"
TYPE = "hoodie.datasource.query.type"
BEGIN, END = (f"hoodie.datasource.read.{word}.instanttime" for word in ("begin", "end"))
SHOWN = ["p", "id", "value", "_hoodie_commit_time"]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Four commits: two to partition a, one to b, then everything replaced."""
    past = Past(tmp_path_factory.mktemp("queries") / "t")
    past.upsert("a", ["k1", "k2"], 1)
    past.upsert("b", ["k1"], 2)
    past.upsert("a", ["k2", "k3"], 3)
    past.overwrite("c", ["k9"], 4)
    return past


@pytest.fixture
def copy(tmp_path: Path) -> Past:
    """Two commits to a table that a test may change."""
    past = Past(tmp_path / "t")
    past.upsert("a", ["k1", "k2"], 1)
    past.upsert("a", ["k2"], 2)
    return past


def load(spark: SparkSession, past: Past, **options: str) -> DataFrame:
    return spark.read.format("pyhudi").options(**options).load(str(past.path))


def rows(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, df.select(*SHOWN).collect()))


def raised(act: Callable[[], object]) -> PyHudiError:
    with pytest.raises(Exception, match="PyHudiError") as caught:
        act()
    error = from_spark(caught.value)
    assert error is not None
    return error


def test_time_travel_reaches_spark_by_both_ways(spark: SparkSession, past: Past) -> None:
    third = past.commits[2].instant
    table = HudiTable(spark, str(past.path))

    assert rows(load(spark, past, **{AS_OF: third})) == past.as_of(third)
    assert rows(table.to_df(as_of=third)) == past.as_of(third)
    assert rows(load(spark, past, **{TYPE: "read_optimized"})) == past.as_of("3")


@pytest.mark.parametrize("merge_on_read", [False, True])
def test_archived_times_reach_spark_by_both_ways(spark: SparkSession, tmp_path: Path, merge_on_read: bool) -> None:
    past = Past(tmp_path / "t", merge_on_read=merge_on_read)
    for value in range(1, 5):
        past.upsert("a", ["k1", f"k{value}"], value)
    table = HudiTable(spark, str(past.path))
    archive(past.path, 3)

    for one in past.commits[:3]:
        assert rows(load(spark, past, **{AS_OF: one.instant})) == past.as_of(one.instant)
        assert rows(table.to_df(as_of=one.instant)) == past.as_of(one.instant)
    values = table.sql("SELECT value FROM {table} ORDER BY value", as_of=past.commits[1].instant).collect()
    assert [row.value for row in values] == sorted(row[2] for row in past.as_of(past.commits[1].instant))


def test_changes_reach_spark_by_both_ways_with_and_without_their_commit_time(spark: SparkSession, past: Past) -> None:
    first, _, third, _ = past.commits
    table = HudiTable(spark, str(past.path))
    given = {TYPE: "incremental", BEGIN: first.completed, END: third.completed}
    expected = past.changes(first.completed, third.completed)

    assert rows(load(spark, past, **given)) == expected
    assert rows(table.to_df(since=first.completed, until=third.completed)) == expected
    assert sorted(table.to_df(["id", "value"], since=first.completed, until=third.completed).collect()) == sorted(
        (key, value) for _, key, value, _ in expected
    )
    assert rows(table.to_df(since="earliest")) == past.as_of("3")
    assert table.to_df(since=past.commits[-1].completed).collect() == []


def test_a_commit_that_was_overtaken_shows_by_sparks_own_reader_too(spark: SparkSession, copy: Past) -> None:
    overtaking = copy.upsert("b", ["k1"], 3)
    copy.exchange(copy.commits[1], overtaking)
    begin = overtaking.completed

    assert rows(HudiTable(spark, str(copy.path)).to_df(since=begin)) == copy.changes(begin, None)
    assert rows(load(spark, copy, **{TYPE: "incremental", BEGIN: begin})) == copy.changes(begin, None)


def test_columns_schemas_and_counts_work_with_every_query(spark: SparkSession, past: Past) -> None:
    third = past.commits[2]
    begin = past.commits[0].completed
    for given, expected in (
        ({AS_OF: third.instant}, past.as_of(third.instant)),
        ({TYPE: "incremental", BEGIN: begin, END: third.completed}, past.changes(begin, third.completed)),
    ):
        pairs = sorted((key, value) for _, key, value, _ in expected)
        reader = spark.read.format("pyhudi").options(**given)
        assert sorted(map(tuple, load(spark, past, columns="id,value", **given).collect())) == pairs
        assert sorted(row.id for row in reader.schema("id string").load(str(past.path)).collect()) == [
            key for key, _ in pairs
        ]
        assert load(spark, past, **given).count() == len(pairs)


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.oldest
@pytest.mark.usefixtures("pushdown")
def test_filters_are_pushed_into_the_past(spark: SparkSession, past: Past) -> None:
    third = past.commits[2]
    for given in (
        {AS_OF: third.instant},
        {TYPE: "incremental", BEGIN: past.commits[0].completed, END: third.completed},
    ):
        asked = {**given, "hoodie.pyhudi.read.filter.pushdown": "true"}
        df = load(spark, past, **asked).where("p = 'b' and value > 0")
        assert [row[:3] for row in rows(df)] == [("b", "k1", 2)]


def test_a_query_of_the_past_is_pinned_when_it_is_made(spark: SparkSession, copy: Past) -> None:
    made = [
        (load(spark, copy, **given), rows(load(spark, copy, **given)))
        for given in ({TYPE: "incremental", BEGIN: "earliest"}, {AS_OF: "2999-01-01"})
    ]
    copy.upsert("b", ["k7"], 3)

    for df, before in made:
        assert rows(df) == before


def test_what_is_not_kept_is_refused_by_name(spark: SparkSession, copy: Past) -> None:
    copy.upsert("a", ["k1"], 3)
    clean(copy.path, retain=1)
    table = HudiTable(spark, str(copy.path))
    first, newest = copy.commits[0], copy.commits[-1]

    for act in (
        lambda: load(spark, copy, **{AS_OF: "2020-01-01"}),
        lambda: load(spark, copy, **{AS_OF: first.instant}).collect(),
        lambda: load(spark, copy, **{TYPE: "incremental", BEGIN: "000", END: first.completed}).collect(),
    ):
        assert type(raised(act)) is UnreadableTimeError
    with pytest.raises(UnreadableTimeError, match=newest.instant):
        table.to_df(as_of=first.instant)
    with pytest.raises(UnreadableTimeError, match=newest.completed):
        table.to_df(since="earliest", until=first.completed)
    with pytest.raises(OptionConflictError, match=AS_OF):
        table.to_df(as_of=first.instant, since="earliest")
    with pytest.raises(OptionConflictError, match=END):
        table.to_df(until=first.completed)


@pytest.mark.oldest
def test_a_temporary_view_is_read_and_written(spark: SparkSession, copy: Past) -> None:
    options = f"path '{copy.path}', columns 'id,p,value'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW now USING pyhudi OPTIONS ({options})")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW whole USING pyhudi OPTIONS (path '{copy.path}')")
    past = f"`{AS_OF}` '{copy.commits[0].instant}'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW past USING pyhudi OPTIONS ({options}, {past})")
    table, whole = HudiTable(spark, str(copy.path)), spark.table("whole")

    assert sorted(map(tuple, spark.sql("SELECT id, value FROM past").collect())) == [("k1", 1), ("k2", 1)]
    spark.sql("INSERT INTO now SELECT 'k2', 'a', value + 10 FROM past WHERE id = 'k2'")
    into_whole = "INSERT INTO whole ({}) VALUES ({})"
    if spark.version.startswith("4.0"):
        with pytest.raises(AnalysisException, match="Cannot find data for the output column `_hoodie_commit_time`"):
            spark.sql(into_whole.format("id, p, value", "'k3', 'b', 7"))
        spark.sql(into_whole.format(", ".join(whole.columns), f"{', '.join(['null'] * 5)}, 'k3', 'b', 7"))
    else:
        spark.sql(into_whole.format("id, p, value", "'k3', 'b', 7"))
    assert sorted(map(tuple, table.to_df(["p", "id", "value"]).collect())) == [
        ("a", "k1", 1),
        ("a", "k2", 11),
        ("b", "k3", 7),
    ]
    assert spark.table("now").count() == 2
    assert type(raised(lambda: spark.sql("INSERT INTO past VALUES ('k1', 'a', 0)"))) is OptionConflictError
    spark.sql("INSERT OVERWRITE now VALUES ('k8', 'c', 8)")
    assert [tuple(row) for row in table.to_df(["p", "id", "value"]).collect()] == [("c", "k8", 8)]


@pytest.mark.oldest
def test_tables_of_sparks_catalog_are_refused(spark: SparkSession, copy: Past) -> None:
    """Spark keeps their options and path to itself, and nothing may be guessed."""
    path, frame = str(copy.path), load(spark, copy, columns="id,p,value")
    spark.sql(f"CREATE TABLE silent (id string, p string, value long) USING pyhudi OPTIONS (path '{path}')")

    for statement in (
        f"CREATE TABLE refused USING pyhudi LOCATION '{path}'",
        f"CREATE TABLE refused USING pyhudi OPTIONS (path '{path}')",
    ):
        error = raised(lambda statement=statement: spark.sql(statement))
        assert type(error) is UnsupportedOptionError
        assert "CREATE TEMPORARY VIEW" in str(error)
    for act in (
        lambda: spark.table("silent").collect(),
        lambda: spark.sql("INSERT INTO silent VALUES ('k9', 'a', 9)"),
        lambda: spark.sql(f"CREATE TABLE refused USING pyhudi LOCATION '{path}' AS SELECT 'k9' id, 'a' p, 9 value"),
        lambda: frame.write.format("pyhudi").mode("append").saveAsTable("refused"),
        lambda: frame.writeTo("refused").using("pyhudi").create(),
        lambda: spark.read.format("pyhudi").option(AS_OF, "2026-01-01").table("silent").collect(),
    ):
        error = raised(act)
        assert type(error) is MissingOptionError
        assert "catalog" in str(error)
    assert type(raised(lambda: spark.read.format("pyhudi").load([path, path]))) is UnsupportedOptionError
    assert [row.tableName for row in spark.sql("SHOW TABLES").collect() if not row.isTemporary] == ["silent"]
    spark.sql("DROP TABLE silent")
    assert copy.shown() == copy.as_of("3")
