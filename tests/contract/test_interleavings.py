"""Writers and services of one table, interleaved at every storage step, leave what a dict says.

A seed repeats an interleaving step by step: `make test-long FROM_SEED=4711 SEEDS=1`.
"""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyhudi.operations.transaction.followers import FOLLOWERS
from support.interleaving import trial
from support.interleaving.acts import OLD, Drawn, Read, Write
from support.interleaving.machine import machine
from support.interleaving.many import Stretch, run_stretches
from support.interleaving.scheduler import Fate
from support.interleaving.trial import run
from support.made.following import KeepingFollower, check_kept
from support.seams import patch_seam
from support.share import share_of

# make test-long runs 100,000; test_mutations_of_interleavings.py has the seeds that show each known mistake.
# As many are of CI, and of make test.
MANY, SOME = 2000, 200
OF_VERSION_6 = 60
# With a follower, whose every outcome is computed twice.
FOLLOWED = 120
# Of make test-long.
FROM, SEEDS = int(os.environ.get("PYHUDI_FROM_SEED", "0")), int(os.environ.get("PYHUDI_SEEDS", "100000"))


def drawn(count: int) -> settings:
    """Have hypothesis draw so many seeds."""
    return settings(
        max_examples=count,
        deadline=None,
        # What has passed once passes always: new interleavings are for make test-long.
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@drawn(share_of(SOME))
@given(st.integers(0, 1 << 48))
def test_writers_and_services_that_are_interleaved_leave_what_the_dict_says(seed: int) -> None:
    """Acknowledged writes, one by one in the order of their completion; refused ones left nothing, dead ones all or
    nothing.
    """
    with machine() as there:
        run(there, seed)


@pytest.mark.slow
@drawn(MANY)
@given(st.integers(0, 1 << 48))
def test_many_interleavings_leave_what_the_dict_says(seed: int) -> None:
    with machine() as there:
        run(there, seed)


@drawn(share_of(OF_VERSION_6))
@given(st.integers(0, 1 << 48))
def test_writers_and_services_of_tables_of_version_6_leave_what_the_dict_says(seed: int) -> None:
    """Instants have one time, so that the order in which they complete is not that of their names."""
    with machine() as there:
        run(there, seed, kinds=OLD)


@pytest.mark.slow
def test_interleaved_writers_and_services_leave_what_a_follower_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever process prepares for it, loses the race and prepares again, dies, or finishes for a dead process."""
    follower = KeepingFollower()
    # The tables that the actors find are made with the follower, too.
    monkeypatch.setattr(trial, "_TEMPLATES", {})
    with machine() as trial_machine:
        # Beside those that keep metadata tables, which some of the tables have.
        patch_seam(monkeypatch, "followers of a table", (*FOLLOWERS, follower))
        for seed in range(FOLLOWED):
            run(trial_machine, seed, also=check_kept)


def test_a_seed_repeats_an_interleaving() -> None:
    with machine() as there:
        for seed in range(share_of(20)):
            assert run(there, seed).scheduler.taken == run(there, seed).scheduler.taken


def test_a_killed_delete_that_is_run_again_before_any_write_makes_no_table() -> None:
    """What a dead job was about to delete from is not there: the delete is refused, and the next upsert is the first.

    Seeds that are odd run the jobs of the dead again.
    """
    drawn = Drawn("mor bucket", [[Write("delete", (("k4", "a", 0, 1),))], [Read()]], empty=True)
    with machine() as there:
        trial = run(there, 1, drawn, {0: {3: Fate.KILLED}})

    assert trial.tries["actor0act0try0end"].refused.startswith("TableNotFoundError")
    assert [name for _, name in trial.completed] == ["actor0act9try9end"]


@pytest.mark.long
def test_very_many_interleavings_leave_what_the_dict_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Each stretch of seeds is printed once it is done, so that a run can be taken up where it ended."""
    failed = []
    for stretch in run_stretches(Stretch(FROM, FROM + SEEDS)):
        failed += stretch.failed
        with capsys.disabled():
            told = f"seeds {stretch.first} to {stretch.end - 1}: {len(stretch.failed)} failed"
            sys.stdout.write("\n".join(["", told, *stretch.failed]))
            sys.stdout.flush()
        if len(failed) >= 10:
            break
    assert not failed
