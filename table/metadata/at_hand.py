"""The metadata table of a table as a reader has it at hand: listed once, where something asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...timeline.timeline import Timeline
from ..table import Table

if TYPE_CHECKING:
    from .trusted import TrustedMetadata


@dataclass(frozen=True)
class MetadataAtHand:
    """The metadata table of a table whose timeline was listed."""

    table: Table
    timeline: Timeline

    @cached_property
    def trusted(self) -> TrustedMetadata | None:
        """The metadata table, listed on first use; None where the table has none that a reader can go by."""
        if not self.table.config.metadata_partitions:
            return None
        from .trusted import TrustedMetadata  # noqa: PLC0415 (brings fastavro along, which few reads need)

        return TrustedMetadata.of(self.table, self.timeline)

    def __reduce__(self) -> tuple[object, ...]:
        """Travel without what was listed."""
        return MetadataAtHand, (self.table, self.timeline)
