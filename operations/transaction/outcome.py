"""What a completing instant changes: data files, the table's properties, and its own body."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...table.config import TableConfig
from ...table.files.names import FileGroupId
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers.first_steps import FirstSteps
from ...writer.written_file import WrittenFile
from ..following.follower import FileChanges, Preparation
from ..streams.batch import StreamBatch
from ..streams.checkpoints import carried_on

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata, InstantModel


@dataclass
class CommitBody:
    """The content of a write's completed file for each round of a decision, which may see other checkpoints."""

    metadata: CommitMetadata
    table: Table
    batch: StreamBatch | None = None
    _encoded: tuple[Mapping[str, str], bytes] | None = field(default=None, init=False)

    @property
    def size(self) -> int:
        """Bytes of the content as it was encoded last, to know the space that it needs."""
        return len(self._encoded_with({} if self._encoded is None else self._encoded[0]))

    def at(self, timeline: Timeline, pending: Instant) -> bytes:
        """Return the body of a pending instant that completes next on a timeline."""
        return self._encoded_with(carried_on(SeenTable(self.table, timeline), pending, self.batch))

    def _encoded_with(self, checkpoints: Mapping[str, str]) -> bytes:
        """Return the encoded content with some checkpoints; it is encoded again only if these have changed."""
        if self._encoded is None or self._encoded[0] != checkpoints:
            metadata = self.metadata
            extra = {**metadata.extra_metadata, **checkpoints}
            body = self.table.instants.codec.encode(
                metadata.model_copy(update={"extra_metadata": extra}) if checkpoints else metadata
            )
            self._encoded = checkpoints, body
        return self._encoded[1]


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
        replaced: The file groups that readers skip from then on.
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
        """The changes of data files and of the columns, as followers get them."""
        body = self.body.metadata if isinstance(self.body, CommitBody) else self.body
        notes = getattr(body, "extra_metadata", None) or {}
        return FileChanges(self.written, self.removed, self.replaced, notes.get("schema", ""))
