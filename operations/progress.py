"""The progress of long work, for an observer: a log line by default, a bar in a notebook or terminal as well."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

logger = logging.getLogger("pyhudi")

EVERY_S = 60.0
# Seconds between two counts of the files of tasks that run elsewhere.
POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Steps done in a phase, and bytes of data files: the bytes that a write wrote, or that a service read."""

    phase: str
    done: int
    total: int
    bytes: int


Observer = Callable[[Progress], None]


class LoggedProgress:
    """An observer that logs one line a minute, and none for shorter work."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._began = self._told = monotonic()

    def __call__(self, progress: Progress) -> None:
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
    """Counts the steps of a phase that are done and calls an observer; several threads may use it."""

    def __init__(self, observer: Observer, phase: str, total: int) -> None:
        self._observer = observer
        self._phase = phase
        self._total = total
        self._done = self._bytes = 0
        self._lock = threading.Lock()

    def add(self, nbytes: int) -> None:
        with self._lock:
            self._done += 1
            self._bytes += nbytes
            self._tell()

    def seen(self, done: int, nbytes: int) -> None:
        with self._lock:
            self._done, self._bytes = done, nbytes
            self._tell()

    def _tell(self) -> None:
        self._observer(Progress(self._phase, self._done, self._total, self._bytes))


@contextmanager
def polling(look: Callable[[], object]) -> Iterator[None]:
    """Call `look` every few seconds while tasks work elsewhere; an error of it is only logged."""
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
