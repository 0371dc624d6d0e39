"""Records of commits that began later than an instant and completed sooner, and that would hide the instant's records.

Log records of one key merge in the order of the times at which their instants began. So a later record that replaces
all records before it (``HoodieMetadataPayload``) hides the record of the instant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.arrays import mask
from ...table.files.file_group import FileSlice, every_instant
from ...table.files.logs.log_blocks import BlockType
from ...table.files.logs.log_contents import BlockContent
from ...table.files.logs.log_file import read_blocks
from ...table.metadata.file_groups import AllEntries, GroupReader
from ...table.metadata.kinds import FILES, PARTITION_STATS
from ...table.metadata.metadata_table import MetadataTable
from ...table.metadata.record_keys import key_of_partition
from ...timeline.instants import Instant


def later_commits_state_tight_bounds(metadata: MetadataTable, instant: Instant, touched: Collection[str]) -> bool:
    """Return whether later commits noted tight bounds of some partitions, without the files of the instant."""
    touched_keys = _partition_keys(touched)
    for log in _later_logs(metadata, instant, PARTITION_STATS) if touched else ():
        # With `adds_up`, records of one key are merged, as their kind needs, instead of the newest alone counting.
        for records in GroupReader(metadata.storage, log, every_instant, adds_up=True).records(AllEntries()):
            bounds = records.field("ColumnStatsMetadata")
            of_touched = pc.is_in(bounds.field("fileName"), value_set=touched_keys)
            if mask(pc.and_(of_touched, bounds.field("isTightBound"))).any():
                return True
    return False


def later_cleans_delete_partitions(metadata: MetadataTable, instant: Instant, touched: Collection[str]) -> bool:
    """Return whether later cleans noted partitions as gone to which the instant adds files."""
    touched_keys = _partition_keys(touched)
    for log in _later_logs(metadata, instant, FILES) if touched else ():
        for block in read_blocks(metadata.storage, log.logs[0].path):
            if block.type == BlockType.DELETE:
                deleted_keys = BlockContent(metadata.storage, block).deletes().keys
                if mask(pc.is_in(deleted_keys, value_set=touched_keys)).any():
                    return True
    return False


def _partition_keys(partitions: Collection[str]) -> pa.StringArray:
    """Return the keys of partitions in the metadata table's records."""
    return pa.array(map(key_of_partition, sorted(partitions)), pa.string())


def _later_logs(metadata: MetadataTable, instant: Instant, partition: str) -> Iterator[FileSlice]:
    """Yield the log files of later commits, as file slices of one log file each."""
    completed = metadata.timeline.completed
    later_times = {each.requested_time for each in completed if each.requested_time > instant.requested_time}
    for file_slice in metadata.partition(partition).slices.values() if later_times else ():
        logs = (replace(file_slice, base=None, logs=(log,)) for log in file_slice.logs)
        yield from (log for log in logs if any(map(log.names, later_times)))
