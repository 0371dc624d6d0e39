"""Mistakes about what leaves the timeline, put into the code on purpose: each must turn the checks red."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam
from support.upkeep.archiving import (
    check_begins_late,
    check_nothing_is_lost,
    check_replaced_groups_stay_away,
    check_rolled_back_without_markers,
)


def an_archived_instant_counts_as_pending(patch: Patch) -> None:
    patch_seam(patch, "whether an instant is committed", lambda self, time: time in self._committed)


def orphans_stay(patch: Patch) -> None:
    patch_seam(patch, "remove orphans before archiving", lambda *_: [])


def what_was_replaced_is_not_looked_for(patch: Patch) -> None:
    patch_seam(patch, "instants before replaced files", lambda _, wanted: wanted)


def instants_go_whether_or_not_the_archive_holds_them(patch: Patch) -> None:
    original, append = read_seam("remove archived instants"), read_seam("append to the archive")

    def take_off(self: Any, gone: Any, held: Any) -> int:
        patch_seam(patch, "instants that the archive holds", lambda *_: gone)
        return original(self, gone, held)

    patch_seam(patch, "remove archived instants", take_off)
    patch_seam(patch, "append to the archive", lambda archive, rows: append(archive, rows[1:]))


def archived_bodies_are_left_out(patch: Patch) -> None:
    original = read_seam("row of the archive")
    patch_seam(patch, "row of the archive", lambda instant, body, plan: original(instant, body[:-1], plan))


def nothing_is_in_the_way(patch: Patch) -> None:
    patch_seam(patch, "whether an instant may not be archived", lambda instant, wanted: False)


def nobody_looks_for_an_announcement(patch: Patch) -> None:
    patch_seam(patch, "instants that a begin sees announced", lambda _: ())


MUTATIONS: list[tuple[Mutate, Check]] = [
    (an_archived_instant_counts_as_pending, check_nothing_is_lost),
    (instants_go_whether_or_not_the_archive_holds_them, check_nothing_is_lost),
    (archived_bodies_are_left_out, check_nothing_is_lost),
    (orphans_stay, check_rolled_back_without_markers),
    (what_was_replaced_is_not_looked_for, check_replaced_groups_stay_away),
    (nobody_looks_for_an_announcement, check_begins_late),
    (nothing_is_in_the_way, check_begins_late),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
