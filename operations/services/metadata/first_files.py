"""The first files of a metadata table's partitions, which the decision that begins an indexing makes.

From then on each write logs its changes to the partitions that are being built. The hash of a key chooses among the
file groups that a listing shows, so each group of a partition with several groups needs a file before the first write.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pyarrow as pa

from ....errors import TableConfigError
from ....storage.base import Storage, join
from ....table.config import PROPERTIES_PATH, TableConfig
from ....table.files.file_group import data_file
from ....table.files.partitions import metafile_of, partition_metafile
from ....table.hfile.entries import Entries
from ....table.metadata.index_definitions import definition_of_bounds, new_definitions
from ....table.metadata.kinds import COLUMN_STATS, FILE_GROUPS, group_in, new_file_id
from ....table.metadata.metadata_table import FOLDER
from ....table.metadata.new_files import log_bytes, log_name, metadata_properties
from ....table.metadata.record_schema import record_schema
from ....timeline.writers.first_steps import MakeFile, ReplaceFile, Step

NO_KEYS = pa.array([], pa.binary())
NO_ENTRIES = Entries(NO_KEYS, NO_KEYS)


def first_files(
    storage: Storage, config: TableConfig, names: tuple[str, ...], time: str, columns: Sequence[str]
) -> tuple[Step, ...]:
    """Return the steps that make a metadata table ready for the partitions that an indexing begins to build.

    ``time`` is the requested time of the indexing, and ``names`` has the partitions. ``columns`` are those that
    ``column_stats`` is going to index; writers read them in its definition.
    """
    metafiles = [_replacement(storage, metafile_of(join(FOLDER, name)), partition_metafile(time, 1)) for name in names]
    placeholders = [step for name in names for step in _placeholders(storage, name, time)]
    return (
        *_properties_steps(storage, config),
        *metafiles,
        *placeholders,
        *_definition_steps(storage, config, names, columns),
    )


def group_ids(storage: Storage, partition: str) -> tuple[str, ...]:
    """Return the file groups of a partition: those with a file in its folder, and those that it lost.

    A new partition gets as many as Apache Hudi gives it by default. A partition of another writer has no more than its
    folder shows if its file ids are of another form.
    """
    listed = storage.list(join(FOLDER, partition), strict=False)
    file_ids = {file.file_id for info in listed if (file := data_file(info.path)) is not None}
    numbers = [number for number in map(group_in, file_ids) if number is not None]
    count = max(FILE_GROUPS[partition], max(numbers, default=0) + 1)
    # The hash of a key names a group by its number, so a gap would move keys to other groups.
    whole_ids = tuple(new_file_id(partition, group) for group in range(count))
    return whole_ids if file_ids <= {*whole_ids} else tuple(sorted(file_ids))


def placeholder(partition: str, file_id: str, time: str) -> MakeFile:
    """Return the step that makes a log file without entries, by which readers and writers see the file group."""
    content = log_bytes(time, partition, NO_KEYS, NO_ENTRIES, record_schema())
    return MakeFile(placeholder_path(partition, file_id, time), content)


def placeholder_path(partition: str, file_id: str, time: str) -> str:
    """Return the path of a file group's placeholder, a log file without entries."""
    return join(FOLDER, partition, log_name(file_id, time))


def _placeholders(storage: Storage, partition: str, time: str) -> list[Step]:
    """Return the steps that make the placeholders of a partition; none for a partition with a single file group."""
    groups = group_ids(storage, partition)
    # Do not rely on files that an earlier partition of that name left: a clean may be about to delete them.
    return [placeholder(partition, file_id, time) for file_id in groups] if len(groups) > 1 else []


def _definition_steps(
    storage: Storage, config: TableConfig, names: Sequence[str], columns: Sequence[str]
) -> list[Step]:
    """Return the step that defines the columns with bounds; none unless `column_stats` is to be built."""
    if COLUMN_STATS not in names:
        return []
    changed = new_definitions(storage, {COLUMN_STATS: definition_of_bounds(columns, config)})
    return [ReplaceFile(changed.path, changed.content, changed.replaces)]


def _properties_steps(storage: Storage, config: TableConfig) -> list[Step]:
    """Return the step that makes the metadata table's properties, unless they exist and are of the table's version."""
    path = join(FOLDER, PROPERTIES_PATH)
    stored = _read_if_present(storage, path)
    try:
        if stored is not None and TableConfig.parse(stored, path).version == config.version:
            return []
    except TableConfigError:
        # Properties that cannot be read are replaced, too.
        pass
    return [ReplaceFile(path, metadata_properties(config), None if stored is None else zlib.crc32(stored))]


def _replacement(storage: Storage, path: str, content: bytes) -> Step:
    """Return the step that gives a file this content, provided that the file is still what it is now."""
    stored = _read_if_present(storage, path)
    return ReplaceFile(path, content, None if stored is None else zlib.crc32(stored))


def _read_if_present(storage: Storage, path: str) -> bytes | None:
    """Return a file's bytes; None if there is no such file."""
    try:
        return storage.read(path)
    except FileNotFoundError:
        return None
