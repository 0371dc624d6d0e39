"""The phases of a write: their seconds, a log line for each, and a progress line every few seconds.

A line is one JSON object, so that users can search by field; its kind is ``event``.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..words.progress import Progress

logger = logging.getLogger("pyhudi")

PROGRESS_S = 10.0


class Phases:
    """Times the phases of a write (``task`` is empty in the commit) or of one of its tasks."""

    def __init__(self, table: str, instant_time: str, task: str = "") -> None:
        self._about = {"table": table, "instant": instant_time, **({"task": task} if task else {})}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[dict[str, Any]]:
        """Time the block and log its seconds, with the facts that the block puts into the dict."""
        start_s = time.monotonic()
        facts: dict[str, Any] = {}
        try:
            yield facts
        finally:
            self.add(name, time.monotonic() - start_s, **facts)

    def add(self, name: str, seconds: float, **facts: Any) -> None:
        """Add a phase that has ended."""
        rounded_seconds = round(seconds, 3)
        self.seconds[name] = round(self.seconds.get(name, 0.0) + rounded_seconds, 3)
        self.log("phase", phase=name, seconds=rounded_seconds, **facts)

    def log(self, event: str, level: int = logging.INFO, **facts: Any) -> None:
        """Log an event of the write with its facts, as one JSON object."""
        if logger.isEnabledFor(level):
            logger.log(level, "%s", json.dumps({"event": event, **self._about, **facts}))


class PhaseProgress:
    """An observer that logs a line every few seconds, and none in a shorter phase."""

    def __init__(self, phases: Phases, level: int = logging.INFO) -> None:
        self._phases = phases
        self._level = level
        self.every_s = PROGRESS_S
        self._start_s = self._logged = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if now_s - self._logged >= self.every_s:
            self._logged = now_s
            fields = {
                "phase": progress.phase,
                "done": progress.finished,
                "total": progress.total,
                "bytes": progress.bytes,
            }
            self._phases.log("progress", self._level, **fields, seconds=round(now_s - self._start_s, 1))
