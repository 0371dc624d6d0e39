"""The metadata table of a table as a reader has it at hand: listed once, if something asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...timeline.timeline import Timeline
from ..table import Table

if TYPE_CHECKING:
    from .trusted import TrustedMetadata


@dataclass(eq=False)
class MetadataAtHand:
    """The metadata table of a table whose timeline was listed; ``asked`` is False if a reader does without it."""

    table: Table
    timeline: Timeline
    asked: bool = True

    @property
    def trusted(self) -> TrustedMetadata | None:
        """The metadata table, listed on first use; None if there is none that the reader can go by."""
        return self._listed if self.asked and self.table.config.metadata_partitions else None

    def doubt(self, error: Exception) -> None:
        """Do without the metadata table from now on, since it proved wrong about its table."""
        if self.trusted is not None:
            self.trusted.doubt(error)
        self.asked = False

    @cached_property
    def _listed(self) -> TrustedMetadata | None:
        from .trusted import TrustedMetadata  # noqa: PLC0415 (brings fastavro along, which few reads need)

        return TrustedMetadata.of(self.table, self.timeline)

    def __reduce__(self) -> tuple[object, ...]:
        """Travel without what was listed."""
        return MetadataAtHand, (self.table, self.timeline, self.asked)
