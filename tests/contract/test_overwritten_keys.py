"""insert_overwrite under a global index: a key is in one partition afterwards, or the write is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, DuplicateKeyError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.write.commit import commit_write
from support.drawn.lookups import APART, TABLE, assert_healthy, rows
from support.drive import plan, rows_of, task, write
from support.made.compacting import run, schedule
from support.write_settings import write_settings

COPY_ON_WRITE = replace(TABLE, index_type="GLOBAL_SIMPLE")
TABLES = {
    "cow": COPY_ON_WRITE,
    "cow bloom": replace(COPY_ON_WRITE, index_type="GLOBAL_BLOOM"),
    "mor": replace(COPY_ON_WRITE, table_type="MERGE_ON_READ"),
}
MADE = pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
MOVES = write_settings(APART, overwrite_moves_keys=True)


def _flagged(some: pa.Table, *, deleted: bool) -> pa.Table:
    return some.append_column("_hoodie_is_deleted", pa.array([deleted] * some.num_rows))


def shown(path: Path) -> list[tuple[object, ...]]:
    return rows_of(path, "p", "id", "value")


@MADE
def test_a_key_of_a_partition_that_stays_refuses_the_overwrite(tmp_path: Path, made: TableSettings) -> None:
    """Also where a log file has updated it; keys of the replaced partitions, and deleted keys, do not."""
    write(
        tmp_path, [rows(1, 2, value=1), rows(3, 4, value=1, p="b"), rows(5, value=1, p="c")], table=made, settings=APART
    )
    write(tmp_path, rows(3, value=9, p="b"), settings=APART)
    before = shown(tmp_path)

    with pytest.raises(DuplicateKeyError) as raised:
        write(tmp_path, [rows(1, 7, value=2), rows(3, value=2)], operation="insert_overwrite", settings=APART)

    assert all(text in raised.value.what for text in ("'k3'", "'a'", "'b'", str(tmp_path)))
    assert "hoodie.pyhudi.overwrite.moves.keys=true" in raised.value.todo
    assert shown(tmp_path) == before
    done = write(tmp_path, [rows(1, 7, value=2), rows(3, value=2, p="b")], operation="insert_overwrite", settings=APART)
    assert (done.inserts, done.deletes) == (3, 0)
    assert shown(tmp_path) == [("a", "k1", 2), ("a", "k7", 2), ("b", "k3", 2), ("c", "k5", 1)]
    write(tmp_path, [rows(6, value=1, p="d"), rows(5, value=2, p="c")], settings=APART)
    write(tmp_path, rows(5, value=3, p="c"), operation="delete", settings=APART)
    write(tmp_path, rows(5, value=2), operation="insert_overwrite", settings=APART)
    assert shown(tmp_path) == [("a", "k5", 2), ("b", "k3", 2), ("d", "k6", 1)]
    assert_healthy(tmp_path)


@MADE
def test_the_option_deletes_the_other_copies_and_counts_them(tmp_path: Path, made: TableSettings) -> None:
    """Whatever the ordering values, in one commit that replaces the partitions of its rows alone."""
    write(
        tmp_path,
        [rows(1, value=1), rows(3, 4, 8, value=50, p="b"), rows(5, value=50, p="c")],
        table=made,
        settings=APART,
    )

    result = write(tmp_path, [rows(3, 5, value=2), rows(6, value=2)], operation="insert_overwrite", settings=MOVES)

    expected = [("a", "k3", 2), ("a", "k5", 2), ("a", "k6", 2), ("b", "k4", 50), ("b", "k8", 50)]
    assert (result.inserts, result.deletes) == (3, 2)
    assert shown(tmp_path) == expected
    if made.table_type == "MERGE_ON_READ":
        schedule(str(tmp_path))
        run(str(tmp_path))
        assert shown(tmp_path) == expected
    write(tmp_path, rows(3, value=60, p="b"), settings=APART)
    assert shown(tmp_path) == sorted([*expected[1:], ("b", "k3", 60)])
    assert_healthy(tmp_path)


def test_copies_within_a_file_group_go_by_a_new_base_file(tmp_path: Path) -> None:
    """Other engines would hold a delete in a log file against the first row of its key."""
    write(tmp_path, rows(1, value=1), table=TABLES["mor"], settings=APART)
    copies = [rows(3, 4, value=1, p="b"), rows(3, value=2, p="b")]
    write(tmp_path, pa.concat_tables(copies), operation="insert", settings=APART)

    result = write(tmp_path, rows(3, value=3), operation="insert_overwrite", settings=MOVES)

    assert (result.inserts, result.deletes, result.log_files) == (1, 2, 0)
    assert shown(tmp_path) == [("a", "k3", 3), ("b", "k4", 1)]


def test_a_key_of_two_partitions_within_the_rows_is_refused_unless_they_are_folded(tmp_path: Path) -> None:
    write(tmp_path, rows(1, value=1), table=COPY_ON_WRITE, settings=APART)
    twice = [rows(2, value=2), rows(2, value=3, p="b")]

    with pytest.raises(DuplicateKeyError, match=r"'k2'"):
        write(tmp_path, twice, operation="insert_overwrite", settings=MOVES)
    write(tmp_path, twice, operation="insert_overwrite", settings=write_settings(APART, combine_before_insert=True))

    assert shown(tmp_path) == [("a", "k1", 1), ("b", "k2", 3)]


@pytest.mark.parametrize("folds", [False, True])
@MADE
def test_a_partition_whose_rows_are_all_deletes_is_emptied(tmp_path: Path, made: TableSettings, folds: bool) -> None:
    """Whether or not the write folds its rows first."""
    settings = write_settings(APART, combine_before_insert=folds)
    write(tmp_path, _flagged(rows(1, 2, value=1), deleted=False), table=made, settings=APART)
    parts = [_flagged(rows(1, value=2), deleted=True), _flagged(rows(2, value=2, p="b"), deleted=False)]

    write(tmp_path, parts, operation="insert_overwrite", settings=settings)

    assert shown(tmp_path) == [("b", "k2", 2)]
    write(tmp_path, _flagged(rows(7, value=3, p="b"), deleted=True), operation="insert_overwrite", settings=settings)
    assert shown(tmp_path) == []
    assert_healthy(tmp_path)


def test_indexes_by_partition_and_overwrites_of_the_table_look_for_nothing(tmp_path: Path) -> None:
    write(tmp_path / "simple", [rows(1, value=1), rows(2, value=1, p="b")], table=TABLE, settings=APART)
    write(tmp_path / "simple", rows(2, value=2), operation="insert_overwrite", settings=APART)
    assert shown(tmp_path / "simple") == [("a", "k2", 2), ("b", "k2", 1)]
    write(tmp_path / "all", [rows(1, value=1), rows(2, value=1, p="b")], table=COPY_ON_WRITE, settings=APART)
    write(tmp_path / "all", rows(2, value=2), operation="insert_overwrite_table", settings=APART)
    assert shown(tmp_path / "all") == [("a", "k2", 2)]


def test_a_key_that_another_write_adds_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    write(tmp_path, [rows(1, value=1), rows(2, value=1, p="b")], table=COPY_ON_WRITE, settings=APART)
    given = rows(7, value=2)
    slow = plan(tmp_path, given.schema, operation="insert_overwrite", settings=APART)
    result = task(slow, given, 0)
    write(tmp_path, rows(7, value=3, p="b"), settings=APART)

    with pytest.raises((CommitConflictError, DuplicateKeyError), match="k7"):
        commit_write(slow, [result])
    assert shown(tmp_path) == [("a", "k1", 1), ("b", "k2", 1), ("b", "k7", 3)]
