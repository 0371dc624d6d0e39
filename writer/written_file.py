"""What a writer of data files leaves of a file group: the one result of writes and of services that rewrite files."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ..table.files.file_group import FileSlice
from ..table.files.names import FileGroupId
from ..table.files.packed_bounds import PackedBounds
from ..table.merging.merger import MergeCounts
from ..table.slices.merged_slice import LogCounts
from ..timeline.writers.markers import MarkerType


class FileKind(Enum):
    BASE = "base file"
    LOG = "log file"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The new file of a file group that a writer had rows for.

    Attributes:
        kind: What the writer makes in this file group, also if it made no file.
        previous: The file slice that the group had before; None for a new group.
        path: Empty if the rows changed nothing, or were all dropped, so that there is no file.
        rows: In the file; the rows of a log file count as updates if the group existed, as in Apache Hudi.
        counts: What became of the rows that the writer had.
        version: Of a log file, among those of its instant in the file group.
        logs: What a compaction met in the log files that it merged into the file; None for all other writers.
        statistics: The bounds of the columns that the output names and the file has; None if it names none.
        outdone: The record key of one of the dropped rows, against which deletes in log files win; empty for none.
    """

    group: FileGroupId
    kind: FileKind
    previous: FileSlice | None
    path: str = ""
    size: int = 0
    rows: int = 0
    counts: MergeCounts = field(default_factory=MergeCounts)
    version: int = 0
    logs: LogCounts | None = None
    statistics: PackedBounds | None = None
    outdone: str = ""

    @property
    def is_log(self) -> bool:
        return self.kind is FileKind.LOG


def marker_of(kind: FileKind, previous: FileSlice | None) -> MarkerType:
    """Return the type of the marker of a file that follows a slice of its group, or opens the group."""
    # From table version 8 on, writers never append to a log file, so Apache Hudi, too, marks it as created.
    creates = kind is FileKind.LOG or previous is None or previous.base is None
    return MarkerType.CREATE if creates else MarkerType.MERGE
