"""What a task of a sort in place does: one file slice gets a new base file, whose rows the writer sorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....storage.base import split
from ....table.files.file_group import FileSlice
from ....table.files.names import FileGroupId, parse_data_name
from ..compaction.compactor import Compactor
from ..compaction.slice_worker import SliceResult
from ..means import Means
from ..unit_execution import execute_units


@dataclass(frozen=True, slots=True)
class Sorter(Compactor):
    """Writes the base files of slices anew, in the order of the table's properties."""

    operation = "CLUSTER"
    compacts = False


def execute(sorter: Sorter, means: Means, slices: Sequence[FileSlice]) -> list[SliceResult]:
    """Execute the units of a rewrite in the tasks of an engine; in this process where it has none, or needs none."""
    return execute_units(sorter, slices, means, "sort", _finished)


def _finished(units: Sequence[FileSlice], paths: Sequence[str]) -> Sequence[FileSlice]:
    """Return the units to which these new data files belong."""
    names = ((split(path)[0], parse_data_name(split(path)[1])) for path in paths)
    groups = {FileGroupId(partition, name.file_id) for partition, name in names if name is not None}
    return [unit for unit in units if unit.group in groups]
