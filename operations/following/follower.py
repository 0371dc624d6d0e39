"""What has to follow each change of a table's data files, such as a metadata table.

The commit path alone calls followers: for the properties that each decision changes, and in the process that completes
an instant, before it decides. What they prepare then is part of the decision, so that it happens before the completed
file whichever process makes that file, and no process that finishes for another one calls a follower.
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
        columns: The Avro schema of the table's rows from then on; empty if the instant says nothing of it.
    """

    written: Sequence[WrittenFile] = ()
    removed: Collection[str] = ()
    replaced: Collection[FileGroupId] = ()
    columns: str = ""


class Preparation(Protocol):
    """What one follower prepared for one instant."""

    @property
    def sets_aside(self) -> bool:
        """Whether files wait aside to be published."""

    @property
    def report(self) -> MetadataWritten | None:
        """What the steps write; None if they write nothing that a user has to know."""

    def ready_after(self, timeline: Timeline, config: TableConfig) -> str | None:
        """Return a time after which the instant has to complete, empty for any; None if it is outdated.

        Each round of the decision asks, with the table's timeline and properties of that round. It is outdated where
        what happened since touches what was prepared.
        """

    def steps(self, completed: Instant) -> FirstSteps:
        """Return the steps that precede the completed file, whose time is known by now."""


class Follower(Protocol):
    def properties(self, table: Table, config: TableConfig) -> Mapping[str, str | None]:
        """Return the property changes that must precede the next file.

        ``config`` are the properties as they are stored, ``table`` has those that its writer adds, too. The commit path
        may ask several times before it makes the changes.
        """

    def follows(self, table: Table) -> bool:
        """Return whether this follower prepares steps for instants of a table, by the table's properties alone."""

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        """Return the columns whose bounds `WrittenFile.statistics` of each new data file of a table has to have."""

    def prepare(self, seen: SeenTable, instant: Instant, changes: FileChanges) -> Preparation:
        """Prepare what must precede the completed file of a pending instant; an error fails its work.

        It runs before the decision and outside the table's lock, so it may read data files and write files aside
        (`set_aside`), which go with the left-overs of the instant. It changes nothing that a reader sees.
        """
