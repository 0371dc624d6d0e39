"""How far long work is, as an observer learns it."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from pyhudi.operations.services.means import execute_here
from pyhudi.operations.words.progress import LoggedProgress, Progress, Steps, polling
from support.seams import patch_seam
from support.threads import HANGS_S


def test_each_finished_unit_is_told_once_with_the_bytes_of_all() -> None:
    told: list[Progress] = []
    steps = Steps(told.append, "compaction", 3)

    assert execute_here(lambda unit: unit * 2, [5, 3, 2], steps.add) == [10, 6, 4]

    assert [one.finished for one in told] == [1, 2, 3]
    assert told[-1] == Progress("compaction", 3, 3, 10)


def test_what_a_unit_raises_comes_through() -> None:
    told: list[Progress] = []

    def call(unit: int) -> int:
        if unit == 3:
            raise ValueError("broken")
        return unit

    with pytest.raises(ValueError, match="broken"):
        execute_here(call, [5, 3, 2], Steps(told.append, "compaction", 3).add)

    assert len(told) < 3


def test_the_log_gets_a_line_a_minute_and_none_of_short_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    patch_seam(monkeypatch, "clock of progress", lambda: now[0])
    logged = LoggedProgress("/t")

    with caplog.at_level(logging.INFO, logger="pyhudi"):
        for second in (1, 59, 60, 61, 119, 121):
            now[0] = 100.0 + second
            logged(Progress("compaction", second, 200, 1000 * second))

    assert [one.getMessage() for one in caplog.records] == [
        "table /t: compaction: 60 of 200 done (60000 bytes) after 60 seconds",
        "table /t: compaction: 121 of 200 done (121000 bytes) after 121 seconds",
    ]


def test_what_happens_elsewhere_is_looked_at_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that fails is left out."""
    patch_seam(monkeypatch, "seconds between looks at tasks", 0.001)
    looked, enough = [0], threading.Event()

    def look() -> Any:
        looked[0] += 1
        if looked[0] == 3:
            enough.set()
        raise OSError("the store is away")

    with polling(look):
        assert enough.wait(HANGS_S)

    before = looked[0]
    assert before >= 3
    assert not [one for one in threading.enumerate() if one.name == "pyhudi-progress"]
