"""Merges whose rows match by the record key: what they read of the table, and that they end as after a scan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable
from pyhudi.connector.merge.builder import MergeBuilder
from pyhudi.connector.merge.changing import make_changes
from pyhudi.connector.table.made_from import MadeFrom
from pyhudi.errors import DataError, PyHudiError
from pyhudi.methods.merging.clauses import Clause, ClauseKind, Side
from pyhudi.table.files.names import bucket_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drive import rows_of
from support.merge_tables import Values, add, counts, frame, made, rows
from support.seams import patch_seam

MANY: list[Values] = [(number, "ab"[number % 2], 5, number, f"row {number}") for number in range(10, 60)]
UPDATED, INSERTED = (
    Clause("when_matched_update", Side.MATCHED, ClauseKind.UPDATE, {"n": "source.n + target.n"}, None),
    Clause("when_not_matched_insert_all", Side.NOT_MATCHED, ClauseKind.INSERT),
)


def moves(frame: DataFrame) -> list[str]:
    """Return the operators of a plan that move rows."""
    return re.findall(r"\w*Exchange\b", str(frame._jdf.queryExecution().executedPlan().toString()))


@pytest.mark.oldest
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_table_is_not_shuffled_and_files_of_other_buckets_are_never_opened(
    spark: SparkSession, tmp_path: Path, table_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that the driver plans read them, and the data source where there is no pandas or no classic Spark."""
    if table_type == "MERGE_ON_READ":
        patch_seam(monkeypatch, "tasks that the driver plans itself", lambda *_: False)
    table = made(spark, tmp_path / "t", table_type=table_type, buckets=8)
    add(table.path, *MANY)
    add(table.path, *((*row[:3], 1000, "again") for row in MANY[::3]))
    on = "source.id = target.id and source.p = target.p and target.n > 0"
    source = frame(spark, [(12, "a", 6, 10, "mine")])
    whole = {row[0]: row for row in rows(table)}
    [(path, name)] = [
        tuple(row) for row in table.to_df(["_hoodie_partition_path", "_hoodie_file_name"], where="id = 12").collect()
    ]
    for file in table.files().collect():
        if (file.partition, file.bucket) != (path, bucket_of(name)):
            (tmp_path / "t" / file.base_file).write_bytes(b"not a Parquet file")

    changes = make_changes(table._work.open({}), [UPDATED, INSERTED], source, on)
    assert set(moves(changes.rows)) <= {"BroadcastExchange"}
    done = table.merge(source, on).when_matched_update({"n": "source.n + target.n"}).execute()

    assert counts(done) == (0, 1, 0, 0)
    [now] = table.to_df(["n", "t"], where="id = 12 and p = 'a'").collect()
    assert (now.n, now.t) == (10 + whole[12][3], whole[12][4])


SHAPES: dict[str, tuple[dict[str, Any], Any]] = {
    "log files": ({"table_type": "MERGE_ON_READ"}, "source.id = target.id"),
    "filters, log files": ({"index": "BLOOM", "table_type": "MERGE_ON_READ"}, ["id", "p"]),
    "unique keys": ({"index": "GLOBAL_SIMPLE"}, "target.p = 'a' and source.id = target.id"),
    "composite key": ({"record_key": ["id", "t"], "partition_by": ()}, None),
}
BOUNDS = {
    "log files": "most keys of a merge by the key",
    "unique keys": "most pairs of a key and a slice in a merge",
}


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=() if shape == "log files" else pytest.mark.slow) for shape in SHAPES]
)
def test_a_merge_by_the_key_ends_as_one_that_scans_the_table(
    spark: SparkSession, tmp_path: Path, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With keys that the table has in another partition, that it lacks, that are null, and that come twice."""
    given: list[Values] = [(number, "a", 6, number, f"row {number}") for number in range(8, 30, 3)]
    given += [(30, "a", 6, -1, "row 30"), (500, "b", 6, 1, "new")]
    twice: list[Values] = [*given, (32, "a", 6, 1, "row 32"), (32, "a", 6, 2, "row 32")]
    source, nulls, several = (frame(spark, each) for each in (given, [*given, (None, "a", 6, 1, None)], twice))
    terms, on = SHAPES[shape]

    def outcomes(path: Path) -> list[Any]:
        table = made(spark, path, **terms)
        add(table.path, *MANY)
        changed = table.merge(nulls, on).when_matched_delete("source.n < 0 and target.n > 0")
        # Where no expression names it, other numbers take the place of the sequence number.
        even = "target.n % 2 = 0 and instr(target._hoodie_commit_seqno, '_') > 0"
        changed = changed.when_matched_update({"n": "source.n + target.n", "ts": "source.ts"}, even)
        merges = [
            changed,
            table.merge(nulls, on).when_not_matched_insert_all(),
            table.merge(several, on).when_matched_update({"n": "source.n"}),
            table.merge(source, on).when_matched_update({"t": "'last'"}).when_not_matched_insert_all("source.n > 0"),
        ]
        return [*(outcome(merge) for merge in merges), rows(table)]

    key_outcomes = outcomes(tmp_path / "keys")
    if shape in BOUNDS:
        with monkeypatch.context() as patch:
            patch_seam(patch, BOUNDS[shape], 3)
            assert key_outcomes == outcomes(tmp_path / "more than come to this process")
    patch_seam(monkeypatch, "rows of a merge by the key", lambda *_: None)

    assert key_outcomes == outcomes(tmp_path / "scan")
    # A new row of a partition at which `on` does not look may have the key of a row there.
    assert key_outcomes[1:3] == ["DUPLICATE_KEY" if shape == "unique keys" else "NULL_KEY", "DUPLICATE_KEY"]
    assert key_outcomes[0][1] > 0 and key_outcomes[0][2] == 1


def test_a_merge_by_the_key_sees_the_copies_of_keys_so_that_its_write_reads_no_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts the matched rows that no clause takes, and computes no values for them."""
    table = made(spark, tmp_path / "t", table_type="MERGE_ON_READ", buckets=1)
    table.insert(frame(spark, [(1, "a", 7, 0, "copy"), (2, "a", 7, 0, "copy")]))
    write, counts_copies = table._write_changes, []

    def noted(rows: DataFrame, options: Mapping[str, Any], made_from: MadeFrom) -> Any:
        counts_copies.append(made_from.of_stored)
        return write(rows, options, made_from)

    patch_seam(monkeypatch, "write changes of a merge", noted, of=table)
    given: list[Values] = [(1, "a", 9, 0, ""), (2, "a", 9, 0, ""), (3, "b", 9, 6, ""), (4, "b", 9, 0, "")]
    merge = table.merge(frame(spark, [*given, (4, "b", 9, 1, "")]))
    quotient = {"n": "60 / source.n", "ts": "source.ts"}

    merges = [
        merge.when_matched_update(quotient, "source.n > 1").when_not_matched_insert_all(),
        merge.when_matched_delete("target.id = 4"),
        merge.when_matched_delete("target.id = 1"),
    ]

    assert [counts(each.execute()) for each in merges] == [(0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 2, 0)]
    assert counts_copies == [False, False, True]
    assert [row[:4] for row in rows(table)] == [(2, "a", 5, 2), (2, "a", 7, 0), (3, "b", 9, 10)]


def outcome(merge: MergeBuilder) -> Any:
    try:
        return counts(merge.execute())
    except PyHudiError as error:
        return error.code


def test_only_clauses_about_matches_read_by_the_key(spark: SparkSession, tmp_path: Path) -> None:
    """Other conditions, and rows that a clause takes because nothing matches them, need all rows."""
    table = made(spark, tmp_path / "t")
    source = frame(spark, [(1, "a", 6, 10, "mine")])

    def scans(clauses: list[Clause], on: Any) -> bool:
        target = table._work.open({})
        changes = make_changes(target, clauses, source, on)
        return "Scan parquet" in str(changes.rows._jdf.queryExecution().executedPlan().toString())

    gone = Clause("when_not_matched_by_source_delete", Side.BY_SOURCE, ClauseKind.DELETE)
    assert not scans([UPDATED], "source.id = target.id")
    assert not scans([INSERTED], None)
    assert scans([UPDATED, gone], "source.id = target.id")
    assert scans([UPDATED], sf.expr("source.id = target.id"))
    assert scans([UPDATED], "source.id < target.id")
    assert scans([UPDATED], ["n"])


def test_columns_that_make_the_bucket_suffice(spark: SparkSession, tmp_path: Path) -> None:
    """A row of the source then matches all rows with its values in them, whatever the rest of their keys."""
    options = {"hoodie.bucket.index.hash.field": "id"}
    terms = {"record_key": ["id", "n"], "partition_by": (), "options": options}
    table = made(spark, tmp_path / "t", **terms)
    add(table.path, (1, "a", 5, 7, "one more"), *MANY)
    source = frame(spark, [(1, "a", 6, 0, "mine"), (99, "a", 6, 0, "new")])
    updated = Clause("when_matched_update", Side.MATCHED, ClauseKind.UPDATE, {"t": "source.t"})
    on = "source.id = target.id and target.n < 100"

    changes = make_changes(table._work.open({}), [updated], source, on)
    assert "Scan parquet" not in str(changes.rows._jdf.queryExecution().executedPlan().toString())
    done = table.merge(source, on).when_matched_update({"t": "source.t"}).when_not_matched_insert_all().execute()

    assert counts(done) == (1, 2, 0, 0)
    assert [row for row in rows(table) if row[4] in {"mine", "new"}] == [
        (1, "a", 5, 1, "mine"),
        (1, "a", 5, 7, "mine"),
        (99, "a", 6, 0, "new"),
    ]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_whose_texts_make_one_key_do_not_match(spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    """A merge's new row that could share its key is refused; a stored one is found by its own values, and updated."""
    schema = "a string, b string, ts int, n int"
    table = HudiTable.create(
        spark, str(tmp_path / "t"), schema, record_key=("a", "b"), order_by="ts", table_type=table_type, buckets=1
    )

    def of(*values: tuple[str | None, str | None, int, int]) -> DataFrame:
        return spark.createDataFrame(list(values), schema)

    def shown() -> list[tuple[Any, ...]]:
        return rows_of(table.path, "a", "b", "n")

    table.upsert(of(("x,b:y", "z", 1, 1), ("s", "t", 1, 1)), **{"hoodie.pyhudi.keys.may.collide": True})
    before = shown()
    for values in (("x", "y,b:z"), ("new,b:", "row"), ("k", "__null__")):
        with pytest.raises(DataError, match="record key"):
            table.merge(
                of((*values, 2, 2), ("s", "t", 2, 2))
            ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.merge(of(("x", "y,b:z", 2, 2))).when_matched_delete().execute().deletes == 0
    assert shown() == before

    done = table.merge(of(("x,b:y", "z", 2, 3))).when_matched_update({"n": "source.n"}).execute()
    assert (counts(done), shown()) == ((0, 1, 0, 0), [("s", "t", 1), ("x,b:y", "z", 3)])
    table.update({"n": "n + 1"}, "a like 'x%'")
    assert shown() == [("s", "t", 1), ("x,b:y", "z", 4)]
    with pytest.raises(DataError, match="The stored row of the same record key has a='x,b:y'"):
        table.delete(of(("x", "y,b:z", 9, 9)))
    table.delete("b = 'z'")
    assert shown() == [("s", "t", 1)]


def test_a_row_that_could_share_its_key_is_refused_though_spark_folds_it_away(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Under a global index, whose rows Spark brings together by key before a task sees them."""
    schema = "a string, b string, p string, ts int"
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        schema,
        record_key=("a", "b"),
        partition_by="p",
        order_by="ts",
        index="GLOBAL_SIMPLE",
    )
    both = spark.createDataFrame([("x,b:y", "z", "p", 1), ("x", "y,b:z", "p", 2), (None, "n", "p", 1)], schema)
    placed: dict[str, Any] = {"hoodie.pyhudi.place.rows": "always"}

    with pytest.raises(DataError, match=r"the record key a:x,b:y,b:z\..*keys\.may\.collide"):
        table.upsert(both, **placed)
    table.upsert(both, **placed, **{"hoodie.pyhudi.keys.may.collide": True})
    assert table.to_df().count() == 2
    assert table.delete(both.where("ts = 2 or a is null").select("a", "b", "p"), **placed).deletes == 2
