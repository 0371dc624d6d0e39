"""Mistakes in undoing, put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyhudi.errors import PyHudiError
from pyhudi.table.files import written
from support.mutations import RED, Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam
from support.upkeep.undoing import (
    check_each_rolled_back,
    check_kept,
    check_only_the_newest,
    check_restored_to_each,
    check_what_comes_back,
)

ALSO_RED = (*RED, PyHudiError)


def savepoints_are_ignored(patch: Patch) -> None:
    patch_seam(patch, "refuse to undo saved instants", lambda *_, **__: None)


def a_rollback_leaves_a_file(patch: Patch) -> None:
    """The first that its listing shows; the plan says so too."""
    original = read_seam("files of an instant")
    patch_seam(patch, "files of an instant", lambda *given, **named: original(*given, **named)[1:])


def replaced_file_groups_stay_away(patch: Patch) -> None:
    """A process remembers what a replacecommit took away, though it is rolled back."""
    remembered: dict[Any, Any] = {}
    original = read_seam("add commits to known written files")

    def joined(self: written.Written, *given: Any) -> written.Written:
        found = original(self, *given)
        remembered.update(found.replaced_by)
        return replace(found, replaced_by=dict(remembered))

    patch_seam(patch, "add commits to known written files", joined)


def a_restore_leaves_one_write(patch: Patch) -> None:
    """The oldest of those that it should undo."""
    original = read_seam("plan of a restore")
    patch_seam(
        patch,
        "plan of a restore",
        lambda instants_to_rollback, **named: original(instants_to_rollback=instants_to_rollback[:-1], **named),
    )


def a_restore_leaves_the_data(patch: Patch) -> None:
    patch_seam(patch, "files of all partitions for a restore", lambda _: {})


def completed_files_stay(patch: Patch) -> None:
    """Data is deleted under a write that readers still see."""
    patch_seam(patch, "hide the completion of a rolled back instant", lambda *_: None)
    patch_seam(patch, "hide the completion of a restored instant", lambda *_: None)


def partitions_stay(patch: Patch) -> None:
    patch_seam(patch, "remove partitions that a rollback emptied", lambda *_: None)


def any_write_is_the_newest(patch: Patch) -> None:
    patch_seam(patch, "whether an instant builds on earlier ones", lambda _: False)


def what_is_undone_does_not_conflict(patch: Patch) -> None:
    patch_seam(patch, "check that others undid nothing", lambda *_: None)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (savepoints_are_ignored, check_kept),
    (a_rollback_leaves_a_file, check_each_rolled_back),
    (replaced_file_groups_stay_away, check_each_rolled_back),
    (completed_files_stay, check_each_rolled_back),
    (completed_files_stay, check_restored_to_each),
    (partitions_stay, check_each_rolled_back),
    (a_restore_leaves_one_write, check_restored_to_each),
    (a_restore_leaves_the_data, check_restored_to_each),
    (any_write_is_the_newest, check_only_the_newest),
    (what_is_undone_does_not_conflict, check_what_comes_back),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check, ALSO_RED)
