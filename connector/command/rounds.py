"""Rounds of table services, repeated until a signal comes."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from ...errors import RetryError
from .exit_codes import AGAIN

_POLL_S = 0.2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _BrokenOff(BaseException):
    """A round had no more time after a signal."""


class _Signals:
    """Notes the first signal; a second one, or `grace_s` more seconds, break the round off."""

    def __init__(self, grace_s: float) -> None:
        self._heard = False
        self._grace_s = grace_s
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in (*_SIGNALS, signal.SIGALRM)}
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> bool:
        """Wait for a signal; return whether one came."""
        # An event must not be set by a handler: it may interrupt the wait where that holds the event's lock.
        until = time.monotonic() + seconds
        while not self._heard and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_S))
        return self._heard

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._heard:
            raise _BrokenOff
        self._heard = True
        # A timer of no seconds would never go off.
        signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))


def repeat_rounds(call: Callable[[], int], *, every_s: float | None, grace_s: float) -> int:
    """Call a round once, or every so many seconds until SIGTERM or SIGINT, and return the last exit code.

    A round that raises `RetryError` does not end the others. A round that is broken off ends with the code of
    `RetryError`: what it had begun is undone, or left to the next process.
    """
    code = 0
    with _Signals(grace_s) as signals:
        try:
            while True:
                began = time.monotonic()
                try:
                    code = call()
                except RetryError as error:
                    if every_s is None:
                        raise
                    print(error, file=sys.stderr, flush=True)  # noqa: T201 (a job's interface)
                    code = AGAIN
                if every_s is None or signals.wait(began + every_s - time.monotonic()):
                    return code
        except _BrokenOff:
            return AGAIN
