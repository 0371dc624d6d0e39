"""Which file slices of a table lack its order: those with log files, and base files that do not say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ....storage.base import Storage
from ....storage.threads import for_each
from ....table.config.sort_order import SortOrder
from ....table.files.base_file import SORTED_BY, open_base
from ....table.files.file_group import BaseFile, FileSlice
from ....table.files.partitions import choose_partitions, list_partitions
from ....timeline.timeline import Timeline
from ...meeting.concurrency import InstantKind
from ..compaction.plan import FreeSlices


def refuse_unknown_partitions(storage: Storage, named: Sequence[str] | None) -> None:
    """Raise `InvalidOptionError` if a caller names a partition that the table does not have."""
    if named is not None:
        choose_partitions(storage.path, list_partitions(storage), named)


@dataclass(slots=True)
class UnsortedSlices:
    """Finds the slices of some partitions, None for all, that lack an order; reads each footer once."""

    storage: Storage
    order: SortOrder
    partitions: Sequence[str] | None
    mine: InstantKind
    slices: FreeSlices = field(init=False)
    _sorted_by_path: dict[str, bool] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.slices = FreeSlices(self.storage, self.mine)

    def find(self, timeline: Timeline) -> list[FileSlice]:
        """Return the slices that lack the order and that no plan or rescale holds, by partition path and file id.

        Each slice with log files counts as unsorted.
        """
        slices = self.slices.find(timeline, self._wanted_partitions, lambda _: True)
        bases = [file_slice.base for file_slice in slices if file_slice.base is not None and not file_slice.logs]
        unread_bases = [base for base in bases if base.path not in self._sorted_by_path]
        answers = for_each(self.storage, self._is_sorted, unread_bases)
        self._sorted_by_path.update(zip((base.path for base in unread_bases), answers, strict=True))
        return [
            file_slice
            for file_slice in slices
            if file_slice.logs or (file_slice.base is not None and not self._sorted_by_path[file_slice.base.path])
        ]

    @property
    def held_partitions(self) -> list[str]:
        """The partitions that a rescale held at the last `find`."""
        return self._wanted_partitions(self.slices.held_partitions)

    def _wanted_partitions(self, paths: list[str]) -> list[str]:
        """Return the wanted partitions among those of the table."""
        if self.partitions is None:
            return paths
        wanted_paths = set(self.partitions)
        return [path for path in paths if path in wanted_paths]

    def _is_sorted(self, base: BaseFile) -> bool:
        """Return whether a base file's footer says that its rows have this order."""
        with open_base(self.storage, base) as reader:
            footer = reader.parquet.metadata.metadata or {}
        return footer.get(SORTED_BY.encode()) == str(self.order).encode()
