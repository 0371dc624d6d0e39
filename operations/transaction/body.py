"""The body of a completing write: what the write did, and the checkpoints of streams that it carries on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ..streams.batch import StreamBatch
from ..streams.checkpoints import carried_on

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata


@dataclass
class CommitBody:
    """The body for each round of a decision; encoded again only if the checkpoints have changed."""

    metadata: CommitMetadata
    table: Table
    batch: StreamBatch | None = None
    _encoded: tuple[Mapping[str, str], bytes] | None = field(default=None, init=False)

    @property
    def size(self) -> int:
        return len(self._with({} if self._encoded is None else self._encoded[0]))

    def at(self, timeline: Timeline, pending: Instant) -> bytes:
        """Return the body of a pending instant that completes next on a timeline."""
        return self._with(carried_on(SeenTable(self.table, timeline), pending, self.batch))

    def _with(self, checkpoints: Mapping[str, str]) -> bytes:
        if self._encoded is None or self._encoded[0] != checkpoints:
            metadata = self.metadata
            extra = {**metadata.extra_metadata, **checkpoints}
            body = self.table.instants.codec.encode(
                metadata.model_copy(update={"extra_metadata": extra}) if checkpoints else metadata
            )
            self._encoded = checkpoints, body
        return self._encoded[1]
