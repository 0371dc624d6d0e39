"""Tables whose keys are unique whatever their partition: rows move between partitions, or stay where they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pyhudi.errors import CommitConflictError, DuplicateKeyError
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.table.config.property_keys import COPY_ON_WRITE, MERGE_ON_READ
from support.drawn.histories import ROOMY, TABLE, TINY
from support.drawn.histories import check_history as check_history_of_all
from support.drawn.shaped import IMPATIENT, SERVICES
from support.drawn.spread_everywhere import write_spread
from support.drawn.unique_keys import SCHEMA, STEPS, Row, Shape, check_history, how, parts_of, shapes, shown, table
from support.drawn.upkept import OFF
from support.drive import plan, read, task, write
from support.models.everywhere_model import without_twins
from support.models.model import random_history
from support.share import share_of

SHAPES = [(index, kind) for index in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM") for kind in (COPY_ON_WRITE, MERGE_ON_READ)]
# Whether tasks settle the rows before they are written; how the index finds keys is not theirs to know.
WAYS = [*((*one, False) for one in SHAPES), *((*one, True) for one in SHAPES[:2])]


@pytest.mark.parametrize(
    "examples", [5, pytest.param(15, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.long)]
)
@pytest.mark.parametrize(("index", "table_type", "spread"), WAYS)
def test_histories_of_unique_keys(
    tmp_path_factory: pytest.TempPathFactory, index: str, table_type: str, spread: bool, examples: int
) -> None:
    """Whatever is written, the table holds what a dict by key alone would."""

    @settings(max_examples=share_of(examples), deadline=None, suppress_health_check=list(HealthCheck))
    @given(shapes(index, table_type, spread=spread), STEPS)
    def histories(shape: Shape, steps: list[Any]) -> None:
        check_history(tmp_path_factory.mktemp("t") / "t", shape, steps)

    histories()


LIVES = [("GLOBAL_SIMPLE", (), 0), ("GLOBAL_SIMPLE", (), 1), ("GLOBAL_BLOOM", (), 2), ("GLOBAL_BLOOM", SERVICES, 3)]
LONGER = [(index, services, seed) for index, services, _ in LIVES[1:] for seed in range(4, 6)]
LONGEST = [(index, services, seed) for index, services, _ in LIVES[1:] for seed in range(6, 9)]


@pytest.mark.parametrize(
    ("index", "services", "seed"),
    [
        *LIVES,
        *(pytest.param(*one, marks=pytest.mark.slow) for one in LONGER),
        *(pytest.param(*one, marks=pytest.mark.long) for one in LONGEST),
    ],
)
def test_histories_of_all_operations_with_deaths_and_services(index: str, services: tuple[str, ...], seed: int) -> None:
    """Keys of two partitions are the same ones; some writes die and some tasks run twice."""
    history = without_twins(random_history(seed, steps=8, keys=6))
    made = replace(TABLE, index_type=index, bucket_count=None)
    bounds = replace(TINY if seed % 2 else ROOMY, patience=IMPATIENT, lookup=how(small=seed % 3 * 10_000).lookup)

    check_history_of_all(history, bounds=bounds, seed=seed, made=made, deaths=not services, services=services)


@pytest.mark.parametrize("table_type", [COPY_ON_WRITE, MERGE_ON_READ])
def test_a_row_moves_with_its_partition_and_is_told_as_one_that_went_and_one_that_came(
    tmp_path: Path, table_type: str
) -> None:
    path = tmp_path / "t"
    write(
        path,
        parts_of([Row(1, "x", 1, 10), Row(2, "x", 1, 20), Row(3, "y", 5, 30)], 1),
        table=table("GLOBAL_SIMPLE", table_type),
    )

    result = write(path, parts_of([Row(1, "y", 2, 11), Row(2, "x", 2, 21), Row(3, "x", 4, 31), Row(4, "z", 1, 40)], 1))

    assert shown(path) == [("x", 2, "x", 2, 21), ("y", 1, "y", 2, 11), ("y", 3, "y", 5, 30), ("z", 4, "z", 1, 40)]
    assert (result.inserts, result.updates, result.deletes) == (2, 1, 1)


@pytest.mark.parametrize("table_type", [COPY_ON_WRITE, MERGE_ON_READ])
def test_a_row_that_came_back_is_not_met_by_what_its_first_place_says_of_it(tmp_path: Path, table_type: str) -> None:
    """A log file deleted it there, in a file whose keys still name it."""
    path = tmp_path / "t"
    for row in (Row(1, "x", 1, 10), Row(1, "y", 3, 11), Row(1, "x", 2, 12), Row(1, "z", 4, 13), Row(1, "x", 5, 14)):
        write(path, parts_of([row, Row(2, "x", row.ts, 0)], 1), table=table("GLOBAL_SIMPLE", table_type))

    assert [one for one in shown(path) if one[1] == 1] == [("x", 1, "x", 5, 14)]


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("again", range(3))
def test_a_row_meets_the_last_delete_of_its_partition(tmp_path: Path, spread: bool, again: int) -> None:
    """Log files of two file groups of it have one, by whose names, drawn anew each time, nobody can tell which."""
    path, said, quiet = tmp_path / "t", table("GLOBAL_SIMPLE", MERGE_ON_READ), how(small=0, upkeep=OFF)
    carry_out = write_spread if spread else write
    for row in (Row(1, "x", 1, 10), Row(1, "y", 3, 11), Row(1, "x", 5, 12), Row(1, "y", 7, 13)):
        carry_out(path, parts_of([row], 1), table=said, settings=quiet)
    settings = how(upkeep=OFF, partitions_to_delete=("y",))
    write(path, SCHEMA.empty_table(), operation="delete_partition", settings=settings)

    carry_out(path, parts_of([Row(1, "x", 6, 14)], 1), settings=quiet)
    assert shown(path) == []
    carry_out(path, parts_of([Row(1, "x", 7, 15)], 1), settings=quiet)
    assert shown(path) == [("x", 1, "x", 7, 15)]


@pytest.mark.parametrize("spread", [False, True])
def test_a_delete_among_rows_to_be_added_is_counted_once(tmp_path: Path, spread: bool) -> None:
    """Wherever its key is, and was."""
    path, said = tmp_path / "t", table("GLOBAL_SIMPLE", MERGE_ON_READ)
    for row in (Row(1, "x", 1, 10), Row(1, "y", 2, 11)):
        write(path, parts_of([row], 1), table=said)

    adding = how(insert_dup_policy="drop")
    rows = parts_of([Row(1, "x", 3, 0, True), Row(2, "x", 3, 0, True), Row(3, "x", 3, 12)], 1)
    result = (write_spread if spread else write)(path, rows, operation="insert", settings=adding)

    assert (result.inserts, result.deletes, result.not_found, result.dropped) == (1, 0, 2, 0)
    assert shown(path) == [("x", 3, "x", 3, 12), ("y", 1, "y", 2, 11)]


def test_a_row_that_stays_holds_what_it_was_written_with(tmp_path: Path) -> None:
    """As in Apache Hudi: it is in the partition of its key, and its column says what the write said."""
    path = tmp_path / "t"
    write(path, parts_of([Row(1, "x", 1, 10)], 1), table=table("GLOBAL_BLOOM"))
    write(path, parts_of([Row(1, "y", 2, 11)], 1), settings=how(moves=False))

    assert shown(path) == [("x", 1, "y", 2, 11)]


@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_inserts_that_look_for_duplicates_look_in_all_partitions(tmp_path: Path, policy: str) -> None:
    path = tmp_path / "t"
    write(path, parts_of([Row(1, "x", 1, 10)], 1), table=table("GLOBAL_SIMPLE"))
    rows = parts_of([Row(1, "y", 2, 11), Row(2, "y", 2, 20)], 1)
    if policy == "fail":
        with pytest.raises(DuplicateKeyError, match="'1'"):
            write(path, rows, operation="insert", settings=how(insert_dup_policy=policy))
    else:
        result = write(path, rows, operation="insert", settings=how(insert_dup_policy=policy))
        assert (result.inserts, result.dropped) == (1, 1)
    assert [one[:2] for one in shown(path)] == [("x", 1), ("y", 2)][: 1 if policy == "fail" else 2]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite_table"])
def test_rows_of_one_key_are_folded_whatever_their_partitions(tmp_path: Path, operation: str) -> None:
    parts = [
        *parts_of([Row(1, "x", 3, 10), Row(2, "x", 1, 20)], 1),
        *parts_of([Row(1, "y", 3, 11), Row(1, "z", 1, 12)], 1),
    ]
    path = tmp_path / "t"

    write(path, parts, operation=operation, table=table("GLOBAL_SIMPLE"), settings=how(combine_before_insert=True))

    assert shown(path) == [("x", 2, "x", 1, 20), ("y", 1, "y", 3, 11)]


def test_ties_go_to_the_later_row_also_across_the_partitions_of_one_task(tmp_path: Path) -> None:
    rows = [Row(key, "xyz"[(key + turn) % 3], 7, turn) for turn in range(3) for key in range(20)]
    path = tmp_path / "t"

    write(path, parts_of(rows, 2), table=table("GLOBAL_SIMPLE"))

    assert shown(path) == sorted((row.p, row.id, row.p, 7, 2) for row in rows if row.v == 2)
    assert read(path).num_rows == 20


def test_of_two_writers_that_bring_one_key_to_two_partitions_the_later_is_refused(tmp_path: Path) -> None:
    """What each of them writes is in no file group of the other's."""
    path, said = tmp_path / "t", table("GLOBAL_SIMPLE")
    write(path, parts_of([Row(1, "x", 1, 10), Row(2, "y", 1, 20)], 1), table=said, settings=how(small=0))
    first, second = (plan(path, SCHEMA, settings=how(small=0)) for _ in range(2))
    theirs, mine = (task(one, parts_of([Row(3, p, 2, 30)], 1)[0], 0) for one, p in ((first, "x"), (second, "z")))
    commit_write(first, [theirs])

    with pytest.raises(CommitConflictError, match="record key '3'"):
        commit_write(second, [mine])
    abort_write(second)
    write(path, parts_of([Row(3, "z", 2, 31)], 1))
    assert [one for one in shown(path) if one[1] == 3] == [("z", 3, "z", 2, 31)]
