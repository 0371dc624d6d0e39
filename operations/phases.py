"""Seconds by phase, and one log line for each."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("pyhudi")


class Phases:
    """Times the phases of one write.

    Args:
        table: The table's path, for the log.
        instant_time: The write's instant, for the log.
    """

    def __init__(self, table: str, instant_time: str) -> None:
        self._table = table
        self._instant_time = instant_time
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what happens inside and log it."""
        began = time.monotonic()
        try:
            yield
        finally:
            took = round(time.monotonic() - began, 3)
            self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 3)
            line = {"table": self._table, "instant": self._instant_time, "phase": name, "seconds": took}
            logger.info("phase %s", json.dumps(line))
