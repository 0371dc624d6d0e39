"""Mistakes about the upkeep of log files, put into the code on purpose: each must turn the checks red."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pyhudi.table.files.file_group import StatedLog, base_file
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam
from support.upkeep.archiving import check_rolled_back_without_markers
from support.upkeep.kept_logs import (
    check_archived_appends_stay_in_place,
    check_lost_log_is_missed,
    check_merged_slices_go,
    check_saved_slices_stay,
)
from support.upkeep.undoing import check_each_rolled_back, check_restored_to_each, logged


def appends_complete_when_they_are_requested(patch: Patch) -> None:
    patch_seam(patch, "completion time of an instant", lambda _, requested_time: requested_time)


def the_archive_is_not_asked(patch: Patch) -> None:
    patch_seam(patch, "read completion times from the archive", lambda *_: None)


def a_clean_leaves_log_files(patch: Patch) -> None:
    real = read_seam("add log files to expired files")
    patch_seam(
        patch,
        "add log files to expired files",
        lambda expired, listing: [one for one in real(expired, listing) if one.path.endswith(".parquet")],
    )


def a_savepoint_names_base_files_alone(patch: Patch) -> None:
    real = read_seam("slices that a savepoint names")
    patch_seam(
        patch, "slices that a savepoint names", lambda *given: [one for one in real(*given) if one.base is not None]
    )


def a_rollback_looks_for_base_files_alone(patch: Patch) -> None:
    _only_base_files(patch)


def a_restore_looks_for_base_files_alone(patch: Patch) -> None:
    _only_base_files(patch)


def orphans_are_base_files_alone(patch: Patch) -> None:
    _only_base_files(patch)


def _only_base_files(patch: Patch) -> None:
    patch_seam(patch, "parse data files of dead instants", lambda path, size, **_: base_file(path, size))


def nobody_remembers_log_files(patch: Patch) -> None:
    def none(*_: object) -> Iterator[tuple[str, str, StatedLog]]:
        return iter(())

    patch_seam(patch, "log files that a commit names", none)


def of(check: Callable[..., None]) -> Check:
    """Return a check of a merge-on-read table."""

    def checked(folder: Path) -> None:
        check(folder, logged)

    checked.__name__ = f"{check.__name__}_of_logs"
    return checked


MUTATIONS: list[tuple[Mutate, Check]] = [
    (appends_complete_when_they_are_requested, check_archived_appends_stay_in_place),
    (the_archive_is_not_asked, check_archived_appends_stay_in_place),
    (a_clean_leaves_log_files, check_merged_slices_go),
    (a_savepoint_names_base_files_alone, check_saved_slices_stay),
    (a_rollback_looks_for_base_files_alone, of(check_each_rolled_back)),
    (a_restore_looks_for_base_files_alone, of(check_restored_to_each)),
    (orphans_are_base_files_alone, check_rolled_back_without_markers),
    (nobody_remembers_log_files, check_lost_log_is_missed),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
