"""What a task of a sort in place does: it writes a new base file of one file slice, whose rows the writer sorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ....storage.base import Storage
from ....table.files.file_group import FileSlice
from ....table.files.names import FileGroupId
from ..compaction.compactor import Compactor
from ..compaction.slice_worker import written_slices
from ..means import Means
from ..unit_execution import UnitResult, execute_units


@dataclass(frozen=True, slots=True)
class Sorter(Compactor):
    """Writes new base files of slices, in the order of the table's properties."""

    operation = "CLUSTER"
    compacts = False

    def rewrite(self, slices: Sequence[FileSlice], means: Means) -> list[UnitResult[FileSlice]]:
        """Rewrite the slices in the tasks of an engine, or in this process if there are none or few slices."""
        return execute_units(self, slices, means, "sort", written_slices)


@dataclass(slots=True)
class SortedInPlace:
    """What a rewrite of a copy-on-write table did.

    Attributes:
        instant: The requested time of its instant; empty if there was nothing to sort.
        results: The results of the slices that it sorted.
        left_out: File groups changed by another write during the sort; not sorted.
    """

    instant: str = ""
    results: list[UnitResult[FileSlice]] = field(default_factory=list)
    left_out: list[FileGroupId] = field(default_factory=list)

    def leave_out(self, storage: Storage, changed: frozenset[FileGroupId]) -> None:
        """Leave file groups out: delete their new files, as readers would read each file of a completed instant.

        This happens before the decision, so that no process completes the instant while these files exist.
        """
        gone = [result for result in self.results if result.unit.group in changed]
        storage.delete(*(path for result in gone for path in result.paths))
        storage.flush(sorted({result.unit.partition_path for result in gone}))
        self.results = [result for result in self.results if result.unit.group not in changed]
        self.left_out += sorted(changed)
