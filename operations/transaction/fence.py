"""The check before a task's finished file enters the table: first the marker, then the seal, then the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock

from ...errors import WriteSealedError
from ...storage.base import Staged
from ...table.files.partitions import write_partition_metafile
from ...timeline.writers.markers import Marker, MarkerType
from ...timeline.writers.owner import Seal
from ..meeting.transaction import Transaction
from .begin import refuse_sealed, sealed_error
from .left_overs import forget_partitions


@dataclass(slots=True)
class Fence:
    """The `Publisher` of an instant: publishes files only while the write is open; several threads may use it.

    Attributes:
        number: Distinguishes the markers of this task attempt from those of others, unless processes share the work.
        sealed_by_us: True in the commit, which writes files of its own after it sealed the write.
        partitions: Partitions that have their metafile already.
    """

    work: Transaction
    number: int
    sealed_by_us: bool = False
    partitions: set[str] = field(default_factory=set)
    _is_closed: bool = False
    _announced: dict[str, Marker] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def close(self) -> None:
        """Refuse all further files of threads that still run after an interrupt, because their write is undone next."""
        self._is_closed = True

    def announce(self, files: Iterable[tuple[str, MarkerType]]) -> None:
        """Write the markers of files in one request; a marker must exist before its file."""
        with self._lock:
            new_markers = {path: Marker(path, kind) for path, kind in files if path not in self._announced}
            self._announced |= new_markers
            if self.work.shared:
                self.work.markers.create(new_markers.values())
            elif new_markers:
                # One file has all markers of this task attempt, so write it with the earlier markers, too.
                self.work.markers.write(self.number, self._announced.values())

    def publish(self, staged: Staged, partition_path: str, path: str, kind: MarkerType) -> int:
        """Publish a finished file between the two checks, and return its size; raise if the write is over."""
        self.before_publish(partition_path, path, kind)
        size = staged.publish()
        self.after_publish(path)
        return size

    def before_publish(self, partition_path: str, path: str, kind: MarkerType) -> None:
        """Check that the write is open, and make the marker of a file and the metafile of its partition."""
        self._refuse_closed()
        self.announce([(path, kind)])
        # `after_publish` checks the instant itself: without it no reader sees the file.
        self._refuse_sealed()
        if partition_path not in self.partitions:
            is_new = write_partition_metafile(self.work.storage, partition_path, self.work.instant_time)
            self.partitions.add(partition_path)
            if is_new:
                self._take_back_metafile(partition_path)

    def after_publish(self, path: str) -> None:
        """Look for the seal once more, and delete the file if the write is over.

        A commit that sealed the write between the first check and the file has not listed the file.
        """
        if self.sealed_by_us and not self._is_closed:
            return
        try:
            self.refuse()
        except WriteSealedError:
            self.work.storage.delete(path)
            raise

    def finish(self) -> None:
        """Look for the seal after the last file, for the case that an older release gave the write up.

        The release before format numbers seals a write that it takes for dead, and then deletes the files that it sees.
        """
        storage = self.work.storage
        notes = (Seal(storage, seal) for seal in self.work.seals)
        if self._announced and not self.sealed_by_us and any(note.is_given_up() for note in notes):
            storage.delete(*self._announced)
            raise sealed_error(self.work)

    def refuse(self) -> None:
        """Raise `WriteSealedError` if the fence is closed, the write is over, or its instant is off the timeline.

        The commit has sealed the write itself, so only a closed fence stops the commit.
        """
        self._refuse_closed()
        if self.sealed_by_us:
            return
        self._refuse_sealed()
        if not self.work.storage.exists(self.work.table.instants.path(self.work.inflight)):
            raise WriteSealedError(
                f"The instant {self.work.instant_time} is no longer on the timeline of the table {self.work.path}: "
                "another writer rolled it back, taking its writer for dead.",
                "Write again.",
            )

    def _refuse_closed(self) -> None:
        """Raise `WriteSealedError` if this process has closed the fence."""
        if self._is_closed:
            raise sealed_error(self.work)

    def _refuse_sealed(self) -> None:
        """Raise `WriteSealedError` if this fence is closed, or another process sealed the write."""
        self._refuse_closed()
        if not self.sealed_by_us:
            refuse_sealed(self.work)

    def _take_back_metafile(self, partition_path: str) -> None:
        """If the write is over, remove the new metafile, which would hide later partitions below it, and raise."""
        try:
            self.refuse()
        except WriteSealedError:
            forget_partitions(self.work.table, self.work.inflight, [partition_path])
            raise
