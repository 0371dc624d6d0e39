"""What stands between a task's finished file and the table: marker first, then the seal, then the file."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..storage.base import Storage
from ..table.partitions import write_partition_metafile
from ..timeline import owner
from ..timeline.layout import layout_of
from ..timeline.markers import MarkerType, write_marker
from ..timeline.timeline import Timeline
from .begin import refuse_sealed
from .plan import WritePlan


@dataclass(slots=True)
class Fence:
    """Lets a file through only while its write is open.

    Attributes:
        plan: The write.
        storage: Rooted at the table.
        sealed_by_us: True in the commit, which writes files of its own after it sealed the write.
    """

    plan: WritePlan
    storage: Storage
    sealed_by_us: bool = False
    _partitions: set[str] = field(default_factory=set)

    def before_publish(self, partition_path: str, path: str, has_previous: bool) -> None:
        """Name the file in a marker, make its partition known, and refuse when the write is over.

        Raises:
            WriteSealedError: The write is over.
        """
        kind = MarkerType.MERGE if has_previous else MarkerType.CREATE
        write_marker(self.storage, self.plan.instant_time, path, kind)
        if partition_path not in self._partitions:
            write_partition_metafile(self.storage, partition_path, self.plan.instant_time)
            self._partitions.add(partition_path)
        self.refuse()

    def after_publish(self, path: str) -> None:
        """Look once more: a commit that sealed between the check and the file did not see the file.

        Raises:
            WriteSealedError: The write is over; the file is gone again.
        """
        if self.sealed_by_us:
            return
        try:
            refuse_sealed(self.plan, self.storage)
        except BaseException:
            self.storage.delete(path)
            raise

    def refuse(self) -> None:
        """Raise when the write is over, or when somebody took its instant off the timeline.

        Raises:
            WriteSealedError: It is.
        """
        if not self.sealed_by_us:
            refuse_sealed(self.plan, self.storage)


def aside(plan: WritePlan) -> str:
    """Return the folder in which files of the write grow before they are published."""
    return f"{owner.folder(plan.instant_time)}/aside"


def snapshot(plan: WritePlan, storage: Storage) -> Timeline:
    """Return the timeline as it was when the write was planned."""
    return Timeline.load(storage, layout_of(plan.config)).as_of(plan.watermark)
