"""What a write is doing: seconds by phase, one log line for each, and one every few seconds of a long one.

A line is one JSON object, so that it can be searched for by its fields; ``event`` says what kind it is.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from ..progress import Progress

logger = logging.getLogger("pyhudi")

PROGRESS_S = 10.0


class Phases:
    """Times the phases of one write, or of one of its tasks.

    Args:
        table: The table's path, for the log.
        instant_time: The write's instant, for the log.
        task: The task attempt, for the log; empty in the commit.
    """

    def __init__(self, table: str, instant_time: str, task: str = "") -> None:
        self._about = {"table": table, "instant": instant_time, **({"task": task} if task else {})}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[dict[str, Any]]:
        """Time what happens inside and log it, with whatever facts are put into the dict that it is given."""
        began = time.monotonic()
        facts: dict[str, Any] = {}
        try:
            yield facts
        finally:
            took = round(time.monotonic() - began, 3)
            self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 3)
            self.log("phase", phase=name, seconds=took, **facts)

    def log(self, event: str, level: int = logging.INFO, **facts: Any) -> None:
        """Write one line."""
        if logger.isEnabledFor(level):
            logger.log(level, "%s", json.dumps({"event": event, **self._about, **facts}))


class PhaseProgress:
    """An observer that logs one line every few seconds, and none where the phase is over sooner.

    Args:
        phases: Whose log it goes to.
        level: How loud.
    """

    def __init__(self, phases: Phases, level: int = logging.INFO) -> None:
        self._phases = phases
        self._level = level
        self.every_s = PROGRESS_S
        self._began = self._told = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Log a line unless the last one was logged a moment ago."""
        now = time.monotonic()
        if now - self._told >= self.every_s:
            self._told = now
            self._phases.log("progress", self._level, **asdict(progress), seconds=round(now - self._began, 1))
