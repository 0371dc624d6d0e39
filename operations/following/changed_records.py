"""The records of one instant: those that it writes and deletes in each partition of the metadata table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import Storage, split
from ...storage.threads import for_each
from ...table.config import TableConfig
from ...table.files.column_bounds import have_width
from ...table.files.file_group import data_file, is_change_data
from ...table.metadata.bounds_of_files import BoundedFiles, FileBounds, places_of
from ...table.metadata.bounds_records import bounds_in_parts, partition_bounds_in_parts
from ...table.metadata.encoding import Records, joined, record_of_partitions, records_of_files
from ...table.metadata.index_definitions import definition_over, new_definitions
from ...table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from ...table.metadata.metadata_table import MetadataTable
from ...table.metadata.read_bounds import bounds_of_base_file, bounds_of_log_file
from ...table.metadata.record_keys import PARTITIONS, hash_of_column, hash_of_partition, key_of_partition
from ...table.seen_table import SeenTable
from ...timeline.instants import Instant
from ...timeline.writers.first_steps import ReplaceFile
from ...writer.written_file import WrittenFile
from .changed_partitions import ChangedPartition, ChangedRecords
from .damage import damage_of
from .follower import FileChanges
from .indexed_columns import BOUNDED, IndexedColumns, bounds_definition, columns_of
from .later_commits import later_cleans_delete_partitions, later_commits_state_tight_bounds

_BUILD = "HudiTable.create_index('column_stats') builds what is missing."
# The bounds of so many files are Python objects at the same time.
_FILES_AT_ONCE = 1000
_CHANGED = (
    "the write drops the columns or gives them another type, or pyhudi has no bounds of their type. "
    "HudiTable.drop_index('column_stats') and then create_index build bounds of the columns as they are now."
)
_HALF_STATED = (
    "partition_stats went out of use: it has bounds of columns that the write changes, and Apache Hudi would leave out "
    "partitions without such bounds. HudiTable.create_index('partition_stats') builds it again."
)


def changed_bounds(
    metadata: MetadataTable, seen: SeenTable, instant: Instant, changes: FileChanges, emptied: Collection[str]
) -> ChangedRecords:
    """Return what an instant writes to ``column_stats`` and ``partition_stats``, if they are in use.

    ``metadata`` is the metadata table, ``seen`` the table with one listing of its timeline, and ``changes`` what the
    instant does to data files. ``emptied`` are the partitions of the table that have no file any more. A partition of
    bounds that pyhudi cannot keep right goes out of use, with a warning.
    """
    names = tuple(name for name in BOUNDED if name in metadata.names)
    if not names:
        return ChangedRecords(())
    with damage_of(COLUMN_STATS):
        definition = bounds_definition(seen.storage)
    indexed = columns_of(seen, instant, changes, definition)
    if indexed is None or not indexed.fields:
        what = "no definition names the columns" if indexed is None else "the table has no column of those"
        return ChangedRecords((), names, (f"Of {' and '.join(names)} {what} that have bounds. {_BUILD}",))
    bounded = _bounds_of_new_files(seen.storage, seen.table.config, indexed, changes.written)
    changed_partitions, drops, warnings = [], [], []
    if COLUMN_STATS in names:
        changed_partitions.append(_changed_file_bounds(metadata, indexed, bounded, changes.removed))
    if PARTITION_STATS in names and indexed.gone:
        drops.append(PARTITION_STATS)
        warnings.append(_HALF_STATED)
    elif PARTITION_STATS in names:
        touched = bounded.files.partitions.unique().to_pylist()  # O(partitions)
        with damage_of(PARTITION_STATS):
            was_tight = later_commits_state_tight_bounds(metadata, instant, touched)
        if was_tight:
            drops.append(PARTITION_STATS)
            warnings.append(
                "partition_stats went out of use: a commit that began later has stated bounds of partitions, without "
                "the files of this commit. HudiTable.create_index('partition_stats') builds it again."
            )
        else:
            changed_partitions.append(_changed_partition_bounds(metadata, indexed, bounded, emptied))
    steps: tuple[ReplaceFile, ...] = ()
    if indexed.gone:
        steps = (_step_without_columns(seen.storage, indexed),)
        warnings.append(f"The metadata table keeps no bounds of {', '.join(indexed.gone)} any more: {_CHANGED}")
    return ChangedRecords(tuple(changed_partitions), tuple(drops), tuple(warnings), steps)


def _step_without_columns(storage: Storage, indexed: IndexedColumns) -> ReplaceFile:
    """Return the step that takes the columns that an instant drops or changes out of the definition."""
    remaining = [name for name in indexed.names if name not in indexed.gone]
    definitions = new_definitions(storage, {COLUMN_STATS: definition_over(storage, remaining)})
    return ReplaceFile(definitions.path, definitions.content, definitions.replaces)


def _changed_file_bounds(
    metadata: MetadataTable, indexed: IndexedColumns, bounded: BoundedFiles, removed: Collection[str]
) -> ChangedPartition:
    """Return the records of ``column_stats``: bounds of new files, and deletes for the ``removed`` paths.

    Files that lack values of some rows, such as partial updates, get no bounds.
    """
    whole_files = bounded.take(np.flatnonzero(~bounded.is_partial)) if bounded.is_partial.any() else bounded
    removed_names = [split(path) for path in removed]
    deleted_places = places_of(
        pa.array([folder for folder, _ in removed_names], pa.string()),
        pa.array([name for _, name in removed_names], pa.string()),
    )
    return ChangedPartition(
        COLUMN_STATS,
        metadata.partition(COLUMN_STATS).file_ids,
        partial(_keys_of_bounds, [field.name for field in indexed.fields], whole_files.files.places),
        partial(bounds_in_parts, whole_files, typed=indexed.typed),
        # A removed file may also have bounds of columns that get none any more.
        pa.concat_arrays([pa.array([], pa.string()), *_keys_of_bounds(indexed.names, deleted_places)]),
    )


def _changed_partition_bounds(
    metadata: MetadataTable, indexed: IndexedColumns, bounded: BoundedFiles, emptied: Collection[str]
) -> ChangedPartition:
    """Return the records of ``partition_stats``: bounds of partitions with new files, and deletes for ``emptied``.

    ``bounded`` has the bounds of the instant's new files in the ``indexed`` columns, and ``emptied`` the partitions of
    the table that have no file any more.
    """
    touched, gone = (
        pa.array(map(hash_of_partition, paths), pa.string())
        for paths in (bounded.files.partitions.unique().to_pylist(), sorted(emptied))  # O(partitions)
    )
    return ChangedPartition(
        PARTITION_STATS,
        metadata.partition(PARTITION_STATS).file_ids,
        partial(_keys_of_bounds, [field.name for field in indexed.fields], touched),
        partial(partition_bounds_in_parts, bounded, typed=indexed.typed),
        pa.concat_arrays([pa.array([], pa.string()), *_keys_of_bounds(indexed.names, gone)]),
    )


def _keys_of_bounds(columns: Collection[str], places: pa.StringArray) -> Iterator[pa.StringArray]:
    """Yield the keys of the bounds of each column; ``places`` are the ends of keys, which name files or partitions."""
    return (pc.binary_join_element_wise(hash_of_column(name), places, "") for name in columns)


def _bounds_of_new_files(
    storage: Storage, config: TableConfig, indexed: IndexedColumns, written: Sequence[WrittenFile]
) -> BoundedFiles:
    """Return the bounds of new files: from their writers if they state them, else from the files."""
    files = [file for file in written if file.path and not _is_change_data(file.path)]
    # In a partial update, a value of a row may come from the stored row, which a log file lacks.
    mixes_columns = config.partial_update_mode is not None
    parts = (files[at : at + _FILES_AT_ONCE] for at in range(0, len(files), _FILES_AT_ONCE))
    file_bounds = (bounds for part in parts for bounds in _bounds_of_files(storage, indexed, part, mixes=mixes_columns))
    return BoundedFiles.of(file_bounds, indexed.fields)


def _bounds_of_files(
    storage: Storage, indexed: IndexedColumns, files: Sequence[WrittenFile], *, mixes: bool
) -> Iterator[FileBounds]:
    """Yield the bounds of some new files in their order: those that writers state, else those in the files.

    ``mixes`` says that the table's partial update mode mixes rows with older rows, whose values a log file lacks.
    """
    stated_bounds = [_stated_bounds(file, indexed, mixes=mixes) for file in files]
    unread = [file for file, bounds in zip(files, stated_bounds, strict=True) if bounds is None]
    read_bounds = iter(
        for_each(storage, lambda file: _read_bounds(storage, file, indexed, mixes=mixes), unread, computes=True)
    )
    yield from (next(read_bounds) if bounds is None else bounds for bounds in stated_bounds)


def _is_change_data(path: str) -> bool:
    """Return whether a path is of a file of change data, which readers of the table skip."""
    file = data_file(path, changes=True)
    return file is not None and is_change_data(file)


def _stated_bounds(file: WrittenFile, indexed: IndexedColumns, *, mixes: bool) -> FileBounds | None:
    """Return the bounds that the writer of a file states; None if some are missing, or of values of another type.

    Then the file itself is read. A log file may lack a column, so its bounds may come without a number of nulls.
    """
    bounds_by_column = {bounds.column: bounds for bounds in file.statistics or ()}
    columns = []
    for field in indexed.fields:
        bounds = bounds_by_column.get(field.name)
        if bounds is None or not indexed.has_type(field) or not have_width(bounds, field.type):
            return None
        if (bounds.nulls is not None and not bounds.says_all(file.rows)) or (bounds.nulls is None and not file.is_log):
            return None
        columns.append(bounds)
    is_partial = file.is_log and (mixes or any(bounds.nulls is None for bounds in columns))
    return FileBounds(file.group.partition_path, split(file.path)[1], file.rows, columns, is_partial)


def _read_bounds(storage: Storage, file: WrittenFile, indexed: IndexedColumns, *, mixes: bool) -> FileBounds:
    """Return the bounds in a published file, such as a file whose writer began before the columns were indexed.

    A log file is partial if it lacks columns, or if the table's partial update mode ``mixes`` its rows with older rows.
    """
    place = file.group.partition_path, split(file.path)[1]
    if not file.is_log:
        return FileBounds(*place, *bounds_of_base_file(storage, file.path, indexed.fields))
    rows, columns, lacks = bounds_of_log_file(storage, file.path, indexed.fields)
    return FileBounds(*place, rows, columns, mixes or lacks)


# The actions of instants that may add a file to a partition without files.
_ADD_FILES = frozenset({"commit", "deltacommit", "replacecommit"})


def emptied_partitions(seen: SeenTable, instant: Instant, changes: FileChanges) -> tuple[str, ...]:
    """Return the partitions that a deleting instant left without a data file, by a listing of them.

    It returns none while an older write is pending. The records of that write would count as older than the records of
    this instant, so that a partition with a new file would stay gone.
    """
    older_pending = (each for each in seen.timeline.pending if each.requested_time < instant.requested_time)
    if not changes.removed or any(each.action in _ADD_FILES for each in older_pending):
        return ()
    partitions_with_new_files = {file.group.partition_path for file in changes.written if file.path}
    folders = sorted({split(path)[0] for path in changes.removed} - partitions_with_new_files)
    removed_paths = frozenset(changes.removed)

    def is_empty(folder: str) -> bool:
        files = (info.path for info in seen.storage.list(folder))
        return not any(data_file(path) is not None and path not in removed_paths for path in files)

    are_empty = for_each(seen.storage, is_empty, folders)
    return tuple(folder for folder, is_gone in zip(folders, are_empty, strict=True) if is_gone)


_ALL_GONE = (
    "The metadata table went out of use: a clean that began later noted partitions as gone to which this commit adds "
    "files. HudiTable.create_index('files') builds it again."
)


def changed_records(metadata: MetadataTable, seen: SeenTable, instant: Instant, changes: FileChanges) -> ChangedRecords:
    """Return what an instant writes to the partitions of the metadata table that are in use or being built.

    If a later clean noted partitions with new files as gone, all partitions of the metadata table go out of use. Raises
    `DamagedPartitionError` if files of the metadata table cannot be read.
    """
    touched = {file.group.partition_path for file in changes.written if file.path}
    with damage_of(FILES):
        was_deleted = FILES in metadata.names and later_cleans_delete_partitions(metadata, instant, touched)
    if was_deleted:
        return ChangedRecords((), metadata.names, (_ALL_GONE,))
    emptied = emptied_partitions(seen, instant, changes)
    files = [_changed_files(metadata, changes, emptied)] if FILES in metadata.names else []
    bounds = changed_bounds(metadata, seen, instant, changes, emptied)
    return ChangedRecords((*files, *bounds.partitions), bounds.drops, bounds.warnings, bounds.steps)


def _changed_files(metadata: MetadataTable, changes: FileChanges, emptied: Collection[str]) -> ChangedPartition:
    """Return the records of ``files``: the new and removed files of each partition, and the partitions themselves.

    ``changes`` are what the instant does to data files, and ``emptied`` the partitions that have no file any more.
    """
    added_files = [(file.group.partition_path, split(file.path)[1], file.size) for file in changes.written if file.path]
    # The record of an emptied partition is deleted as a whole.
    removed_files = [(*place, 0) for path in changes.removed if (place := split(path))[0] not in emptied]
    partitions, names, sizes = ([row[at] for row in (*added_files, *removed_files)] for at in range(3))
    paths, is_deleted = (
        pa.array(partitions, pa.string()),
        np.repeat([False, True], [len(added_files), len(removed_files)]),
    )
    touched = paths.unique()
    all_partitions = pa.concat_arrays([touched, pa.array(emptied, pa.string())])
    is_gone = np.repeat([False, True], [len(touched), len(emptied)])

    def records(schema: str) -> list[Records]:
        """Return the records of partitions and files by a schema, all in one part."""
        partition_records = record_of_partitions(all_partitions, is_gone, schema)
        if not len(paths):
            return [partition_records]
        file_records = records_of_files(
            paths, pa.array(names, pa.string()), np.array(sizes, np.int64), is_deleted, schema
        )
        return [joined([partition_records, file_records])]

    partition_keys = [key_of_partition(path) for path in touched.to_pylist()]  # O(partitions)
    keys = pa.array([PARTITIONS, *partition_keys], pa.string())
    deleted_keys = pa.array(map(key_of_partition, emptied), pa.string())
    return ChangedPartition(FILES, metadata.partition(FILES).file_ids, lambda: [keys], records, deleted_keys)
