"""One JSON line a phase, and one every few seconds of a phase that takes long."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.words.progress import Progress
from pyhudi.operations.write.phases import PhaseProgress, Phases
from support.drawn.histories import TABLE, part, row
from support.drive import write
from support.seams import patch_seam
from support.write_settings import write_settings

Log = pytest.LogCaptureFixture


def told(caplog: Log) -> list[dict[str, object]]:
    return [json.loads(record.message) for record in caplog.records if record.message.startswith("{")]


def test_a_phase_is_one_line_with_its_facts(caplog: Log) -> None:
    caplog.set_level(logging.INFO, "pyhudi")
    seen = Phases("/t", "2026", task="0-1-2")
    with seen.phase("merge") as facts:
        facts["files"] = 3
    with pytest.raises(ValueError, match="no"), seen.phase("merge"):
        raise ValueError("no")

    first, second = told(caplog)
    assert first == {
        "event": "phase",
        "table": "/t",
        "instant": "2026",
        "task": "0-1-2",
        "phase": "merge",
        "seconds": first["seconds"],
        "files": 3,
    }
    assert second["phase"] == "merge"
    assert seen.seconds.keys() == {"merge"}


def test_progress_is_told_now_and_then(caplog: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the clock stands still, until it jumps."""
    caplog.set_level(logging.INFO, "pyhudi")
    clock = iter([0.0, 1.0, 9.9, 10.0, 15.0, 21.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    observer = PhaseProgress(Phases("/t", "2026"))
    for done in range(5):
        observer(Progress("merge", done, 5, 100 * done))

    lines = [(one["phase"], one["done"], one["total"], one["bytes"], one["seconds"]) for one in told(caplog)]
    assert lines == [("merge", 2, 5, 200, 10.0), ("merge", 4, 5, 400, 21.0)]


def write_rows(path: Path, monkeypatch: pytest.MonkeyPatch, settings: WriteSettings) -> None:
    """Write twenty rows and report progress at once."""
    patch_seam(monkeypatch, "pause between two reports of progress", 0.001)
    write(path, part(*(row(f"k{n}", ts=1, value=1) for n in range(20))), table=TABLE, settings=settings)


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_whoever_merges_tells_how_far_it_is(
    tmp_path: Path, caplog: Log, monkeypatch: pytest.MonkeyPatch, colocated: bool
) -> None:
    """The commit of a plain write, or the task that holds whole file groups."""
    caplog.set_level(logging.INFO, "pyhudi")
    write_rows(tmp_path / "t", monkeypatch, WriteSettings(colocated=colocated))

    progress = [one for one in told(caplog) if one["event"] == "progress"]
    assert progress
    assert all(one["phase"] == "merge" and one["total"] == 3 for one in progress)
    assert all(("task" in one) is colocated for one in progress)


def test_a_big_merge_in_the_commit_is_told_to_everybody(
    tmp_path: Path, caplog: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to ask for the lines that say why a commit takes so long."""
    caplog.set_level(logging.WARNING, "pyhudi")
    write_rows(tmp_path / "t", monkeypatch, write_settings(merge_max_bytes=20_000))

    assert {one["event"] for one in told(caplog)} == {"progress"}
