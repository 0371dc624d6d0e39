"""Which file slices can hold rows of a condition, by an index of an expression: bounds or filters of its values.

Both are of single files. A row of a slice has its value of the column from one of the slice's files, so a slice can
hold a wanted value if one of its files can. Source: ``SparkMetadataWriterUtils``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import split
from ...table.arrow.arrays import Mask
from ...table.files.file_group import FileSlice
from ...table.files.key_footers import KeyFooter
from ...table.metadata.index_definitions import IndexDefinition
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import hash_of_column, hash_of_partition, key_of_file_bounds, key_of_filter
from ...table.metadata.trusted import TrustedMetadata
from ...table.schema.types import children
from .answers import Answer, JudgedFiles
from .expressions import IndexedExpression
from .key_sources import MOST_FILTERS, any_of, stored_filters
from .predicates import AnyOf, Compare, OnColumn, OneOf, Predicate, Span, may_match

_BOUNDS = "ColumnStatsMetadata"
# For more partitions, the bounds of all files are read.
_MOST_PARTITIONS = 64
# Returns whether a file may have a value that satisfies a predicate.
FileMay = Callable[[str, OnColumn], bool]


@dataclass(frozen=True, slots=True)
class ExpressionIndexSource:
    """An index of an expression, for predicates of which it can judge some."""

    trusted: TrustedMetadata
    definition: IndexDefinition
    expression: IndexedExpression
    predicates: tuple[Predicate, ...]

    @classmethod
    def of(
        cls, trusted: TrustedMetadata, definition: IndexDefinition, predicates: Iterable[Predicate], schema: pa.Schema
    ) -> ExpressionIndexSource | None:
        """Return an index as a source for predicates; None if it can judge none of them."""
        expression = IndexedExpression.defined(definition, schema)
        if expression is None or not (definition.has_bounds or definition.has_filters):
            return None
        all_predicates = tuple(predicates)
        # Bloom filters judge only predicates that name the values.
        can_judge = definition.has_bounds or any(map(_names_values, _derived_predicates(expression, all_predicates)))
        if not can_judge or not any(True for _ in _derived_predicates(expression, all_predicates)):
            return None
        return cls(trusted, definition, expression, all_predicates)

    @property
    def name(self) -> str:
        return self.definition.name

    def slices_left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        """Return the slices that can hold wanted rows; None if there are too many files for filters, or no answer."""

        def test_of_files(partition: MetadataPartition) -> FileMay:
            of_files = self._by_bounds if self.definition.has_bounds else self._by_filters
            return of_files(partition, slices)

        if self.definition.has_filters and len(slices) > MOST_FILTERS:
            return None
        file_may = self.trusted.ask(self.name, test_of_files)
        if file_may is None:
            return None
        may_match_rows = np.ones(len(slices), np.bool_)
        for predicate in self.predicates:
            may_match_rows &= self._which_may_match(predicate, slices, file_may)
        return Answer([file_slice for file_slice, can in zip(slices, may_match_rows, strict=True) if can])

    def _which_may_match(self, predicate: Predicate, slices: Sequence[FileSlice], file_may: FileMay) -> Mask:
        """Return a mask of the slices that can hold rows which satisfy a predicate; ``file_may`` judges their files."""
        matches_all = np.ones(len(slices), np.bool_)
        if isinstance(predicate, AnyOf):
            matches = ~matches_all
            for alternative in predicate.alternatives:
                holds = matches_all.copy()
                for each in alternative:
                    holds &= self._which_may_match(each, slices, file_may)
                matches |= holds
            return matches
        for derived in self.expression.derived_from(predicate):
            matches_all &= np.array(
                [any(file_may(path, derived) for path in file_slice.files) for file_slice in slices], np.bool_
            )
        return matches_all

    def _by_bounds(self, partition: MetadataPartition, slices: Sequence[FileSlice]) -> FileMay:
        """Return a test of the slices' files by the bounds of the expression's values in each file.

        ``partition`` is that of the metadata table which holds the bounds. A file without bounds may hold any value.
        """
        column = self.expression.column
        keys, paths = _keys_of_files(slices, lambda path, name: key_of_file_bounds(column, path, name))
        folders = {file_slice.partition_path for file_slice in slices}
        # The keys of the records begin with the column, and behind it the partition.
        prefixes = [hash_of_column(column)]
        if len(folders) <= _MOST_PARTITIONS:
            prefixes = [prefixes[0] + hash_of_partition(path) for path in folders]
        spans: dict[str, Span] = {}
        for records in partition.with_prefixes(prefixes):
            at = pc.index_in(records.field("key"), value_set=keys)
            wanted = records.filter(at.is_valid())
            numbers = at.drop_null().to_pylist()  # O(files)
            for number, span in zip(numbers, _spans_of_records(wanted, self.expression.kind), strict=True):
                spans[paths[number]] = span

        def may(path: str, derived: OnColumn) -> bool:
            """Return whether a file may hold a row that satisfies ``derived``, a predicate on the expression's values.

            ``spans`` has the bounds of these values by the file's path; a file without bounds may hold any.
            """
            return path not in spans or may_match(derived, spans[path], self.expression.kind)

        return may

    def _by_filters(self, partition: MetadataPartition, slices: Sequence[FileSlice]) -> FileMay:
        """Return a test of the slices' files by bloom filters of the expression's values in each file.

        ``partition`` is that of the metadata table which holds the filters. A file without a filter may hold any value.
        """
        keys, paths = _keys_of_files(slices, key_of_filter)
        path_of = dict(zip(keys.to_pylist(), paths, strict=True))  # O(files)
        filters: dict[str, KeyFooter] = {}
        for records in partition.find(keys):
            present = records.field("key").to_pylist()  # O(files)
            for key, footer in zip(present, stored_filters(records, path_of), strict=True):
                if footer is not None:
                    filters[path_of[key]] = footer

        def may(path: str, derived: OnColumn) -> bool:
            """Return whether a file may hold a row that satisfies ``derived``, a predicate on the expression's values.

            ``filters`` has the bloom filter of these values by the file's path. `_certain_values` returns the values
            that the predicate allows, as filters have them; None if it allows a range, or a text whose bytes in the
            filter are uncertain: then the filter cannot exclude the file.
            """
            wanted = _certain_values(derived)
            if path not in filters or wanted is None:
                return True
            # No row satisfies a predicate that allows no value but null.
            return bool(wanted) and len(filters[path].possible(any_of(wanted))) > 0

        return may


def _derived_predicates(expression: IndexedExpression, predicates: Iterable[Predicate]) -> Iterator[OnColumn]:
    """Yield all that predicates say of an expression's values, alternatives too."""
    for predicate in predicates:
        if isinstance(predicate, AnyOf):
            for alternative in predicate.alternatives:
                yield from _derived_predicates(expression, alternative)
        else:
            yield from expression.derived_from(predicate)


def _names_values(predicate: OnColumn) -> bool:
    """Return whether a predicate says which values it allows."""
    return _certain_values(predicate) is not None


def _certain_values(predicate: OnColumn) -> frozenset[str] | None:
    """Return the texts of the values that a predicate allows, as filters have them; None if they are not certain.

    Writers take a text's bytes in the encoding of their machine, of which ASCII alone is certain.
    """
    if isinstance(predicate, Compare) and predicate.op == "=":
        values: tuple[Any, ...] = (predicate.value,)
    elif isinstance(predicate, OneOf):
        values = predicate.values
    else:
        return None
    not_null = [value for value in values if value is not None]
    if not all((isinstance(value, str) and value.isascii()) or type(value) is int for value in not_null):
        return None
    return frozenset(map(str, not_null))


def _keys_of_files(slices: Sequence[FileSlice], key_of: Callable[[str, str], str]) -> tuple[pa.StringArray, list[str]]:
    """Return the keys of the slices' files, which ``key_of`` makes of partition path and file name, and their paths."""
    keys, paths = [], []
    for file_slice in slices:
        for path in file_slice.files:  # O(files)
            keys.append(key_of(file_slice.partition_path, split(path)[1]))
            paths.append(path)
    return pa.array(keys, pa.string()), paths


def _spans_of_records(records: pa.StructArray, kind: pa.DataType) -> list[Span]:
    """Return the bounds of records in the form of `comparable`; the counts are those of values that are not null."""
    bounds = records.field(_BOUNDS)
    least, greatest = (_bounds_in_wrappers(bounds.field(name), kind) for name in ("minValue", "maxValue"))
    rows, nulls = (bounds.field(name).to_pylist() for name in ("valueCount", "nullCount"))  # O(files)
    spans = []
    for low, high, count, null_count in zip(least, greatest, rows, nulls, strict=True):  # O(files)
        spans.append(Span(low, high, nulls=null_count != 0, values=low is not None or count != 0))
    return spans


_WRAPPERS: Mapping[str, tuple[str, ...]] = {
    "string": ("String",),
    "int32": ("Int",),
    "int64": ("Long", "Int"),
    "date32[day]": ("Date", "LocalDate", "Int"),
}


def _bounds_in_wrappers(wrapped: pa.StructArray, kind: pa.DataType) -> list[Any]:
    """Return the bound of each record, None if it has none of the type.

    ``wrapped`` has a field for each type that a bound can have, and for each record one of them is set.
    """
    bounds: list[Any] = [None] * len(wrapped)
    present = {field.name for field in children(wrapped.type)}
    for name in _WRAPPERS.get(str(kind), ()):
        if name in present:
            values = wrapped.field(name)
            # A day compares as its number.
            plain = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
            other_bounds = plain.to_pylist()  # O(files)
            bounds = [mine if mine is not None else other for mine, other in zip(bounds, other_bounds, strict=True)]
    return bounds
