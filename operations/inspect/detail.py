"""One row about a table: its properties, its size, and the log files that wait for a compaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from ...index.registry import has_buckets
from ...storage.base import Storage
from ...table.buckets.numbers import BucketNumbers, bucket_numbers, rule_files
from ...table.config import check_supported
from ...table.files.file_group import FileSlice
from ...table.files.read_written import read_written
from ...table.files.slice_rule import slice_rule
from ...table.files.view import FileView
from ...table.inferred.index import index_of_table, is_unnoted
from ...table.last_writer import last_writer
from ...table.table import Table, open_table
from ...timeline.delta_commits import MAKE_COMPACTION_DUE, since_compaction
from ...timeline.held import log_compactions
from ...timeline.timeline import Timeline
from .metadata_partitions import readable_sizes

_SLICE = pa.struct(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("base_bytes", pa.int64(), nullable=False),
        pa.field("log_bytes", pa.int64(), nullable=False),
        pa.field("log_files", pa.int64(), nullable=False),
    ]
)
_DEBT_FIELDS = [
    pa.field("log_files", pa.int64(), nullable=False),
    pa.field("log_bytes", pa.int64(), nullable=False),
    pa.field("compaction_debt", pa.list_(_SLICE), nullable=False),
    pa.field("delta_commits", pa.int64(), nullable=False),
    pa.field("wants_compaction", pa.bool_(), nullable=False),
    pa.field("read_optimized_lacks", pa.int64(), nullable=False),
    pa.field("read_optimized_until", pa.string()),
]
_MOST_SHOWN = 20
_METADATA = pa.struct(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("file_groups", pa.int64(), nullable=False),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("log_files", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("log_bytes", pa.int64(), nullable=False),
        pa.field("compacted", pa.string()),
    ]
)
DETAIL_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
        pa.field("record_key", pa.list_(pa.string()), nullable=False),
        pa.field("partition_by", pa.list_(pa.string()), nullable=False),
        pa.field("order_by", pa.list_(pa.string()), nullable=False),
        pa.field("index", pa.string()),
        pa.field("buckets", pa.int32()),
        pa.field("other_buckets", pa.map_(pa.string(), pa.int32()), nullable=False),
        pa.field("partitions", pa.int64(), nullable=False),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        *_DEBT_FIELDS,
        pa.field("metadata", pa.list_(_METADATA)),
        pa.field("newest_instant", pa.string()),
        pa.field("completed", pa.string()),
        pa.field("written_by", pa.string()),
        pa.field("properties", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)


def detail(storage: Storage) -> pa.Table:
    """Return one row about a table, with columns as in `DETAIL_SCHEMA`; files are listed, but none is opened.

    Partitions, files and bytes are those of the newest file slices; files and bytes count base files, and `_debt_of`
    counts log files. ``buckets`` is the number of buckets of each partition that ``other_buckets`` does not name, null
    if it is unknown. If no property names the index, ``index`` follows from the names of file groups, and is null if
    these contradict each other. ``metadata`` has the partitions of the metadata table, also those being built, and is
    null if its files cannot be listed. The newest instant is the completed write with the latest requested time.
    ``written_by`` is the software that wrote last, pyhudi, Apache Hudi 0.x or 1.x, and null if that is unknown.
    """
    table = open_table(storage)
    config, timeline = table.config, table.timeline()
    check_supported(config, storage.path, writing=False)
    view = FileView(timeline, read_written(timeline))
    partitions = view.partitions()
    slices = [file_slice for partition in partitions for file_slice in view.slices(partition).values()]
    newest = timeline.writes[-1] if timeline.writes else None
    metadata = readable_sizes(table, timeline)
    numbers = bucket_numbers(table, timeline) if has_buckets(config) or _has_rules(table) else None
    row = {
        "name": config.name,
        "path": storage.path,
        "type": config.table_type,
        "version": config.version,
        "record_key": config.record_key_fields,
        "partition_by": config.partition_fields,
        "order_by": config.ordering_fields,
        "index": index_of_table(table, view, partitions).kind if is_unnoted(config) else config.index_type,
        "buckets": config.bucket_count if numbers is None else numbers.default,
        "other_buckets": _other_numbers(numbers, partitions),
        "partitions": len({file_slice.partition_path for file_slice in slices}),
        "files": sum(file_slice.base is not None for file_slice in slices),
        "bytes": sum(file_slice.size - file_slice.log_bytes for file_slice in slices),
        **_debt_of(timeline, slices),
        "metadata": None if metadata is None else [asdict(size) for size in metadata],
        "newest_instant": newest and newest.requested_time,
        "completed": newest and newest.completion_time,
        "written_by": last_writer(timeline),
        "properties": sorted(config.properties.items()),
    }
    return pa.Table.from_pylist([row], DETAIL_SCHEMA)


def _has_rules(table: Table) -> bool:
    """Return whether a table that notes no index has rule files, which state numbers of buckets."""
    return is_unnoted(table.config) and bool(rule_files(table))


def _other_numbers(numbers: BucketNumbers | None, partitions: Iterable[str]) -> list[tuple[str, int]]:
    """Return the path and the number of buckets of each partition whose number is known and not the default."""
    if numbers is None or not numbers.differ:
        return []
    pairs = ((path, numbers.of(path)) for path in partitions)
    return [(path, number) for path, number in pairs if number is not None and number != numbers.default]


def _debt_of(timeline: Timeline, slices: Iterable[FileSlice]) -> Mapping[str, Any]:
    """Return the columns of `_DEBT_FIELDS` for the newest slices of a table.

    The list ``compaction_debt`` has the 20 file groups with the most bytes of log files. Read-optimized queries read
    base files alone: they lack rows of ``read_optimized_lacks`` writes, and show all rows of writes that completed
    until ``read_optimized_until``.
    """
    logged = sorted(
        (file_slice for file_slice in slices if file_slice.logs),
        key=lambda file_slice: (-file_slice.log_bytes, file_slice.group),
    )
    # The requested times of the writes whose rows are in log files, so that base files lack them.
    lacking = slice_rule(timeline).makers((log for file_slice in logged for log in file_slice.logs), timeline)
    # A log compaction joins log files of older writes; only these writes count as lacking.
    lacking -= log_compactions(timeline) if lacking else frozenset()
    delta_commits = len(since_compaction(timeline).since)
    return {
        "log_files": sum(len(file_slice.logs) for file_slice in logged),
        "log_bytes": sum(file_slice.log_bytes for file_slice in logged),
        "compaction_debt": [_debt_row(file_slice) for file_slice in logged[:_MOST_SHOWN]],
        "delta_commits": delta_commits,
        "wants_compaction": bool(logged) and delta_commits >= MAKE_COMPACTION_DUE,
        "read_optimized_lacks": len(lacking),
        "read_optimized_until": _read_optimized_until(timeline, lacking),
    }


def _debt_row(file_slice: FileSlice) -> dict[str, object]:
    """Return the element of ``compaction_debt`` for a file group with log files."""
    return {
        "partition": file_slice.partition_path,
        "file_id": file_slice.file_id,
        "base_bytes": file_slice.size - file_slice.log_bytes,
        "log_bytes": file_slice.log_bytes,
        "log_files": len(file_slice.logs),
    }


def _read_optimized_until(timeline: Timeline, lacking: frozenset[str]) -> str | None:
    """Return the completion time of the last write before the first write whose rows base files lack.

    ``lacking`` has the requested times of the writes whose rows they lack. None if there is no such write, or a lacking
    write is archived, so that its time is unknown.
    """
    completed = sorted(timeline.writes, key=lambda instant: instant.visible_since)
    first_lacking = min(
        (instant.visible_since for instant in completed if instant.requested_time in lacking), default=None
    )
    if any(time < completed[0].requested_time for time in lacking if completed):
        return None  # an archived write
    return max(
        (
            instant.visible_since
            for instant in completed
            if first_lacking is None or instant.visible_since < first_lacking
        ),
        default=None,
    )
