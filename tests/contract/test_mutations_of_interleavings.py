"""Mistakes in what keeps writers apart, and that interleavings see each of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyhudi.errors import PyHudiError
from pyhudi.timeline.writers.owner import Liveness
from pyhudi.timeline.writers.patience import Waited
from support.interleaving.acts import Drawn, Service, Write
from support.interleaving.machine import machine
from support.interleaving.scheduler import Fate
from support.interleaving.trial import run
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam

# As many as it takes for the mistake that shows least, a few times over.
_ENOUGH = 900


TWO_WRITERS = Drawn(
    "cow bucket", [[Write("upsert", (("k0", "a", 1, 1),))], [Write("upsert", (("k1", "b", 1, 2),))]], empty=False
)

_BOTH = tuple((key, "a", 1, 1) for key in ("k0", "k1"))
A_WRITE_AND_A_CLEAN = Drawn(
    "cow bucket", [[Write("upsert", _BOTH)], [Write("upsert", _BOTH), Service("clean by versions")]], empty=False
)
# Seeds among which the clean comes between the choice of the moment and the listing of the files.
_CLEANED = range(270, 350)


def check_interleavings(_: Path) -> None:
    """Run interleavings until a run fails; an error where no error belongs fails it, too."""
    with machine() as trial_machine:
        for seed in range(_ENOUGH):
            try:
                run(trial_machine, seed)
            except PyHudiError as error:
                raise AssertionError(str(error)) from error


def check_stalls(_: Path) -> None:
    """Have a writer stall at each of its steps, until the other writer is done."""
    with machine() as there:
        for step in range(1, 130):
            run(there, step, TWO_WRITERS, {-1: {step: Fate.ASLEEP}})


def check_cleans(_: Path) -> None:
    """Have a clean take the files of a write that is at work."""
    with machine() as there:
        for seed in _CLEANED:
            run(there, seed, A_WRITE_AND_A_CLEAN, {})


def conflicts_are_not_looked_for(patch: Patch) -> None:
    patch_seam(patch, "check conflicts", lambda *_: None)


def only_the_first_round_looks_for_conflicts(patch: Patch) -> None:
    """What completed while a write raced for its decision is taken for looked at."""
    original, seen = read_seam("check conflicts"), list[Any]()

    def check(work: Any, timeline: Any, changes: Any, checked: Any) -> None:
        if not any(known is checked for known in seen):
            seen.append(checked)
            original(work, timeline, changes, checked)

    patch_seam(patch, "check conflicts", check)


def buckets_do_not_conflict(patch: Patch) -> None:
    patch_seam(patch, "what two writers of one bucket share", lambda self, group: group.file_id)


def ownership_is_not_looked_at(patch: Patch) -> None:
    patch_seam(patch, "check ownership of an instant", lambda *_: None)


def living_writers_are_taken_for_dead(patch: Patch) -> None:
    patch_seam(patch, "judge a writer", lambda *_, **__: Liveness(False, "it looked dead"))


def new_keys_of_others_are_not_looked_for(patch: Patch) -> None:
    patch_seam(patch, "find a key that another commit added", lambda *_: None)


def repeated_merges_read_old_rows(patch: Patch) -> None:
    """A commit that merges again looks at the table as of its plan, and is checked as if it had looked again."""
    original, planned = read_seam("table that a commit merges with"), dict[str, Any]()

    def see(work: Any, timeline: Any) -> Any:
        return original(replace(work, watermark=planned.setdefault(work.key, work.watermark)), timeline)

    patch_seam(patch, "table that a commit merges with", see)


def a_ticket_is_ignored(patch: Patch) -> None:
    patch_seam(patch, "wait for the older tickets", lambda *_: Waited())


def the_tickets_of_the_dead_count(patch: Patch) -> None:
    patch_seam(patch, "whether the writer of a ticket is dead", lambda *_: False)


def the_tickets_of_the_living_are_taken_away(patch: Patch) -> None:
    patch_seam(patch, "whether the writer of a ticket is dead", lambda *_: True)


def what_a_clean_took_is_a_failure_of_the_store(patch: Patch) -> None:
    patch_seam(patch, "what other instants took", lambda *_: None)


def folders_go_by_their_age_alone(patch: Patch) -> None:
    """Where a clock is wrong, a write loses its folder before it is on the timeline, or the rows that it hands over."""

    def is_deserted(storage: Any, instant_time: str, sign: Any, patience: Any, now_s: float) -> bool:
        return bool(storage.now() - sign.modified > patience.heartbeat_tolerance_s)

    patch_seam(patch, "whether a working folder is deserted", is_deserted)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (conflicts_are_not_looked_for, check_interleavings),
    (only_the_first_round_looks_for_conflicts, check_interleavings),
    (buckets_do_not_conflict, check_interleavings),
    (ownership_is_not_looked_at, check_stalls),
    (living_writers_are_taken_for_dead, check_interleavings),
    (new_keys_of_others_are_not_looked_for, check_interleavings),
    (repeated_merges_read_old_rows, check_interleavings),
    (what_a_clean_took_is_a_failure_of_the_store, check_cleans),
    (folders_go_by_their_age_alone, check_interleavings),
    (a_ticket_is_ignored, check_interleavings),
    (the_tickets_of_the_dead_count, check_interleavings),
    (the_tickets_of_the_living_are_taken_away, check_interleavings),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
