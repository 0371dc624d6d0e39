"""Rows that were made from a table's own, as `HudiTable.merge` makes them: an upsert that knows of no merge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, DuplicateKeyError
from pyhudi.operations.inspect.history import history, last_commit
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.result import RowCounts
from pyhudi.storage import open_storage
from support.changing import based_on, check_changes
from support.checks import assert_whole
from support.drive import rows_of, write
from support.health import findings
from support.histories import LOGGED, ROOMY, TABLE, TINY, UNORDERED, part, row
from support.lookups import APART
from support.readers import rows_by_hudi_rs
from support.upkept import OFF


def looked_up(made: TableSettings, index: str) -> TableSettings:
    return replace(made, index_type=index, bucket_count=None)


SHAPES = {
    "bucket": TABLE,
    "bucket, log files": LOGGED,
    "later row wins": UNORDERED,
    "later row wins, log files": replace(LOGGED, ordering_fields=()),
    "one partition": replace(TABLE, record_key_fields=("p", "id"), partition_fields=()),
    "simple": looked_up(TABLE, "SIMPLE"),
    "bloom, log files": looked_up(LOGGED, "BLOOM"),
    "unique keys": looked_up(TABLE, "GLOBAL_SIMPLE"),
    "unique keys, log files": looked_up(LOGGED, "GLOBAL_BLOOM"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_changed_rows_leave_what_a_dict_says(tmp_path: Path, shape: str) -> None:
    """Rows are updated, go, come, move, swap their keys, and take places that others leave, in one instant each."""
    made = SHAPES[shape]
    total = RowCounts()
    for seed in range(2):
        table = tmp_path / f"t{seed}"
        bounds = replace(TINY if seed else ROOMY, upkeep=OFF)
        counts = check_changes(table, made, bounds, steps=4, seed=seed)
        total = RowCounts(total.inserts + counts.inserts, total.updates + counts.updates, 0, total.moved + counts.moved)
        columns = ("p", "id", "ts", "value")
        assert rows_by_hudi_rs(table, *columns) == rows_of(table, *columns)
        # Base files hold rows that log files have deleted, and of unique keys those that have moved.
        assert [
            one for one in findings(table) if (one["code"], shape) != ("DUPLICATE_KEY", "unique keys, log files")
        ] == []
        assert_whole(table)

    assert min(total.inserts, total.moved) > 2
    assert total.updates > total.moved + 5


BASE = part(row("a", ts=1, value=1), row("b", ts=1, value=2), row("c", ts=1, value=3, p="c"))


@pytest.mark.parametrize("made", [TABLE, LOGGED, looked_up(TABLE, "SIMPLE")], ids=["bucket", "logs", "simple"])
def test_rows_that_others_changed_since_are_not_written_over(tmp_path: Path, made: TableSettings) -> None:
    """Whoever began earlier and ends later fails; what others add elsewhere stays, and a second try sees it."""
    table = tmp_path / "t"
    write(table, BASE, table=made, settings=APART)
    before = based_on(table, APART, RowCounts(updates=1, moved=1))
    moved = part(row("a", ts=1, value=1, p="b"), row("a", ts=1, value=1, deleted=True))
    write(table, part(row("new", ts=1, value=9, p="elsewhere")), settings=APART)
    write(table, part(row("a", ts=2, value=7)), settings=APART)
    with pytest.raises(CommitConflictError):
        write(table, moved, settings=before)
    with pytest.raises(CommitConflictError):
        write(table, moved.slice(1), settings=replace(before, counted=RowCounts(deletes=1)))

    assert rows_of(table, "id", "value") == [("a", 7), ("b", 2), ("c", 3), ("new", 9)]
    again = part(row("a", ts=2, value=7, p="b"), row("a", ts=2, value=7, deleted=True))
    write(table, again, settings=based_on(table, APART, RowCounts(updates=1, moved=1)))
    assert rows_of(table, "p", "id", "value") == [
        ("a", "b", 2),
        ("b", "a", 7),
        ("c", "c", 3),
        ("elsewhere", "new", 9),
    ]


def test_a_file_group_opened_meanwhile_for_the_place_that_a_row_moves_to_is_a_conflict(tmp_path: Path) -> None:
    table = tmp_path / "t"
    made = replace(TABLE, bucket_count=1)
    write(table, BASE, table=made)
    before = based_on(table, ROOMY, RowCounts(updates=1, moved=1))
    write(table, part(row("a", ts=1, value=9, p="new")))
    with pytest.raises(CommitConflictError, match="'new'"):
        write(table, part(row("a", ts=1, value=1, p="new"), row("a", ts=1, value=1, deleted=True)), settings=before)


def test_a_swap_of_keys_counts_as_two_rows_that_moved(tmp_path: Path) -> None:
    """Nobody reads that from the files, in which two rows were updated: the instant says it, and the history."""
    table = tmp_path / "t"
    write(table, BASE, table=TABLE)
    swapped = part(row("b", ts=1, value=1), row("a", ts=1, value=2))
    done = write(table, swapped, settings=based_on(table, ROOMY, RowCounts(updates=2, moved=2)))

    assert (done.inserts, done.updates, done.deletes, done.moved) == (0, 2, 0, 2)
    assert "2 updated, 2 moved" in repr(done)
    assert last_commit(open_storage(str(table))) == done
    newest = history(open_storage(str(table)), 1).select(["inserts", "updates", "deletes"]).to_pylist()
    assert newest == [{"inserts": 0, "updates": 2, "deletes": 0}]
    assert rows_of(table, "id", "value") == [("a", 2), ("b", 1), ("c", 3)]


@pytest.mark.parametrize(
    ("counts", "rows"),
    [
        (RowCounts(deletes=1), part(row("twice", ts=9, value=0, deleted=True))),
        (RowCounts(updates=1), part(row("twice", ts=9, value=0))),
        (RowCounts(inserts=1), part(row("a", ts=9, value=0))),
        (RowCounts(updates=1), part(row("a", ts=0, value=0))),
        (RowCounts(updates=1, moved=1), part(row("a", ts=9, value=0, p="b"))),
    ],
    ids=["deletes two", "updates two", "new key is there", "loses", "leaves no delete"],
)
def test_a_write_that_does_something_else_than_was_counted_leaves_the_table_as_it_was(
    tmp_path: Path, counts: RowCounts, rows: pa.Table
) -> None:
    table = tmp_path / "t"
    twice = part(row("twice", ts=1, value=1), row("twice", ts=2, value=2))
    write(table, pa.concat_tables([BASE, twice]), operation="insert", table=TABLE)
    before = rows_of(table, "id", "value")
    with pytest.raises(DuplicateKeyError, match="several times"):
        write(table, rows, settings=based_on(table, ROOMY, counts))

    assert rows_of(table, "id", "value") == before
