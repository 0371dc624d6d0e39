"""Which partitions of a table certainly hold no row of a query, by the bounds in the metadata table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.arrays import mask
from ...table.config import TableConfig
from ...table.config.property_keys import MERGE_ON_READ
from ...table.metadata import releases
from ...table.metadata.column_spans import column_spans
from ...table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import (
    hash_of_column,
    hash_of_partition,
    key_of_partition,
    key_of_partition_bounds,
    partition_hashes_in,
)
from ...table.metadata.trusted import TrustedMetadata
from ...table.schema.columns import RECORD_KEY
from .column_bounds import columns_to_ask
from .predicates import Span, may_match_all
from .search import Search
from .statistics import FEW_PARTITIONS, comparable_bounds, spans_of

_DIGITS = 17
_BASE_FILE = r"^(?P<file_id>[^.].*)_[^_]+_(?P<time>\d{1,17})\.[a-z]+$"


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """Judges partitions by bounds that hold for the table as it is now.

    Bounds of partitions only propose which partitions to skip. Apache Hudi makes them of the files that have bounds,
    and a write makes them without the files of another write that completes after it, so values may be missing.
    Therefore the bounds of the partition's files have to agree. If a column has fewer rows than the record key, or a
    log file may have no bounds, the partition stays.
    """

    metadata: TrustedMetadata
    config: TableConfig
    search: Search

    def without_rows(self) -> frozenset[str] | None:
        """Return the paths of partitions without wanted rows.

        None if no condition is on a column with bounds, or the metadata table does not answer.
        """
        columns = columns_to_ask(self.search, self.config)
        metadata = self.metadata
        if not columns or not metadata.is_of_now:
            return None
        proposed = metadata.ask(PARTITION_STATS, lambda partition: self._without_rows(partition, columns))
        if not proposed:
            return proposed
        paths = metadata.ask(COLUMN_STATS, lambda partition: self._without_by_files(partition, proposed, columns))
        if not paths or self.config.table_type != MERGE_ON_READ:
            return paths
        # A log file may have no bounds, which the bounds of other files do not show.
        partitions_with_logs = metadata.ask(FILES, lambda partition: _with_logs(partition, paths))
        return None if partitions_with_logs is None else paths - partitions_with_logs

    def _without_rows(self, partition: MetadataPartition, columns: Sequence[pa.Field]) -> frozenset[str]:
        """Return the paths of the partitions that hold no wanted row by the bounds that partitions have themselves."""
        hashes = {column.name: hash_of_column(column.name) for column in columns}
        parts = list(partition.with_prefixes([*hashes.values(), hash_of_column(RECORD_KEY)]))
        counts: dict[str, int] = {}
        for part in parts:
            counts |= {path: rows for path, rows, _ in _spans_of_partitions(part, pa.field(RECORD_KEY, pa.string()))}
        spans: dict[str, dict[str, Span]] = {}
        for column in columns:
            for part in parts:
                for path, rows, span in _spans_of_partitions(part, column):
                    # Fewer rows than record keys mean that a file has no bounds of the column.
                    if rows and rows == counts.get(path):
                        spans.setdefault(path, {})[column.name] = span
        return self._without_matches(spans)

    def _without_by_files(
        self, partition: MetadataPartition, proposed: frozenset[str], columns: Sequence[pa.Field]
    ) -> frozenset[str]:
        """Return those of the ``proposed`` partitions whose files hold no wanted row, by the bounds of each file.

        ``partition`` is that of the metadata table with the bounds of files, and ``columns`` are those that the search
        has conditions on.
        """
        paths = sorted(proposed)
        # Keys of records have the hash of a partition; its position here stands for the path at that position.
        places = pa.array([hash_of_partition(path) for path in paths], pa.string())
        fields = [*columns, pa.field(RECORD_KEY, pa.string())]
        # For more partitions it is faster to read all records of the columns.
        partition_hashes = places.to_pylist() if len(paths) <= FEW_PARTITIONS else [""]  # O(partitions)
        prefixes = {hash_of_column(field.name) + more for field in fields for more in partition_hashes}
        parts = list(partition.with_prefixes(sorted(prefixes)))
        if not parts:
            # Without bounds of files nothing confirms what the bounds of partitions propose.
            return frozenset()
        # Bounds of older versions of files do not count, as far as completed writes tell which are older.
        committed = [write.requested_time for write in self.metadata.table.of_table.writes]
        records = _of_newest_files(releases.joined(parts), pa.array(committed, pa.string()))
        counts = {place: rows for place, rows, _ in _spans_of_files(records, fields[-1], places)}
        spans: dict[str, dict[str, Span]] = {}
        for column in columns:
            for place, rows, span in _spans_of_files(records, column, places):
                # Fewer rows than record keys mean that a file has no bounds of the column.
                if rows and rows == counts.get(place):
                    spans.setdefault(paths[place], {})[column.name] = span
        return self._without_matches(spans)

    def _without_matches(self, spans: Mapping[str, Mapping[str, Span]]) -> frozenset[str]:
        """Return the partitions whose spans exclude all wanted rows; a column without a span is unknown."""
        return frozenset(
            path
            for path, of_path in spans.items()
            if not may_match_all(self.search.predicates, of_path, self.search.schema)
        )


def _spans_of_partitions(part: pa.StructArray, column: pa.Field) -> list[tuple[str, int, Span]]:
    """Return path, number of rows and span of each partition that has a record of a column."""
    keys = pc.struct_field(part, ["key"])
    chosen = pc.starts_with(keys, hash_of_column(column.name))
    records = pc.struct_field(part, ["ColumnStatsMetadata"]).filter(chosen)
    paths = pc.struct_field(records, ["fileName"]).to_pylist()  # O(partitions)
    rows = pc.fill_null(pc.struct_field(records, ["valueCount"]), 0).to_pylist()  # O(partitions)
    spans = spans_of(column_spans(records, column.type), pa.array(np.arange(len(records), dtype=np.int32)))
    entries = zip(keys.filter(chosen).to_pylist(), paths, rows, spans, strict=True)  # O(partitions)
    return [
        (path, count, span)
        for key, path, count, span in entries
        if path is not None and span is not None and key == key_of_partition_bounds(column.name, path)
    ]


def _of_newest_files(records: pa.StructArray, committed: pa.StringArray) -> pa.StructArray:
    """Return the records without those of base files that have a newer version by one of the writes ``committed``.

    The files of writes that left the timeline, and of file groups that were replaced, stay: bounds that are too wide
    hide no row.
    """
    names = pc.struct_field(records, ["ColumnStatsMetadata", "fileName"])
    parts = pc.extract_regex(names, _BASE_FILE)
    file_ids, times = (pc.struct_field(parts, [name]) for name in ("file_id", "time"))
    folders = partition_hashes_in(pc.struct_field(records, ["key"]))
    groups = pc.binary_join_element_wise(folders, file_ids, "").dictionary_encode().indices
    # Names that are none of base files, such as those of log files, have the last number, and stay.
    numbers = pc.fill_null(groups, len(groups)).to_numpy()
    padded = pc.fill_null(pc.utf8_rpad(times, _DIGITS, "0").cast(pa.int64()), 0).to_numpy()
    newest = np.zeros(len(groups) + 1, np.int64)
    committed_rows = np.flatnonzero(mask(pc.is_in(times, value_set=committed)))
    np.maximum.at(newest, numbers[committed_rows], padded[committed_rows])
    return records.filter(pa.array((padded >= newest[numbers]) | (numbers == len(groups))))


def _spans_of_files(records: pa.StructArray, column: pa.Field, partitions: pa.Array) -> Iterator[tuple[int, int, Span]]:
    """Yield for each partition its position in ``partitions``, its number of rows, and its span of a column.

    The records of the partition's files state rows and spans. ``partitions`` are hashes of partitions.
    """
    keys = pc.struct_field(records, ["key"])
    places = pc.index_in(partition_hashes_in(keys), value_set=partitions)
    chosen = pc.and_(pc.starts_with(keys, hash_of_column(column.name)), places.is_valid())
    bounds = pc.struct_field(records, ["ColumnStatsMetadata"]).filter(chosen)
    stated = column_spans(bounds, column.type)
    least, greatest = comparable_bounds(stated)
    # If a file may have values and states no bound, that bound of the partition is unknown: "below" and "above".
    values = pa.array(stated.values)
    rows = {
        "place": places.filter(chosen),
        # A file that states no number adds none: the partition then seems to lack rows of the column, and is read.
        "rows": pc.fill_null(pc.struct_field(bounds, ["valueCount"]), 0),
        "least": least,
        "greatest": greatest,
        "below": pc.and_(values, least.is_null()),
        "above": pc.and_(values, greatest.is_null()),
        "nulls": pa.array(stated.nulls),
        "values": values,
    }
    aggregates = [("rows", "sum"), ("least", "min"), ("greatest", "max")]
    aggregates += [(name, "any") for name in ("below", "above", "nulls", "values")]
    for group in pa.table(rows).group_by("place").aggregate(aggregates).to_pylist():  # O(partitions)
        least_of_all = None if group["below_any"] else group["least_min"]
        greatest_of_all = None if group["above_any"] else group["greatest_max"]
        span = Span(least_of_all, greatest_of_all, group["nulls_any"], group["values_any"])
        yield group["place"], group["rows_sum"], span


def _with_logs(partition: MetadataPartition, paths: frozenset[str]) -> frozenset[str]:
    """Return the partitions that have log files, or whose files the metadata table does not list."""
    by_key = {key_of_partition(path): path for path in paths}
    partitions_with_logs = {*paths}
    for part in partition.find(pa.array(list(by_key), pa.string())):
        names = pc.struct_field(part, ["filesystemMetadata"])
        # Names of log files begin with a dot. A record has the files of a partition, whose logs running sums count.
        of_logs = pc.starts_with(names.keys, ".").to_numpy(zero_copy_only=False)
        counted = np.concatenate(([0], np.cumsum(of_logs)))
        logs = np.diff(counted[names.offsets.to_numpy() - names.offsets[0].as_py()])  # one value a part
        keys_without_logs = pc.struct_field(part, ["key"]).filter(pa.array(logs == 0))
        partitions_with_logs -= {by_key[key] for key in keys_without_logs.to_pylist()}  # O(partitions)
    return frozenset(partitions_with_logs)
