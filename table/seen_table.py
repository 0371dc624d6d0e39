"""A table as of one listing of its timeline: what is committed, and the file slices that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ..storage.base import Storage
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from ..timeline.watermark import Seen
from .files.lost import WholeView, open_view
from .latest_schema import latest_schema
from .table import Table


@dataclass(frozen=True)
class SeenTable:
    """One listing of a table's timeline, which functions and tasks pass on instead of listing again."""

    table: Table
    timeline: Timeline

    @classmethod
    def now(cls, table: Table) -> SeenTable:
        """Return a table as a listing now shows it."""
        return cls(table, table.timeline())

    @property
    def storage(self) -> Storage:
        return self.table.storage

    @cached_property
    def view(self) -> WholeView:
        """The table's file slices; each partition is listed once, on first use."""
        return open_view(self.timeline)

    @cached_property
    def schema(self) -> pa.Schema | None:
        return latest_schema(self.table.config, self.timeline)

    def __reduce__(self) -> tuple[object, ...]:
        """Travel without the view, the schema and what follows from the instants."""
        return _rebuilt, (self.table, self.timeline.instants, self.timeline.seen)


def _rebuilt(table: Table, instants: tuple[Instant, ...], seen: Seen | None) -> SeenTable:
    return SeenTable(table, Timeline(instants, table.instants, seen))
