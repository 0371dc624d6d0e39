"""Which file slices can hold some values of a column, by a secondary index of it and the record index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.string_order import in_order
from ...table.files.file_group import FileSlice
from ...table.metadata.index_definitions import IndexDefinition
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import END, NULL, beginnings, record_keys_in
from .answers import Answer, JudgedFiles
from .key_sources import IndexedRows, in_places
from .predicates import AnyOf, Compare, IsNull, OneOf, Predicate, comparable
from .pruning import MAX_KEYS

_MOST_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class SecondaryIndexSource:
    """A secondary index, and how its entries of the wanted values begin."""

    rows: IndexedRows
    definition: IndexDefinition
    prefixes: tuple[str, ...]

    @classmethod
    def of(
        cls, rows: IndexedRows, definition: IndexDefinition, predicates: Iterable[Predicate], schema: pa.Schema
    ) -> SecondaryIndexSource | None:
        """Return an index as a source for predicates; None if they do not say which values they allow."""
        if len(definition.columns) != 1 or definition.columns[0] not in schema.names:
            return None
        field = schema.field(definition.columns[0])
        allowed = [values for each in predicates if (values := _allowed_prefixes(each, field)) is not None]
        fewest = min(allowed, key=len, default=None)
        if fewest is None or len(fewest) > _MOST_VALUES:
            return None
        return cls(rows, definition, tuple(sorted(fewest)))

    @property
    def name(self) -> str:
        return self.definition.name

    def slices_left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        """Return the slices that hold the rows with the wanted values, by their record keys in the secondary index.

        None if an index may lack rows, or the rows are too many.
        """
        # A row without an entry may have the value, so each row must have an entry.
        keys = self.rows.trusted.ask(self.name, self._record_keys) if self.rows.are_all_in(self.name) else None
        if keys is None or len(keys) > MAX_KEYS:
            return None
        if not len(keys):
            return Answer([])
        places = self.rows.places(keys)
        return None if places is None else Answer(in_places(slices, places))

    def _record_keys(self, index: MetadataPartition) -> pa.StringArray:
        """Return the record keys of the wanted values, in byte order; more than `MAX_KEYS` need not be all."""
        parts: list[pa.StringArray] = [pa.array([], pa.string())]
        for records in index.with_prefixes(self.prefixes, by_hash=self.definition.by_value):
            parts.append(record_keys_in(records.field("key")))
            if sum(map(len, parts)) > MAX_KEYS:
                break
        return in_order(pc.unique(pa.concat_arrays(parts)))


def _allowed_prefixes(predicate: Predicate, field: pa.Field) -> frozenset[str] | None:
    """Return how entries of the values begin that a predicate allows; None if it does not say."""
    if isinstance(predicate, AnyOf):
        joined: set[str] = set()
        for alternative in predicate.alternatives:
            allowed = [values for each in alternative if (values := _allowed_prefixes(each, field)) is not None]
            if not allowed:
                return None
            # A row satisfies all predicates of the alternative, so that the fewest values are enough.
            joined |= min(allowed, key=len)
        return frozenset(joined)
    if isinstance(predicate, IsNull) and predicate.column == field.name:
        return frozenset((NULL + END,))
    if isinstance(predicate, Compare) and predicate.column == field.name and predicate.op == "=":
        return _prefixes((predicate.value,), field.type)
    if isinstance(predicate, OneOf) and predicate.column == field.name:
        return _prefixes(predicate.values, field.type)
    return None


def _prefixes(values: Iterable[Any], kind: pa.DataType) -> frozenset[str] | None:
    """Return how entries of some values begin; None if their spelling is not that of all writers.

    Writers spell values as Java does. Of fractions, Java's spelling depends on its release; of times and days, on the
    writer.
    """
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
        return None
    not_null = [value for value in values if value is not None]
    if any(comparable(value, kind) is None for value in not_null):
        return None
    return frozenset(beginnings(pa.array(list(map(str, not_null)), pa.string())).to_pylist())  # O(values asked for)
