"""What a call of a rescale has to do: which partitions have another number of buckets, and their slices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ....errors import UnsupportedTableError
from ....table.buckets.numbers import BucketNumbers, bucket_numbers, refuse_unknown
from ....table.buckets.recorded_by_hudi import has_bucket_rules
from ....table.files.file_group import FileSlice
from ....table.files.partitions import choose_partitions
from ....table.files.view import FileView
from ....table.seen_table import SeenTable
from ....table.table import Table
from ....timeline.timeline import Timeline
from .units import BucketChange


@dataclass(frozen=True, slots=True)
class WantedNumber:
    """The number of buckets that a call wants.

    Attributes:
        partitions: The partitions that the caller names; None for all, future partitions included.
    """

    table: Table
    n: int
    partitions: Sequence[str] | None

    def numbers(self, timeline: Timeline) -> BucketNumbers:
        """Return the numbers in force; raises `UnsupportedTableError` if they are unknown."""
        numbers = bucket_numbers(self.table, timeline)
        if not numbers.by_rule:
            # This call raises for consistent hashing, which has its own files.
            has_bucket_rules(self.table.storage)
        refuse_unknown(numbers)
        return numbers

    def slices_and_changes(
        self, timeline: Timeline, among: Collection[str] | None = None
    ) -> tuple[Mapping[str, list[FileSlice]], Mapping[str, BucketChange]]:
        """Return the slices of the wanted partitions, or of ``among``, and the changes of those with another number.

        Both are by partition path.
        """
        numbers = self.numbers(timeline)
        view = SeenTable(self.table, timeline).view
        slices = {
            path: [*view.slices(path).values()] for path in (self._wanted_paths(view) if among is None else among)
        }
        changes = {}
        for path, partition_slices in slices.items():
            old_number = numbers.of(path)
            if old_number is None:
                raise UnsupportedTableError(
                    f"The name of the partition {path!r} of the table {self.table.path} may match other expressions in "
                    "Apache Hudi than in pyhudi, so that its number of buckets is unknown.",
                    "Write the partition's rows to a partition of another name.",
                )
            if partition_slices and old_number != self.n:
                changes[path] = BucketChange(path, old_number, self.n)
        return slices, changes

    def wants_default(self, timeline: Timeline) -> bool:
        """Return whether future partitions are to get the wanted number and would get another."""
        numbers = self.numbers(timeline)
        return self.partitions is None and (numbers.default != self.n or numbers.differ)

    def _wanted_paths(self, view: FileView) -> list[str]:
        """Return the partitions of a view that the caller wants; raise `InvalidOptionError` for unknown names."""
        return choose_partitions(self.table.path, view.partitions(), self.partitions)
