"""The heartbeat of a write whose tasks run in other processes, given by the process that waits for them.

A task touches the heartbeat while it has rows, and the commit while it merges. In between, for example while tasks wait
for slots, only the process that began the job knows that the write is at work.
"""

from __future__ import annotations

import logging
from typing import Any

from ...storage.base import Storage
from .heartbeat import Heartbeat, HeartbeatThread
from .owner import Claim, Seal, is_gone
from .patience import Patience
from .write_notes import WriteNotes, new_key

logger = logging.getLogger("pyhudi")


class WriteHeartbeat(HeartbeatThread):
    """Touches the heartbeat of the instant that a write's notes name, from one interval on and until the block ends.

    A shorter write costs no request. It never makes a heartbeat: the first task does that, and once the write is sealed
    its commit or abort deletes it.
    """

    def __init__(self, storage: Storage, key: str, interval_s: float) -> None:
        super().__init__(storage, key, interval_s, self._touch_newest)
        self.notes = WriteNotes(storage, key)
        self._number = 0
        self._newest = ""
        self._touched: set[str] = set()

    @classmethod
    def of_new_write(cls, storage: Storage, zone: str, patience: Patience) -> WriteHeartbeat:
        """Return the heartbeat of a write that is planned next, by its `key`."""
        return cls(storage, new_key(zone), patience.heartbeat_interval_s)

    @property
    def key(self) -> str:
        return self.notes.key

    @property
    def _name(self) -> str:
        """The instant, which users know; without an instant the key of the write's notes."""
        return self._newest or self.key

    def __enter__(self) -> WriteHeartbeat:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for instant_time in sorted(self._touched):
            self._delete_of_over(instant_time)

    def _touch_newest(self) -> None:
        """Touch the heartbeat of the instant that the last note names, if the write is at work and the file is old.

        An absent heartbeat is not made: the first task of the write does that.
        """
        while (noted := self.notes.find(self._number + 1)) is not None:
            self._number, self._newest = self._number + 1, noted
        if not self._newest or not self._is_at_work(self._newest):
            return
        storage = self.notes.storage
        beat = Heartbeat(storage, self._newest)
        touched = storage.modified(beat.path)
        # By the clock of a machine that lags, a heartbeat that others take for overdue is young.
        if touched is not None and storage.file_time() - touched >= self._interval_s / 2:
            self._touched.add(self._newest)
            beat.touch()

    def _is_at_work(self, instant_time: str) -> bool:
        """Return whether the write holds the time, is not sealed, and its process is not known to be gone."""
        owner = Claim(self.notes.storage, instant_time).owner()
        ours = owner is not None and owner.key == self.key and not is_gone(owner)
        return ours and not Seal(self.notes.storage, instant_time).is_set()

    def _delete_of_over(self, instant_time: str) -> None:
        """Delete a heartbeat that a touch brought back while the end of the write deleted it.

        A write that is over has no owner's note any more.
        """
        try:
            if Claim(self.notes.storage, instant_time).owner() is None:
                Heartbeat(self.notes.storage, instant_time).delete()
        except Exception:
            logger.warning(
                "table %s: the heartbeat of %s may have stayed", self.notes.storage.path, instant_time, exc_info=True
            )
