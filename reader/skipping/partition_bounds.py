"""Which partitions of a table certainly hold no row of a query, by what the metadata table states of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...table.config import TableConfig
from ...table.config.property_keys import MERGE_ON_READ
from ...table.metadata.column_spans import column_spans
from ...table.metadata.kinds import FILES, PARTITION_STATS
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import hash_of_column, key_of_partition, key_of_partition_bounds
from ...table.metadata.trusted import TrustedMetadata
from ...table.schema.columns import RECORD_KEY
from .column_bounds import columns_to_ask
from .predicates import Span, may_match_all
from .search import Search
from .statistics import spans_of


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """Judges partitions by bounds that hold for the table as it is now.

    Apache Hudi makes them of the bounds of the files that have some, so that a file without hides its values: where a
    column has fewer rows than the record key has, or a log file may have no bounds, the partition stays.
    """

    metadata: TrustedMetadata
    config: TableConfig
    search: Search

    def without_rows(self) -> frozenset[str] | None:
        """Return the paths of partitions without wanted rows; None where nothing answers."""
        columns = columns_to_ask(self.search, self.config)
        trusted = self.metadata
        if not columns or not trusted.is_of_now or not trusted.table.completes_in_order():
            return None
        found = trusted.ask(PARTITION_STATS, lambda partition: self._without_rows(partition, columns))
        if not found or self.config.table_type != MERGE_ON_READ:
            return found
        logged = trusted.ask(FILES, lambda partition: _with_logs(partition, found))
        return None if logged is None else found - logged

    def _without_rows(self, partition: MetadataPartition, columns: Sequence[pa.Field]) -> frozenset[str]:
        hashes = {column.name: hash_of_column(column.name) for column in columns}
        parts = list(partition.with_prefixes([*hashes.values(), hash_of_column(RECORD_KEY)]))
        counts: dict[str, int] = {}
        for part in parts:
            counts |= {path: rows for path, rows, _ in _stated(part, pa.field(RECORD_KEY, pa.string()))}
        spans: dict[str, dict[str, Span]] = {}
        for column in columns:
            for part in parts:
                for path, rows, span in _stated(part, column):
                    if rows and rows == counts.get(path):
                        spans.setdefault(path, {})[column.name] = span
        # A column without a span is unknown.
        return frozenset(
            path
            for path, of_path in spans.items()
            if not may_match_all(self.search.predicates, of_path, self.search.schema)
        )


def _stated(part: pa.StructArray, column: pa.Field) -> list[tuple[str, int, Span]]:
    """Return of each partition with a record of a column its path, the count of its rows and the span."""
    keys = pc.struct_field(part, ["key"])
    chosen = pc.starts_with(keys, hash_of_column(column.name))
    records = pc.struct_field(part, ["ColumnStatsMetadata"]).filter(chosen)
    paths = pc.struct_field(records, ["fileName"]).to_pylist()  # O(partitions)
    rows = pc.fill_null(pc.struct_field(records, ["valueCount"]), 0).to_pylist()  # O(partitions)
    spans = spans_of(column_spans(records, column.type), pa.array(np.arange(len(records), dtype=np.int32)))
    found = zip(keys.filter(chosen).to_pylist(), paths, rows, spans, strict=True)  # O(partitions)
    return [
        (path, count, span)
        for key, path, count, span in found
        if path is not None and span is not None and key == key_of_partition_bounds(column.name, path)
    ]


def _with_logs(partition: MetadataPartition, paths: frozenset[str]) -> frozenset[str]:
    """Return the partitions that have log files, or of whose files nothing is stated."""
    by_key = {key_of_partition(path): path for path in paths}
    logged = {*paths}
    for part in partition.find(pa.array(list(by_key), pa.string())):
        names = pc.struct_field(part, ["filesystemMetadata"])
        of_logs = pc.starts_with(names.keys, ".").to_numpy(zero_copy_only=False)
        counted = np.concatenate(([0], np.cumsum(of_logs)))
        logs = np.diff(counted[names.offsets.to_numpy() - names.offsets[0].as_py()])  # one value a part
        whole = pc.struct_field(part, ["key"]).filter(pa.array(logs == 0))
        logged -= {by_key[key] for key in whole.to_pylist()}  # O(partitions)
    return frozenset(logged)
