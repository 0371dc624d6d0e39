"""Followers of a table's data files, such as a metadata table, which each change of data files must update.

Only the commit path calls followers: for the properties that each decision changes, and in the process that completes
an instant, before it decides. The steps that they prepare are part of the decision. So the steps come before the
completed file, whichever process makes that file, and a process that finishes for another process calls no follower.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...table.config import TableConfig
from ...table.files.names import FileGroupId
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers.first_steps import FirstSteps
from ...writer.written_file import WrittenFile
from ..result import MetadataWritten


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What a completing instant does to the table's data files.

    Attributes:
        written: The data files that the instant made.
        removed: Paths of the data files that the instant deleted.
        replaced: The file groups that the instant replaced, whose files stay until a clean.
        columns: The Avro schema of the table's rows from then on; empty if the instant has none.
    """

    written: Sequence[WrittenFile] = ()
    removed: Collection[str] = ()
    replaced: Collection[FileGroupId] = ()
    columns: str = ""


class Preparation(Protocol):
    """What one follower prepared for one instant."""

    @property
    def sets_aside(self) -> bool:
        """Whether files wait in the instant's working folder to be copied into place."""

    @property
    def report(self) -> MetadataWritten | None:
        """What the steps write, for the user; None for nothing of interest."""

    def ready_after(self, timeline: Timeline, config: TableConfig) -> str | None:
        """Return a time after which the instant must complete, empty for any; None if the preparation is outdated.

        Each round of the decision calls this, with its timeline and properties of the table. The preparation is
        outdated if later changes touch what was prepared.
        """

    def steps(self, completed: Instant) -> FirstSteps:
        """Return the steps before the completed file, whose time is known now."""


class Follower(Protocol):
    """Keeps something up to date with a table's data files."""

    def properties(self, table: Table, config: TableConfig) -> Mapping[str, str | None]:
        """Return the changes of properties that must come before the next file.

        ``config`` has the stored properties, ``table`` also those that its writer adds. The commit path may call this
        several times before it makes the changes.
        """

    def follows(self, table: Table) -> bool:
        """Return whether this follower prepares steps for instants of a table, by the table's properties alone."""

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        """Return the columns whose bounds `WrittenFile.statistics` of each new data file of a table must have."""

    def prepare(self, seen: SeenTable, instant: Instant, changes: FileChanges) -> Preparation:
        """Prepare the steps before the completed file of a pending instant; an error fails the instant's work.

        This runs before the decision and outside the table's lock, so it may read data files, and write files to the
        instant's working folder (`set_aside`), which is deleted with the left-overs of the instant. It changes nothing
        that a reader sees.
        """
