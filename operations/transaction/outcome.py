"""What a completing instant changes: data files, the table's properties, and its own body."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...table.config import TableConfig
from ...table.files.names import FileGroupId
from ...timeline.writers.first_steps import FirstSteps
from ...writer.written_file import WrittenFile
from ..following.follower import FileChanges, Preparation
from .body import CommitBody

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel


@dataclass(frozen=True, slots=True)
class Properties:
    """What an instant does to the table's properties.

    Attributes:
        new_table: Properties of the table that the instant makes; empty for an existing table.
        changes: Properties that it sets in an existing table; None removes a key.
        current: The table's properties, if the caller has just read them.
    """

    new_table: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str | None] = field(default_factory=dict)
    current: TableConfig | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a completing instant changes.

    Attributes:
        body: Content of the completed file; that of a write also carries the checkpoints of streams on.
        written: The data files that the instant made.
        removed: Paths of the data files that the instant deleted.
        followed: False for a savepoint, which changes nothing that readers see.
        first: Steps before its completed file, besides those of followers.
        own: What the instant itself prepared, as a follower does; an indexing brings what it built.
        restore: Called in each round of the decision; makes again what other processes may have deleted meanwhile.
    """

    body: InstantModel | CommitBody
    written: Sequence[WrittenFile] = ()
    removed: Collection[str] = ()
    replaced: Collection[FileGroupId] = ()
    properties: Properties = field(default_factory=Properties)
    followed: bool = True
    first: tuple[FirstSteps, ...] = ()
    own: Preparation | None = None
    restore: Callable[[], object] = lambda: None

    @property
    def files(self) -> tuple[object, ...]:
        """The changes of data files; equal for outcomes that change the same files."""
        return tuple(self.written), tuple(self.removed), tuple(self.replaced)

    @property
    def changes(self) -> FileChanges:
        body = self.body.metadata if isinstance(self.body, CommitBody) else self.body
        notes = getattr(body, "extra_metadata", None) or {}
        return FileChanges(self.written, self.removed, self.replaced, notes.get("schema", ""))
