"""Mistakes of table version 6, put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyhudi.storage import open_storage
from pyhudi.table.files.file_group import every_instant
from pyhudi.table.files.logs.log_blocks import BlockType, LogBlock
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.readers import read_without_spark
from support.recorded.recorded_past import AS_OF
from support.recorded.recorded_version_6 import NEW, answers, shown, unpack, writes
from support.seams import patch_seam, read_seam
from support.upkeep.archiving import check_nothing_is_lost


def a_log_file_lies_on_the_newest_base_file(patch: Patch) -> None:
    slices = read_seam("slices by name")

    def placed(rule: Any, group: Any, bases: Sequence[Any], logs: Sequence[Any], completed_at: Any) -> Any:
        if not bases:
            return slices(rule, group, bases, logs, completed_at)
        *older, newest = slices(rule, group, bases, [], completed_at)
        return (*older, replace(newest, logs=tuple(sorted(logs, key=lambda log: log.name.order))))

    patch_seam(patch, "slices by name", placed)


def the_slice_of_a_pending_compaction_is_left_out(patch: Patch) -> None:
    patch_seam(patch, "whether a log file by name is shown", lambda rule, file, sees, until=None: sees(file.named_time))


def every_block_counts(patch: Patch) -> None:
    patch_seam(patch, "blocks that count by name", lambda rule, timeline: every_instant)


def a_command_is_passed_over(patch: Patch) -> None:
    counting = read_seam("log blocks that count")

    def without(files: Iterable[Iterable[LogBlock]], upto: Callable[[str], bool]) -> tuple[LogBlock, ...]:
        counted_blocks: tuple[LogBlock, ...] = counting(
            [[block for block in blocks if block.type != BlockType.COMMAND] for blocks in files], upto
        )
        return counted_blocks

    patch_seam(patch, "log blocks that count", without)


def a_file_of_the_archive_is_read_twice(patch: Patch) -> None:
    instants = read_seam("instants that an old archive holds")
    patch_seam(patch, "instants that an old archive holds", lambda *given: instants(*given) * 2)


def completed_states_alone_are_archived(patch: Patch) -> None:
    states = read_seam("files of the states of an instant")
    patch_seam(
        patch,
        "files of the states of an instant",
        lambda files: {one: each[-1:] for one, each in states(files).items()},
    )


def check_archiving(place: Path) -> None:
    """What leaves the timeline is in the archive, in each of its states."""
    check_nothing_is_lost(place, 6)


def check_pending(place: Path) -> None:
    _check_answers(unpack(place) / "mor_pending")


def check_failed(place: Path) -> None:
    _check_answers(unpack(place) / "mor_failed")


def check_event_time(place: Path) -> None:
    _check_answers(unpack(place) / "mor_event_time")


def check_compacted(place: Path) -> None:
    """A compaction merged one log file; to merge it again into its base file would change rows that came back."""
    table = unpack(place) / "mor_pending"
    view = SeenTable.now(open_table(open_storage(str(table)))).view
    [group] = view.groups("a").values()
    assert [len(file_slice.logs) for file_slice in group.slices] == [1, 3]


def check_archived_undo(place: Path) -> None:
    """Once the timeline begins behind an undone append, its blocks would count but for the commands."""
    table = unpack(place) / "mor_rolled_back"
    for time in writes(table)[:-1]:
        for file in (table / ".hoodie").glob(f"{time}.*"):
            file.unlink()
    now = next(answer for answer in answers(table.name, NEW) if not answer.query)
    assert shown(read_without_spark(table)) == (now.columns, now.rows)


def check_archive(place: Path) -> None:
    archive = open_table(open_storage(str(unpack(place) / "cow_archived"))).archive
    found = archive.instants()
    assert found
    assert len({instant.identity for instant in found}) == len(found)


def _check_answers(table: Path) -> None:
    """Hold the present and each past against what Apache Hudi 1.2 showed."""
    for answer in answers(table.name, NEW):
        if not answer.query or AS_OF in answer.query:
            assert shown(read_without_spark(table, answer.query)) == (answer.columns, answer.rows), answer.query
    shutil.rmtree(table)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (a_log_file_lies_on_the_newest_base_file, check_compacted),
    (the_slice_of_a_pending_compaction_is_left_out, check_pending),
    (every_block_counts, check_failed),
    (every_block_counts, check_event_time),
    (a_command_is_passed_over, check_archived_undo),
    (a_file_of_the_archive_is_read_twice, check_archive),
    (completed_states_alone_are_archived, check_archiving),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)


@each([(lambda _: None, one) for one in dict.fromkeys(check for _, check in MUTATIONS)])
def test_the_checks_are_green_without_mistakes(
    tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check
) -> None:
    """Or they would prove nothing."""
    mutate(monkeypatch)
    check(tmp_path)
