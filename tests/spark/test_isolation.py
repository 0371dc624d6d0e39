"""What others commit between the look of `HudiTable` at its table and the write that follows, at both levels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable
from pyhudi.errors import CommitConflictError, MetInstant
from pyspark.sql import SparkSession
from support.merge_tables import Values, add, frame, made, rows
from support.seams import patch_seam, read_seam

LEVEL = "hoodie.pyhudi.isolation"
SNAPSHOT = {LEVEL: "snapshot"}
# In a partition of its own, so that no file group of the table is met.
ADDED: Values = (50, "z", 1, 500, "added")

Change = Callable[[HudiTable, dict[str, str]], Any]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HudiTable:
    return made(spark, tmp_path / "t")


def meanwhile(patch: pytest.MonkeyPatch, table: HudiTable, *added: Values) -> None:
    """Let another writer add rows before the next write, once."""
    write, waiting = read_seam("write rows of a table"), [added]

    def late(*given: Any, **more: Any) -> Any:
        if waiting:
            add(table.path, *waiting.pop())
        return write(*given, **more)

    patch_seam(patch, "write rows of a table", late)


def sync(table: HudiTable, options: dict[str, str], **more: Any) -> Any:
    given = frame(table.to_df().sparkSession, [(1, "a", 6, 10, "mine")])
    merge = table.merge(given).when_matched_update_all()
    return merge.when_not_matched_by_source_delete("target.n > 100").execute(**options, **more)


# A conflict shows: the write is not run again.
AT_ONCE = {"hoodie.pyhudi.write.retry.max.seconds": "0"}
CHANGES: dict[str, Change] = {
    "update": lambda table, options: table.update({"t": "'large'"}, "target.n > 100 or target.n = 1", **options),
    "delete": lambda table, options: table.delete("n > 100 or n = 1", **options),
    "merge": sync,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_added_elsewhere_that_a_clause_would_have_taken_is_a_conflict(
    spark: SparkSession, table: HudiTable, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Under snapshot isolation it stays as it is. The error, which comes as text, says which write it met."""
    with monkeypatch.context() as patch:
        meanwhile(patch, table, ADDED)
        with pytest.raises(CommitConflictError, match="rows that decided what this write does") as raised:
            CHANGES[change](table, AT_ONCE)
    assert raised.value.met == MetInstant(table.last_commit().instant, "write", from_text=True)
    with monkeypatch.context() as patch:
        meanwhile(patch, table, (51, "w", 1, 500, "added"), (52, "y", 1, 5, "unrelated"))
        CHANGES[change](table, SNAPSHOT)
    assert {"added", "unrelated"} <= {row[-1] for row in rows(table)}
    with monkeypatch.context() as patch:
        meanwhile(patch, table, (53, "x", 1, 5, "unrelated"))
        CHANGES[change](table, {})

    assert [row[-1] for row in rows(table) if row[0] >= 50 and row[3] == 500] in ([], ["large", "large"])


def test_a_key_that_a_merge_found_absent_is_a_conflict_once_it_is_there(
    spark: SparkSession, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys out of the source's range, and partitions that the condition leaves out, are none."""
    source = frame(spark, [(1, "a", 6, 10, "mine"), (60, "q", 6, 10, "mine")])

    def merge(on: str, *added: Values) -> Any:
        with monkeypatch.context() as patch:
            meanwhile(patch, table, *added)
            return table.merge(source, on).when_matched_update({"t": "source.t"}).execute(**AT_ONCE)

    with pytest.raises(CommitConflictError, match="rows that decided what this write does"):
        merge("source.id = target.id", (60, "z", 1, 1, "theirs"))
    assert merge("source.id = target.id", (70, "y", 1, 1, "theirs")).updates == 2
    assert merge("source.id = target.id and target.p = 'a'", (55, "x", 1, 1, "theirs")).updates == 1


@pytest.mark.parametrize("most", [1, 100], ids=["by bounds", "by values"])
def test_rows_without_the_name_of_a_partition_share_one_whatever_their_columns_have(
    spark: SparkSession, table: HudiTable, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Where a merge matches by places: a row that comes there with another value of the column may match."""
    patch_seam(monkeypatch, "most keys of a merge by the key", most)
    source = frame(spark, [(60, "", 6, 10, "mine"), (61, "q", 6, 10, "mine")])
    meanwhile(monkeypatch, table, (60, None, 1, 1, "theirs"))
    with pytest.raises(CommitConflictError, match="rows that decided what this write does"):
        table.merge(source).when_matched_update({"t": "source.t"}).execute(**AT_ONCE)


def test_the_level_is_that_of_the_write_or_of_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(spark, tmp_path / "t", options=SNAPSHOT)
    update = CHANGES["update"]
    with monkeypatch.context() as patch:
        meanwhile(patch, table, ADDED)
        update(table, {})
    with monkeypatch.context() as patch:
        meanwhile(patch, table, (51, "w", 1, 500, "added"))
        with pytest.raises(CommitConflictError):
            update(table, {LEVEL: "serializable", **AT_ONCE})

    assert (tmp_path / "t/.hoodie/hoodie.properties").read_text().count(f"{LEVEL}=snapshot\n") == 1
    shown = table.explain_options(**{LEVEL: "serializable"}).find(LEVEL)
    assert (shown.value, shown.note) == ("serializable", "the table has snapshot")
    assert table.explain_options().find(LEVEL).value == "snapshot"
