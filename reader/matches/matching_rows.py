"""Reads the rows of file slices whose record keys are among some keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from ...storage.base import Storage
from ...table.arrow.arrays import Mask, plain
from ...table.config.property_keys import COPY_ON_WRITE
from ...table.files.base_file import BaseFileReader
from ...table.files.footers import batch_rows, has_no_nulls
from ...table.files.key_footers import KeyFooter
from ...table.merging.key_probe import KeyProbe
from ...table.schema.columns import RECORD_KEY
from ...table.schema.conform import conform
from ..scan import MergeTerms, RowReader, naming_partition
from ..skipping.pruning import spellings
from ..skipping.search import Search
from .key_values import KeyNumbers, keys_by, number_columns
from .sought_slices import SoughtPart, SoughtSplit

_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])
# If fewer than one in so many rows of a row group may be wanted, its keys are read first. Without a wanted row, the
# other columns of the group are not read.
_FEW = 4096


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """Reads rows by their keys.

    A row without a record key is always among them. Row groups and base files are left out by what their footers say
    of their keys.

    Attributes:
        schema: The wanted columns, among them the record key and the columns by which keys are sought.
        table_schema: All columns of the table.
    """

    storage: Storage
    schema: pa.Schema
    table_schema: pa.Schema
    terms: MergeTerms

    def read(self, split: SoughtSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split; errors about a file name its partition and table."""
        for sought in split.parts:
            with naming_partition(self.storage, sought.part):
                yield from self._rows_of_slice(sought, split.by)

    def _rows_of_slice(self, sought: SoughtPart, by: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice that have the keys; from a base file alone if it has no log files.

        ``by`` has the columns of the key that count, as in `SoughtKeys`; empty if the whole key counts.
        """
        # With `by` these are no whole keys, so that footers do not tell which files hold them.
        search = Search((), self.table_schema, None if by else sought.keys)
        keys_of = _stored_keys if not by else partial(keys_by, self.terms.config, self.table_schema, by=by)
        fields = number_columns(self.terms.config, self.table_schema)
        number_fields = [self.table_schema.field(name) for name in fields if name in (by or self.schema.names)]
        choice = _RowChoice(KeyProbe(sought.keys), keys_of, KeyNumbers.of(number_fields, sought.keys))
        if choice.numbers is not None and len(number_fields) == len(fields) and not by and self._writes_are_counted:
            # The numbers make the whole key, so that keys need not be read.
            choice = replace(choice, spell=partial(keys_by, self.terms.config, self.table_schema, by=fields))
        if sought.part.merged is None:
            yield from self._rows_of_base_file(sought, search, choice)
            return
        reader = RowReader(self.storage, self.schema, self.table_schema, terms=self.terms)
        # Rows of one key may have several values in its columns, of which merging leaves those of the last.
        merged = reader.merged(sought.part.merged, search, None if by else choice.chosen_rows)
        for rows in map(choice.chosen_rows, merged) if by else merged:
            if rows.num_rows:
                yield conform(rows, self.schema)

    @property
    def _writes_are_counted(self) -> bool:
        """Whether keys have one spelling, and writes refuse to replace fewer rows than were read under such keys."""
        config = self.terms.config
        return config.table_type == COPY_ON_WRITE and len(spellings(config)) == 1

    def _rows_of_base_file(self, sought: SoughtPart, search: Search, choice: _RowChoice) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a base file that have the keys.

        Row groups without such keys by their bounds are skipped. A row group with few wanted rows is first searched by
        its keys or numbers alone.
        """
        path = sought.part.path
        # Dictionaries are faster to decode, and only the chosen rows become plain.
        with BaseFileReader(self.storage, path, plain=(), stated=sought.part.stated) as reader:
            groups = search.row_groups(reader.parquet, path)
            if not groups:
                return
            rows = batch_rows(reader.parquet, self.schema)
            sparse_groups = self._with_few(sought, search, reader)
            keyless = pa.schema([field for field in self.schema if field.name != RECORD_KEY])
            for group in groups:
                if group in sparse_groups and not any(
                    choice.candidates(batch).num_rows for batch in reader.batches(choice.look_at, row_groups=[group])
                ):
                    continue
                schema = keyless if choice.spells(reader, group) else self.schema
                for batch in reader.batches(schema, batch_rows=rows, row_groups=[group]):
                    matching = choice.chosen_rows(batch)
                    if matching.num_rows:
                        yield conform(matching, self.schema)

    def _with_few(self, sought: SoughtPart, search: Search, reader: BaseFileReader) -> frozenset[int]:
        """Return the row groups with so few wanted rows that their keys are read first."""
        if search.keys is None:
            # The number of wanted rows is unknown.
            return frozenset()
        metadata = reader.parquet.metadata
        possible = len(KeyFooter.of(metadata.metadata or {}, sought.part.path).possible(sought.keys))
        groups = range(metadata.num_row_groups)
        return frozenset(group for group in groups if possible * _FEW < metadata.row_group(group).num_rows)


def _stored_keys(rows: pa.RecordBatch) -> pa.StringArray:
    """Return the column of record keys."""
    return plain(rows.column(RECORD_KEY))


@dataclass(frozen=True, slots=True)
class _RowChoice:
    """Chooses the rows whose keys are among some, and those without a key.

    Attributes:
        numbers: The numbers to look for first, in columns that are read; None to look for the keys alone.
        spell: Returns the keys of rows by their numbers, which takes less than reading the keys of all rows; None if
            the numbers do not tell the whole key.
    """

    probe: KeyProbe
    keys_of: Callable[[pa.RecordBatch], pa.StringArray]
    numbers: KeyNumbers | None = None
    spell: Callable[[pa.RecordBatch], pa.StringArray] | None = None

    @property
    def look_at(self) -> pa.Schema:
        """The columns that `candidates` needs."""
        return _KEYS if self.numbers is None else self.numbers.schema

    def spells(self, reader: BaseFileReader, group: int) -> bool:
        """Return whether `chosen_rows` takes rows of a row group without their keys."""
        return self.spell is not None and has_no_nulls(reader.parquet, group, self.look_at.names)

    def candidates(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that may be chosen, by the numbers of the key if these are known, else by the keys."""
        return rows.filter(pa.array(self.mask(rows)) if self.numbers is None else self.numbers.mask(rows))

    def mask(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows have one of the keys, or no key."""
        keys = self.keys_of(rows)
        matches: Mask = self.probe.find(keys) >= 0
        return matches if not keys.null_count else matches | ~np.asarray(keys.is_valid())

    def chosen_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the chosen rows, with their record keys, which are made of the numbers if they were not read."""
        candidates = rows if self.numbers is None else self.candidates(rows)
        if self.spell is not None and RECORD_KEY not in candidates.schema.names:
            candidates = candidates.append_column(RECORD_KEY, self.spell(candidates))
        return candidates.filter(pa.array(self.mask(candidates)))
