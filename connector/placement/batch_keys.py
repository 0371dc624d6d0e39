"""What the driver knows of a table's keys between the batches of `HudiTable.stream`, asked before any task."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from ...index.base import NOT_FOUND, KeyedRows, Tags
from ...index.registry import lookup_for
from ...operations.indexing.known_keys import KeysOfWrite, SliceName, keys_of_write
from ...operations.locating.file_group_writes import SlicesByGroup
from ...operations.planning.request import WriteSettings
from ...operations.planning.target import Target
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.files.slice_rule import SliceRule, slice_rule
from ...table.seen_table import SeenTable
from ...timeline.metadata.models import WriteStat
from ...timeline.timeline import Timeline


@dataclass
class BatchKeys:
    """The keys that this process knows of a batch's table, with the keys of the slices that tasks read.

    Attributes:
        slices: The file slices in which the batch's keys were found.
        partitions_of_new_keys: The partitions of keys that the table lacks.
    """

    keys: KeysOfWrite
    slices: dict[FileGroupId, FileSlice] = field(default_factory=dict)
    partitions_of_new_keys: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, target: Target, settings: WriteSettings) -> BatchKeys | None:
        """Return the known keys for a write; None if it is no batch of a stream, or its index looks nothing up."""
        if settings.batch is None or not target.exists:
            return None
        index = lookup_for(target.config, settings.lookup)
        # Another batch follows, so the keys that this batch learns are of use.
        keys = None if index is None else keys_of_write(target.table, index, fills=True)
        return None if keys is None else cls(keys)

    def note(self, tags: Tags, rows: KeyedRows, seen: SeenTable) -> None:
        """Note the file slices that hold keys of the batch, and the partitions that may get its other keys."""
        slices = SlicesByGroup(seen.view)
        found_slices = ((group, slices.find(group)) for group in tags.groups)
        self.slices |= {group: file_slice for group, file_slice in found_slices if file_slice is not None}
        absent = np.flatnonzero(tags.codes == NOT_FOUND)
        paths = pc.unique(rows.paths.take(absent).dictionary_decode())
        self.partitions_of_new_keys.update(paths.to_pylist())  # O(partitions)

    def complete(self, timeline: Timeline, instant_time: str) -> None:
        """Keep what the batch learned, after its instant completed; nothing if the timeline lacks the instant."""
        instant = timeline.write_at(instant_time)
        if instant is None:
            return
        stats = timeline.files.read_commit(instant).partition_to_write_stats
        stats_by_group: dict[FileGroupId, list[WriteStat]] = {}
        for partition, found in stats.items():
            for stat in found:
                stats_by_group.setdefault(FileGroupId(partition, stat.file_id or ""), []).append(stat)
        for group, of_group in stats_by_group.items():
            self._note_successor(slice_rule(timeline), group, of_group)
        self.keys.complete()

    def _note_successor(self, rule: SliceRule, group: FileGroupId, stats: list[WriteStat]) -> None:
        """Note the keys of the slice that a commit made of a known slice, if it has the same keys.

        ``stats`` are those of the files that the commit wrote to the file group.
        """
        slice_before = self.slices.get(group)
        keys = None if slice_before is None else self.keys.keys_of(slice_before)
        if slice_before is None or keys is None:
            return
        slice_after = rule.slice_after(
            slice_before, group, [(stat.path or "", stat.file_size_in_bytes) for stat in stats]
        )
        if slice_after is None:
            return
        if slice_after.base is slice_before.base:
            # An append keeps the keys if the batch has no others.
            keeps_keys = group.partition_path not in self.partitions_of_new_keys
        else:
            # The new base file has the keys of the old one, unless log files or the commit added or deleted rows.
            keeps_keys = not (slice_before.logs or stats[0].num_inserts or stats[0].num_deletes)
        if keeps_keys:
            self.keys.written[SliceName.of(slice_after)] = keys
