"""Reads the rows of file slices whose record keys are among some keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...storage.base import Storage
from ...table.arrow.arrays import Mask, plain
from ...table.files.base_file import BaseFileReader
from ...table.files.footers import batch_rows
from ...table.files.key_footers import KeyFooter
from ...table.merging.key_probe import KeyProbe
from ...table.schema.columns import RECORD_KEY
from ..scan import MergeTerms, RowReader, naming_partition
from ..search import Search
from .sought_slices import SoughtPiece, SoughtSplit

_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])
# Of a row group with fewer rows than one in so many that may be wanted, the keys are read first: a group without any
# wanted row is not read further.
_RARE = 4096


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """Reads rows by their keys.

    A row without a record key is always among them. Row groups and base files are left out by what their footers say
    of their keys.

    Attributes:
        schema: The wanted columns, among them the record key.
        table_schema: All columns of the table.
    """

    storage: Storage
    schema: pa.Schema
    table_schema: pa.Schema
    terms: MergeTerms

    def read(self, split: SoughtSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split; errors about a file name its partition and table."""
        for sought in split.pieces:
            with naming_partition(self.storage, sought.piece):
                yield from self._of_slice(sought)

    def _of_slice(self, sought: SoughtPiece) -> Iterator[pa.RecordBatch]:
        search = Search((), self.table_schema, sought.keys)
        chosen = _Chosen(KeyProbe.over(sought.keys))
        if sought.piece.merged is None:
            yield from self._of_base_file(sought, search, chosen)
            return
        reader = RowReader(self.storage, self.schema, self.table_schema, terms=self.terms)
        yield from reader.merged(sought.piece.merged, search, chosen.of)

    def _of_base_file(self, sought: SoughtPiece, search: Search, chosen: _Chosen) -> Iterator[pa.RecordBatch]:
        path = sought.piece.path
        with BaseFileReader(self.storage, path) as reader:
            groups = search.row_groups(reader.parquet, path)
            if not groups:
                return
            rows = batch_rows(reader.parquet, self.schema)
            metadata = reader.parquet.metadata
            possible = len(KeyFooter.of(metadata.metadata or {}, path).possible(sought.keys))
            for group in groups:
                if possible * _RARE < metadata.row_group(group).num_rows and not any(
                    chosen.mask(batch).any() for batch in reader.batches(_KEYS, row_groups=[group])
                ):
                    continue
                for batch in reader.batches(self.schema, batch_rows=rows, row_groups=[group]):
                    found = chosen.of(batch)
                    if found.num_rows:
                        yield found


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Chooses the rows whose keys are among some, and those without a key."""

    probe: KeyProbe

    def mask(self, rows: pa.RecordBatch) -> Mask:
        keys = plain(rows.column(RECORD_KEY))
        found: Mask = self.probe.find(keys) >= 0
        return found if not keys.null_count else found | ~np.asarray(keys.is_valid())

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pa.array(self.mask(rows)))
