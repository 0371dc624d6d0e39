"""What a task of a sort in place does: one file slice gets a new base file, whose rows the writer sorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....table.files.file_group import FileSlice
from ..compaction.compactor import Compactor
from ..compaction.slice_worker import SliceResult, written_slices
from ..means import Means
from ..unit_execution import execute_units


@dataclass(frozen=True, slots=True)
class Sorter(Compactor):
    """Writes the base files of slices anew, in the order of the table's properties."""

    operation = "CLUSTER"
    compacts = False


def execute(sorter: Sorter, means: Means, slices: Sequence[FileSlice]) -> list[SliceResult]:
    """Execute the units of a rewrite in the tasks of an engine; in this process where it has none, or needs none."""
    return execute_units(sorter, slices, means, "sort", written_slices)
