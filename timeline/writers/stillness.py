"""Seconds for which a file has not changed, by the process's monotonic clock."""

from __future__ import annotations

import logging
import threading
import time

from ...storage.base import Storage

logger = logging.getLogger("pyhudi")

_POLL_S = 0.5
_MOST_KNOWN = 1000

# By table and path: the last modification time seen, and the monotonic time of its first sight.
_seen: dict[tuple[str, str], tuple[float, float]] = {}
_lock = threading.Lock()


def stood_still_s(storage: Storage, path: str, modified: float) -> float:
    """Return for how many seconds this process has found a file unchanged; none at its first look."""
    now = time.monotonic()
    with _lock:
        if len(_seen) >= _MOST_KNOWN:
            _seen.clear()
        known = _seen.get((storage.path, path))
        if known is None or known[0] != modified:
            known = _seen[storage.path, path] = modified, now
    return now - known[1]


def watch(storage: Storage, path: str, modified: float, longest_s: float) -> float:
    """Poll a file until it changes or was unchanged for ``longest_s``; return its unchanged seconds, 0 if gone."""
    still_s = stood_still_s(storage, path, modified)
    if still_s <= longest_s:
        logger.warning(
            "table %s: %s is overdue, though its process lives; watching it for %.0f s", storage.path, path, longest_s
        )
    while still_s <= longest_s:
        time.sleep(min(_POLL_S, longest_s - still_s + 0.001))
        now = storage.modified(path)
        if now is None:
            return 0.0
        if now != modified:
            return stood_still_s(storage, path, now)
        still_s = stood_still_s(storage, path, modified)
    return still_s
