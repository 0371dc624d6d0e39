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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import MissingFileError, PyHudiError, StorageError
from ....storage.base import split
from ....storage.threads import for_each
from ....table.arrow.arrays import Mask, mask
from ....table.files.file_group import FileSlice
from ....table.hfile.entries import Entries
from ....table.metadata.bounds import added_up
from ....table.metadata.bounds_of_files import Integers, places_of
from ....table.metadata.encoded_again import encoded_again
from ....table.metadata.encoding import BOUNDS_OF_PARTITION
from ....table.metadata.file_groups import AllEntries, GroupReader
from ....table.metadata.group_schemas import schema_of_group
from ....table.metadata.kinds import COLUMN_STATS, PARTITION_STATS, groups_of
from ....table.metadata.merging import BOUNDS, KEY, TYPE, SaidRecords
from ....table.metadata.metadata_table import MetadataTable
from ....table.metadata.record_keys import COLUMN_DIGITS, ROOT, hash_of_column, hash_of_partition, key_of_partition
from ....table.metadata.releases import joined
from ....table.schema.types import children
from ....table.seen_table import SeenTable
from ....table.table import Table
from ....timeline.instants import Instant
from ...following.follower import FileChanges
from ...following.indexed_columns import bounds_definition, columns_of

_LEAST, _GREATEST, _TIGHT = "minValue", "maxValue", "isTightBound"


def tight_bounds(
    records: pa.StructArray, files: Mapping[str, Sequence[str]], columns: Sequence[str]
) -> pa.StructArray | None:
    """Return the records of ``partition_stats`` of the partitions that have tight bounds; None if none has.

    A partition has none if a file of it lacks the bounds of a column, or if the bounds of a column are of two types.

    Args:
        records: Records of ``column_stats``, among others those of the files.
        files: The names of all files in the newest slices, at least one a partition, by the paths of the partitions.
        columns: The indexed columns.
    """
    paths, counts = list(files), np.array([len(names) for names in files.values()], dtype=np.int64)
    owners = np.repeat(np.arange(len(paths)), counts)
    numbers, rows = _numbers_and_rows(records, files, owners, columns)
    bounds = records.field(BOUNDS).take(pa.array(rows))
    is_whole = _has_all_bounds(bounds, numbers, np.repeat(counts, len(columns)))
    is_tight = np.asarray(is_whole.reshape(len(paths), len(columns)).all(axis=1))
    is_chosen = is_tight[numbers // len(columns)]
    numbers, bounds = numbers[is_chosen], bounds.filter(pa.array(is_chosen))
    if not len(numbers):
        return None
    # Of each column in a partition the last record tells the type of the values, a record with bounds if there is any.
    order = np.lexsort((_wrapper_of(bounds, _LEAST) >= 0, numbers))
    numbers, bounds = numbers[order], bounds.take(pa.array(order))
    last_rows = np.flatnonzero(np.diff(numbers, append=-1))
    # A tight record would begin the sum anew, so none counts as tight before the sum.
    partition_bounds = added_up(_with_columns(bounds, {_TIGHT: _repeated(False, len(bounds))}), numbers, last_rows)
    of_partition, of_column = numbers[last_rows] // len(columns), numbers[last_rows] % len(columns)
    names = pa.array(map(key_of_partition, paths), pa.string()).take(pa.array(of_partition))
    partition_bounds = _with_columns(partition_bounds, {"fileName": names, _TIGHT: _repeated(True, len(last_rows))})
    key_begins = pa.array(map(hash_of_column, columns), pa.string()).take(pa.array(of_column))
    key_ends = pa.array(map(hash_of_partition, paths), pa.string()).take(pa.array(of_partition))
    types = pa.array(np.full(len(last_rows), BOUNDS_OF_PARTITION, dtype=np.int32))
    keys = pc.binary_join_element_wise(key_begins, key_ends, "")
    return pa.StructArray.from_arrays([keys, types, partition_bounds], [KEY, TYPE, BOUNDS])


def _numbers_and_rows(
    records: pa.StructArray, files: Mapping[str, Sequence[str]], owners: Integers, columns: Sequence[str]
) -> tuple[Integers, Integers]:
    """Return for each record of the files and columns the number of its partition and column, and its row in `records`.

    The number is that of the partition times the count of columns, plus that of the column, both from 0. `owners` has
    the number of the partition of each file.
    """
    paths = pa.array(list(files), pa.string()).take(pa.array(owners))
    key_ends = places_of(paths, pa.array([name for names in files.values() for name in names], pa.string()))
    keys, key_begins = records.field(KEY), pa.array(map(hash_of_column, columns), pa.string())
    of_file = pc.index_in(pc.utf8_slice_codeunits(keys, COLUMN_DIGITS), value_set=key_ends)
    of_column = pc.index_in(pc.utf8_slice_codeunits(keys, 0, COLUMN_DIGITS), value_set=key_begins)
    valid = pc.and_(pc.and_(of_file.is_valid(), of_column.is_valid()), records.field(BOUNDS).is_valid())
    rows = np.flatnonzero(mask(valid))
    at, column = (each.take(pa.array(rows)).to_numpy().astype(np.int64) for each in (of_file, of_column))
    return owners[at] * len(columns) + column, rows


def _has_all_bounds(bounds: pa.StructArray, numbers: Integers, counts: Integers) -> Mask:
    """Return for which numbers there are as many complete records as files, all with bounds of one type.

    A number stands for a column of a partition: `numbers` has that of each record, and `counts` the count of files of
    each number. A record is complete if it has both bounds, or if all values are null.
    """
    least, greatest = (_wrapper_of(bounds, name) for name in (_LEAST, _GREATEST))
    nulls, values = (pc.fill_null(bounds.field(name), -1).to_numpy() for name in ("nullCount", "valueCount"))
    # Some writers leave bounds out that they do not know.
    has_all = (least == greatest) & ((least >= 0) | ((values >= 0) & (nulls >= values)))
    types, has_bounds = _numbers_of_types(bounds, least), least >= 0
    lowest, highest = np.full(len(counts), np.iinfo(np.int64).max), np.full(len(counts), -1)
    np.minimum.at(lowest, numbers[has_bounds], types[has_bounds])
    np.maximum.at(highest, numbers[has_bounds], types[has_bounds])
    is_of_one_type = highest <= lowest
    return np.asarray((np.bincount(numbers[has_all], minlength=len(counts)) == counts) & is_of_one_type)


def _wrapper_of(bounds: pa.StructArray, name: str) -> Integers:
    """Return the number of the type in which each record wraps a bound, -1 if it has none."""
    wrapped, wrappers = bounds.field(name), np.full(len(bounds), -1, dtype=np.int64)
    for number, field in enumerate(children(wrapped.type)):
        wrappers[mask(pc.struct_field(wrapped, [field.name]).is_valid())] = number
    return wrappers


def _numbers_of_types(bounds: pa.StructArray, of_least: Integers) -> Integers:
    """Return a number for the type of each record's bounds: how they are wrapped, and what the record says of it.

    `of_least` has the number of the wrapper of each record's lower bound, -1 without a bound.
    """
    parts = [pa.array(of_least).cast(pa.string())]
    if "valueType" in [field.name for field in children(bounds.type)]:
        value_type = bounds.field("valueType")
        names = [field.name for field in children(value_type.type)] if pa.types.is_struct(value_type.type) else []
        parts += [pc.struct_field(value_type, [name]).cast(pa.string()) for name in names]
    texts = pc.binary_join_element_wise(*parts, " ", null_handling="replace", null_replacement="")
    return np.asarray(texts.dictionary_encode().indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _with_columns(bounds: pa.StructArray, columns: Mapping[str, pa.Array]) -> pa.StructArray:
    """Return bounds with some columns replaced; a column that the bounds lack comes last."""
    columns_by_name = {**{field.name: bounds.field(field.name) for field in children(bounds.type)}, **columns}
    return pa.StructArray.from_arrays(list(columns_by_name.values()), list(columns_by_name))


def _repeated(value: bool, count: int) -> pa.BooleanArray:
    """Return a column with the same value in each row."""
    return pa.array(np.full(count, value))


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
        return _tight_records_by_group(table, metadata, slices, instant)
    except PyHudiError as error:
        logger.warning("table %s: leaves the bounds of its partitions wide: %s", table.path, error)
        return {}


def _tight_records_by_group(
    table: Table, metadata: MetadataTable, slices: Sequence[FileSlice], instant: Instant
) -> dict[str, SaidRecords]:
    """Return the records that replace bounds in slices of ``partition_stats``, by their file ids.

    The records have the exact bounds of the newest files, by ``column_stats``. There are none for partitions that the
    log files of these slices do not mention, or that have no tight bounds. Few partitions are in memory at a time.

    Args:
        slices: Those that a compaction merges.
        instant: The compaction, as of which columns are indexed.
    """
    seen = SeenTable(table, metadata.of_table)
    indexed = columns_of(seen, instant, FileChanges(), bounds_definition(seen.storage))
    if indexed is None or not indexed.fields:
        return {}
    columns = [field.name for field in indexed.fields]
    records_by_group: dict[str, list[SaidRecords]] = {}
    for files in _in_parts(_newest_files(seen, _partitions_in_logs(metadata, slices)), len(columns)):
        prefixes = [hash_of_column(column) + hash_of_partition(path) for column in columns for path in files]
        parts = list(metadata.partition(COLUMN_STATS).with_prefixes(prefixes))
        records = tight_bounds(joined(parts), files, columns) if parts else None
        for file_slice in slices if records is not None else ():
            records_by_group.setdefault(file_slice.file_id, []).append(
                _records_of_group(metadata, file_slice.file_id, records)
            )
    return {file_id: _joined_records(parts) for file_id, parts in records_by_group.items()}


def _partitions_in_logs(metadata: MetadataTable, slices: Sequence[FileSlice]) -> list[str]:
    """Return the partitions of the table whose bounds the log files of some slices state, sorted."""
    names: set[str] = set()
    for file_slice in slices:
        log_reader = GroupReader(metadata.storage, replace(file_slice, base=None), metadata.counts, adds_up=True)
        for records in log_reader.records(AllEntries()):
            names.update(records.field(BOUNDS).field("fileName").drop_null().unique().to_pylist())  # O(partitions)
    return sorted("" if name == ROOT else name for name in names)


def _newest_files(seen: SeenTable, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the files in the newest slices of partitions; without partitions that lack a file."""
    view = seen.view

    def names(path: str) -> list[str]:
        """Return the files in the newest slices of a partition; none if one of its files is gone."""
        try:
            return [split(file.path)[1] for each in view.slices(path).values() for file in each.data_files]
        except (MissingFileError, StorageError):
            # A clean may have deleted files since. The wider bounds stay true.
            return []

    pairs = zip(paths, for_each(seen.storage, names, paths), strict=True)
    return {path: files for path, files in pairs if files}


def _in_parts(files: FilesOfPartitions, columns: int) -> Iterator[FilesOfPartitions]:
    """Yield parts of the partitions, each with at most `_RECORDS_AT_ONCE` records or a single partition.

    Each file has a record for each of so many `columns`.
    """
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


def _records_of_group(metadata: MetadataTable, file_id: str, records: pa.StructArray) -> SaidRecords:
    """Return the records whose keys belong to a file group, in its schema."""
    file_ids = metadata.partition(PARTITION_STATS).file_ids
    groups = groups_of(records.field(KEY), len(file_ids))
    chosen_records = records.filter(pa.array(groups == file_ids.index(file_id)))
    schema = schema_of_group(metadata, PARTITION_STATS, file_id)
    return SaidRecords(
        Entries(chosen_records.field(KEY).cast(pa.binary()), encoded_again(chosen_records, schema)), schema
    )


def _joined_records(parts: Sequence[SaidRecords]) -> SaidRecords:
    """Return the records of several parts as one, sorted by key, as the files of the metadata table have them."""
    keys = pa.concat_arrays([part.keys for part in parts])
    values = pa.concat_arrays([part.entries.values for part in parts])
    order = pc.sort_indices(keys)
    return SaidRecords(Entries(keys.take(order), values.take(order)), parts[0].schema)
