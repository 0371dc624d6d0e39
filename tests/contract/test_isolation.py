"""Writes made from rows of the table: what others commit meanwhile counts where it changes which rows these are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.read_rows import ReadRows
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.reader.skipping.predicates import Compare, IsNull, Predicate
from support.drawn.lookups import APART, SCHEMA, TABLE, rows
from support.drive import plan, rows_of, task, write
from support.made.compacting import run, schedule
from support.rules.checks import java_bucket
from support.write_settings import write_settings

BUCKETS = replace(TABLE, index_type=None, bucket_count=8)
LOGGED = replace(BUCKETS, table_type="MERGE_ON_READ")
KINDS = {"copy on write": BUCKETS, "merge on read": LOGGED, "looked up": TABLE}
ALL: tuple[Predicate, ...] = ()
LARGE = (Compare("value", ">=", 100),)


def bucket(key: int) -> int:
    return java_bucket(f"k{key}", ["id"], 8)


# Of a bucket of its own each, so that no write meets another by its file group.
MINE, THEIRS, OTHER = (next(key for key in range(100) if bucket(key) == number) for number in (0, 1, 2))


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest) -> TableSettings:
    return KINDS[request.param]


@pytest.fixture
def table(tmp_path: Path, made: TableSettings) -> Path:
    for key in (MINE, THEIRS, OTHER):
        write(tmp_path, rows(key, value=1), table=made, settings=APART)
    return tmp_path


def reading(table: Path, *predicates: Predicate, absence: bool = False, operation: str | None = None) -> WritePlan:
    """Plan a write that such rows of the table decided about."""
    return plan(table, SCHEMA, settings=reads(*predicates, absence=absence), operation=operation)


def reads(*predicates: Predicate, absence: bool = False) -> WriteSettings:
    return write_settings(APART, read=(ReadRows(predicates, absence),))


def commit(planned: WritePlan) -> None:
    commit_write(planned, [task(planned, rows(MINE, value=2), 0)])


def refused(planned: WritePlan) -> None:
    with pytest.raises(CommitConflictError, match="rows that decided what this write does"):
        commit(planned)
    abort_write(planned)


def test_a_row_that_satisfies_the_condition_now_is_a_conflict(table: Path) -> None:
    """An update of a row to such a value, in a file group that the write has not met."""
    planned = reading(table, *LARGE)
    write(table, rows(THEIRS, value=100), settings=APART)
    refused(planned)

    commit(reading(table, *LARGE))
    assert rows_of(table, "id", "value") == sorted([(f"k{MINE}", 2), (f"k{THEIRS}", 100), (f"k{OTHER}", 1)])


def test_a_new_row_that_satisfies_the_condition_is_a_conflict(table: Path) -> None:
    key = next(one for one in range(100) if bucket(one) == 3)
    planned = reading(table, *LARGE)
    write(table, rows(key, value=100), settings=APART)
    refused(planned)


def test_rows_that_do_not_satisfy_the_condition_are_no_conflict(table: Path) -> None:
    planned = reading(table, *LARGE, absence=True)
    write(table, rows(next(one for one in range(100) if bucket(one) == 3), value=99), settings=APART)
    commit(planned)


def test_another_partition_than_that_of_the_condition_is_no_conflict(table: Path) -> None:
    planned = reading(table, Compare("p", "=", "a"), absence=True)
    write(table, rows(THEIRS, value=100, p="b"), settings=APART)
    commit(planned)


def test_without_predicates_every_row_counts(table: Path) -> None:
    planned = reading(table)
    write(table, rows(THEIRS, value=5), settings=APART)
    refused(planned)


def test_older_rows_of_a_rewritten_file_are_no_conflict(tmp_path: Path) -> None:
    """The footer of the whole file would admit them."""
    write(tmp_path, [rows(1, value=100, p="b"), rows(2, value=1, p="b"), rows(MINE, value=1)], table=TABLE)
    planned = reading(tmp_path, *LARGE)
    write(tmp_path, rows(2, value=2, p="b"))
    commit(planned)


def test_the_bucket_of_the_key_alone_counts(tmp_path: Path) -> None:
    """Rows that the other write put elsewhere are not read, whatever they are."""
    write(tmp_path, rows(MINE, value=1), table=BUCKETS)
    planned = reading(tmp_path, Compare("id", "=", f"k{OTHER}"), absence=True)
    write(tmp_path, rows(THEIRS, value=5))
    write(tmp_path, rows(THEIRS, value=5), operation="delete")
    commit(planned)


@pytest.mark.parametrize("absence", [True, False])
def test_a_row_that_is_gone_counts_where_its_absence_does(table: Path, absence: bool) -> None:
    planned = reading(table, Compare("id", ">=", "k"), absence=absence)
    write(table, rows(THEIRS, value=5), operation="delete", settings=APART)
    if absence:
        refused(planned)
    else:
        commit(planned)


def test_a_row_that_satisfies_the_condition_no_more_counts_where_its_absence_does(table: Path) -> None:
    planned = reading(table, Compare("value", "=", 1), absence=True)
    write(table, rows(THEIRS, value=5), settings=APART)
    refused(planned)


def test_a_replaced_partition_counts_where_the_absence_of_rows_does(tmp_path: Path) -> None:
    write(tmp_path, [rows(MINE, value=1), rows(THEIRS, value=1, p="b")], table=BUCKETS)
    for absence in (True, False):
        planned = reading(tmp_path, Compare("value", "=", 1), absence=absence)
        write(tmp_path, rows(THEIRS, value=5, p="b"), operation="insert_overwrite")
        (refused if absence else commit)(planned)


def test_a_compaction_changes_no_rows(tmp_path: Path) -> None:
    write(tmp_path, [rows(MINE, value=1), rows(THEIRS, value=1, p="b")], table=LOGGED)
    write(tmp_path, rows(THEIRS, value=100, p="b"))
    planned = reading(tmp_path, *LARGE, absence=True)
    schedule(tmp_path)
    run(tmp_path)
    commit(planned)


def test_a_condition_on_a_column_that_the_table_lacks_by_now_meets_everything(table: Path) -> None:
    planned = reading(table, IsNull("nothing"))
    write(table, rows(THEIRS, value=5), settings=APART)
    refused(planned)


def test_a_value_that_compares_with_no_value_of_the_column_meets_everything(table: Path) -> None:
    planned = reading(table, Compare("value", "=", "one"))
    write(table, rows(THEIRS, value=5), settings=APART)
    refused(planned)


def test_what_nothing_was_read_for_is_held_against_file_groups_alone(table: Path) -> None:
    planned = plan(table, SCHEMA, settings=APART)
    write(table, rows(THEIRS, value=100), settings=APART)
    commit(planned)


def test_an_insert_that_dropped_a_key_conflicts_with_its_deletion(tmp_path: Path, made: TableSettings) -> None:
    """Two inserts of one key, of which another writer deletes the first in between; the table would have neither."""
    dropping = write_settings(APART, insert_dup_policy="drop")
    write(tmp_path, rows(MINE, value=1), table=made, settings=APART)
    second = plan(tmp_path, SCHEMA, operation="insert", settings=dropping)
    write(tmp_path, rows(MINE, value=1), operation="delete", settings=APART)
    try:
        commit(second)
    except CommitConflictError:
        abort_write(second)
        write(tmp_path, rows(MINE, value=2), operation="insert", settings=dropping)

    assert rows_of(tmp_path, "id", "value") == [(f"k{MINE}", 2)]
