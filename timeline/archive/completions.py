"""The completion times of a table's instants, archived instants included."""

from __future__ import annotations

from ..instants import State
from ..timeline import Timeline


class CompletionTimes:
    """Reads the archive only when a completion time is not on the timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._archived: dict[str, str] = {}
        self._read_from: str | None = None

    def __call__(self, requested_time: str) -> str:
        """Return the completion time of a requested time.

        A write that never completed gets its requested time, so that no later write counts its files among the newest.
        """
        write = self._timeline.write_at(requested_time)
        if write is not None and write.state == State.COMPLETED:
            return write.visible_since
        # From `_read_from` on the archive was read already.
        if self._read_from is None or requested_time < self._read_from:
            self._read_archive(requested_time)
        return self._archived.get(requested_time, requested_time)

    def _read_archive(self, earliest: str) -> None:
        """Read the archive from a requested time up to where it was read before."""
        archived = self._timeline.files.archive.instants(earliest, self._read_from)
        self._archived |= {instant.requested_time: instant.visible_since for instant in archived if instant.is_write}
        self._read_from = earliest
