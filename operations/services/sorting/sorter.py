"""What a task of a sort in place does: one file slice gets a new base file, whose rows the writer sorts."""

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
    """Writes the base files of slices anew, in the order of the table's properties."""

    operation = "CLUSTER"
    compacts = False

    def rewrite(self, slices: Sequence[FileSlice], means: Means) -> list[UnitResult[FileSlice]]:
        """Rewrite the slices in the tasks of an engine; in this process if it has none, or needs none."""
        return execute_units(self, slices, means, "sort", written_slices)


@dataclass(slots=True)
class SortedInPlace:
    """What a rewrite of a copy-on-write table did.

    Attributes:
        instant: Its instant; empty without any.
        results: What became of the slices that it sorted.
        left_out: The file groups that other writes changed meanwhile, which stay as these left them.
    """

    instant: str = ""
    results: list[UnitResult[FileSlice]] = field(default_factory=list)
    left_out: list[FileGroupId] = field(default_factory=list)

    def leave_out(self, storage: Storage, changed: frozenset[FileGroupId]) -> None:
        """Delete the new files of some file groups: readers would take each file of a completed instant for its rows.

        The decision comes afterwards, so that no process completes the instant beside these files.
        """
        gone = [result for result in self.results if result.unit.group in changed]
        storage.delete(*(path for result in gone for path in result.paths))
        storage.flush(sorted({result.unit.partition_path for result in gone}))
        self.results = [result for result in self.results if result.unit.group not in changed]
        self.left_out += sorted(changed)
