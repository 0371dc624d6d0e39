"""The records of one instant: those that it writes and deletes in each partition of the metadata table."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from ...storage.base import split
from ...table.metadata.encoding import Records, joined, record_of_partitions, records_of_files
from ...table.metadata.kinds import FILES
from ...table.metadata.metadata_table import MetadataTable
from ...table.metadata.record_keys import PARTITIONS, key_of_partition
from ...table.seen_table import SeenTable
from ...timeline.instants import Instant
from .changed_partitions import ChangedPartition, ChangedRecords
from .damage import damage_of
from .emptied_partitions import emptied_partitions
from .follower import FileChanges
from .later_commits import delete_partitions
from .written_bounds import changed_bounds

_ALL_GONE = (
    "The metadata table went out of use: a clean that began later noted partitions as gone to which this commit adds "
    "files. HudiTable.create_index('files') builds it again."
)


def changed_records(metadata: MetadataTable, seen: SeenTable, instant: Instant, changes: FileChanges) -> ChangedRecords:
    """Return what an instant writes to the partitions of the metadata table that are in use or being built.

    Raises `DamagedPartitionError` if files of the metadata table cannot be read.
    """
    touched = {file.group.partition_path for file in changes.written if file.path}
    with damage_of(FILES):
        was_deleted = FILES in metadata.names and delete_partitions(metadata, instant, touched)
    if was_deleted:
        return ChangedRecords((), metadata.names, (_ALL_GONE,))
    emptied = emptied_partitions(seen, instant, changes)
    files = [_changed_files(metadata, changes, emptied)] if FILES in metadata.names else []
    bounds = changed_bounds(metadata, seen, instant, changes, emptied)
    return ChangedRecords((*files, *bounds.partitions), bounds.drops, bounds.warnings, bounds.steps)


def _changed_files(metadata: MetadataTable, changes: FileChanges, emptied: Collection[str]) -> ChangedPartition:
    added = [(file.group.partition_path, split(file.path)[1], file.size) for file in changes.written if file.path]
    removed = [(*place, 0) for path in changes.removed if (place := split(path))[0] not in emptied]
    partitions, names, sizes = ([row[at] for row in (*added, *removed)] for at in range(3))
    paths, deleted = pa.array(partitions, pa.string()), np.repeat([False, True], [len(added), len(removed)])
    touched = paths.unique()
    every = pa.concat_arrays([touched, pa.array(emptied, pa.string())])
    is_gone = np.repeat([False, True], [len(touched), len(emptied)])

    def records(schema: str) -> list[Records]:
        named = record_of_partitions(every, is_gone, schema)
        if not len(paths):
            return [named]
        files = records_of_files(paths, pa.array(names, pa.string()), np.array(sizes, np.int64), deleted, schema)
        return [joined([named, files])]

    named = [key_of_partition(path) for path in touched.to_pylist()]  # O(partitions)
    keys = pa.array([PARTITIONS, *named], pa.string())
    gone = pa.array(map(key_of_partition, emptied), pa.string())
    return ChangedPartition(FILES, metadata.partition(FILES).file_ids, keys, records, gone)
