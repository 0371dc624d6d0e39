"""Finding a write on the timeline by its id, to know one's own again."""

from __future__ import annotations

from ..storage.base import Storage
from ..timeline.codec import read_commit
from ..timeline.timeline import Timeline

WRITE_ID = "pyhudi.write.id"


def find_write(storage: Storage, timeline: Timeline, write_id: str) -> str | None:
    """Return the requested time of the completed instant that carries ``write_id``, newest first; None if none does."""
    for instant in reversed(timeline.writes):
        if read_commit(storage, timeline.layout, instant).extra_metadata.get(WRITE_ID) == write_id:
            return instant.requested_time
    return None
