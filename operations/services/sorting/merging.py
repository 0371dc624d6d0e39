"""A merge-on-read table sorted by compactions: their plans name file slices without log files, too.

A process that does not know the order carries such a plan out like any other, and leaves the rows as they come.
"""

from __future__ import annotations

from ....table.table import Table
from ....timeline.timeline import Timeline
from ..compaction.compactor import Compaction
from ..compaction.plan import Plan
from ..means import Means
from ..settings import CompactionSettings
from .unsorted import Unsorted


class SortingCompaction(Compaction):
    call = "sort"
    does = "sorts {:,} bytes of base and log files"

    def __init__(self, table: Table, means: Means, unsorted: Unsorted) -> None:
        super().__init__(table, CompactionSettings(), means)
        self.unsorted = unsorted
        self.slices = unsorted.slices

    def plan(self, timeline: Timeline) -> Plan | None:
        return tuple(self.unsorted.find(timeline)) or None
