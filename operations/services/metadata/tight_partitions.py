"""Tight bounds of partitions, which a compaction of the metadata table computes anew from the bounds of files.

Commits only widen the bounds of a partition. The bounds of files are exact, so a compaction replaces those of the
partition by the bounds over all files of its newest slices. It does so for partitions that log files mention since the
last compaction, and only while nothing is pending on the table's timeline: the log files of later commits widen the
tight bounds again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ....errors import MissingFileError, PyHudiError, StorageError
from ....storage.base import split
from ....storage.parallel import for_each
from ....table.files.file_group import FileSlice
from ....table.hfile.entries import Entries
from ....table.metadata.encoded_again import encoded_again
from ....table.metadata.file_groups import AllEntries, GroupReader
from ....table.metadata.group_schemas import schema_of_group
from ....table.metadata.kinds import COLUMN_STATS, PARTITION_STATS, groups_of
from ....table.metadata.merging import BOUNDS, KEY, SaidRecords
from ....table.metadata.metadata_table import MetadataTable
from ....table.metadata.record_keys import ROOT, hash_of_column, hash_of_partition
from ....table.metadata.releases import joined
from ....table.metadata.tight_bounds import tight_bounds
from ....table.seen_table import SeenTable
from ....table.table import Table
from ....timeline.instants import Instant
from ...following.follower import FileChanges
from ...following.indexed_columns import bounds_definition, columns_of

logger = logging.getLogger("pyhudi")

# So many records of files are in memory at a time.
_RECORDS_AT_ONCE = 200_000

FilesOfPartitions = Mapping[str, Sequence[str]]


def tight_records(
    table: Table, metadata: MetadataTable, merged: Sequence[tuple[str, FileSlice]], instant: Instant
) -> dict[str, SaidRecords]:
    """Return the records that replace bounds in each file group of ``partition_stats``, by file id.

    Return none if files that hold the bounds are damaged: wide bounds stay true, and the merge itself reports the
    damage. When the caller listed the metadata table, nothing was pending on the table's timeline.

    Args:
        merged: The file slices that the compaction merges, by their partitions of the metadata table.
        instant: The compaction.
    """
    slices = [file_slice for name, file_slice in merged if name == PARTITION_STATS]
    if not slices or COLUMN_STATS not in metadata.names:
        return {}
    try:
        return _by_group(table, metadata, slices, instant)
    except PyHudiError as error:
        logger.warning("table %s: leaves the bounds of its partitions wide: %s", table.path, error)
        return {}


def _by_group(
    table: Table, metadata: MetadataTable, slices: Sequence[FileSlice], instant: Instant
) -> dict[str, SaidRecords]:
    seen = SeenTable(table, metadata.of_table)
    indexed = columns_of(seen, instant, FileChanges(), bounds_definition(seen.storage))
    if indexed is None or not indexed.fields:
        return {}
    columns = [field.name for field in indexed.fields]
    records_by_group: dict[str, list[SaidRecords]] = {}
    for files in _in_parts(_newest_files(seen, _touched(metadata, slices)), len(columns)):
        prefixes = [hash_of_column(column) + hash_of_partition(path) for column in columns for path in files]
        parts = list(metadata.partition(COLUMN_STATS).with_prefixes(prefixes))
        records = tight_bounds(joined(parts), files, columns) if parts else None
        for file_slice in slices if records is not None else ():
            records_by_group.setdefault(file_slice.file_id, []).append(_of_group(metadata, file_slice.file_id, records))
    return {file_id: _together(parts) for file_id, parts in records_by_group.items()}


def _touched(metadata: MetadataTable, slices: Sequence[FileSlice]) -> list[str]:
    """Return the partitions of the table whose bounds log files state, sorted."""
    names: set[str] = set()
    for file_slice in slices:
        alone = GroupReader(metadata.storage, replace(file_slice, base=None), metadata.counts, adds_up=True)
        for records in alone.records(AllEntries()):
            names.update(records.field(BOUNDS).field("fileName").drop_null().unique().to_pylist())  # O(partitions)
    return sorted("" if name == ROOT else name for name in names)


def _newest_files(seen: SeenTable, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the files in the newest slices of partitions; without partitions that lack a file."""
    view = seen.view

    def names(path: str) -> list[str]:
        try:
            return [split(file.path)[1] for each in view.slices(path).values() for file in each.data_files]
        except (MissingFileError, StorageError):
            # A clean may have deleted files since. The wider bounds stay true.
            return []

    pairs = zip(paths, for_each(seen.storage, names, paths), strict=True)
    return {path: files for path, files in pairs if files}


def _in_parts(files: FilesOfPartitions, columns: int) -> Iterator[FilesOfPartitions]:
    """Yield parts of the partitions, each with at most `_RECORDS_AT_ONCE` records or a single partition."""
    part: dict[str, Sequence[str]] = {}
    count = 0
    for path, names in files.items():  # O(partitions)
        if part and (count + len(names)) * columns > _RECORDS_AT_ONCE:
            yield part
            part, count = {}, 0
        part[path] = names
        count += len(names)
    if part:
        yield part


def _of_group(metadata: MetadataTable, file_id: str, records: pa.StructArray) -> SaidRecords:
    """Return the records whose keys belong to a file group, in its schema."""
    file_ids = metadata.partition(PARTITION_STATS).file_ids
    groups = groups_of(records.field(KEY), len(file_ids))
    chosen = records.filter(pa.array(groups == file_ids.index(file_id)))
    schema = schema_of_group(metadata, PARTITION_STATS, file_id)
    return SaidRecords(Entries(chosen.field(KEY).cast(pa.binary()), encoded_again(chosen, schema)), schema)


def _together(parts: Sequence[SaidRecords]) -> SaidRecords:
    keys = pa.concat_arrays([part.keys for part in parts])
    values = pa.concat_arrays([part.entries.values for part in parts])
    order = pc.sort_indices(keys)
    return SaidRecords(Entries(keys.take(order), values.take(order)), parts[0].schema)
