"""The rows of the table that a merge or an update reads: those with the keys of the source if keys tell them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...methods.merging.changed_table import ChangedTable
from ...operations.read_rows import is_bounded, predicates_of
from ...reader.matches.key_values import hashed_columns, key_columns, keys_of_values
from ...reader.matches.matching_rows import MatchingRows
from ...reader.matches.sought_keys import SoughtKeys
from ...reader.matches.sought_slices import SoughtSlices
from ...reader.plan import Split, whole
from ...reader.scan import MergeTerms, scan
from ...reader.skipping.predicates import Predicate
from ...reader.snapshot import Snapshot
from ...storage.threads import as_they_come
from ...table.arrow.arrays import mask
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY
from .matching import RowMatch
from .source import KEY, PATH

# A merge looks for at most so many pairs of a key and a file slice. With more, it reads the whole table.
MOST_PAIRS = 1 << 24


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of one snapshot.

    Attributes:
        columns: The columns to read, the record key among them.
        memory: The bytes that all threads together may take to merge them.
    """

    table: ChangedTable
    snapshot: Snapshot
    columns: pa.Schema
    memory: int
    threads: int

    def all_rows(self, predicates: Sequence[Predicate] = ()) -> Iterator[pa.RecordBatch]:
        """Yield rows, among them all that satisfy the predicates."""
        return scan(self.snapshot, self.columns.names, predicates, merge_memory=self.memory, threads=self.threads)

    def rows_near(self, source: pa.RecordBatch, match: RowMatch) -> Iterator[pa.RecordBatch]:
        """Yield rows, among them all that match a row of the source."""
        sought_keys = self._keys_to_read(source, match)
        if sought_keys is None:
            predicates = predicates_of_matches(source, match, self.table)
            return iter(()) if predicates is None else self.all_rows((*match.target_predicates, *predicates))
        slices = SoughtSlices.of(self.snapshot, sought_keys)
        # To look for so many keys in so many files takes longer than to read the table.
        if slices.pairs > MOST_PAIRS:
            return self.all_rows(match.target_predicates)
        return self._of_slices(slices, self.columns)

    def rows_at(self, places: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the keys and partition paths of the rows at some places, and of other rows of the same file slices."""
        keys = places.column(RECORD_KEY).combine_chunks()
        sought_keys = SoughtKeys.of(keys, None if self.table.is_global else places.select([PARTITION_PATH]))
        columns = pa.schema([self.snapshot.schema.field(name) for name in (RECORD_KEY, PARTITION_PATH)])
        return self._of_slices(SoughtSlices.of(self.snapshot, sought_keys), columns)

    def _of_slices(self, slices: SoughtSlices, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the keys in some file slices, read by several threads, which share the memory."""
        threads = min(self.threads, len(slices.keyed_slices))
        terms = MergeTerms(self.snapshot.config, self.memory // max(threads, 1))
        reader = MatchingRows(self.snapshot.storage, columns, self.snapshot.schema, terms)
        splits = slices.splits(Split((whole(file_slice),)) for file_slice in slices.slices)
        return as_they_come(reader.read, splits, threads)

    def _keys_to_read(self, source: pa.RecordBatch, match: RowMatch) -> SoughtKeys | None:
        """Return the keys of the rows that may match; None if the source does not tell them."""
        config, schema = self.snapshot.config, self.snapshot.schema
        if match.by_key:
            rows = pa.Table.from_batches([source.select([KEY, PATH])])
            rows = rows.filter(pc.is_valid(rows.column(KEY)))
            places = rows.select([PATH]).rename_columns([PARTITION_PATH])
            return SoughtKeys.of(rows.column(KEY).combine_chunks(), None if self.table.is_global else places)
        names = key_columns(config, schema, match.same_columns) or hashed_columns(config, schema, match.same_columns)
        if names is None:
            return None
        # A null equals nothing, so its row has no match.
        values = pa.Table.from_batches([source.select(names)]).drop_null()
        return keys_of_values(config, schema, values, anywhere=self.table.is_global)


def predicates_of_matches(source: pa.RecordBatch, match: RowMatch, table: ChangedTable) -> list[Predicate] | None:
    """Return predicates of the stored rows that match a row of the source, by columns that are equal in both.

    None if no row can match.
    """
    bounded = [
        name
        for name in match.same_columns
        if name in source.schema.names and is_bounded(source.schema.field(name).type)
    ]
    may_match = np.ones(source.num_rows, np.bool_)
    for name in [KEY] if match.by_key else bounded:
        may_match &= mask(pc.is_valid(source.column(name)))
    if not may_match.any():
        return None
    predicates: list[Predicate] = []
    for name in bounded:
        values = pa.chunked_array([source.column(name).filter(pa.array(may_match))])
        # Rows that match by computed paths may differ in the values, as in a partition of times.
        if not match.by_key or table.names_places(name, values):
            predicates += predicates_of(name, values)
    return predicates
