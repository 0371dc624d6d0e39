"""Joins and aggregations by bucket: the rows are those of Spark's own, and Spark moves none of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import HudiTable, TableRows, bucket_agg, bucket_join, from_spark
from pyhudi.connector.joins.bucket_join import JOINS
from pyhudi.errors import (
    ColumnValueError,
    InvalidOptionError,
    OptionConflictError,
    PyHudiError,
    UnsupportedTableError,
)
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drive import write
from support.seams import patch_seam
from support.sessions import said

pytestmark = pytest.mark.oldest

LIMIT = "spark.sql.maxSinglePartitionBytes"
INT = pa.int32()
KEYS: list[int | None] = [None, *range(9)]
MISSING = (None, None, None)


def lines(times: int, kind: pa.DataType = INT, keys: Any = KEYS, start: int = 0) -> pa.Table:
    """Return two rows of each key in as many partitions."""
    pairs = [(key, line) for key in keys for line in range(start, start + 2)]
    line = [one for _, one in pairs]
    return pa.table(
        {
            "k": pa.array([key for key, _ in pairs], kind),
            "line": pa.array(line, pa.int64()),
            "p": [f"p{one % 2}" for one in line],
            "n": pa.array([times * (one + 1) for one in line], pa.int64()),
        }
    )


def settings(buckets: int, table_type: str = "COPY_ON_WRITE", **more: Any) -> TableSettings:
    of_lines = {"record_key_fields": ("k", "line"), "partition_fields": ("p",), "hash_fields": ("k",)}
    of_table = {"bucket_count": buckets, "table_type": table_type}
    return TableSettings(**{**of_lines, **of_table, **more})


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, HudiTable]:
    """Tables by their names: logs of 4 buckets, in a partition of 8; bases of 2 and other keys; nothing."""
    folder = tmp_path_factory.mktemp("joins")
    write(folder / "logs", lines(1), table=settings(4, "MERGE_ON_READ"))
    write(folder / "logs", lines(100, keys=range(3)))
    write(folder / "bases", lines(7, pa.int64(), keys=[40]), table=settings(2, partition_fields=("line",)))
    write(folder / "bases", lines(10, pa.int64(), keys=[None, *range(5, 12)], start=1), overwrite=True)
    write(folder / "nothing", lines(1, keys=[3]), table=settings(4))
    write(folder / "nothing", lines(1, keys=[3]).select(["k", "line", "p"]), operation="delete")
    found = {path.name: HudiTable(spark, path) for path in folder.iterdir()}
    found["logs"].rescale_buckets(8, ["p0"])
    return found


@pytest.fixture(scope="module")
def rows(tables: dict[str, HudiTable]) -> dict[str, Counter[tuple[Any, ...]]]:
    return {name: held(table.to_df(meta=False)) for name, table in tables.items()}


def held(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.collect()))


def joined(left: Counter[tuple[Any, ...]], right: Counter[tuple[Any, ...]], how: str) -> Counter[tuple[Any, ...]]:
    """Return the join of rows by their first values, which the result has once."""
    pairs = [(one, other) for one in left for other in right if one[0] is not None and one[0] == other[0]]
    of_left, of_right = ({pair[place] for pair in pairs} for place in (0, 1))
    if how in {"semi", "anti"}:
        return Counter(one for one in left if (one in of_left) is (how == "semi"))
    joined_rows = [(*one, *other[1:]) for one, other in pairs]
    joined_rows += [(*one, *MISSING) for one in left if how in {"left", "full"} and one not in of_left]
    joined_rows += [(one[0], *MISSING, *one[1:]) for one in right if how in {"right", "full"} and one not in of_right]
    return Counter(joined_rows)


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def moves(frame: DataFrame) -> list[str]:
    """Return the operators of a plan that move rows, and the joins of other kinds than those of single partitions."""
    return re.findall(r"\w*Exchange\b|Broadcast\w+|\w*NestedLoop\w*|Cartesian\w*", plan(frame))


def test_every_kind_of_join_shows_its_rows_and_moves_none(
    tables: dict[str, HudiTable], rows: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    """With duplicates, nulls, log files, partitions of unlike numbers of buckets, and int against bigint."""
    logs, bases = tables["logs"], tables["bases"]
    plain = logs.to_df(meta=False), bases.to_df(meta=False)
    for how in JOINS:
        join_result = bucket_join(logs, bases, "k", how, tasks=2)
        expected = plain[0].join(plain[1], "k", how)

        assert (moves(join_result), plan(join_result).count("SortMergeJoin")) == ([], 2), how
        assert join_result.columns == expected.columns
        assert [field.dataType for field in join_result.schema] == [field.dataType for field in expected.schema]
        assert held(join_result) == joined(rows["logs"], rows["bases"], how), how
    assert moves(expected)


def test_buckets_that_a_side_lacks_are_joined_without_a_broadcast(
    tables: dict[str, HudiTable], rows: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    """Spark would put constants of a side without rows into the condition, and a join without keys is broadcast."""
    join_result = bucket_join(tables["logs"], tables["nothing"], "k", "full", tasks=2)

    assert moves(join_result) == []
    assert held(join_result) == joined(rows["logs"], rows["nothing"], "full")


def test_groups_of_buckets_are_tasks_of_their_own(spark: SparkSession, tables: dict[str, HudiTable]) -> None:
    """Spark would unite single partitions to a single partition from 4.1 on. Numbers of buckets meet by a divisor."""
    logs, bases, nothing = tables["logs"], tables["bases"], tables["nothing"]
    first = logs.history().orderBy("instant").first().instant
    before = TableRows(logs, as_of=first)
    of_eight = TableRows(logs, where="p = 'p0'")
    for frame, number in (
        (bucket_join(logs, bases, "k", "full", tasks=9), 2),
        (bucket_join(logs, nothing, "k", tasks=9), 4),
        (bucket_join(logs, nothing, "k", tasks=1), 1),
        (bucket_agg(before, "k", sf.count("*"), tasks=9), 4),
        (bucket_agg(of_eight, "k", sf.count("*"), tasks=9), 8),
        (bucket_agg(of_eight, "k", sf.count("*")), 2 * spark.sparkContext.defaultParallelism),
    ):
        assert frame.rdd.getNumPartitions() == number


def test_columns_of_other_names_columns_rows_and_moments_are_chosen(tables: dict[str, HudiTable]) -> None:
    logs, bases = tables["logs"], tables["bases"]
    some = TableRows(logs, "k,n", where="n > 1 AND p <> 'p0'")
    other = TableRows(bases, ["line", "k", "_hoodie_record_key"], where={"line": [1]})
    left = logs.to_df(["k", "n"], where="n > 1 AND p <> 'p0'")
    right = bases.to_df(["line", "k", "_hoodie_record_key"], where={"line": [1]})
    expected = left.join(right, left.k == right.k, "full")
    join_result = bucket_join(some, other, {"k": "k"}, "full_outer", tasks=2)
    first = logs.history().orderBy("instant").first().instant
    # Before the rescale against after it.
    again = bucket_join(TableRows(logs, "k,line,n", as_of=first), TableRows(logs, "k,line,n"), ["k", "line"], tasks=2)

    assert join_result.columns == expected.columns
    assert (held(join_result), moves(join_result)) == (held(expected), [])
    assert held(again) == Counter(
        (key, line, line + 1, (100 if key in range(3) else 1) * (line + 1)) for key in range(9) for line in range(2)
    )


def test_both_sides_stay_at_the_moment_of_the_call(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t", lines(1, keys=[1, 2]), table=settings(2, "MERGE_ON_READ"))
    table = HudiTable(spark, tmp_path / "t")
    join_result = bucket_join(table, TableRows(table, ["k", "line", "n"]), ["k", "line"], tasks=1)
    write(tmp_path / "t", lines(50, keys=[1, 2, 3]))

    assert sorted(row[-1] for row in join_result.collect()) == [1, 1, 2, 2]


@pytest.mark.parametrize("way", ["tasks that are told", "data source"])
def test_sides_that_spark_takes_for_too_large_are_joined_all_the_same(
    spark: SparkSession,
    tables: dict[str, HudiTable],
    rows: dict[str, Counter[tuple[Any, ...]]],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """Spark shuffles both of two single partitions where it believes a side to have more bytes than a setting."""
    if way == "data source":
        patch_seam(monkeypatch, "most bytes that each task gets", 0)
    logs, bases = tables["logs"], tables["bases"]
    frames = [one.to_df(meta=False).coalesce(1).hint("merge") for one in (logs, bases)]
    with said(spark, {LIMIT: "2k"}):
        join_result = bucket_join(logs, bases, "k", "full", tasks=1)
        again = bucket_join(TableRows(bases, meta=True), TableRows(bases, "k"), "k", "semi", tasks=1)

        assert "Exchange" in plan(frames[0].join(frames[1], "k"))
        assert ("BatchScan" in plan(join_result)) is (way == "data source")
        assert (moves(join_result), moves(again)) == ([], [])
        assert held(join_result) == joined(rows["logs"], rows["bases"], "full")
        # Nor does it take what is joined for smaller than it has to.
        size = again._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
        assert 200 < int(str(size)) <= 2048


def test_aggregates_by_bucket_are_those_of_the_rows_and_move_none(
    tables: dict[str, HudiTable], rows: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    aggregates = bucket_agg(tables["logs"], "k", sf.sum("n").alias("n"), sf.countDistinct("p"), tasks=2)

    assert moves(aggregates) == []
    assert held(aggregates) == Counter(
        (key, sum(row[3] for row in rows["logs"] if row[0] == key), 2) for key in {row[0] for row in rows["logs"]}
    )


def test_rows_whose_bucket_is_not_certain_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi's parser takes the rest of a text with ``,k:`` inside for a value of ``k``."""
    short = TableSettings(record_key_fields=("k",), bucket_count=2)
    words = ["a", "b:c,k:d"]
    rows = pa.table({"k": words, "line": pa.array(range(2), pa.int64())})
    write(tmp_path / "short", rows.select(["k"]), table=short)
    write(tmp_path / "long", rows, table=settings(2, partition_fields=()))
    numbered = pa.table({"n": pa.array(range(2), pa.int64()), "k": words})
    of_number = TableSettings(record_key_fields=("n", "k"), hash_fields=("n",), bucket_count=2)
    write(tmp_path / "numbered", numbered, table=of_number)
    made = {path.name: HudiTable(spark, path) for path in tmp_path.iterdir()}

    with pytest.raises(OptionConflictError, match=r"contain k\. These are texts, in keys of other fields"):
        bucket_join(made["long"], made["short"], "k")
    # Where both sides spell their keys alike, nothing is in doubt.
    alike = bucket_join(made["long"], TableRows(made["long"], "k,line"), ["k", "line"], tasks=1)
    assert sorted(row.k for row in alike.collect()) == words
    with pytest.raises(Exception, match="not certain") as caught:
        bucket_agg(made["numbered"], "n", sf.count("*"), tasks=1).collect()
    error = from_spark(caught.value)
    assert isinstance(error, ColumnValueError)
    assert made["numbered"].path in str(error)


@pytest.fixture(scope="module")
def others(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, HudiTable]:
    """Tables that cannot be joined with those of other tables."""
    folder = tmp_path_factory.mktemp("others")
    rows = lines(1, keys=range(3))
    write(folder / "looked up", rows, table=settings(4, bucket_count=None, index_type="SIMPLE", hash_fields=None))
    write(folder / "texts", lines(1, pa.string(), keys=["a"]), table=settings(4))
    write(folder / "nine", rows, table=settings(9))
    write(folder / "stray", rows, table=settings(4))
    [stray, *_] = (folder / "stray").glob("p0/*.parquet")
    properties = folder / "stray" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("num.buckets=4", "num.buckets=1"))
    assert stray.name[:8] != "00000000" or len(list((folder / "stray").glob("p0/*.parquet"))) > 1
    write(folder / "unknown", rows, table=settings(4))
    properties = folder / "unknown" / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "bucket" not in line and "index" not in line]
    properties.write_text("\n".join([*kept, ""]))
    keyless = TableSettings(record_key_fields=(), partition_fields=("p",))
    write(folder / "keyless", rows, table=keyless, operation="insert")
    return {path.name: HudiTable(spark, path) for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "on", "kind", "text"),
    [
        ("looked up", "k", OptionConflictError, r"index SIMPLE.*HudiTable\.to_df\(\) returns"),
        ("keyless", "k", OptionConflictError, r"generates its record keys.*HudiTable\.to_df\(\) returns"),
        ("texts", "k", OptionConflictError, "int where the table .*texts has a string"),
        ("nine", "k", OptionConflictError, "have 4, 8, 9 buckets. Only 1 divides"),
        ("stray", "k", UnsupportedTableError, "none of the 1 buckets.*validate"),
        ("unknown", "k", UnsupportedTableError, "note no number of buckets"),
        ("nine", "line", InvalidOptionError, "lacks k"),
        ("nine", ["k", "nothing"], InvalidOptionError, "do not show nothing"),
        ("nine", {"k": "line"}, InvalidOptionError, "nine goes by line, which lacks k"),
        ("nine", [], InvalidOptionError, "names no columns"),
        ("nine", 7, InvalidOptionError, "names no columns"),
    ],
)
def test_tables_that_have_no_common_buckets_are_refused_with_the_reason(
    tables: dict[str, HudiTable],
    others: dict[str, HudiTable],
    name: str,
    on: Any,
    kind: type[PyHudiError],
    text: str,
) -> None:
    with pytest.raises(kind, match=text):
        bucket_join(tables["logs"], others[name], on)


def test_arguments_that_mean_nothing_are_refused(tables: dict[str, HudiTable]) -> None:
    logs = tables["logs"]
    for call, text in (
        (lambda: bucket_join(logs, logs, "k", "sideways"), "how='sideways'.*inner, cross"),
        (lambda: bucket_join(logs, logs, "k", tasks=0), "tasks=0"),
        (lambda: bucket_join(logs, logs.to_df(), "k"), "got a DataFrame in the place of a table"),
        (lambda: bucket_join(logs, TableRows(logs.path), "k"), "got a str in the place of a table"),
        (lambda: bucket_join(logs, TableRows(logs, "n"), "k"), "do not show k"),
        (lambda: bucket_agg(logs, "p", sf.count("*")), "lacks k"),
        (lambda: bucket_agg(logs, "k"), "no aggregates"),
        (lambda: bucket_agg(logs, 7, sf.count("*")), "by=7. Give a list of texts"),  # type: ignore[arg-type]
        (lambda: bucket_agg(logs, [sf.col("k")], sf.count("*")), "by=Column.* Give a text"),  # type: ignore[list-item]
    ):
        with pytest.raises(InvalidOptionError, match=text):
            call()
