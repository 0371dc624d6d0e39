"""Random histories of writes against a dict, whatever the partitioning, order, retries and duplicate attempts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyhudi.errors import UnsupportedTypeError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from support.drawn.histories import (
    LOGGED,
    POSITIONED,
    ROOMY,
    TABLE,
    TINY,
    check_abort,
    check_deleted_partitions,
    check_duplicates,
    check_history,
    check_lost_attempts,
    check_many_row_groups,
    check_placed_ties,
    check_ties,
    part,
    row,
)
from support.drawn.upkept import JOINING, OFF, SERVICES
from support.drive import read, write
from support.models.changing import with_merges
from support.models.logged_model import with_copies, without_copies
from support.models.model import SCHEMA, Step, histories, random_history
from support.places import Place, below
from support.rules.ends import assert_whole
from support.s3 import S3Server, new_url
from support.share import share_of

SLOW, LONG = pytest.mark.slow, pytest.mark.long


@settings(max_examples=share_of(25), deadline=None)
@given(histories(), st.booleans(), st.integers(0, 1 << 30))
def test_any_dealing_of_rows_gives_what_the_dict_says(history: list[Step], spills: bool, seed: int) -> None:
    """Partitioning, order, retries, duplicate attempts and spilling change nothing in the table's content."""
    check_history(with_merges(history, seed), bounds=TINY if spills else ROOMY, seed=seed)


@settings(max_examples=share_of(12), deadline=None)
@given(histories(steps=4), st.booleans(), st.integers(0, 1 << 30))
def test_colocated_writes_give_what_the_dict_says(history: list[Step], spills: bool, seed: int) -> None:
    """A task that holds whole file groups merges them itself, within its bounds or through spills."""
    check_history(with_merges(history, seed), bounds=replace(TINY if spills else ROOMY, colocated=True), seed=seed)


@settings(max_examples=share_of(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(steps=3), st.booleans(), st.booleans(), st.integers(0, 1 << 30))
def test_histories_on_s3_give_what_the_dict_says(
    direct_s3: S3Server, history: list[Step], colocated: bool, spills: bool, seed: int
) -> None:
    """A store of objects has no folders, no renames and a clock of whole seconds; hudi-rs reads from it too."""
    bounds = replace(TINY if spills else ROOMY, colocated=colocated)
    check_history(history, bounds=bounds, seed=seed, table=new_url())


@settings(max_examples=share_of(8), deadline=None)
@given(histories(steps=7), st.integers(0, 1 << 30))
def test_a_table_that_is_looked_after_holds_what_the_dict_says(history: list[Step], seed: int) -> None:
    """Cleans, archives, rollbacks, savepoints and restores between the writes, and moments that are gone back to."""
    check_history(with_merges(history, seed), seed=seed, services=SERVICES)


@settings(max_examples=share_of(8), deadline=None)
@given(histories(), st.sampled_from([ROOMY, TINY, replace(ROOMY, colocated=True)]), st.booleans(), st.integers(0, 99))
def test_any_dealing_of_rows_to_log_files_gives_what_the_dict_says(
    history: list[Step], bounds: WriteSettings, ordered: bool, seed: int
) -> None:
    """Whether the greater ordering value wins or the later row, in base files, log files, and between them."""
    made = LOGGED if ordered else replace(LOGGED, ordering_fields=())
    history = with_merges(without_copies(history), seed)
    check_history(history, bounds=replace(bounds, upkeep=OFF), seed=seed, made=made)


@settings(max_examples=share_of(8), deadline=None)
@given(histories(steps=7), st.booleans(), st.booleans(), st.integers(0, 1 << 30))
def test_log_files_speak_of_all_rows_that_inserts_add_to_a_key(
    history: list[Step], ordered: bool, served: bool, seed: int
) -> None:
    """An upsert, a delete or a merge takes those that it beats, before and after log compactions and compactions."""
    made = LOGGED if ordered else replace(LOGGED, ordering_fields=())
    services = (*SERVICES, *JOINING) if served else ()
    bounds = ROOMY if served else replace(ROOMY, upkeep=OFF)
    # hudi-rs holds a log entry against the first row of a key alone.
    check_history(with_copies(history), bounds=bounds, seed=seed, made=made, services=services, hudi_rs=False)


@settings(max_examples=share_of(8), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from([ROOMY, TINY, replace(ROOMY, colocated=True)]),
    st.sampled_from([TABLE, LOGGED]),
)
def test_a_delete_without_an_ordering_value_holds_wherever_its_rows_are_dealt(
    seed: int, bounds: WriteSettings, made: TableSettings
) -> None:
    """It takes away what came before it, of other tasks, too, and what comes after it counts anew."""
    history = without_copies(random_history(seed, steps=4, keys=3, resets=True))
    check_history(history, bounds=replace(bounds, upkeep=OFF), seed=seed, made=made)


@settings(max_examples=share_of(4), deadline=None)
@given(histories(steps=7), st.integers(0, 1 << 30))
def test_a_table_whose_logs_are_looked_after_holds_what_the_dict_says(history: list[Step], seed: int) -> None:
    """Compactions besides, planned and carried out at once or some writes later, which forget what was deleted."""
    history = with_merges(without_copies(history), seed)
    check_history(history, seed=seed, made=LOGGED, services=(*SERVICES, *JOINING))


@pytest.mark.parametrize("seed", [pytest.param(n, marks=SLOW if n == 1 else LONG) for n in range(6)])
def test_a_table_whose_logs_are_looked_after_for_long_holds_what_the_dict_says(seed: int) -> None:
    bounds = [ROOMY, TINY, replace(ROOMY, colocated=True)][seed % 3]
    made = replace(LOGGED, ordering_fields=()) if seed % 4 == 3 else LOGGED
    history = with_merges(without_copies(random_history(seed, steps=20, keys=8)), seed)

    check_history(history, bounds=bounds, seed=seed, made=made, services=(*SERVICES, *JOINING))


@pytest.mark.parametrize("seed", [pytest.param(n, marks=SLOW if n in (1, 3) else LONG) for n in range(8)])
def test_a_table_that_is_looked_after_for_long_holds_what_the_dict_says(seed: int) -> None:
    history = with_merges(random_history(seed, steps=30, keys=8), seed)
    life = check_history(history, seed=seed, services=SERVICES)

    assert life.undone, "some of it was taken back"


def test_a_tie_goes_to_the_later_row_of_the_later_task(tmp_path: Path) -> None:
    """Among equal ordering values the higher Spark partition wins, then the further row, then the newer write."""
    check_ties(tmp_path)


def test_a_tie_of_rows_that_were_moved_goes_to_the_one_that_stood_later(tmp_path: Path) -> None:
    """Rows that are placed by file group arrive in any order, and say where they stood."""
    check_placed_ties(tmp_path)


def test_where_rows_stood_is_taken_of_placed_rows_alone(tmp_path: Path) -> None:
    """Elsewhere the column would become one of the table."""
    table = below(tmp_path, "t")
    rows = part(row("k", ts=1, value=1)).append_column(POSITIONED, pa.array([0], pa.int64()))
    placed = WriteSettings(colocated=True)
    with pytest.raises(UnsupportedTypeError, match=r"_pyhudi_position.*colocated=true"):
        write(table, rows, table=TABLE)
    with pytest.raises(UnsupportedTypeError, match="bigint"):
        write(table, rows.cast(pa.schema([*SCHEMA, (POSITIONED.name, pa.string())])), table=TABLE, settings=placed)

    write(table, rows, table=TABLE, settings=placed)
    for operation in ("insert", "bulk_insert", "delete", "insert_overwrite"):
        write(table, rows, operation=operation, settings=placed)
    assert POSITIONED.name not in read(table).column_names
    assert_whole(table, unique=False)


def test_keys_that_are_there_already_and_keys_that_are_there_twice(tmp_path: Path) -> None:
    """Inserts add, drop or fail; an upsert beats every older row of its key, a delete removes them all."""
    check_duplicates(tmp_path)


def test_partitions_are_deleted_by_their_names(place: Place) -> None:
    """A star stands for anything; what names no partition of the table deletes nothing, inside it or outside."""
    check_deleted_partitions(place)


def test_an_attempt_that_published_and_never_reported_leaves_nothing(place: Place) -> None:
    """Its files go when the commit reconciles, whichever attempt a reader would prefer."""
    check_lost_attempts(place)


def test_a_write_given_up_leaves_the_table_as_it_was(place: Place) -> None:
    """Files that tasks had published go with it."""
    check_abort(place)


def test_files_of_many_row_groups_are_merged_whole(tmp_path: Path) -> None:
    """The last row group counts as much as the first."""
    check_many_row_groups(tmp_path)
