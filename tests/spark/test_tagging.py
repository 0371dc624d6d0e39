"""Keys looked up by Spark and rows placed by the file groups found: the same table as the commit makes of them."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable, colocate
from pyhudi.connector.placement import tagging
from pyhudi.connector.placement.key_columns import KEY, PATH, with_keys
from pyhudi.connector.placement.key_places import KeyRanges
from pyhudi.connector.placement.key_text import KeyText
from pyhudi.connector.placement.slots import Placement
from pyhudi.connector.write_job import write
from pyhudi.errors import (
    CommitConflictError,
    DuplicateColumnError,
    DuplicateKeyError,
    MissingOptionError,
    NullKeyError,
    OptionConflictError,
    PartitionValueError,
    PlacementError,
)
from pyhudi.operations.result import CommitResult
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.config.properties_file import update_config
from pyhudi.table.config.table_settings import TableSettings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drive import rows_of
from support.readers import rows_by_hudi_rs
from support.rules.health import findings
from support.seams import patch_seam, read_seam
from support.sessions import RESTLESS, said

# A conflict shows: the write is not run again.
AT_ONCE = {"hoodie.pyhudi.write.retry.max.seconds": "0"}
PLACED, LEFT = ({"hoodie.pyhudi.place.rows": wish} for wish in ("always", "never"))
COLUMNS = "id string, ts int, n int, p string"
COMBINE = {"hoodie.combine.before.insert": True}
DROP = {"hoodie.datasource.insert.dup.policy": "drop"}
SMALL, LARGEST = "hoodie.parquet.small.file.limit", "hoodie.parquet.max.file.size"
ESTIMATE = "hoodie.copyonwrite.record.size.estimate"
NO_PACKING = {SMALL: 0}
MANY_TASKS = {"spark.sql.shuffle.partitions": "8", "spark.sql.adaptive.enabled": "false"}


def few_keys(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have so many keys, and no more, looked up by tasks."""
    patch_seam(monkeypatch, "few keys for the driver", number)


def many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all keys joined by Spark, as many are."""
    few_keys(monkeypatch, -1)


def read_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all keys joined, and the table's read where Spark has no access to its store."""

    def refuse(*_: Any) -> DataFrame:
        raise RuntimeError("No FileSystem for scheme")

    many_keys(monkeypatch)
    patch_seam(monkeypatch, "scan the table's record keys", refuse)


WAYS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "few": lambda _: None,
    "many": many_keys,
    "in python": read_in_python,
}


def create(spark: SparkSession, path: Path, schema: str, **table: Any) -> HudiTable:
    given = {"record_key": "id", "partition_by": "p", "order_by": "ts", "index": "SIMPLE", **table}
    return HudiTable.create(spark, str(path), schema, **given)


def made(spark: SparkSession, numbers: str, n: int, ts: str = "1") -> DataFrame:
    """Return rows of some numbers in four of Spark's partitions, 400 keys and those above 10,000."""
    key = "if(number < 10000, number % 400, number)"
    rows = spark.sql(f"select explode({numbers}) number").repartition(4, "number")
    return rows.selectExpr(
        f"concat('k', {key}) id", f"cast({ts} as int) ts", f"cast({n} * 1000 + number div 400 as int) n",
        f"concat('p', {key} % 3) p",
    )  # fmt: skip


def shown(table: HudiTable) -> list[tuple[Any, ...]]:
    return rows_of(table.path, "id", "ts", "n", "p")


def told(done: CommitResult) -> tuple[int, ...]:
    return done.inserts, done.updates, done.deletes, done.not_found, done.dropped


@pytest.mark.parametrize("way", WAYS)
def test_many_and_few_keys_are_looked_for_in_other_partitions_of_a_table_that_notes_no_index(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Tasks and Spark's join find what the commit would; nothing is written."""
    filters = {"hoodie.parquet.bloom.filter.enabled": True}
    table = create(spark, tmp_path / "t", COLUMNS)
    table.upsert(made(spark, "sequence(0, 299)", 1), **filters)
    update_config(open_storage(table.path), {"hoodie.index.type": None})
    WAYS[way](monkeypatch)
    moved = made(spark, "array(3, 350)", 2).withColumn("p", sf.lit("p2"))
    before = shown(table)

    done = table.upsert(made(spark, "array(3, 350)", 2), **PLACED)
    assert told(done) == (1, 1, 0, 0, 0)
    # Each partition has a file, and the rows' own partition does not count.
    two_files = {"hoodie.pyhudi.unnoted.index.max.files": 2}
    assert told(table.upsert(made(spark, "array(351)", 2), **PLACED, **two_files)) == (1, 0, 0, 0, 0)
    after = shown(table)
    with pytest.raises(MissingOptionError, match=r"'k3' of a row for partition 'p2' is in partition 'p0'"):
        table.upsert(moved, **PLACED)
    with pytest.raises(MissingOptionError, match="stream asks"):
        source = spark.readStream.format("rate").load().selectExpr("'k' id", "1 ts", "1 n", "'p0' p")
        table.stream(source, checkpoint=str(tmp_path / "c"))
    assert shown(table) == after != before
    table.upsert(moved, **PLACED, index="GLOBAL_SIMPLE")
    assert [row[3] for row in shown(table) if row[0] == "k3"] == ["p2"]


def test_an_overwrite_under_a_global_index_leaves_no_key_in_another_partition(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's tasks write it where its keys are nowhere else; the commit refuses the others, or deletes the copies."""
    table = create(spark, tmp_path / "t", COLUMNS, index="GLOBAL_SIMPLE")
    table.upsert(made(spark, "sequence(0, 29)", 1))
    p0 = made(spark, "array(0, 3, 301)", 2).withColumn("p", sf.lit("p0"))
    copies = made(spark, "array(0, 1, 2)", 3).withColumn("p", sf.lit("p0"))

    overwrite_result = table.insert_overwrite(p0, **PLACED)
    assert (overwrite_result.inserts, "tasks.spill" in overwrite_result.seconds) == (3, False)
    before = shown(table)
    for given in (copies, p0.union(p0.withColumn("p", sf.lit("p3")))):
        with pytest.raises(DuplicateKeyError, match="p0"):
            table.insert_overwrite(given, **PLACED)
    assert shown(table) == before
    overwrite_result = table.insert_overwrite(copies, **PLACED, **{"hoodie.pyhudi.overwrite.moves.keys": True})
    assert (overwrite_result.inserts, overwrite_result.deletes) == (3, 2)
    assert [row[0] for row in shown(table) if row[3] == "p0"] == ["k0", "k1", "k2"]
    assert len(shown(table)) == 3 + 18


STEPS: list[Callable[[HudiTable, SparkSession, dict[str, Any]], CommitResult]] = [
    # Into a table without files.
    lambda table, spark, how: table.upsert(made(spark, "sequence(0, 299)", 1), **how),
    # Some are found and some new; two rows of one key are tied, or the one that comes later loses.
    lambda table, spark, how: table.upsert(made(spark, "sequence(100, 900)", 2, "number % 3"), **how),
    # A second row of keys that are there, which later writes find in both file groups.
    lambda table, spark, how: table.insert(made(spark, "sequence(0, 9)", 3), **how, **NO_PACKING),
    lambda table, spark, how: table.insert(made(spark, "array(3, 10001, 10002)", 5, "9"), **how, **DROP),
    lambda table, spark, how: table.delete(made(spark, "array(1, 2, 7, 150, 10002, 10003)", 0), **how),
    lambda table, spark, how: table.upsert(made(spark, "sequence(0, 20)", 6, "7"), **how),
    # File groups that hold these have log files by now, and others have none.
    lambda table, spark, how: table.upsert(made(spark, "sequence(30, 60)", 8, "8"), **how),
]


def live(table: HudiTable, spark: SparkSession, how: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield what each step tells and leaves, and whether tasks handed rows to the commit."""
    for step in STEPS:
        done = step(table, spark, how)
        yield told(done), done.lookup.files, shown(table), "tasks.spill" in done.seconds


@pytest.fixture(scope="module")
def by_the_commit(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Any]]:
    """What becomes of a table whose keys the commit looks up."""

    @cache
    def lived(table_type: str) -> list[Any]:
        table = create(spark, tmp_path_factory.mktemp("left") / "t", COLUMNS, table_type=table_type)
        return list(live(table, spark, LEFT))

    return lived


@pytest.mark.parametrize(
    ("way", "table_type", "index"),
    [
        pytest.param("few", "MERGE_ON_READ", "SIMPLE", marks=pytest.mark.slow),
        pytest.param("many", "MERGE_ON_READ", "BLOOM", marks=pytest.mark.oldest),
        pytest.param("few", "COPY_ON_WRITE", "BLOOM", marks=pytest.mark.long),
        pytest.param("many", "COPY_ON_WRITE", "SIMPLE", marks=pytest.mark.long),
        pytest.param("in python", "COPY_ON_WRITE", "SIMPLE", marks=pytest.mark.slow),
    ],
)
def test_the_table_is_the_one_that_the_commit_makes(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by_the_commit: Callable[[str], list[Any]],
    way: str,
    table_type: str,
    index: str,
) -> None:
    expected = by_the_commit(table_type)
    WAYS[way](monkeypatch)
    table = create(spark, tmp_path / "t", COLUMNS, table_type=table_type, index=index)

    # Of keys that are in several file groups the commit looks whether log files have deleted them in some.
    handed_over = {3, 5} if table_type == "MERGE_ON_READ" else set()
    for number, outcome in enumerate(live(table, spark, PLACED)):
        assert (outcome[0], outcome[2]) == (expected[number][0], expected[number][2]), number
        assert (outcome[3], expected[number][3]) == (number in handed_over, True), number
        if number not in handed_over:
            assert outcome[1] == expected[number][1], number
    assert {one["code"] for one in findings(table.path)} <= {"DUPLICATE_KEY", "KEY_ADDED_TWICE"}


@pytest.mark.parametrize(
    ("way", "table_type", "index", "by_commit"),
    [
        ("few", "COPY_ON_WRITE", "GLOBAL_BLOOM", True),
        ("many", "MERGE_ON_READ", "SIMPLE", True),
        ("many", "COPY_ON_WRITE", "SIMPLE", False),
    ],
)
def test_without_pandas_the_commit_looks_up_what_python_would_read(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
    table_type: str,
    index: str,
    by_commit: bool,
) -> None:
    """Global indexes read through Python, and so does Spark the keys of log files; it reads base files by itself."""
    table = create(spark, tmp_path / "t", COLUMNS, table_type=table_type, index=index)
    table.upsert(made(spark, "sequence(0, 9)", 1), **PLACED)
    table.delete(made(spark, "array(1)", 1), **PLACED)
    WAYS[way](monkeypatch)
    monkeypatch.setitem(sys.modules, "pandas", None)

    upserted = table.upsert(made(spark, "sequence(2, 11)", 2), **PLACED)

    assert told(upserted) == (2, 8, 0, 0, 0)
    assert ("looks up the keys of its rows by itself" in caplog.text) == by_commit
    assert ("tasks.spill" in upserted.seconds) == by_commit
    assert [row[2] // 1000 for row in sorted(shown(table), key=lambda row: int(row[0][1:]))] == [1, *[2] * 10]


def moved(spark: SparkSession, numbers: str, n: int, ts: str, by: str) -> DataFrame:
    """Return rows of some numbers, of which those of one key may come with several partitions."""
    return made(spark, numbers, n, ts).withColumn("p", sf.expr(f"concat('p', ({by}) % 4)"))


def _number(text: str) -> str:
    return f"cast(substr({text}, 2) as int)"


MOVES: list[Callable[[HudiTable, SparkSession, dict[str, Any]], CommitResult]] = [
    lambda table, spark, how: table.upsert(made(spark, "sequence(0, 299)", 1, "4"), **how),
    # Rows of one key in two partitions; some lose against those that are there, and stay with them.
    lambda table, spark, how: table.upsert(
        moved(spark, "sequence(100, 600)", 2, "3 + number % 3", f"{_number('id')} + n div 1000 + n % 7"), **how
    ),
    lambda table, spark, how: table.insert(moved(spark, "sequence(0, 9)", 3, "5", "3"), **how, **NO_PACKING),
    # Of a key that is there two rows in two partitions.
    lambda table, spark, how: table.insert(moved(spark, "array(3, 403, 10001, 10002)", 5, "9", "n"), **how, **DROP),
    lambda table, spark, how: table.delete(moved(spark, "array(1, 2, 3, 150, 10002, 10003)", 0, "0", "2"), **how),
    lambda table, spark, how: table.upsert(moved(spark, "sequence(0, 20)", 6, "7", _number("id")), **how),
    # Two rows of one key in two partitions, of which one is added.
    lambda table, spark, how: table.insert(moved(spark, "array(20, 420, 21, 421, 22)", 7, "5", "n"), **how, **COMBINE),
]


@pytest.mark.parametrize(
    ("way", "table_type", "index", "moves", "steps"),
    [
        ("few", "MERGE_ON_READ", "GLOBAL_BLOOM", True, 2),
        pytest.param("few", "MERGE_ON_READ", "GLOBAL_BLOOM", True, 7, marks=pytest.mark.long),
        pytest.param("many", "COPY_ON_WRITE", "GLOBAL_SIMPLE", True, 7, marks=pytest.mark.slow),
        pytest.param("many", "MERGE_ON_READ", "GLOBAL_BLOOM", False, 7, marks=pytest.mark.long),
        pytest.param("in python", "MERGE_ON_READ", "GLOBAL_SIMPLE", True, 4, marks=pytest.mark.slow),
    ],
)
def test_rows_of_unique_keys_go_where_the_commit_sends_them(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    table_type: str,
    index: str,
    moves: bool,
    steps: int,
) -> None:
    """From partition to partition, or back to where they were; those that lose nowhere."""
    WAYS[way](monkeypatch)
    tables = [
        create(spark, tmp_path / name, COLUMNS, table_type=table_type, index=index) for name in ("left", "placed")
    ]
    # A compaction would take away what log files know of rows that were deleted.
    given = {"hoodie.simple.index.update.partition.path": moves, "hoodie.compact.inline": False}
    for number, step in enumerate(MOVES[:steps]):
        left = step(tables[0], spark, {**LEFT, **given})
        # Rows of one file group meet though they come from several partitions, and Spark moves each of these by itself.
        with said(spark, {} if moves else MANY_TASKS):
            placed = step(tables[1], spark, {**PLACED, **given})
        assert told(placed) == told(left), number
        assert "tasks.spill" in left.seconds and "tasks.spill" not in placed.seconds, number
        shows = [rows_of(table.path, "_hoodie_partition_path", "id", "ts", "n", "p") for table in tables]
        assert shows[1] == shows[0], number
        assert left.lookup is None or placed.lookup.files == left.lookup.files, number
    told_of = [{one["code"] for one in findings(table.path)} for table in tables]
    assert told_of[1] == told_of[0]


@pytest.mark.parametrize(
    "session", [{}, {"spark.sql.adaptive.enabled": "false"}, RESTLESS], ids=["as it is", "not adaptive", "restless"]
)
@pytest.mark.oldest
def test_ties_go_to_the_row_that_stood_later(spark: SparkSession, tmp_path: Path, session: dict[str, str]) -> None:
    """However rows are moved to where their keys are: forty rows of each of fifty keys, half of them found."""
    tied = spark.range(0, 2_000, numPartitions=4).selectExpr("id % 50 id", "1 ts", "cast(id as int) n", "id % 2 p")
    table = create(spark, tmp_path / "t", "id long, ts int, n int, p long")
    with said(spark, session):
        table.upsert(tied.where("id < 25"), **PLACED)
        done = table.upsert(tied, **PLACED)

    assert (done.inserts, done.updates) == (25, 25)
    assert sorted(row.n for row in table.to_df(["n"]).collect()) == list(range(1_950, 2_000))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_file_groups_that_hold_a_key_several_times_are_written_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, index: str
) -> None:
    """Of a merge-on-read table, though a key in log files and a base file is there once; others get log files."""
    WAYS[way](monkeypatch)
    table = create(spark, tmp_path / "t", COLUMNS, index=index, table_type="MERGE_ON_READ")
    table.upsert(made(spark, "sequence(0, 8)", 1))
    table.insert(made(spark, "array(0, 3)", 2))
    logged = table.upsert(made(spark, "array(1, 4, 2)", 3, ts="2"), **PLACED)
    upserted = table.upsert(made(spark, "array(0, 1, 2, 5)", 4, ts="3"), **PLACED)

    assert (logged.files, logged.log_files) == (0, 2)
    assert (upserted.files, upserted.log_files) == (1, 2)
    assert [(key, n) for key, _, n, p in shown(table) if p == "p0"] == [
        ("k0", 4000), ("k3", 1000), ("k3", 2000), ("k6", 1000),
    ]  # fmt: skip
    assert rows_by_hudi_rs(Path(table.path), "id", "ts", "n", "p") == shown(table)


def test_new_keys_join_small_files_and_open_as_many_as_it_takes(spark: SparkSession, tmp_path: Path) -> None:
    """By the size that is assumed for a row: at 1,000 bytes, files of 50 rows in 3 partitions of 100."""
    table = create(spark, tmp_path / "t", COLUMNS)
    sizes = {ESTIMATE: 1000, LARGEST: 50_000, SMALL: 40_000}
    first = table.upsert(made(spark, "sequence(0, 299)", 1), **PLACED, **sizes)
    ids = {row[0] for row in table.to_df(["_hoodie_file_name"]).distinct().collect()}

    joined = table.insert(made(spark, "sequence(300, 308)", 2), **PLACED, **sizes)
    apart = table.upsert(made(spark, "sequence(309, 311)", 2), **PLACED, **{**sizes, SMALL: 0})

    assert (first.inserts, first.files, len(ids)) == (300, 6, 6)
    groups = table.to_df().selectExpr("n", "substring_index(_hoodie_file_name, '_', 1) file_id").distinct().collect()
    of_first = {row.file_id for row in groups if row.n < 2000}
    assert joined.files == 3 and joined.inserts == 9
    assert apart.files == 3 and apart.inserts == 3
    assert len({row.file_id for row in groups} - of_first) == 3, "only those that were to be apart"


@pytest.mark.parametrize(
    ("way_of_many", "caches"), [(False, True), (True, False)], ids=["few, kept", "many, made twice"]
)
def test_a_query_that_gives_other_rows_each_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caches: bool, way_of_many: bool
) -> None:
    """A row whose key was not looked up is no new row; where the rows are kept it was."""
    spark.catalog.clearCache()
    if way_of_many:
        many_keys(monkeypatch)
    table = create(spark, tmp_path / "t", COLUMNS)
    before = made(spark, "sequence(0, 9)", 1)
    table.upsert(before)
    given = {**PLACED, "hoodie.simple.index.use.caching": caches}
    # Spark's own uuid() is the same each time.
    drawn = sf.udf(lambda: uuid.uuid4().hex, "string", useArrow=False).asNondeterministic()
    other = before.withColumn("id", drawn())

    if caches:
        assert table.upsert(before.union(other), **given).inserts == 10
        assert table.to_df().count() == 20
        assert spark._jsparkSession.sharedState().cacheManager().isEmpty(), "nothing is kept any longer"
    else:
        with pytest.raises(PlacementError, match="other keys now"):
            table.upsert(before.union(other), **given)
        assert shown(table) == sorted(tuple(row) for row in before.collect())
        assert table.upsert(before.withColumn("n", sf.lit(7)), **given).updates == 10


@pytest.mark.parametrize("index", ["SIMPLE", pytest.param("GLOBAL_SIMPLE", marks=pytest.mark.slow)])
def test_a_key_beyond_those_that_were_counted_is_not_taken_for_new(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """It was never looked for, though the table has it."""
    many_keys(monkeypatch)
    table, counted = create(spark, tmp_path / "t", COLUMNS, index=index), tmp_path / "counted"
    before = made(spark, "sequence(0, 9)", 1)
    table.upsert(before)
    later = sf.udf(lambda key: "k9" if key == "k3" and counted.exists() else key, "string", useArrow=False)
    count = read_seam("partitions of incoming rows")

    def of(*args: Any) -> KeyRanges:
        found = count(*args)
        counted.touch()
        return found

    patch_seam(monkeypatch, "partitions of incoming rows", of)
    with pytest.raises(PlacementError, match="other keys now"):
        table.upsert(
            made(spark, "sequence(0, 3)", 2).withColumn("id", later.asNondeterministic()("id")),
            **PLACED,
            **{"hoodie.simple.index.use.caching": False},
        )
    assert shown(table) == sorted(tuple(row) for row in before.collect())


class Between:
    """Has something done after a lookup, right before the rows are written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, then: Callable[[], Any]) -> None:
        self._tag = tagging.tag
        self._monkeypatch = monkeypatch
        self._then = then
        patch_seam(monkeypatch, "tag rows in Spark", self)

    def __call__(self, *args: Any) -> Any:
        tagged_rows = self._tag(*args)
        patch_seam(self._monkeypatch, "tag rows in Spark", self._tag)
        self._then()
        return tagged_rows


class _StoppedError(Exception):
    """Nothing is to be written."""


@pytest.mark.parametrize("index", ["BLOOM", pytest.param("GLOBAL_SIMPLE", marks=pytest.mark.slow)])
def test_keys_come_to_the_driver_up_to_a_bound_and_are_joined_beyond(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    table = create(spark, tmp_path / "t", COLUMNS, index=index)
    df: DataFrame = made(spark, "sequence(0, 29)", 1)
    table.upsert(df)
    collected: list[int] = []
    joined: list[Any] = []
    collect, join = type(df).toArrow, read_seam("join with the table's keys")

    def counted(frame: DataFrame) -> Any:
        found = collect(frame)
        collected.append(found.num_rows)
        return found

    def noted(*args: Any, **given: Any) -> Any:
        joined.append(args)
        return join(*args, **given)

    def stop() -> None:
        raise _StoppedError

    monkeypatch.setattr(type(df), "toArrow", counted)
    for bound in (30, 29):
        few_keys(monkeypatch, bound)
        patch_seam(monkeypatch, "join with the table's keys", noted)
        Between(monkeypatch, stop)
        with pytest.raises(_StoppedError):
            table.upsert(df, **PLACED)

        assert (max(collected), len(joined)) == ((30, 0) if bound == 30 else (3, 1)), "no more than partitions"
        collected.clear()


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        ("sequence(0, 9)", "array(5)", True),
        ("array(10001)", "array(10001)", True),
        ("array(10001)", "array(10004)", False),
    ],
    ids=["the same file groups", "the same new key", "other new keys"],
)
def test_a_commit_between_the_lookup_and_the_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: str, theirs: str, conflict: bool
) -> None:
    """It is a conflict where it changed what the lookup saw, and never an update that is lost or a key twice."""
    table = create(spark, tmp_path / "t", COLUMNS)
    table.upsert(made(spark, "sequence(0, 20)", 1))
    Between(monkeypatch, lambda: table.upsert(made(spark, theirs, 2, "5"), **LEFT, **NO_PACKING))

    if conflict:
        with pytest.raises(CommitConflictError):
            table.upsert(made(spark, mine, 3, "4"), **PLACED, **NO_PACKING, **AT_ONCE)
    else:
        table.upsert(made(spark, mine, 3, "4"), **PLACED, **NO_PACKING)

    keys = [(row[0], row[3]) for row in shown(table)]
    assert len(keys) == len(set(keys))
    assert {row[2] // 1000 for row in shown(table)} == ({1, 2} if conflict else {1, 2, 3})


def test_a_table_that_appears_between_the_lookup_and_the_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    named = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.index.type": "SIMPLE",
    }
    df = made(spark, "sequence(0, 9)", 1)
    Between(monkeypatch, lambda: write(spark, df.where("n < 2000"), path, "upsert", {**named, **LEFT}))

    with pytest.raises(CommitConflictError):
        write(spark, df, path, "upsert", {**named, **PLACED, **AT_ONCE})

    assert HudiTable(spark, path).to_df().count() == 10


@pytest.mark.parametrize("key", ["id string", "id decimal(9, 2)"], ids=["by Spark", "by Python"])
def test_bad_rows_are_refused_by_name(spark: SparkSession, tmp_path: Path, key: str) -> None:
    table = create(spark, tmp_path / "t", f"{key}, ts int, n int, p string")
    good = "select 1 id, 1 ts, 1 n, 'a' p union all select 2, 1, 1, "

    def rows(last: str) -> DataFrame:
        return spark.sql(good + last).selectExpr(f"cast(id as {key.partition(' ')[2]}) id", "ts", "n", "p")

    table.upsert(rows("'b'"))
    with pytest.raises(NullKeyError, match="1 of"):
        table.upsert(spark.sql("select * from {df} union all select null, 1, 1, 'b'", df=rows("'b'")), **PLACED)
    with pytest.raises(PartitionValueError, match=r"'\.\.'"):
        table.upsert(rows("'..'"), **PLACED)
    with pytest.raises(OptionConflictError, match="SIMPLE"):
        colocate(rows("'b'"), table)
    with pytest.raises(DuplicateColumnError, match="'n' and 'N'"):
        table.upsert(rows("'b'").select("*", sf.col("n").alias("N")), **PLACED)
    assert table.to_df().count() == 2
    done = table.delete(rows("'nowhere'"), **PLACED)
    assert (done.deletes, done.not_found, done.files) == (1, 1, 1), "of the row that is there"
    assert not Path(table.path, "nowhere").exists()


TABLES: list[tuple[dict[str, Any], bool]] = [
    ({"record_key_fields": ["id"]}, True),
    ({"record_key_fields": ["text"], "partition_fields": ["short"]}, True),
    ({"record_key_fields": ["yes"], "partition_fields": ["d"], "hive_style": True}, True),
    ({"record_key_fields": ["text", "short", "yes"], "partition_fields": ["p"]}, True),
    ({"record_key_fields": ["id"], "partition_fields": ["p", "d"], "hive_style": True}, True),
    ({"record_key_fields": ["text"], "key_generator": KeyGeneratorType.COMPLEX, "partition_fields": ["p"]}, True),
    ({"record_key_fields": ["text"], "partition_fields": ["p", "d"], "version": 8}, True),
    ({"record_key_fields": ["d"]}, False),
    ({"record_key_fields": ["price", "at"], "partition_fields": ["p"]}, False),
    ({"record_key_fields": ["inner.id", "text"]}, False),
    ({"record_key_fields": ["id"], "partition_fields": ["p"], "url_encode": True}, False),
]


@pytest.mark.oldest
@pytest.mark.parametrize(("table", "by_spark"), TABLES, ids=str)
def test_keys_are_spelt_as_the_write_spells_them(spark: SparkSession, table: dict[str, Any], by_spark: bool) -> None:
    """Byte by byte, by whichever of the two can: those of nulls, empty texts, negative numbers and odd characters."""
    fields = table["record_key_fields"]
    rows = spark.sql(
        "select * from values "
        "(1L, 1S, 'a', true, date'2024-02-29', 'p', 1.10, timestamp'2024-01-01 00:00:00.000001'), "
        "(-9223372036854775807L, -5S, '日本:,', false, date'0001-01-01', '', -0.01, timestamp'1969-12-31 23:59:59.5'), "
        "(0L, null, '__null__', null, null, null, 0.00, null), "
        "(7L, 7S, '', true, date'9999-12-31', 'a/b', null, timestamp'2024-07-01 12:00:00') "
        "as t(id, short, text, yes, d, p, price, at)"
    ).selectExpr("*", "named_struct('id', id) inner")  # fmt: skip
    where = Placement(TableConfig.new(TableSettings(name="t", **table)), None, 3)
    rows = rows.where(f"coalesce({', '.join(f'cast({one} as string)' for one in fields)}, '') <> ''")

    assert (KeyText.of(where, rows.schema) is not None) == by_spark
    found = with_keys(rows, where).toArrow()
    [batch] = found.combine_chunks().to_batches()
    keys, paths = where.spelled(batch)
    assert batch.column(KEY).to_pylist() == keys.to_pylist()
    assert batch.column(PATH).to_pylist() == paths.to_pylist()
    assert batch.num_rows >= 2
