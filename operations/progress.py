"""How far long work is, told to an observer: a line in the log by default, a bar in a notebook or terminal as well."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

logger = logging.getLogger("pyhudi")

EVERY_S = 60.0
# How often the files of tasks that run elsewhere are counted.
POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a phase is.

    Attributes:
        phase: What is being done.
        done: How many steps are done.
        total: How many steps there are.
        bytes: How many bytes of data files are done: a write counts those that it wrote, a service those that it read.
    """

    phase: str
    done: int
    total: int
    bytes: int


Observer = Callable[[Progress], None]


class LoggedProgress:
    """An observer that logs one line a minute, and none where the work is over sooner."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._began = self._told = monotonic()

    def __call__(self, progress: Progress) -> None:
        """Log a line unless the last one is less than a minute old."""
        now = monotonic()
        if now - self._told < EVERY_S:
            return
        self._told = now
        logger.info(
            "table %s: %s: %d of %d done (%d bytes) after %d seconds",
            self._table,
            progress.phase,
            progress.done,
            progress.total,
            progress.bytes,
            now - self._began,
        )


class Steps:
    """Counts the steps of a phase that are done and tells an observer; several threads may use it."""

    def __init__(self, observer: Observer, phase: str, total: int) -> None:
        self._observer = observer
        self._phase = phase
        self._total = total
        self._done = self._bytes = 0
        self._lock = threading.Lock()

    def add(self, nbytes: int) -> None:
        """Count one more step, which has read so many bytes."""
        with self._lock:
            self._done += 1
            self._bytes += nbytes
            self._tell()

    def seen(self, done: int, nbytes: int) -> None:
        """Take the number of steps that are done, and the bytes that all of them have read."""
        with self._lock:
            self._done, self._bytes = done, nbytes
            self._tell()

    def _tell(self) -> None:
        self._observer(Progress(self._phase, self._done, self._total, self._bytes))


@contextmanager
def polling(look: Callable[[], object]) -> Iterator[None]:
    """Look at work that tasks do elsewhere, every few seconds while it is under way; a look that fails is left out."""
    over = threading.Event()

    def loop() -> None:
        while not over.wait(POLL_S):
            try:
                look()
            except Exception:
                logger.debug("progress is not known", exc_info=True)

    thread = threading.Thread(target=loop, daemon=True, name="pyhudi-progress")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
