"""Heartbeats: an empty file per pending instant whose modification time shows that its writer lives.

Paths and meaning as in Apache Hudi's ``HoodieHeartbeatClient``: touched every minute, overdue after two misses.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from ...storage.base import Storage, join

logger = logging.getLogger("pyhudi")

ROOT = ".hoodie/.heartbeat"
INTERVAL_S = 60.0

_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The heartbeat of one instant, an empty file."""

    storage: Storage
    instant_time: str

    @property
    def path(self) -> str:
        return join(ROOT, self.instant_time)

    def touch(self) -> None:
        self.storage.write(self.path, b"", durable=False)

    def age(self) -> float | None:
        """Return the seconds since the last touch, by the store's clock; None if there is no heartbeat."""
        modified = self.storage.modified(self.path)
        return None if modified is None else max(0.0, self.storage.now() - modified)

    def delete(self) -> None:
        self.storage.delete(self.path, durable=False)


class HeartbeatThread:
    """Touches an instant's heartbeat at once and then at every interval, until the block ends.

    It logs a store's failure and tries again: the write itself will meet the failure where it can report it. ``sign``
    gives another sign of life than the heartbeat, as of a ticket, whose name is then the ``instant_time``.
    """

    def __init__(
        self,
        storage: Storage,
        instant_time: str,
        interval_s: float = INTERVAL_S,
        sign: Callable[[], None] | None = None,
    ) -> None:
        self._heartbeat = Heartbeat(storage, instant_time)
        self._give_sign = sign or self._heartbeat.touch
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"pyhudi-heartbeat-{instant_time}", daemon=True)

    @property
    def _name(self) -> str:
        return self._heartbeat.instant_time

    def __enter__(self) -> HeartbeatThread:
        self._touch()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        # A touch in progress would bring back a heartbeat that is deleted next. Do not wait for a hanging store.
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        """Touch the heartbeat at every interval until the block ends."""
        while not self._ended.wait(self._interval_s):
            self._touch()

    def _touch(self) -> None:
        """Give the sign of life, or log why that failed."""
        try:
            self._give_sign()
        except Exception:
            # Any error that ended this thread would get a living write rolled back.
            logger.warning(
                "table %s: the heartbeat of %s could not be touched",
                self._heartbeat.storage.path,
                self._name,
                exc_info=True,
            )
