"""When the completed instants of a table completed, those that were archived since among them."""

from __future__ import annotations

from ..instants import State
from ..timeline import Timeline
from .lsm import Archive


class CompletionTimes:
    """Answers from the timeline alone, until somebody asks for what is only in the archive.

    Args:
        timeline: Of whatever moment.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._archived: dict[str, str] = {}
        self._read_from: str | None = None

    def __call__(self, requested_time: str) -> str:
        """Return when the completed write of a requested time completed.

        One that neither timeline nor archive knows left files without ever completing. It is told as having completed
        when it was requested: nothing that came after it may count its files among the newest.

        Raises:
            CorruptInstantError: A file of the archive cannot be read.
            StorageError: The archive was merged meanwhile, or the store failed.
        """
        found = self._timeline.write_at(requested_time)
        if found is not None and found.state == State.COMPLETED:
            return found.visible_since
        if self._read_from is None or requested_time < self._read_from:
            self._read(requested_time)
        return self._archived.get(requested_time, requested_time)

    def _read(self, since: str) -> None:
        files = self._timeline.files
        found = Archive(files.storage, files.layout.archive_folder).instants(since, self._read_from)
        self._archived |= {one.requested_time: one.visible_since for one in found if one.is_write}
        self._read_from = since
