"""The file groups of a metadata table: their slices, and which log files completed before a compaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ....storage.base import join
from ....table.config import load_config
from ....table.files.file_group import FileGroup, FileSlice
from ....table.files.slice_rule import slice_rule
from ....table.metadata.metadata_table import FOLDER, MetadataTable
from ....table.table import Table
from ....timeline.archive.completions import CompletionTimes
from ....timeline.timeline import Timeline
from ...following.kept_metadata import refuse_unsupported_partitions


@dataclass(frozen=True)
class MetadataSlices:
    """The metadata table's partitions in use, as of one listing of both timelines and of the folders."""

    metadata: MetadataTable

    @classmethod
    def of(cls, table: Table, timeline: Timeline) -> MetadataSlices | None:
        """Return the slices of the partitions that a table's properties name now; None if they name none.

        Raises `UnsupportedTableError` if there are partitions that pyhudi does not keep.
        """
        config = load_config(table.storage)
        if not (table.format.keeps_metadata and config.metadata_partitions):
            return None
        refuse_unsupported_partitions(config, table.path)
        return cls(MetadataTable.with_partitions(table, timeline, config.metadata_partitions))

    @property
    def timeline(self) -> Timeline:
        """The metadata table's own timeline."""
        return self.metadata.timeline

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, FileGroup]]:
        """The file groups by partition and file id."""
        return {name: self.metadata.view.groups(join(FOLDER, name)) for name in self.metadata.names}

    @property
    def newest(self) -> Iterator[tuple[str, FileSlice]]:
        """The newest slice of each file group, with its partition."""
        for name, groups in self.groups.items():
            yield from ((name, group.newest) for group in groups.values())

    def before(self, time: str) -> list[tuple[str, FileSlice]]:
        """Return the newest slices, each with its log files that completed before a time; none without such files.

        A placeholder is no such file, as it has nothing to merge.
        """
        completed_at, rule = CompletionTimes(self.timeline), slice_rule(self.timeline)
        slices = []
        for name, newest_slice in self.newest:
            if newest_slice.base is not None and newest_slice.base_time >= time:
                continue
            logs = tuple(log for log in newest_slice.logs if rule.is_merged(log, time, completed_at))
            if not all(map(is_beginning, rule.makers(logs, self.timeline))):
                slices.append((name, replace(newest_slice, logs=logs)))
        return slices


def is_beginning(time: str) -> bool:
    """Return whether an instant began a partition: its log files are placeholders without entries."""
    return time.startswith("00000000000000")


def is_being_undone(timeline: Timeline) -> bool:
    """Return whether a rollback or restore is pending; it may need what the metadata table holds now."""
    return any(instant.is_undo for instant in timeline.pending)
