"""Finding a write on the timeline by its id, to know one's own again."""

from __future__ import annotations

from ..storage.base import Storage
from ..storage.parallel import THREADS, for_each
from ..timeline.timeline import Timeline

WRITE_ID = "pyhudi.write.id"


def find_write(storage: Storage, timeline: Timeline, write_id: str) -> str | None:
    """Return the requested time of the completed instant that carries ``write_id``, newest first; None if none does."""
    newest_first = timeline.writes[::-1]
    for start in range(0, len(newest_first), THREADS):
        some = newest_first[start : start + THREADS]
        bodies = for_each(storage, timeline.files.read_commit, some)
        for instant, body in zip(some, bodies, strict=True):
            if body.extra_metadata.get(WRITE_ID) == write_id:
                return instant.requested_time
    return None
