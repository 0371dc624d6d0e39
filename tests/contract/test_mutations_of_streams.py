"""Mistakes in what a table remembers of streams, and that the checks of the sink see each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.attempts import rows
from support.drive import KEYED, rows_of, write
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam
from support.streams import STREAMED, DrivenQuery
from support.write_settings import write_settings

KEPT_FEW = write_settings(
    STREAMED,
    hand_over=False,
    upkeep=Upkeep(
        clean=CleanSettings(commits=1), archive=ArchiveSettings(min_commits=2, max_commits=3, delta_commits=None)
    ),
)


def check_replays(folder: Path) -> None:
    """Replay a batch whose instant was archived long ago, and whose write id no note has any more."""
    stream = DrivenQuery(folder / "t", operation="bulk_insert")
    stream.run(0, rows(1, value=1))
    for value in range(6):
        write(folder / "t", rows(2, value=value, ts=value), table=KEYED, settings=KEPT_FEW)
    (folder / "t/.hoodie/.pyhudi/write_ids").unlink(missing_ok=True)
    stream.restarted().run(0, rows(1, value=1))
    assert rows_of(folder / "t", "id", "value") == [("k1", 1), ("k2", 5)]


def check_restarts(folder: Path) -> None:
    """Restart a query beside what its last run left, twice."""
    stream = DrivenQuery(folder / "t")
    stream.run(0, rows(1, value=1))
    stream.tasks(1, [rows(1, value=2, ts=2)])
    again = stream.restarted()
    again.run(1, rows(1, value=2, ts=2))
    assert open_table(open_storage(str(folder / "t"))).timeline().pending == ()
    again.restarted().run(1, rows(1, value=3, ts=3))
    assert rows_of(folder / "t", "id", "value") == [("k1", 2)]


def check_old_checkpoints(folder: Path) -> None:
    """Start a query from an old copy of its checkpoint folder."""
    stream = DrivenQuery(folder / "t")
    for number in range(3):
        stream.run(number, rows(number, value=number))
    try:
        stream.restarted().run(1, rows(9, value=9))
    except PyHudiError:
        return
    raise AssertionError("an old batch was taken")


def no_write_carries_on(patch: Patch) -> None:
    """A write says of streams what it did itself."""

    def carried(seen: Any, pending: Any, batch: Any) -> Any:
        return {} if batch is None else original(seen, pending, batch)

    original = read_seam("checkpoints that a commit carries on")
    patch_seam(patch, "checkpoints that a commit carries on", carried)
    patch_seam(patch, "ids of archived writes", lambda _: {})


def no_task_asks(patch: Patch) -> None:
    patch_seam(patch, "find a batch before its tasks", lambda *_: None)
    patch_seam(patch, "find a batch in the decision", lambda *_: None)
    patch_seam(patch, "check conflicts", lambda *_: None)


def earlier_runs_count_as_others(patch: Patch) -> None:
    patch_seam(patch, "what earlier runs of a query left", lambda *_: ())


def old_batches_are_passed_over(patch: Patch) -> None:
    """As Apache Hudi does: a batch up to the greatest is taken for complete."""
    patch_seam(patch, "find a batch before its tasks", lambda *_: "20260101000000000")


CHECKS = [check_replays, check_restarts, check_old_checkpoints]
MUTATIONS: list[tuple[Mutate, Check]] = [
    (no_write_carries_on, check_replays),
    (no_task_asks, check_restarts),
    (earlier_runs_count_as_others, check_restarts),
    (old_batches_are_passed_over, check_old_checkpoints),
]


@pytest.mark.parametrize("check", CHECKS)
def test_no_mistake_is_green(tmp_path: Path, check: Check) -> None:
    check(tmp_path)


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
