"""Heartbeats: an empty file per pending instant whose modification time says that its writer lives.

Paths and meaning as in Apache Hudi's ``HoodieHeartbeatClient``: touched every minute, overdue after two misses.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from types import TracebackType

from ...storage.base import Storage, join

logger = logging.getLogger("pyhudi")

ROOT = ".hoodie/.heartbeat"
INTERVAL_S = 60.0
TOLERABLE_MISSES = 2

_PATIENCE_S = 10.0


def path_of(instant_time: str) -> str:
    """Return the path of an instant's heartbeat."""
    return join(ROOT, instant_time)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The heartbeat of one instant.

    Attributes:
        storage: Rooted at the table.
        instant_time: Requested time of the write.
    """

    storage: Storage
    instant_time: str

    @property
    def path(self) -> str:
        """Where it is."""
        return path_of(self.instant_time)

    def touch(self) -> None:
        """Say that the instant's writer lives now."""
        self.storage.write(self.path, b"", durable=False)

    def age(self) -> float | None:
        """Return how many seconds ago, by the store's clock, it was touched; None where there is none."""
        modified = self.storage.modified(self.path)
        return None if modified is None else max(0.0, self.storage.now() - modified)

    def delete(self) -> None:
        """Delete it."""
        self.storage.delete(self.path, durable=False)


class HeartbeatThread:
    """Touches an instant's heartbeat at once and then at every interval, for as long as the block lasts.

    A store that fails is logged and tried again: the write itself will meet the failure where it can report it.

    Args:
        storage: Rooted at the table.
        instant_time: Requested time of the write.
        interval_s: Seconds between two touches.
    """

    def __init__(self, storage: Storage, instant_time: str, interval_s: float = INTERVAL_S) -> None:
        self._heartbeat = Heartbeat(storage, instant_time)
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"pyhudi-heartbeat-{instant_time}", daemon=True)

    def __enter__(self) -> HeartbeatThread:
        self._touch()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        # A touch under way would bring back a heartbeat that is deleted next; a hanging store is not waited for.
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self._touch()

    def _touch(self) -> None:
        try:
            self._heartbeat.touch()
        except Exception:
            # Whatever it was, a thread that died of it would get a living write rolled back.
            logger.warning(
                "table %s: the heartbeat of instant %s could not be touched",
                self._heartbeat.storage.path,
                self._heartbeat.instant_time,
                exc_info=True,
            )
