"""Two writers on one table: one commits, the other is told and leaves nothing.

Where a store's clock, its listings or its conditional writes decide, S3 is asked too; what commits say of file groups
and keys decides alike on every store.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.watermark import spell_moment
from pyhudi.timeline.writers.patience import Patience
from support.drawn.lookups import (
    APART,
    LOGGED,
    PLACED,
    check_copies_of_others,
    check_new_keys_apart,
    check_one_new_key,
    check_one_new_key_of_placed_rows,
    check_one_new_key_of_the_table,
    check_their_copy,
    said,
)
from support.drawn.lookups import TABLE as LOOKED_UP
from support.drawn.lookups import rows as looked_up
from support.drawn.upkept import OFF
from support.drive import at_time, carry_out, noted, plan, rows_of, task, write
from support.faults.races import (
    SCHEMA,
    TABLE,
    check_begun_again,
    check_commit_during_rollback,
    check_given_up_by_another_release,
    check_one_new_bucket,
    check_partition_fills,
    check_publish_during_end,
    check_publish_during_rollback,
    check_start_after_abort,
    check_start_after_commit,
    check_start_during_abort,
    check_straggler,
    check_taken_for_dead,
    rows,
)
from support.made import compacting
from support.made.cleaning import archive
from support.places import Place, below, some_on_s3
from support.rules.ends import assert_whole
from support.threads import at_once
from support.write_settings import write_settings


def test_two_that_start_in_one_moment_and_open_the_same_new_bucket(place: Place) -> None:
    """Both invent a file group for the new bucket under their own instant; the later commit is refused."""
    check_one_new_bucket(place)


def test_two_of_one_millisecond_do_not_undo_each_other(place: Place) -> None:
    """The second finds its time taken and takes the next; its abort leaves the first one's instant alone."""
    table = below(place, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    first, second, third = (plan(table, SCHEMA) for _ in range(3))
    result = task(first, rows("a", "k1", value=2), 0)
    at_time(second, noted(first))
    at_time(third, noted(first))
    theirs = [task(second, rows("b", "k1", value=3), number) for number in (0, 1)]
    assert theirs[0].instant_time == theirs[1].instant_time > noted(first)
    abort_write(third)
    commit_write(second, theirs[:1])
    commit_write(first, [result])

    assert rows_of(table, "p", "id", "value") == [("a", "k1", 2), ("b", "k1", 3)]
    assert_whole(table)


def test_two_that_touch_different_file_groups_both_commit(place: Place) -> None:
    """Optimism pays where nothing is shared."""
    table = below(place, "t")
    write(table, [rows("a", "k1", value=1), rows("b", "k2", value=1)], table=TABLE)
    first, second = plan(table, SCHEMA), plan(table, SCHEMA)
    results = [task(first, rows("a", "k1", value=2), 0), task(second, rows("b", "k2", value=3), 0)]
    commit_write(second, results[1:])
    commit_write(first, results[:1])

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 3)]
    assert_whole(table)


def test_an_overwrite_conflicts_with_every_commit_since_it_began(tmp_path: Path) -> None:
    """What it would replace is no longer what it saw."""
    table = below(tmp_path, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    overwriting, upserting = plan(table, SCHEMA, overwrite=True), plan(table, SCHEMA)
    mine, theirs = task(overwriting, rows("z", "new", value=9), 0), task(upserting, rows("b", "k2", value=2), 0)
    commit_write(upserting, [theirs])
    with pytest.raises(CommitConflictError):
        commit_write(overwriting, [mine])
    abort_write(overwriting)

    assert rows_of(table, "id") == [("k1",), ("k2",)]
    assert_whole(table)


PAIRS = [
    ("insert_overwrite", "a", "upsert", "a", False),
    ("insert_overwrite", "a", "upsert", "b", True),
    ("insert_overwrite", "a", "insert", "a", False),
    ("insert_overwrite", "a", "delete", "a", False),
    ("insert_overwrite", "a", "insert_overwrite", "a", False),
    ("insert_overwrite", "a", "insert_overwrite", "b", True),
    ("insert_overwrite", "a", "delete_partition", "a", False),
    ("insert_overwrite", "new", "upsert", "new", False),
    ("delete_partition", "a", "upsert", "a", False),
    ("delete_partition", "a", "upsert", "b", True),
    ("delete_partition", "a", "delete_partition", "b", True),
    ("upsert", "a", "insert_overwrite", "a", False),
    ("upsert", "a", "insert_overwrite", "b", True),
    ("upsert", "a", "delete_partition", "a", False),
    ("insert", "a", "insert", "a", False),
    ("insert", "a", "bulk_insert", "b", True),
    ("upsert", "a", "insert_overwrite_table", "b", False),
]


@some_on_s3("pair", PAIRS, 6)
def test_who_wins_where_one_replaces_and_another_writes(anywhere: Place, pair: tuple[str, str, str, str, bool]) -> None:
    """The later commit fails if the earlier one changed a file group of its own, or a partition that it replaces."""
    mine, my_partition, theirs, where, both = pair
    table = below(anywhere, "t")
    write(table, [rows("a", "k1", value=1), rows("b", "k1", value=1)], table=TABLE)
    first, second = plan(table, SCHEMA, operation=mine), plan(table, SCHEMA, operation=theirs)
    result = task(first, rows(my_partition, "k1", value=2), 0)
    commit_write(second, [task(second, rows(where, "k1", value=3), 1)])
    if both:
        commit_write(first, [result])
    else:
        with pytest.raises(CommitConflictError, match=noted(second)):
            commit_write(first, [result])
        abort_write(first)

    assert_whole(table, unique=False)


def test_a_partition_that_fills_while_it_is_deleted(tmp_path: Path) -> None:
    """A bucket of it that had no file group yet, or a partition that was not there yet, is not what was deleted."""
    check_partition_fills(tmp_path)


def test_a_write_based_on_an_older_snapshot(tmp_path: Path) -> None:
    """Rows made from the table conflict with whoever changed their file groups since, and with nobody else."""
    table = below(tmp_path, "t")
    write(table, [rows("a", "k1", value=1), rows("b", "k2", value=1)], table=TABLE)
    storage = open_storage(str(table))
    moment = open_table(storage).timeline().completed_until
    write(table, rows("a", "k1", value=2))
    based = write_settings(based_on=moment)
    with pytest.raises(CommitConflictError):
        write(table, rows("a", "k1", value=3), operation="delete", settings=based)
    write(table, rows("b", "k2", value=3), operation="delete", settings=based)

    assert rows_of(table, "id", "value") == [("k1", 2)]
    assert_whole(table)


QUIET = WriteSettings(upkeep=OFF)


@pytest.mark.parametrize(("index", "archived"), [("BUCKET", 2), ("SIMPLE", 4)])
def test_a_write_based_on_a_moment_before_archived_commits(tmp_path: Path, index: str, archived: int) -> None:
    """Commits that completed after the moment conflict from the archive too; commits up to the moment do not."""
    table, made = below(tmp_path, "t"), replace(TABLE, index_type=index)
    made = made if index == "BUCKET" else replace(made, bucket_count=None)
    write(table, [rows("a", "k1", value=1), rows("b", "k2", value=1)], table=made, settings=QUIET)
    storage = open_storage(str(table))
    based = write_settings(QUIET, based_on=open_table(storage).timeline().completed_until)
    write(table, rows("a", "k1", value=2), settings=QUIET)
    for value in (3, 4, 5):
        write(table, rows("c", "k3", value=value), settings=QUIET)
    archive(table, archived)

    with pytest.raises(CommitConflictError):
        write(table, rows("a", "k1", value=3), operation="delete", settings=based)
    write(table, rows("b", "k2", value=3), operation="delete", settings=based)

    assert rows_of(table, "id", "value") == [("k1", 2), ("k3", 5)]
    assert_whole(table)


def test_a_write_based_on_a_moment_of_which_the_archive_tells_nothing(tmp_path: Path) -> None:
    table = below(tmp_path, "t")
    write(table, [rows("a", "k1", value=1)], table=TABLE, settings=QUIET)
    storage = open_storage(str(table))
    based = write_settings(QUIET, based_on=open_table(storage).timeline().completed_until)
    for value in (2, 3, 4):
        write(table, rows("a", "k1", value=value), settings=QUIET)
    archive(table, 2, told=False)

    with pytest.raises(CommitConflictError, match="the archive does not tell"):
        write(table, rows("b", "k2", value=9), settings=based)


def test_rows_made_from_the_table_while_a_clock_lagged(place: Place) -> None:
    """A commit that completed after they were made, by its own clock before, cannot be told from what they saw."""
    table = below(place, "t")
    write(table, [rows("a", "k1", value=1), rows("b", "k2", value=1)], table=TABLE)
    storage = open_storage(str(table))
    moment = spell_moment(open_table(storage).timeline().completed)
    based = write_settings(based_on=moment)
    write(table, rows("b", "k2", value=2))
    write(table, rows("a", "k1", value=3), operation="delete", settings=based)
    timeline = open_table(storage).timeline()
    late = timeline.writes[1]
    body = storage.read(timeline.files.path(late))
    storage.delete(timeline.files.path(late))
    storage.write(timeline.files.path(replace(late, completion_time=moment.partition(":")[0])), body)
    with pytest.raises(CommitConflictError, match="a clock that lags"):
        plan(table, SCHEMA, operation="delete", settings=based)

    assert rows_of(table, "id", "value") == [("k2", 2)]


def test_two_that_create_one_table_differently(place: Place) -> None:
    """The second finds the first's properties, which disagree with its own."""
    table = below(place, "t")
    first = plan(table, SCHEMA, table=TABLE)
    second = plan(table, SCHEMA, table=TableSettings(record_key_fields=("id",), bucket_count=5))
    results = [task(first, rows("a", "k", value=1), 0), task(second, rows("a", "k", value=2), 0)]
    commit_write(first, results[:1])
    with pytest.raises(CommitConflictError):
        commit_write(second, results[1:])
    abort_write(second)

    assert rows_of(table, "id", "value") == [("k", 1)]
    assert_whole(table)


def test_a_write_beside_a_living_write_commits_and_so_does_that(place: Place) -> None:
    """While its heartbeat is young no write rolls a write back."""
    table = below(place, "t")
    write(table, [rows("a", "k1", value=1), rows("b", "k1", value=1)], table=TABLE)
    living = plan(table, SCHEMA)
    result = task(living, rows("a", "k1", value=2), 0)
    write(table, rows("b", "k1", value=3))
    commit_write(living, [result])

    assert rows_of(table, "p", "value") == [("a", 2), ("b", 3)]
    assert_whole(table)


def test_of_two_living_writes_of_one_file_group_the_later_to_commit_conflicts(place: Place) -> None:
    table = below(place, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    living = plan(table, SCHEMA)
    result = task(living, rows("a", "k1", value=2), 0)
    write(table, rows("a", "k1", value=3))
    with pytest.raises(CommitConflictError, match=noted(living)):
        commit_write(living, [result])
    abort_write(living)

    assert rows_of(table, "value") == [(3,)]
    assert_whole(table)


def test_a_single_writer_is_refused_at_once_beside_a_living_write(place: Place) -> None:
    table = below(place, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    living = plan(table, SCHEMA)
    result = task(living, rows("a", "k1", value=2), 0)
    with pytest.raises(ConcurrentWriteError, match=noted(living)):
        plan(table, SCHEMA, settings=WriteSettings(patience=Patience(single_writer=True)))
    commit_write(living, [result])

    assert rows_of(table, "value") == [(2,)]
    assert_whole(table)


def test_a_write_taken_for_dead_cannot_commit_any_more(place: Place) -> None:
    """Its instant was rolled back meanwhile: the commit says so instead of bringing back half a write."""
    check_taken_for_dead(place)


def test_a_write_taken_for_dead_that_a_late_task_begins_again_cannot_commit(place: Place) -> None:
    """The files of its earlier tasks are gone for good."""
    check_begun_again(place)


def test_a_file_that_lands_after_its_write_was_rolled_back_goes_again(place: Place) -> None:
    """Tasks of a write taken for dead may still be at work."""
    check_publish_during_rollback(place)


def test_a_file_that_lands_in_a_partition_that_a_rollback_closed_goes_again(place: Place) -> None:
    check_commit_during_rollback(place)


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_a_file_that_lands_after_its_write_has_ended_goes_again(place: Place, ending: str) -> None:
    """An attempt that passed the check for the seal right before looks once more."""
    check_publish_during_end(place, ending)


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_a_task_that_still_writes_after_abort_publishes_nothing(place: Place, colocated: bool) -> None:
    """Spark aborts while sibling tasks go on for seconds."""
    check_straggler(place, colocated=colocated)


def test_a_task_that_starts_after_abort_brings_nothing_back(place: Place) -> None:
    """The instant stays off the timeline."""
    check_start_after_abort(place)


def test_a_task_that_starts_after_the_commit_begins_nothing(place: Place) -> None:
    check_start_after_commit(place)


def test_a_task_takes_its_files_back_where_an_older_release_gave_its_write_up(place: Place) -> None:
    """That release seals where it always has; one look after a task's last file honours it."""
    check_given_up_by_another_release(place)


def test_a_task_that_starts_while_its_write_is_given_up_brings_nothing_back(place: Place) -> None:
    """It found no seal, and then no instant."""
    check_start_during_abort(place)


def test_a_commit_whose_answer_was_lost_is_taken_again(place: Place) -> None:
    """The second commit of one plan finds the first one's instant, and abort leaves it alone."""
    table = below(place, "t")
    planned = plan(table, SCHEMA, table=TABLE)
    results = [task(planned, rows("a", "k1", value=1), 0)]
    first = commit_write(planned, results)
    second = commit_write(planned, results)
    abort_write(planned)

    assert second == first
    assert rows_of(table, "id", "value") == [("k1", 1)]
    assert_whole(table)


def test_a_replay_of_a_completed_write_does_nothing(place: Place) -> None:
    """The caller's own write id identifies a job that is run again after its answer was lost."""
    table = below(place, "t")
    first = write(table, rows("a", "k1", value=1), table=TABLE, write_id="job-7")
    write(table, rows("a", "k1", value=2), write_id="job-8")
    replay = write(table, rows("a", "k1", value=1), write_id="job-7")

    assert replay == first
    assert rows_of(table, "value") == [(2,)]
    assert_whole(table)


def completed(found: list[int | Exception]) -> list[int]:
    """Return the writers that were not refused."""
    assert all(isinstance(one, (int, CommitConflictError, ConcurrentWriteError)) for one in found)
    return [one for one in found if isinstance(one, int)]


def test_many_writers_at_once_lose_no_committed_row(place: Place) -> None:
    """Eight threads upsert one row each into one bucket; whatever was reported as committed is there."""
    table = below(place, "t")
    write(table, rows("a", "k0", value=0), table=TABLE)

    def upsert(number: int) -> int:
        carry_out(plan(table, SCHEMA), [rows("a", f"k{number}", value=number)])
        return number

    committed_numbers = completed(at_once(8, upsert))

    assert rows_of(table, "id") == sorted([("k0",), *((f"k{number}",) for number in committed_numbers)])
    assert committed_numbers
    assert_whole(table)


@pytest.mark.parametrize("made", [LOOKED_UP, LOGGED], ids=["cow", "mor"])
def test_two_that_add_one_key_to_file_groups_of_their_own(tmp_path: Path, made: TableSettings) -> None:
    """Neither file group is the other's; the key is in both, and the later commit is refused."""
    check_one_new_key(tmp_path, made)


@pytest.mark.parametrize("made", [LOOKED_UP, LOGGED], ids=["cow", "mor"])
def test_two_that_add_different_keys_to_one_partition_both_commit(tmp_path: Path, made: TableSettings) -> None:
    check_new_keys_apart(tmp_path, made)


def test_two_that_add_one_key_to_different_partitions_of_a_global_index(tmp_path: Path) -> None:
    check_one_new_key_of_the_table(tmp_path)


def test_two_whose_rows_were_placed_add_one_key(tmp_path: Path) -> None:
    check_one_new_key_of_placed_rows(tmp_path)


def test_a_key_found_where_it_was_deleted_that_others_add_anew(tmp_path: Path) -> None:
    """A compaction between the two lookups took it out of the file group in which the first one found it."""
    write(tmp_path, looked_up(1, 2, 3, value=1), table=LOGGED, settings=APART)
    write(tmp_path, looked_up(2, value=2), operation="delete", settings=APART)
    first, second = (plan(tmp_path, SCHEMA, settings=APART) for _ in range(2))
    assert compacting.run(tmp_path).instant
    write(tmp_path, looked_up(2, 4, value=3), settings=APART)
    mine, apart = task(first, looked_up(1, 2, value=4), 0), task(second, looked_up(1, 3, value=5), 0)
    with pytest.raises(
        CommitConflictError,
        match=r"deltacommit \d+ \(write id .*\) completed meanwhile and added the record key 'k2'",
    ):
        commit_write(first, [mine])
    abort_write(first)
    commit_write(second, [apart])

    assert rows_of(tmp_path, "id", "value") == [("k1", 5), ("k2", 3), ("k3", 5), ("k4", 3)]
    assert_whole(tmp_path)


@pytest.mark.parametrize("undone", ["upsert", "delete"])
def test_keys_that_were_looked_up_before_a_rollback(tmp_path: Path, undone: str) -> None:
    """What was deleted is back, and what was there is not, though no file group of the later write is concerned."""
    write(tmp_path, looked_up(1, 2, value=1), table=LOOKED_UP, settings=APART)
    last = write(tmp_path, looked_up(2, 3, value=2), operation=undone, settings=APART)
    # Key 2 was not found after the delete; key 3 was found after the upsert, and left out.
    placed = said(looked_up(2, 4, value=3) if undone == "delete" else looked_up(4, value=3, p="b"), "+0")
    how = write_settings(PLACED, insert_dup_policy="none" if undone == "delete" else "drop")
    work = plan(tmp_path, placed.schema, operation="upsert" if undone == "delete" else "insert", settings=how)
    rollback(open_storage(str(tmp_path)), last.instant)
    result = task(work, placed, 0)
    with pytest.raises(CommitConflictError, match="was rolled back meanwhile"):
        commit_write(work, [result])
    abort_write(work)

    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 1)]
    assert_whole(tmp_path)


def test_a_key_that_others_added_and_carried_along(tmp_path: Path) -> None:
    check_their_copy(tmp_path)


def test_rows_that_others_carried_along_or_added_without_looking(tmp_path: Path) -> None:
    check_copies_of_others(tmp_path)


def test_many_writers_at_once_add_no_key_twice(place: Place) -> None:
    """Six threads upsert the same new key and one of their own, each to a file group of its own."""
    table = below(place, "t")
    write(table, looked_up(0, value=0), table=LOOKED_UP, settings=APART)

    def upsert(number: int) -> int:
        carry_out(plan(table, SCHEMA, settings=APART), [looked_up(99, number, value=number)])
        return number

    committed_numbers = completed(at_once(6, upsert))

    assert rows_of(table, "id") == sorted([("k0",), ("k99",), *((f"k{number}",) for number in committed_numbers)])
    assert committed_numbers
    assert_whole(table)
