"""Rows that were made from a table's own, as `HudiTable.merge` makes them: an upsert that knows of no merge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.result import RowCounts
from support.drawn.changed_checks import BASE, check_counted, check_merges, check_swap
from support.drawn.histories import LOGGED, ROOMY, TABLE, UNORDERED, part, row
from support.drawn.lookups import APART
from support.drive import rows_of, write
from support.models.changing import based_on
from support.write_settings import write_settings


def looked_up(made: TableSettings, index: str) -> TableSettings:
    return replace(made, index_type=index, bucket_count=None)


SHAPES = {
    "bucket": TABLE,
    "bucket, log files": LOGGED,
    "later row wins": UNORDERED,
    "later row wins, log files": replace(LOGGED, ordering_fields=()),
    "several ordering fields": replace(TABLE, ordering_fields=("ts", "value")),
    "one partition": replace(TABLE, record_key_fields=("p", "id"), partition_fields=()),
    "simple": looked_up(TABLE, "SIMPLE"),
    "bloom, log files": looked_up(LOGGED, "BLOOM"),
    "unique keys": looked_up(TABLE, "GLOBAL_SIMPLE"),
    "unique keys, log files": looked_up(LOGGED, "GLOBAL_BLOOM"),
}


@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=pytest.mark.slow if number % 2 else ()) for number, one in enumerate(SHAPES)]
)
def test_merges_leave_what_a_dict_says(shape: str) -> None:
    """Rows are updated, go, come, move, swap their keys, and take places that others leave, in one instant each."""
    check_merges(SHAPES[shape])


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
        write(table, moved.slice(1), settings=write_settings(before, counted=RowCounts(deletes=1)))

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
    check_swap(tmp_path)


def test_a_write_that_does_something_else_than_was_counted_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    """It loses a row, or takes another one away, or leaves one behind that was to move."""
    check_counted(tmp_path)
