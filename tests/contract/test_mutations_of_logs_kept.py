"""Mistakes about the upkeep of log files, put into the code on purpose: each must turn the checks red."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pyhudi.operations.rollback import rollback
from pyhudi.operations.services import clean_plan, orphans, restore, savepoint
from pyhudi.table.files import written
from pyhudi.table.files.file_group import StatedLog
from pyhudi.table.files.names import BaseFileName
from pyhudi.timeline.archive.completions import CompletionTimes
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.upkeep.archiving import check_rolled_back_without_markers
from support.upkeep.kept_logs import (
    check_archived_appends_stay_in_place,
    check_lost_log_is_missed,
    check_merged_slices_go,
    check_saved_slices_stay,
)
from support.upkeep.undoing import check_each_rolled_back, check_restored_to_each, logged


def appends_complete_when_they_are_requested(patch: Patch) -> None:
    patch.setattr(CompletionTimes, "__call__", lambda _, requested_time: requested_time)


def the_archive_is_not_asked(patch: Patch) -> None:
    patch.setattr(CompletionTimes, "_read", lambda *_: None)


def a_clean_leaves_log_files(patch: Patch) -> None:
    real = clean_plan._with_change_data
    patch.setattr(
        clean_plan,
        "_with_change_data",
        lambda expired, listing: [one for one in real(expired, listing) if one.path.endswith(".parquet")],
    )


def a_savepoint_names_base_files_alone(patch: Patch) -> None:
    real = savepoint.slices_at
    patch.setattr(savepoint, "slices_at", lambda *given: [one for one in real(*given) if one.base is not None])


def only_base_files_are(module: object) -> Mutate:
    def mutate(patch: Patch) -> None:
        patch.setattr(module, "parse_data_name", BaseFileName.parse)

    mutate.__name__ = f"only_base_files_are_looked_for_by_{module.__name__.rpartition('.')[2]}"  # type: ignore[attr-defined]
    return mutate


def nobody_remembers_log_files(patch: Patch) -> None:
    def none(*_: object) -> Iterator[tuple[str, str, StatedLog]]:
        return iter(())

    patch.setattr(written, "logs_in", none)


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
    (only_base_files_are(rollback), of(check_each_rolled_back)),
    (only_base_files_are(restore), of(check_restored_to_each)),
    (only_base_files_are(orphans), check_rolled_back_without_markers),
    (nobody_remembers_log_files, check_lost_log_is_missed),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
