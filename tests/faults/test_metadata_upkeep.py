"""The upkeep of a metadata table that dies, or meets others, at any of its steps: no reader misses a file."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults.test_decisions import nothing_is_carried_out
from pyhudi import arrow
from pyhudi.errors import PyHudiError
from pyhudi.operations.following.before_completion import take_steps
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.metadata.clean import clean_metadata
from pyhudi.operations.services.metadata.upkeep import keep_up
from pyhudi.operations.transaction.carried_out import carry_out
from pyhudi.operations.transaction.decide import take_back_late_steps
from pyhudi.operations.transaction.locks import HeldLock, hold
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers import decisions
from pyhudi.timeline.writers.decisions import Decision, DecisionKind
from pyhudi.timeline.writers.first_steps import folder_of
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import rows_of, write, write_after_death
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.made.metadata_tables import How, simulate
from support.places import copied, state_of
from support.rules.ends import assert_whole
from support.rules.health import of_metadata
from support.seams import patch_seam

QUIET = replace(IMPATIENT, upkeep=OFF)
TABLE = replace(PARTED, table_type="MERGE_ON_READ")
UPKEEP = Upkeep(archive=ArchiveSettings(min_commits=2, max_commits=3))
METADATA = ".hoodie/metadata"


def upsert(path: Path, key: int, settings: Any = QUIET) -> None:
    write(path, [parted("a", key, value=key)], table=TABLE, settings=settings)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose metadata table has to be compacted, cleaned and archived."""
    path = tmp_path_factory.mktemp("first") / "t"
    upsert(path, 0)
    simulate(str(path), how=How(only=["files"]))
    for key in (1, 2):
        upsert(path, key)
    upkept(open_storage(str(path)))
    archive(open_storage(str(path)), ArchiveSettings(min_commits=1, max_commits=1, delta_commits=None))
    for key in range(20):
        upsert(path, key % 4)
    return path


def upkept(storage: Any) -> Any:
    return keep_up(storage, UPKEEP)


def check(path: Path, rows: list[tuple[str]]) -> None:
    """Readers by the metadata table, by a listing, and the checks see the same."""
    assert rows_of(path, "id") == rows
    assert of_metadata(path) == []


ROWS = [("k0",), ("k1",), ("k2",), ("k3",)]


def test_upkeep_leaves_one_base_file_a_group_and_few_instants(first: Path, tmp_path: Path) -> None:
    path = copied(first, tmp_path / "t")
    check(path, ROWS)

    done = upkept(open_storage(str(path)))

    assert (done.file_groups, done.log_files, done.instants) == (1, 20, 2)
    names = sorted(one.name for one in (path / METADATA / "files").iterdir() if one.name.endswith(".hfile"))
    assert len(names) == 2, "that of before stays for whoever undoes a write"
    check(path, ROWS)
    assert upkept(open_storage(str(path))).instant == ""
    upsert(path, 7)
    check(path, [*ROWS, ("k7",)])
    assert_whole(path)


@pytest.mark.parametrize("how", [pytest.param("before", marks=pytest.mark.slow), "killed"])
@steps_of("metadata", 3)
def test_every_step_that_fails_is_made_good_by_the_next_round(
    first: Path, tmp_path: Path, share: Share, how: str
) -> None:
    count, states = Faults(), set()
    upkept(FaultyStorage(open_storage(str(copied(first, tmp_path / "count"))), count))
    assert len(count.steps) > 40
    for number in share.of(failing(count.steps, how)):
        path = copied(first, tmp_path / f"t{number}")
        faults = Faults(at=number, kill=how == "killed")
        with contextlib.suppress(PyHudiError, Killed):
            upkept(FaultyStorage(open_storage(str(path)), faults))
        check(path, ROWS)
        state = state_of(path, first)
        if state not in states:
            states.add(state)
            write_after_death(path, [parted("a", 7, value=7)], settings=QUIET)
            check(path, [*ROWS, ("k7",)])
            upkept(open_storage(str(path)))
            check(path, [*ROWS, ("k7",)])
            assert_whole(path)
        shutil.rmtree(path)


Meanwhile = Callable[[Path], None]


def others_keep_it_up(path: Path) -> None:
    upkept(open_storage(str(path)))
    for _ in range(3):
        upsert(path, 7, replace(QUIET, patience=replace(QUIET.patience)))
    upkept(open_storage(str(path)))


def others_build_it_anew(path: Path) -> None:
    table = arrow.Table(str(path))
    table.drop_index("files")
    upsert(path, 7)
    table.create_index("files")
    upsert(path, 7)


def others_write(path: Path) -> None:
    upsert(path, 7)


@pytest.mark.parametrize("meanwhile", [others_keep_it_up, others_write, others_build_it_anew])
@steps_of("metadata", 6)
def test_upkeep_that_sleeps_at_a_step_takes_nothing_from_others(
    first: Path, tmp_path: Path, share: Share, meanwhile: Meanwhile
) -> None:
    count = Faults()
    upkept(FaultyStorage(open_storage(str(copied(first, tmp_path / "count"))), count))
    for number in share.of(failing(count.steps, "killed")):
        path = copied(first, tmp_path / f"t{number}")
        stop = Faults()
        met: list[int] = []

        def watch(path: Path = path, stop: Faults = stop, met: list[int] = met, number: int = number) -> None:
            if len(stop.steps) + 1 == number and not met:
                met.append(number)
                meanwhile(path)

        stop.watch = watch
        with contextlib.suppress(PyHudiError):
            upkept(FaultyStorage(open_storage(str(path)), stop))
        assert met
        check(path, [*ROWS, ("k7",)])
        upsert(path, 8)
        upkept(open_storage(str(path)))
        check(path, [*ROWS, ("k7",), ("k8",)])
        assert_whole(path)
        shutil.rmtree(path)


def decided(path: Path) -> Decision:
    """Let a process die right after the decision of a compaction; return the decision."""
    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        upkept(open_storage(str(path)))
    decision = decisions.newest(open_storage(str(path)))
    assert decision is not None
    assert decision.kind == DecisionKind.TAKE_STEPS
    return decision


def test_a_decision_that_others_carried_out_long_ago_brings_nothing_back(first: Path, tmp_path: Path) -> None:
    """A process that slept before its first step looks first; one that slept later takes back what it made again."""
    path = copied(first, tmp_path / "t")
    late = decided(path)
    for key in range(25):
        upsert(path, key % 4)
    upkept(open_storage(str(path)))
    archive(open_storage(str(path)), ArchiveSettings(min_commits=1, max_commits=1, delta_commits=None))
    for key in range(25):
        upsert(path, key % 4)
    upkept(open_storage(str(path)))
    table = open_table(open_storage(str(path)))
    gone = [name for name in late.first[0].paths if (path / name).exists()]
    assert gone == []

    with hold(table) as held:
        carry_out(held, late, table.timeline())
    assert not any((path / name).exists() for name in late.first[0].paths)
    check(path, ROWS)

    take_steps(table.storage, late.instant.requested_time, late.first[0])
    assert all((path / name).exists() for name in late.first[0].paths)
    take_back_late_steps(table, late)
    assert not any((path / name).exists() for name in late.first[0].paths)
    check(path, ROWS)

    # Apache Hudi decides nothing, so this decision is the newest even after Apache Hudi archived the compaction.
    (path / decisions.path_of(decisions.numbers(table.storage)[-1] + 1)).write_bytes(late.encode())
    upsert(path, 0)
    assert not any((path / name).exists() for name in late.first[0].paths)
    check(path, ROWS)


@pytest.mark.parametrize("damage", ["deleted", "cut"])
def test_a_compaction_whose_file_aside_is_lost_does_not_take_place(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    path = copied(first, tmp_path / "t")
    patch_seam(monkeypatch, "bytes of base files that a decision holds", 0)
    late = decided(path)
    [aside] = (path / folder_of(late.instant.requested_time)).iterdir()
    if damage == "cut":
        aside.write_bytes(aside.read_bytes()[:-1])
    else:
        aside.unlink()

    upsert(path, 7)

    check(path, [*ROWS, ("k7",)])
    assert not any((path / name).exists() for name in late.first[0].paths)
    assert upkept(open_storage(str(path))).instant
    check(path, [*ROWS, ("k7",)])
    assert_whole(path)


def test_a_clean_whose_files_aside_are_lost_says_that_it_deleted_nothing(first: Path, tmp_path: Path) -> None:
    path = copied(first, tmp_path / "t")

    def lose(held: HeldLock, decision: Decision, timeline: Timeline) -> None:
        shutil.rmtree(path / folder_of(decision.instant.requested_time), ignore_errors=True)
        carry_out(held, decision, timeline)

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "most bytes of a file that a decision holds", 0)
        patch_seam(patch, "carry out a decision", lose)
        assert clean_metadata(open_table(open_storage(str(path))), CleanSettings()) is None
    check(path, ROWS)

    assert clean_metadata(open_table(open_storage(str(path))), CleanSettings()) is not None
    check(path, ROWS)
