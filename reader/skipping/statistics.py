"""Bounds of the columns of files, from the metadata table instead of the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import split
from ...table.files.file_group import DataFile
from ...table.files.old_days import widened_days, widened_moments
from ...table.metadata import releases
from ...table.metadata.column_spans import ColumnSpans, column_spans
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import COLUMN_DIGITS, hash_of_column, hash_of_file, hash_of_partition
from .predicates import NULLS, Span

# Up to so many keys are looked up one by one; for more, reading all records of a column is faster.
_FEW_KEYS = 2_048
# For up to so many partitions, the records of a column are looked up partition by partition.
FEW_PARTITIONS = 64
_KEY, _BOUNDS = "key", "ColumnStatsMetadata"


class Statistics(Protocol):
    """States the bounds of columns."""

    def of(self, files: Sequence[DataFile], columns: Sequence[pa.Field]) -> Mapping[str, Sequence[Span | None]]:
        """Return by column the span of each file; None if nothing is stated of a file's column."""


@dataclass(frozen=True, slots=True)
class StatedByMetadata:
    """The statistics in `COLUMN_STATS` of a metadata table; raises `CorruptFileError` if that is damaged."""

    partition: MetadataPartition

    def of(self, files: Sequence[DataFile], columns: Sequence[pa.Field]) -> dict[str, list[Span | None]]:
        """Return by column the span of each file, None if the metadata table states none."""
        ends, hashes = _ends_of_keys(files), [hash_of_column(column.name) for column in columns]
        records = self._records(files, ends, hashes)
        if records is None:
            return {column.name: [None] * len(files) for column in columns}
        return {
            column.name: _spans_of_files(records, prefix, column, ends)
            for column, prefix in zip(columns, hashes, strict=True)
        }

    def rows(self, files: Sequence[DataFile], column: str) -> list[int] | None:
        """Return how many rows each file has, by the counts of a column; None if a file has no record of it."""
        ends = _ends_of_keys(files)
        records = self._records(files, ends, [hash_of_column(column)])
        if records is None:
            return None
        stated = pc.utf8_slice_codeunits(pc.struct_field(records, [_KEY]), COLUMN_DIGITS)
        counts = pc.struct_field(records, [_BOUNDS, "valueCount"]).take(pc.index_in(ends, value_set=stated))
        return None if counts.null_count else counts.to_pylist()  # O(files)

    def _records(self, files: Sequence[DataFile], ends: pa.StringArray, hashes: Sequence[str]) -> pa.StructArray | None:
        """Return the records of some columns, those of some files among them; None if there are none.

        ``ends`` has the end of the key of each file, ``hashes`` the beginning for each column.
        """
        if len(files) * len(hashes) <= _FEW_KEYS:
            keys = pa.concat_arrays([pc.binary_join_element_wise(prefix, ends, "") for prefix in hashes])
            parts = list(self.partition.find(keys))
        else:
            folders = {split(file.path)[0] for file in files}
            has_few_partitions = len(folders) <= FEW_PARTITIONS
            partition_hashes = [hash_of_partition(folder) for folder in folders] if has_few_partitions else [""]
            parts = list(
                self.partition.with_prefixes([prefix + more for prefix in hashes for more in partition_hashes])
            )
        return releases.joined(parts) if parts else None


def _ends_of_keys(files: Sequence[DataFile]) -> pa.StringArray:
    """Return for each file the end of its keys in the metadata table, which follows the hash of the column."""
    places = [split(file.path) for file in files]
    return pa.array([hash_of_partition(folder) + hash_of_file(name) for folder, name in places], pa.string())


def _spans_of_files(
    records: pa.StructArray, prefix: str, column: pa.Field, wanted: pa.StringArray
) -> list[Span | None]:
    """Return the spans of one column in the files whose keys have the wanted ends; None for a file without a record.

    ``prefix`` is the hash of the column, with which its keys begin.
    """
    keys = pc.struct_field(records, [_KEY])
    chosen = pc.starts_with(keys, prefix)
    ends = pc.utf8_slice_codeunits(keys.filter(chosen), COLUMN_DIGITS)
    places = pc.index_in(wanted, value_set=ends)
    return spans_of(column_spans(pc.struct_field(records, [_BOUNDS]).filter(chosen), column.type), places)


def spans_of(stated: ColumnSpans, places: pa.Array) -> list[Span | None]:
    """Return the spans at some positions in ``stated``, in the form of `comparable`; None for a null position."""
    least, greatest = (bound.take(places).to_pylist() for bound in comparable_bounds(stated))  # O(files)
    # A null position becomes -1, for which both flags get one more element at their end.
    at = np.asarray(places.fill_null(-1))
    nulls, values = (np.append(flags, True)[at].tolist() for flags in (stated.nulls, stated.values))
    rows = zip(at.tolist(), least, greatest, nulls, values, strict=True)
    return [None if place < 0 else Span(*found) for place, *found in rows]  # O(files)


def joined(spans: Sequence[Span], *, or_null: bool) -> Span:
    """Return the span of rows whose values come from any of some files; with ``or_null`` a value may be null, too."""
    if len(spans) == 1 and not or_null:
        return spans[0]
    spans_with_values = [span for span in spans if span.values]
    if not spans_with_values:
        return NULLS
    least, greatest = [span.least for span in spans_with_values], [span.greatest for span in spans_with_values]
    return Span(
        None if None in least else min(least),
        None if None in greatest else max(greatest),
        or_null or any(span.nulls for span in spans),
    )


def comparable_bounds(stated: ColumnSpans) -> tuple[Any, Any]:
    """Return least and greatest bounds in the form of `comparable`, wider where days or moments may be old."""
    least, greatest = stated.least, stated.greatest
    if pa.types.is_date32(least.type):
        # Apache Hudi notes the days of a file in the old calendar as the file has them.
        return widened_days(least.cast(pa.int32()), greatest.cast(pa.int32()))
    if pa.types.is_timestamp(least.type):
        numbers = least.cast(pa.int64()), greatest.cast(pa.int64())
        # Local times are stored as they are.
        return numbers if least.type.tz is None else widened_moments(*numbers, least.type.unit)
    return least, greatest
