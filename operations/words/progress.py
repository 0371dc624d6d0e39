"""The progress of long work, for an observer: log lines by default, and a bar in a notebook or terminal."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from .text import size_text

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("pyhudi")

EVERY_S = 60.0
# Seconds between two counts of the files of tasks that run elsewhere.
POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Steps finished in a phase, and the bytes of data files that a write wrote or a service read.

    ``total`` is 0 while the number of steps is unknown.
    """

    phase: str
    finished: int
    total: int
    bytes: int


Observer = Callable[[Progress], None]


class LoggedProgress:
    """An observer that logs one line a minute, and nothing for shorter work."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._began_at = self._logged_at = monotonic()

    def __call__(self, progress: Progress) -> None:
        now = monotonic()
        if now - self._logged_at < EVERY_S:
            return
        self._logged_at = now
        logger.info(
            "table %s: %s: %d of %d done (%d bytes) after %d seconds",
            self._table,
            progress.phase,
            progress.finished,
            progress.total,
            progress.bytes,
            now - self._began_at,
        )


@dataclass
class ShownProgress:
    """An observer that shows the progress of its block from a thread of its own; its subclasses draw.

    If the work reports no steps, the observer shows how long it has run. ``what`` names the work.
    """

    what: str

    def __post_init__(self) -> None:
        self._began_at = monotonic()
        self._newest: Progress | None = None
        self._is_over = threading.Event()
        # A notebook knows the cell by the context of the block.
        self._thread = threading.Thread(target=copy_context().run, args=(self._loop,), daemon=True, name="pyhudi-shown")

    def __call__(self, progress: Progress) -> None:
        self._newest = progress

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def text(self) -> str:
        """Return the progress in words."""
        newest, seconds = self._newest, monotonic() - self._began_at
        steps = "at work" if newest is None else _steps(newest)
        return f"{self.what}: {steps} after {seconds:.0f} s"

    def _loop(self) -> None:
        """Draw until `_is_over` is set, at the end of the block."""
        raise NotImplementedError


def _steps(progress: Progress) -> str:
    """Return the finished steps of a phase in words."""
    of_all = f" of {progress.total:,}" if progress.total else ""
    size = f" ({size_text(progress.bytes)})" if progress.bytes or progress.total else ""
    return f"{progress.phase}: {progress.finished:,}{of_all} done{size}"


class Steps:
    """Counts the finished steps of a phase and calls an observer; several threads may use it."""

    def __init__(self, observer: Observer, phase: str, total: int) -> None:
        self._observer = observer
        self._phase = phase
        self._total = total
        self._finished = self._bytes = 0
        self._lock = threading.Lock()

    def add(self, nbytes: int) -> None:
        """Count one more finished step with its bytes; a worker calls this after its step."""
        with self._lock:
            self._finished += 1
            self._bytes += nbytes
            self._notify()

    def seen(self, steps: int, nbytes: int) -> None:
        """Set the finished steps and bytes, as a look at the files of tasks elsewhere has counted them."""
        with self._lock:
            self._finished, self._bytes = steps, nbytes
            self._notify()

    def _notify(self) -> None:
        self._observer(Progress(self._phase, self._finished, self._total, self._bytes))


@contextmanager
def polling(look: Callable[[], object]) -> Iterator[None]:
    """Call `look` every few seconds while tasks work elsewhere; its errors are only logged."""
    is_over = threading.Event()

    def loop() -> None:
        """Call `look` every `POLL_S` seconds until the block is over."""
        while not is_over.wait(POLL_S):
            try:
                look()
            except Exception:
                logger.debug("the progress is unknown", exc_info=True)

    thread = threading.Thread(target=loop, daemon=True, name="pyhudi-progress")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
