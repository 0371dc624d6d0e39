"""Mistakes of cleans, put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyhudi.operations.services.clean_plan import Survey
from pyhudi.table.files.file_group import FileGroup, FileSlice
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam
from support.upkeep.cleans import (
    check_clean_history,
    check_readers_keep_their_slices,
    check_savepoint_keeps_its_files,
    check_slow_writer_keeps_its_base,
)


def the_slice_before_the_earliest_commit_goes(patch: Patch) -> None:
    def live_slices(survey: Survey, group: FileGroup) -> tuple[FileSlice, ...]:
        since = survey.earliest.requested_time if survey.earliest else ""
        return (group.newest, *(file_slice for file_slice in group.slices if file_slice.base_time >= since))

    patch_seam(patch, "live slices of a clean", live_slices)


def a_group_that_was_taken_away_goes_at_once(patch: Patch) -> None:
    patch_seam(patch, "slices of a replaced file group", lambda *_: ())


def a_group_that_was_taken_away_stays(patch: Patch) -> None:
    patch_seam(patch, "slices of a replaced file group", lambda _, group: group.slices)


def savepoints_are_ignored(patch: Patch) -> None:
    def none(*_: Any) -> Mapping[str, frozenset[str]]:
        return {}

    patch_seam(patch, "savepoints that a clean keeps", none)
    patch_seam(patch, "savepoints that a clean keeps", none)


def a_savepoint_that_is_gone_is_not_missed(patch: Patch) -> None:
    patch_seam(patch, "progress of cleans", _forgetting_savepoints(read_seam("progress of cleans")))


def pending_writes_are_ignored(patch: Patch) -> None:
    patch_seam(patch, "first pending instant before a clean", lambda _: "")


def what_completed_late_is_not_looked_at(patch: Patch) -> None:
    original = read_seam("progress of cleans")

    def find_progress(*given: Any) -> Any:
        found = original(*given)
        return found and replace(found, until="9")

    patch_seam(patch, "progress of cleans", find_progress)


def updated_file_groups_are_not_looked_at(patch: Patch) -> None:
    patch_seam(
        patch,
        "partitions in which a commit replaced files",
        lambda body, merges: [one for one, ids in body.replaced.items() if ids],
    )


def _forgetting_savepoints(original: Callable[..., Any]) -> Callable[..., Any]:
    def find_progress(*given: Any) -> Any:
        found = original(*given)
        return found and replace(found, savepoints=())

    return find_progress


def check_lives(folder: Path) -> None:
    for seed in (0, 1, 3, 4, 6, 7):
        check_clean_history(folder, seed)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (the_slice_before_the_earliest_commit_goes, check_readers_keep_their_slices),
    (a_group_that_was_taken_away_goes_at_once, check_lives),
    (a_group_that_was_taken_away_stays, check_lives),
    (savepoints_are_ignored, check_savepoint_keeps_its_files),
    (a_savepoint_that_is_gone_is_not_missed, check_savepoint_keeps_its_files),
    (pending_writes_are_ignored, check_slow_writer_keeps_its_base),
    (what_completed_late_is_not_looked_at, check_lives),
    (updated_file_groups_are_not_looked_at, check_lives),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
