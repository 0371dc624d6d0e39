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
from .owner import Claim, Owner, is_gone

logger = logging.getLogger("pyhudi")

SHOWN_AFTER_S = 5.0
_PATIENCE_S = 10.0
_FAILED = "table %s: the note of the process at work on instant %s is missing or stays"


class LongWork:
    """Shows this process as the owner of an instant until the block ends, from some seconds after its begin.

    With ``at_once`` it shows the process from the begin on. Then the note stays if the block fails, and others judge as
    if the process had died.
    """

    def __init__(self, storage: Storage, instant_time: str, *, at_once: bool = False) -> None:
        self._storage = storage
        self._instant_time = instant_time
        self._at_once = at_once
        self._ended = threading.Event()
        self._beats: HeartbeatThread | None = None
        self._thread = threading.Thread(target=self._run, name=f"pyhudi-shows-{instant_time}", daemon=True)

    def __enter__(self) -> LongWork:
        if self._at_once:
            self._show()
        else:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the note and the heartbeat away if they were made; after an error, ``at_once`` leaves the note."""
        self._ended.set()
        if not self._at_once:
            # Do not wait for a hanging store; a write sweeps up what stays.
            self._thread.join(_PATIENCE_S)
        if self._beats is None:
            return
        self._beats.__exit__(kind, error, traceback)
        if self._at_once and kind is not None:
            # The note stays, so that others judge as if this process had died.
            return
        try:
            Heartbeat(self._storage, self._instant_time).delete()
            self._storage.delete_folder(Claim(self._storage, self._instant_time).folder)
        except Exception:
            logger.warning(_FAILED, self._storage.path, self._instant_time, exc_info=True)

    def _run(self) -> None:
        """Show this process if the block is still at work after some seconds."""
        if not self._ended.wait(SHOWN_AFTER_S):
            self._show()

    def _show(self) -> None:
        """Make the note and the heartbeat, or log why that failed: the work itself goes ahead."""
        try:
            if self._claim():
                self._beats = HeartbeatThread(self._storage, self._instant_time).__enter__()
        except Exception:
            logger.warning(_FAILED, self._storage.path, self._instant_time, exc_info=True)

    def _claim(self) -> bool:
        """Make the owner's note, and return whether this process is to touch the heartbeat, too.

        Beside another process's note it does so only if it shows itself at once.
        """
        claim, mine = Claim(self._storage, self._instant_time), Owner.of_this_process(uuid.uuid4().hex)
        if claim.make(mine):
            return True
        if not self._at_once:
            return False
        owner = claim.owner()
        if owner is not None and is_gone(owner):
            self._storage.delete(claim.path, durable=False)
            # If another process claims it first, the work is shown as well.
            claim.make(mine)
        return True
