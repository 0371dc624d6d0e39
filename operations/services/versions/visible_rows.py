"""Counts the keys that show another row once a table is of another version, whose rules merge its log files.

Each slice is counted by itself, in a task of the engine if there is one, so that no keys come to this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ....errors import UnsupportedTableError
from ....reader.plan import Split, whole
from ....reader.scan import MergeTerms, RowReader
from ....table.config import TableConfig, check_mergeable
from ....table.config import property_keys as key
from ....table.files.file_group import FileSlice
from ....table.files.lost import open_view
from ....table.latest_schema import latest_schema
from ....table.schema.columns import RECORD_KEY, SEQUENCE_NUMBER, with_meta
from ....table.table import Table
from ..means import Means
from ..service import NoTasksError

_OTHER_MODE: Mapping[str, str] = {
    key.EVENT_TIME_ORDERING: key.COMMIT_TIME_ORDERING,
    key.COMMIT_TIME_ORDERING: key.EVENT_TIME_ORDERING,
}
_NAME_THE_MODE = frozenset({key.PAYLOAD_CLASS, key.MERGE_STRATEGY, key.PRECOMBINE_FIELD})
# These columns distinguish the rows of a key.
_COLUMNS = (RECORD_KEY, SEQUENCE_NUMBER)


def changed_keys(table: Table, after: TableConfig, means: Means) -> int | None:
    """Return how many keys at most show another row under the properties ``after`` than now; None if unknown.

    If pyhudi knows only one of the two rules, as the other is a payload class's own, it compares that rule in both
    merge modes: a key that shows the same row in both does not depend on the order of its versions. The count is also
    unknown if the engine runs no tasks and the slices are too large for this process.
    """
    before = table.config
    if before.table_type != key.MERGE_ON_READ or _rules(before) == _rules(after):
        return 0
    configs = [config for config in (before, after) if _is_mergeable(config, table.path)]
    if not configs:
        return None
    configs += [] if len(configs) > 1 else [_in_other_mode(configs[0])]
    timeline = table.timeline()
    slices = [file_slice for file_slice in open_view(timeline).all_slices() if file_slice.logs]
    columns = latest_schema(before, timeline) if slices else None
    if columns is None:
        return 0
    schema = with_meta(columns)
    shown_schema = pa.schema([schema.field(name) for name in _COLUMNS])
    terms = [MergeTerms(config, means.output.memory) for config in configs]
    readers = [RowReader(table.storage, shown_schema, schema, terms=each) for each in terms]
    return _count(readers, slices, means)


def _count(readers: Sequence[RowReader], slices: Sequence[FileSlice], means: Means) -> int | None:
    """Return how many keys show different rows to the two readers in all slices, counted in tasks or in this process.

    Return None if the engine runs no tasks and the slices are too large for this process.
    """
    count = partial(_changed_count, readers)
    if means.executor is not None:
        try:
            return sum(means.executor(count, slices))
        except NoTasksError:
            own_means = means.without_tasks
            size = sum(file_slice.size for file_slice in slices)
            if own_means is None or (own_means.most_bytes is not None and size > own_means.most_bytes):
                return None
    return sum(map(count, slices))


def _changed_count(readers: Sequence[RowReader], file_slice: FileSlice) -> int:
    """Return how many keys of one slice show different rows to the two readers."""
    return _differing_count(*(_rows(reader, file_slice) for reader in readers))


def _rules(config: TableConfig) -> tuple[object, ...]:
    """Return the properties that decide which row of a key wins."""
    marker_properties = (config.delete_marker, config.partial_update_mode, config.unavailable_value)
    return config.merge_mode, config.ordering_fields, *marker_properties


def _is_mergeable(config: TableConfig, path: str) -> bool:
    """Return whether pyhudi knows the rules by which a table of these properties merges rows."""
    try:
        check_mergeable(config, path)
    except UnsupportedTableError:
        return False
    return True


def _in_other_mode(config: TableConfig) -> TableConfig:
    """Return the properties with the other merge mode, in the newest version, in which the mode alone decides."""
    without_mode = {option: text for option, text in config.properties.items() if option not in _NAME_THE_MODE}
    ordering = ",".join(config.ordering_fields)
    mode = {key.MERGE_MODE: _OTHER_MODE[config.merge_mode], key.VERSION: str(key.NEWEST_VERSION)}
    return TableConfig({**without_mode, **mode, key.ORDERING_FIELDS: ordering})


def _rows(reader: RowReader, file_slice: FileSlice) -> pa.Table:
    """Return the key and the sequence number of each row that a reader shows of a slice."""
    return pa.Table.from_batches(reader.read(Split((whole(file_slice),))), reader.schema)


def _differing_count(rows: pa.Table, other_rows: pa.Table) -> int:
    """Return how many keys have a row in either table that the other table lacks."""
    names = list(_COLUMNS)
    missing_keys = [
        a.join(b, keys=names, join_type="left anti").column(RECORD_KEY)
        for a, b in ((rows, other_rows), (other_rows, rows))
    ]
    return len(pc.unique(pa.chunked_array([chunk for keys in missing_keys for chunk in keys.chunks], pa.string())))
