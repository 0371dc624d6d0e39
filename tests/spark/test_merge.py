"""`HudiTable.merge` and `HudiTable.update`: what their clauses do, held against Delta's, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable
from pyhudi.errors import (
    DuplicateColumnError,
    DuplicateKeyError,
    InvalidOptionError,
    MissingColumnError,
    OlderRowError,
    OptionConflictError,
    PyHudiError,
    SchemaMismatchError,
)
from pyhudi.table.config.property_keys import UNAVAILABLE_OF_DEBEZIUM
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.merge_cases import REFUSED, drawn_merge
from support.merge_tables import COLUMNS, NAMES, START, counts, frame, made, rows
from support.readers import rows_by_hudi_rs
from support.seams import patch_seam


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HudiTable:
    return made(spark, tmp_path / "t")


@pytest.mark.oldest
def test_clauses_are_asked_in_their_order_and_the_first_that_holds_counts(
    spark: SparkSession, table: HudiTable
) -> None:
    given = [
        (1, "a", 6, 10, "x"),
        (2, "a", 6, None, "gone"),
        (3, "b", 6, 30, "y"),
        (7, "c", 1, 70, "z"),
        (8, "c", 1, -1, ""),
    ]
    merge = (
        table.merge(frame(spark, given))
        .when_matched_delete("source.t = 'gone'")
        .when_matched_update({"n": "source.n + target.n", "t": sf.col("source.t")}, "source.n < 20")
        .when_matched_update_all(sf.col("source.n") > 1000)
        .when_not_matched_insert(
            {"id": "source.id", "p": "source.p", "ts": 0, "t": sf.upper("source.t")}, "source.n > 0"
        )
        .when_not_matched_by_source_update({"n": "target.n * 100"}, "target.id = 4")
        .when_not_matched_by_source_delete()
    )
    merge_result = merge.execute()

    assert counts(merge_result) == (1, 2, 1, 0)
    assert (merge_result.operation, merge_result.instant) == ("UPSERT", table.last_commit().instant)
    assert rows(table) == [
        (1, "a", 5, 11, "x"),
        (3, "b", 5, 3, "three"),
        (4, "b", 9, 400, None),
        (7, "c", 0, None, "Z"),
    ]
    assert rows_by_hudi_rs(Path(table.path), *NAMES) == rows(table)
    again = merge.execute()
    assert counts(again) == (0, 2, 0, 0), "it may be run again, and sees the table as it is now"


def test_a_merge_that_has_a_name_is_done_once(spark: SparkSession, table: HudiTable) -> None:
    """A repeat changes nothing, even if its rows could not be merged any more."""
    named = {"hoodie.pyhudi.write.id": "batch-7"}
    merge = table.merge(frame(spark, [(1, "a", 6, 10, "x")])).when_matched_update_all()
    first = merge.execute(**named)
    table.upsert(frame(spark, [(1, "a", 9, 90, "later")]))
    again = merge.execute(**named)

    assert (again.instant, counts(again)) == (first.instant, (0, 1, 0, 0))
    assert rows(table)[0] == (1, "a", 9, 90, "later")


SHAPES: dict[str, dict[str, Any]] = {
    "log files": {"table_type": "MERGE_ON_READ"},
    "looked up": {"index": "SIMPLE"},
    "looked up, log files": {"index": "BLOOM", "table_type": "MERGE_ON_READ"},
    "unique keys": {"index": "GLOBAL_SIMPLE"},
    "later row wins, no partitions": {"order_by": (), "partition_by": ()},
    "composite key, two ordering fields": {"record_key": ["id", "p"], "partition_by": (), "order_by": ["ts", "n"]},
}


QUICK = {"log files", "unique keys"}


@pytest.mark.parametrize(
    "shape", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in SHAPES]
)
def test_rows_move_and_swap_their_keys_in_one_instant(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    """Two rows change their keys, one its partition, one goes and its place is taken, one comes."""
    table = made(spark, tmp_path / "t", **SHAPES[shape])
    given = [
        (1, "a", 9, 10, "x"),
        (2, "a", 9, 20, "y"),
        (3, "c", 9, 30, "z"),
        (4, "b", 9, 40, "gone"),
        (9, "d", 9, 90, "new"),
    ]
    merge_result = (
        table.merge(frame(spark, given), "source.id = target.id")
        .when_matched_delete("source.t = 'gone'")
        .when_matched_update({"id": "3 - target.id", "ts": "source.ts", "n": "source.n"}, "source.id < 3")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )

    expected = [(1, "a", 9, 20, "two"), (2, "a", 9, 10, "one"), (3, "c", 9, 30, "z"), (9, "d", 9, 90, "new")]
    moves = 2 if shape == "later row wins, no partitions" else 3
    assert rows(table) == expected
    assert counts(merge_result) == (1, 3, 1, moves)
    assert counts(table.last_commit()) == counts(merge_result)
    if "two ordering fields" not in shape:  # which hudi-rs does not read
        assert rows_by_hudi_rs(Path(table.path), *NAMES) == expected
    assert len(table.history().where("operation = 'UPSERT'").collect()) == 2
    into_freed = table.merge(frame(spark, [(9, "d", 9, 0, "")]), ["id", "p"]).when_matched_delete()
    reborn = into_freed.when_not_matched_by_source_update({"id": 9, "p": "'d'", "n": 900}, "target.id = 3").execute()
    assert (counts(reborn), rows(table)) == ((0, 1, 1, 1), [*expected[:2], (9, "d", 9, 900, "z")])


def test_what_one_write_cannot_do_is_refused_by_a_key_and_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conditions look at merged rows, whatever the table's type. Spark counts the changes, as it counts many rows."""
    patch_seam(monkeypatch, "most source rows of a merge whose changes are few", 0)
    table = made(spark, tmp_path / "t", table_type="MERGE_ON_READ")
    before = table.last_commit()
    for name, (given, clauses, on, error, says) in REFUSED.items():
        with pytest.raises(error, match=says):
            clauses(table.merge(frame(spark, given), on)).execute()
            raise AssertionError(name)
    table.insert(frame(spark, [(1, "a", 7, 0, "twice"), (5, None, 5, 5, "nameless")]))
    # Rows whose partition has no name share one, whether their values are equal or not.
    for nameless in (None, ""):
        new = frame(spark, [(5, nameless, 9, 9, "x")])
        with pytest.raises(DuplicateKeyError, match=r"the record key '5' in .*, which a row of the table has"):
            table.merge(new, ["id", "p"]).when_not_matched_insert_all().execute()
    with pytest.raises(DuplicateKeyError, match=r"holds several rows of the record key '1' in partition 'a'"):
        table.update({"n": 0}, "id = 1")

    assert table.to_df().count() == 6
    assert table.last_commit() != before
    assert rows(table)[1:] == [*sorted([*START, (1, "a", 7, 0, "twice")])[1:], (5, None, 5, 5, "nameless")]


def test_a_null_in_a_part_of_a_key_matches_nothing_and_proves_no_row_new(spark: SparkSession, tmp_path: Path) -> None:
    columns = "a bigint, b bigint, x string"
    table = HudiTable.create(
        spark, tmp_path / "t", columns, record_key=["a", "b"], buckets=1, table_type="MERGE_ON_READ"
    )
    table.upsert(spark.createDataFrame([(1, None, "old")], columns))
    merge = table.merge(spark.createDataFrame([(1, None, "new"), (2, None, "new")], columns), ["a", "b"])
    with pytest.raises(DuplicateKeyError, match=r"the record key 'a:1,b:__null__', which a row of the table has"):
        merge.when_not_matched_insert_all().execute()
    assert merge.when_not_matched_insert_all("source.a = 2").execute().inserts == 1
    assert sorted(table.to_df(["a", "x"]).collect()) == [(1, "old"), (2, "new")]


def test_several_rows_may_delete_one_and_a_clause_may_hold_for_one_of_several(
    spark: SparkSession, table: HudiTable
) -> None:
    given = frame(spark, [(1, "a", 6, 1, "x"), (1, "a", 7, 2, "y"), (2, "a", 7, 1, "x"), (2, "a", 7, 2, "y")])
    merge_result = (
        table.merge(given)
        .when_matched_delete("source.id = 1")
        .when_matched_update({"t": "source.t"}, "source.n = 2")
        .execute()
    )

    assert counts(merge_result) == (0, 1, 1, 0)
    assert rows(table) == [(2, "a", 5, 2, "y"), *START[2:]]


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_condition_holds_for_all_rows_of_a_key_or_is_refused(
    spark: SparkSession, tmp_path: Path, kind: str, index: str
) -> None:
    """Rows that inserts added beside others go together, also for readers that hold a log entry against the first."""
    table = made(spark, tmp_path / "t", table_type=kind, index=index)
    table.insert(frame(spark, [(1, "a", 7, 0, "copy"), (2, "a", 7, 2, "copy"), (3, "b", 8, 3, "copy")]))
    before, source = rows(table), frame(spark, [(2, "a", 9, 9, "new")])
    partly: list[Callable[[], Any]] = [
        lambda: table.delete("t = 'copy'"),
        lambda: table.update({"n": 5}, "t = 'copy'"),
        lambda: table.merge(source).when_matched_delete("target.t = 'copy'").execute(),
        lambda: table.merge(source, "source.id = target.id").when_matched_update_all("target.ts = 7").execute(),
        lambda: table.merge(source, "target.n = source.n - 7").when_matched_delete("target.ts < 7").execute(),
    ]
    for write in partly:
        with pytest.raises(DuplicateKeyError, match=r"The record key '[123]' has 2 rows in .* holds for 1 of them"):
            write()
    assert rows(table) == before

    assert counts(table.delete("id = 1")) == (0, 0, 2, 0)
    assert rows(table) == rows_by_hudi_rs(Path(table.path), *NAMES) == [row for row in before if row[0] != 1]
    assert counts(table.merge(source).when_matched_delete().when_not_matched_insert_all().execute()) == (0, 0, 2, 0)
    done = table.upsert(frame(spark, [(3, "b", 9, 9, "new")]))
    assert done.log_files == (kind == "MERGE_ON_READ" and index == "BUCKET")
    assert rows(table) == [(3, "b", 9, 9, "new"), *START[3:]]
    assert counts(table.update({"n": 1}, "id = 4")) == (0, 1, 0, 0)


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
def test_an_insert_that_a_delete_in_log_files_outdoes_is_left_out_and_counted(
    spark: SparkSession, tmp_path: Path, index: str
) -> None:
    """Until a compaction forgets the delete; a row that would move there is refused."""
    table = made(spark, tmp_path / "t", table_type="MERGE_ON_READ", index=index, partition_by=())
    table.delete("id in (2, 4)")
    new = frame(spark, [(2, "a", 3, 9, "back"), (4, "b", 9, 9, "back"), (8, "b", 1, 9, "new")])

    merge_result = table.merge(new).when_not_matched_insert_all().execute()
    assert (merge_result.inserts, merge_result.dropped) == (2, 1)
    assert [row[0] for row in rows(table)] == [1, 3, 4, 8]
    with pytest.raises(OlderRowError, match="record key '2', which was deleted with a greater ordering value"):
        table.update({"id": 2, "ts": 3}, "id = 8")
    table.compact()
    merge_result = table.merge(new).when_not_matched_insert_all().execute()
    assert (merge_result.inserts, merge_result.dropped) == (1, 0)
    assert [row[0] for row in rows(table)] == [1, 2, 3, 4, 8]


WORDS: list[tuple[Callable[[HudiTable, DataFrame], Any], type[PyHudiError], str]] = [
    (lambda table, new: table.merge(new), InvalidOptionError, "no clause"),
    (
        lambda table, new: table.merge(new).when_matched_delete().when_matched_update_all("source.n = 1"),
        InvalidOptionError,
        "when_matched_update_all after it is never reached",
    ),
    (lambda table, new: table.merge(new).when_matched_update({}), InvalidOptionError, "gives no column a value"),
    (
        lambda table, new: table.merge(new).when_matched_update({"nn": 1}),
        MissingColumnError,
        r"when_matched_update names 'nn', which is no column of the table .*Did you mean 'n'\?",
    ),
    (
        lambda table, new: table.merge(new).when_matched_update({"n": 1, "target.N": 2}),
        DuplicateColumnError,
        "the column 'n' .* twice",
    ),
    (
        lambda table, new: table.merge(new).when_matched_update({"n": "s.n"}),
        MissingColumnError,
        r"when_matched_update names a column .*`s`\.`n`",
    ),
    (lambda table, new: table.merge(new).when_matched_delete("n = 1"), MissingColumnError, "or that both sides have"),
    (
        lambda table, new: table.merge(new).when_not_matched_insert_all("target.n = 1"),
        MissingColumnError,
        "The condition of when_not_matched_insert_all names a column",
    ),
    (
        lambda table, new: table.merge(new).when_not_matched_by_source_update({"n": "source.n"}),
        MissingColumnError,
        "when_not_matched_by_source_update names a column",
    ),
    (
        lambda table, new: table.merge(new).when_not_matched_insert({"id": "source.id", "n": 1}),
        MissingColumnError,
        "gives no value to 'p', 'ts'",
    ),
    (
        lambda table, new: table.merge(new.drop("t", "n")).when_matched_update_all(),
        MissingColumnError,
        r"the source, which lacks 'n', 't'.*when_matched_update\(",
    ),
    (lambda table, new: table.merge(new).when_matched_delete("source.n"), InvalidOptionError, "neither true nor false"),
    (lambda table, new: table.merge(new).when_matched_delete("source.n ="), InvalidOptionError, "invalid in Spark"),
    (lambda table, new: table.merge(new, "source.id = target.key").when_matched_delete(), MissingColumnError, "`key`"),
    (lambda table, new: table.merge(new, ["id", "q"]).when_matched_delete(), MissingColumnError, "names 'q'"),
    (lambda table, new: table.merge(new.drop("n"), "n").when_matched_delete(), MissingColumnError, "the source lacks"),
    (lambda table, new: table.merge(new, []).when_matched_delete(), InvalidOptionError, "names no columns"),
    (lambda table, new: table.merge(new.drop("id")).when_matched_delete(), MissingColumnError, "lack 'id'"),
    (
        lambda table, new: table.merge(new).when_matched_update({"n": "struct(source.n)"}),
        SchemaMismatchError,
        "the column 'n' .*int, a value of the type struct",
    ),
    (
        lambda table, new: table.merge(new.select("*", sf.lit("").alias("T"))).when_matched_update_all(),
        DuplicateColumnError,
        "the source, which has 't' twice",
    ),
    (
        lambda table, new: table.merge(new).when_matched_update({"target.n.m": 1}),
        MissingColumnError,
        "when_matched_update names 'target.n.m'",
    ),
    (
        # The text of a constant is no column, and rows that move are looked for where they go.
        lambda table, new: table.merge(new).when_matched_update({"id": sf.lit("target.id")}),
        SchemaMismatchError,
        "the column 'id' of the table .* of the type int, the value 'target.id', which it cannot hold",
    ),
    (lambda table, new: table.merge(new, True).when_matched_delete(), InvalidOptionError, r"on=True"),
    (
        lambda table, new: table.merge(new.withColumn("_pyhudi_kind", sf.lit(1))).when_matched_delete(),
        DuplicateColumnError,
        "_pyhudi_kind",
    ),
]


def test_every_wrong_word_is_named(spark: SparkSession, table: HudiTable) -> None:
    new = frame(spark, [(1, "a", 6, 1, "x")])
    for build, error, says in WORDS:
        with pytest.raises(error, match=says):
            build(table, new).execute()
    with pytest.raises(MissingColumnError, match="update names a column"):
        table.update({"n": "m + 1"})
    with pytest.raises(InvalidOptionError, match=r"The new values come first.*update\(set, where\)"):
        table.update("id = 1", {"n": 0})
    with pytest.raises(MissingColumnError, match="no column 'm'"):
        table.update({"n": 0}, {"m": 1})
    with pytest.raises(InvalidOptionError, match="Rows were given as a str"):
        table.merge("changes")

    assert rows(table) == START


def test_a_table_that_generates_its_keys_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), COLUMNS, record_key=())
    with pytest.raises(OptionConflictError, match="generates its keys"):
        table.update({"n": 1})


def test_a_source_is_read_once(spark: SparkSession, table: HudiTable, tmp_path: Path) -> None:
    """Rows that are others each time, and that tell how often they were made; joined, counted, checked and written."""
    read = tmp_path / "read"
    read.mkdir()

    def made_now(batches: Any) -> Any:
        import uuid

        for batch in batches:
            (read / uuid.uuid4().hex).write_text(str(batch.num_rows))
            yield batch

    ids = spark.range(0, 40, numPartitions=2).selectExpr(
        "cast(id as int) id", "'a' p", "9L ts", "cast(rand() * 1000000 as int) n", "uuid() t"
    )
    given = ids.mapInArrow(made_now, ids.schema)
    merge_result = (
        table.merge(given, "source.id = target.id").when_matched_update_all().when_not_matched_insert_all().execute()
    )

    assert sum(int(one.read_text()) for one in read.iterdir()) == 40
    assert counts(merge_result) == (36, 4, 0, 2)
    assert table.to_df().count() == 40


def test_what_others_commit_meanwhile_is_not_written_over(
    spark: SparkSession, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look of a merge and its write, under snapshot isolation: only what is changed is a conflict."""
    other, write = HudiTable(spark, table.path), table._write_changes
    meanwhile = [frame(spark, [(50, "z", 1, 0, "added")]), frame(spark, [(1, "a", 6, 1, "theirs")])]

    def late(*given: Any) -> Any:
        if meanwhile:
            other.upsert(meanwhile.pop(0))
        return write(*given)

    patch_seam(monkeypatch, "write changes of a merge", late, of=table)
    merge = (
        table.merge(frame(spark, [(3, "b", 7, 0, "mine")]))
        .when_matched_update_all()
        .when_not_matched_by_source_delete()
    )
    assert counts(merge.execute(**{"hoodie.pyhudi.isolation": "snapshot"})) == (0, 1, 3, 0)
    assert rows(table) == [(3, "b", 7, 0, "mine"), (50, "z", 1, 0, "added")]

    table.upsert(frame(spark, START))
    patch_seam(monkeypatch, "write changes of a merge", late, of=table)
    done = table.update({"n": "n + 1"}, "id = 1")
    assert (counts(done), done.attempts) == ((0, 1, 0, 0), 2), "it is run again"
    assert rows(table)[0] == (1, "a", 6, 2, "theirs")


@pytest.mark.oldest
def test_rows_are_updated_by_a_condition(spark: SparkSession, table: HudiTable) -> None:
    by_text = table.update({"n": "n * 10", "t": sf.concat("t", sf.lit("!"))}, "p = 'a'")
    by_column = table.update({"`TARGET`.T": None, "ts": 20}, sf.col("target.id") == 4)
    moved = table.update({"p": sf.lit("target.p")}, {"p": "b", "id": [3, 4]})
    nothing = table.update({"n": 0}, "id > 100")
    everything = table.update({"n": sf.col("n") + 1})

    assert [counts(one) for one in (by_text, by_column, moved, nothing, everything)] == [
        (0, 2, 0, 0),
        (0, 1, 0, 0),
        (0, 2, 0, 2),
        (0, 0, 0, 0),
        (0, 4, 0, 0),
    ]
    assert rows(table) == [
        (1, "a", 5, 11, "one!"),
        (2, "a", 5, 21, "two!"),
        (3, "target.p", 5, 4, "three"),
        (4, "target.p", 20, 5, None),
    ]


def test_the_values_of_a_condition_may_come_from_an_iterator(spark: SparkSession, table: HudiTable) -> None:
    changed = table.update({"n": "n + 1"}, {"id": (number for number in (1, 2))})
    merge = table.merge(frame(spark, START[:1])).when_not_matched_by_source_delete({"id": map(int, "34")})

    assert (counts(changed), counts(merge.execute())) == ((0, 2, 0, 0), (0, 0, 2, 0))


def test_a_row_that_an_update_marks_as_deleted_is_a_delete(spark: SparkSession, tmp_path: Path) -> None:
    options = {"hoodie.payload.delete.field": "t", "hoodie.payload.delete.marker": "D"}
    options = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        **options,
    }
    table = made(spark, tmp_path / "t", options=options)
    given = frame(spark, [(1, "c", 9, 0, "D"), (2, "a", 9, 0, "stays"), (8, "a", 9, 0, "D")])
    done = table.merge(given, "id").when_matched_update_all().when_not_matched_insert_all().execute()

    assert counts(done) == (0, 1, 1, 0)
    assert [row[0] for row in rows(table)] == [2, 3, 4]


def test_rows_that_differ_in_a_meta_column_have_their_keys_looked_for_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = made(spark, tmp_path / "t", table_type="MERGE_ON_READ")
    old = table.to_df().localCheckpoint()
    table.update({"n": 100}, "id = 1")
    by = ("id", "p", "_hoodie_commit_time")
    merge = table.merge(old, " and ".join(f"source.{one} = target.{one}" for one in by))
    with pytest.raises(DuplicateKeyError, match=r"the record key '1' in partition 'a', which a row of the table has"):
        merge.when_not_matched_insert_all().execute()


@pytest.mark.parametrize(("mode", "word"), [("IGNORE_DEFAULTS", None), ("FILL_UNAVAILABLE", UNAVAILABLE_OF_DEBEZIUM)])
def test_a_value_that_the_mode_of_the_table_would_drop_is_refused(
    spark: SparkSession, tmp_path: Path, mode: str, word: str | None
) -> None:
    table = made(spark, tmp_path / "t", table_type="MERGE_ON_READ", partial_update_mode=mode)
    with pytest.raises(OptionConflictError, match=r"the record key '1' in partition 'a' .*partial.update.mode"):
        table.update({"t": sf.lit(word)}, "id = 1")
    merge = table.merge(frame(spark, [(2, "a", 6, 0, word)]), "id").when_matched_delete()
    with pytest.raises(OptionConflictError, match=r"the record key '2' in partition 'a' .*partial.update.mode"):
        # It would take the text of the row in whose place it comes.
        merge.when_not_matched_by_source_update({"id": 2, "t": sf.lit(word)}, "target.id = 1").execute()
    table.upsert(frame(spark, [(9, "a", 5, 9, word)]))
    open_ones = frame(spark, [(9, "a", 6, 90, word), (10, "a", 6, 100, word)])
    done = table.merge(open_ones).when_matched_update_all().when_not_matched_insert_all().execute()

    assert counts(done) == (1, 1, 0, 0)
    assert rows(table) == [*START, (9, "a", 6, 90, word), (10, "a", 6, 100, word)]


@pytest.mark.parametrize("seed", range(4))
def test_any_clauses_leave_what_delta_leaves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Three merges of drawn clauses on each table, held against delta-rs, which knows of no keys."""
    if seed % 2:
        patch_seam(monkeypatch, "most source rows of a merge whose changes are few", 0)
    from deltalake import DeltaTable, write_deltalake  # which the environment of the oldest Spark has not

    chance = random.Random(seed)
    terms = chance.choice([{}, {"table_type": "MERGE_ON_READ"}, {"index": "SIMPLE"}, {"order_by": ()}])
    table = made(spark, tmp_path / "t", **terms)
    more = [(n, "a", 5, n, "x") for n in range(5, 9)]
    table.upsert(frame(spark, more))
    write_deltalake(str(tmp_path / "d"), frame(spark, [*START, *more]).toArrow())
    merged = 0
    while merged < 3:
        given, on, clauses = drawn_merge(chance)
        delta = DeltaTable(str(tmp_path / "d"))
        source = frame(spark, given)
        theirs: Any = delta.merge(source.toArrow(), on, source_alias="source", target_alias="target")
        ours: Any = table.merge(source, on)
        for name, arguments in clauses:
            theirs, ours = getattr(theirs, name)(*arguments), getattr(ours, name)(*arguments)
        try:
            merge_result = ours.execute()
        except DuplicateKeyError:
            continue  # a key that two rows would have, of which delta-rs knows nothing
        told = theirs.execute()
        merged += 1

        left = DeltaTable(str(tmp_path / "d")).to_pyarrow_table().to_pylist()
        assert sorted(rows(table), key=str) == sorted((tuple(row.values()) for row in left), key=str)
        expected = [told[f"num_target_rows_{name}"] for name in ("inserted", "updated", "deleted")]
        assert [merge_result.inserts, merge_result.updates, merge_result.deletes] == expected
