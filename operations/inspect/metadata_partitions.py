"""The partitions of a metadata table that are in use or being built, and their sizes by a listing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import PyHudiError
from ...storage.base import join
from ...table.config import TableConfig
from ...table.metadata.metadata_table import BEGINNING, FOLDER, MetadataTable
from ...table.table import Table
from ...timeline.timeline import Timeline

IN_USE, BUILDING = "in use", "being built"


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """One partition; counts and bytes are those of the newest file slices.

    Attributes:
        state: `IN_USE`, or `BUILDING` if writers write to it and readers do not use it yet.
        log_bytes: The part of the bytes that is in log files.
        compacted: Requested time of the last compaction, which made its base files; None before the first.
    """

    partition: str
    state: str
    file_groups: int
    files: int
    log_files: int
    bytes: int
    log_bytes: int
    compacted: str | None

    @property
    def is_in_use(self) -> bool:
        return self.state == IN_USE


def metadata_in_use_or_built(table: Table, timeline: Timeline) -> MetadataTable | None:
    """Return the metadata table with all partitions that properties name; None if they name none."""
    names = named_partitions(table.config)
    return MetadataTable.with_partitions(table, timeline, names) if names else None


def named_partitions(config: TableConfig) -> tuple[str, ...]:
    """Return the partitions of the metadata table that properties name, in use or being built."""
    return tuple(sorted({*config.metadata_partitions, *config.metadata_being_built}))


def partition_sizes(config: TableConfig, metadata: MetadataTable | None) -> tuple[PartitionSize, ...]:
    """Return the size of each partition, in order of its name."""
    return () if metadata is None else tuple(_sizes(config, metadata))


def readable_sizes(table: Table, timeline: Timeline) -> tuple[PartitionSize, ...] | None:
    """Return the size of each partition; None if the metadata table cannot be listed, which `validate` explains."""
    try:
        return partition_sizes(table.config, metadata_in_use_or_built(table, timeline))
    except PyHudiError:
        return None


def _sizes(config: TableConfig, metadata: MetadataTable) -> Iterator[PartitionSize]:
    """Yield the size of each partition of a metadata table, from a listing of its files.

    ``config`` has the properties of the table, which name the partitions in use.
    """
    # The delta commits that build a partition make base files, too, and so do instants that begin one, at `BEGINNING`.
    building_times = {
        instant.requested_time for instant in metadata.timeline.completed if instant.action == "deltacommit"
    }
    for name in metadata.names:
        slices = list(metadata.view.slices(join(FOLDER, name)).values())
        bases = {file_slice.base.instant_time for file_slice in slices if file_slice.base is not None}
        yield PartitionSize(
            partition=name,
            state=IN_USE if name in config.metadata_partitions else BUILDING,
            file_groups=len(slices),
            files=sum(len(file_slice.data_files) for file_slice in slices),
            log_files=sum(len(file_slice.logs) for file_slice in slices),
            bytes=sum(file_slice.size for file_slice in slices),
            log_bytes=sum(file_slice.log_bytes for file_slice in slices),
            compacted=max((time for time in bases - building_times if not time.startswith(BEGINNING)), default=None),
        )
