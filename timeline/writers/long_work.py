"""Work on an instant that no process claims, shown to others once it takes long: by an owner's note and a heartbeat.

Several processes may do such work at once, with the same end, so the note excludes none of them. Short work leaves no
note, and costs no call of the store.
"""

from __future__ import annotations

import logging
import threading
import uuid
from types import TracebackType

from ...storage.base import Storage
from .heartbeat import Heartbeat, HeartbeatThread
from .owner import Claim, Owner

logger = logging.getLogger("pyhudi")

SHOWN_AFTER_S = 5.0
_PATIENCE_S = 10.0
_FAILED = "table %s: the note of the process at work on instant %s is missing or stays"


class LongWork:
    """Shows this process as the owner of an instant from some seconds after the block's begin until its end."""

    def __init__(self, storage: Storage, instant_time: str) -> None:
        self._storage = storage
        self._instant_time = instant_time
        self._over = threading.Event()
        self._shown = False
        self._thread = threading.Thread(target=self._run, name=f"pyhudi-shows-{instant_time}", daemon=True)

    def __enter__(self) -> LongWork:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        # Do not wait for a hanging store; a write sweeps up what stays.
        self._thread.join(_PATIENCE_S)
        if self._shown:
            try:
                Heartbeat(self._storage, self._instant_time).delete()
                self._storage.delete_folder(Claim(self._storage, self._instant_time).folder)
            except Exception:
                logger.warning(_FAILED, self._storage.path, self._instant_time, exc_info=True)

    def _run(self) -> None:
        if self._over.wait(SHOWN_AFTER_S):
            return
        try:
            self._shown = Claim(self._storage, self._instant_time).make(Owner.of_this_process(uuid.uuid4().hex))
            if self._shown:
                with HeartbeatThread(self._storage, self._instant_time):
                    self._over.wait()
        except Exception:
            logger.warning(_FAILED, self._storage.path, self._instant_time, exc_info=True)
