"""Cleans that fail or die at every step, two at once, and beside writers."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CommitConflictError, RetryError
from pyhudi.operations.service_settings import (
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    ArchiveSettings,
    CleanSettings,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.timeline.instants import State
from support.drawn import lookups
from support.drive import carry_out, plan, rows_of, task, write
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.long_ago import instants
from support.faults.steps import Share, steps_of
from support.places import copied, files_below, state_of
from support.rules.ends import assert_whole
from support.threads import at_once
from support.upkeep.cleans import SCHEMA, TABLE, conflicting, data_files, rows, run_clean, slices_of

ONE = CleanSettings(commits=1)
EXPECTED = [("a", "k1", 3), ("a", "k2", 3), ("b", "k1", 0)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of which a clean takes four files."""
    table = tmp_path_factory.mktemp("made") / "t"
    write(table, rows("b", "k1"), table=TABLE)
    for value in range(4):
        write(table, rows("a", "k1", "k2", value=value))
    return table


def steps_taken(made: Path, copy: Path) -> list[str]:
    """Return the steps that a clean takes."""
    count = Faults()
    clean(FaultyStorage(open_storage(str(copied(made, copy))), count), ONE)  # type: ignore[arg-type]
    return count.steps


def cleans(table: Path) -> list[State]:
    return [one.state for one in instants(table).instants if one.action == "clean"]


@pytest.mark.parametrize("how", ["before", "after", "killed"])
@steps_of("clean")
def test_a_clean_that_fails_at_any_step_is_finished_by_the_next(
    made: Path, tmp_path: Path, how: str, share: Share
) -> None:
    """Its plan is carried out as it is, once it stands; until then another one is made: once from each state left."""
    steps, raised, states = steps_taken(made, tmp_path / "count"), 0, set()
    failed = share.of(failing(steps, how))
    writes = [one.requested_time for one in instants(made).writes]
    retained_times = {writes[0], *writes[-2:]}
    assert len(steps) > 20
    for number in failed:
        table = copied(made, tmp_path / f"t{number}")
        faults = Faults(at=number, after=how == "after", kill=how == "killed")
        try:
            clean(FaultyStorage(open_storage(str(table)), faults), ONE)  # type: ignore[arg-type]
        except (RetryError, Killed):
            raised += 1
        name = faults.name_of(number)
        assert rows_of(table, "p", "id", "value") == EXPECTED, f"step {number} ({name})"
        state = state_of(table, made)
        if state in states:
            continue
        states.add(state)
        run_clean(table, ONE)

        assert {one[2] for one in slices_of(data_files(table))} == retained_times, f"step {number} ({name})"
        assert cleans(table) == [State.COMPLETED], f"step {number} ({name})"
        assert_whole(table)
    # What follows the completed file, and a step of a decision that is looked at again, may fail unnoticed.
    assert raised >= len(failed) // 4


def test_two_cleans_at_once_do_what_one_does(made: Path, tmp_path: Path) -> None:
    """Each has its own storage and meets the other wherever it stands; the instant is one, and completes once."""
    for round_ in range(6):
        table = copied(made, tmp_path / f"t{round_}")

        found = at_once(3, lambda _, table=table: run_clean(table, ONE))

        assert [one for one in found if isinstance(one, Exception)] == []
        assert cleans(table) == [State.COMPLETED]
        assert len(data_files(table)) == 5
        assert_whole(table)


@steps_of("clean", 3)
def test_a_clean_that_slept_while_others_finished_it_changes_nothing(made: Path, tmp_path: Path, share: Share) -> None:
    """At any step (one of three is tried): what its plan names is gone by then, and what came since is not in it."""
    for number in share.of(range(1, len(steps_taken(made, tmp_path / "count")) + 1)):
        table = copied(made, tmp_path / f"t{number}")
        after: list[set[str]] = []

        class Sleeper(Faults):
            at_number, path, left = number, table, after

            def take(self, name: str, effect: Any) -> Any:
                self.steps.append(name)
                if len(self.steps) == self.at_number:
                    run_clean(self.path, ONE)
                    write(self.path, rows("a", "k1", "k2", value=8))
                    run_clean(self.path, ONE)
                    self.left.append(data_files(self.path))
                return effect()

        clean(FaultyStorage(open_storage(str(table)), Sleeper()), ONE)  # type: ignore[arg-type]

        assert data_files(table) == after[0], f"step {number}"
        assert rows_of(table, "p", "id", "value") == [("a", "k1", 8), ("a", "k2", 8), ("b", "k1", 0)]
        assert set(cleans(table)) == {State.COMPLETED}
        assert_whole(table)


@pytest.mark.parametrize(
    ("policy", "same_group"),
    [
        (KEEP_LATEST_FILE_VERSIONS, True),
        pytest.param(KEEP_LATEST_FILE_VERSIONS, False, marks=pytest.mark.slow),
        pytest.param(KEEP_LATEST_COMMITS, True, marks=pytest.mark.slow),
        pytest.param(KEEP_LATEST_COMMITS, False, marks=pytest.mark.slow),
    ],
)
@steps_of("write", 7, by_suite=True)
def test_a_clean_at_any_step_of_a_slow_write_takes_nothing_of_it(
    made: Path, tmp_path: Path, faults: Faults, policy: str, same_group: bool, share: Share
) -> None:
    """The write is planned, others complete, and then a clean comes in between any two of its steps."""
    settings = CleanSettings(policy=policy, commits=1, file_versions=1)
    for number in share.of(range(1, 200)):
        table = copied(made, tmp_path / f"t{number}")
        slow, other = plan(table, SCHEMA), plan(table, SCHEMA)
        carry_out(other, [rows("a" if same_group else "c", "k1", value=5)])
        faults.steps.clear()

        def take(name: str, effect: Any, table: Path = table, number: int = number) -> Any:
            faults.steps.append(name)
            if len(faults.steps) == number:
                run_clean(table, settings)
            return effect()

        with pytest.MonkeyPatch.context() as patch, conflicting() as conflicts:
            patch.setattr(faults, "take", take)
            commit_write(slow, [task(slow, rows("a", "k1", value=9), 0)])
        if conflicts:
            abort_write(slow)
        assert bool(conflicts) == same_group, f"step {number}"
        others = [] if same_group else [("c", "k1", 5)]
        expected = [("a", "k1", 5 if same_group else 9), *EXPECTED[1:], *others]
        assert rows_of(table, "p", "id", "value") == expected
        assert_whole(table)
        if len(faults.steps) < number:
            return
    raise AssertionError("the write takes more steps than this test looks at")


def test_a_clean_that_finds_nothing_fails_at_any_step_without_a_trace(tmp_path: Path) -> None:
    """But for the note, which it writes whole or not at all.

    The last step looks for a metadata table that is out of use, and fails no clean.
    """
    table = tmp_path / "t"
    for value in range(3):
        write(table, rows("abc"[value], "k1"), table=TABLE)
    before = files_below(table)
    for number in range(1, 40):
        faults = Faults(at=number)
        succeeded = False
        with contextlib.suppress(RetryError):
            clean(FaultyStorage(open_storage(str(table)), faults), ONE)  # type: ignore[arg-type]
            succeeded = True
        if succeeded:
            assert len(faults.steps) == number
            break
        assert files_below(table) == before
    assert set(files_below(table)) - set(before) == {".hoodie/.pyhudi/cleaned"}


def test_a_clean_took_what_an_archived_write_left_before_its_keys_were_looked_up(tmp_path: Path) -> None:
    """Nothing on the timeline names the file that the sleeping write should have searched."""
    table = replace(lookups.TABLE, index_type="GLOBAL_SIMPLE")
    write(tmp_path, lookups.rows(1, 2, value=1), table=table, settings=lookups.APART)
    write(tmp_path, lookups.rows(3, value=1, p="b"), settings=lookups.APART)
    storage = open_storage(str(tmp_path))
    assert archive(storage, ArchiveSettings(min_commits=1, max_commits=1), lookups.KEEP_ONE.clean).instants == 1
    sleeper = lookups.planned(tmp_path, settings=lookups.APART)
    write(tmp_path, lookups.rows(1, value=2), settings=lookups.APART)
    assert clean(storage, lookups.KEEP_ONE.clean).files == 1
    with pytest.raises(CommitConflictError, match="A clean took the base file"):
        carry_out(sleeper, [lookups.rows(2, value=3)])

    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 1)]
