"""The base files and row groups that may hold what a query looks for, by footers alone.

A row group's statistics bound its columns. A footer has the least and the greatest record key besides, and often a
bloom filter of all keys. A skipped file or row group certainly holds no row of the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import TableConfigError, UnsupportedTableError
from ...table.arrow.arrays import span_of
from ...table.arrow.string_order import in_order
from ...table.config import TableConfig
from ...table.files.footers import greatest_text, text_bound
from ...table.files.key_footers import KeyFooter
from ...table.files.old_days import has_old_days, is_old
from ...table.schema.casts import cast
from ...table.schema.columns import RECORD_KEY
from .predicates import NULLS, Predicate, Span, columns_of, may_match_all
from .pruning import Pruning

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


@dataclass(frozen=True, slots=True)
class Search:
    """The rows that a query looks for in base files.

    ``keys`` holds every record key of the wanted rows, in byte order; None if they may have any key.
    """

    predicates: tuple[Predicate, ...]
    schema: pa.Schema
    keys: pa.StringArray | None = None

    @classmethod
    def of(cls, predicates: Sequence[Predicate], schema: pa.Schema, config: TableConfig | None) -> Search:
        """Return a search by predicates; without ``config`` it does not derive record keys."""
        keys = None
        if config is not None and predicates:
            try:
                keys = Pruning(config, schema, predicates).wanted_keys()
            except (UnsupportedTableError, TableConfigError):
                # A table can be read without the key generator that writes it.
                keys = None
        return cls(tuple(predicates), schema, None if keys is None else in_order(keys))

    @property
    def columns(self) -> frozenset[str]:
        """The columns that decide about the predicates."""
        return frozenset(name for predicate in self.predicates for name in columns_of(predicate))

    def with_more(self, *predicates: Predicate) -> Search:
        """Return the search with further predicates."""
        return replace(self, predicates=self.predicates + predicates)

    def may_be_in(self, footer: KeyFooter) -> bool:
        """Return False only if a base file's footer proves that it has none of the keys."""
        return self.keys is None or len(footer.possible(self.keys)) > 0

    def row_groups(self, parquet: pq.ParquetFile, shown: str) -> list[int]:
        """Return the row groups that may hold wanted rows, by the footer alone; ``shown`` is the path for the log."""
        fields = [self.schema.field(name) for name in self.columns if name in self.schema.names]
        footer = _Footer.of(parquet)
        groups = list(range(parquet.metadata.num_row_groups))
        if fields:
            spans = ((number, footer.spans(number, fields)) for number in groups)
            groups = [number for number, known in spans if may_match_all(self.predicates, known, self.schema)]
        if self.keys is None or not groups:
            return groups
        if not self.may_be_in(KeyFooter.of(parquet.metadata.metadata or {}, shown)):
            return []
        key = pa.field(RECORD_KEY, pa.string())
        return [number for number in groups if _is_any_within(self.keys, footer.span(number, key))]


def _is_any_within(keys: pa.StringArray, span: Span) -> bool:
    """Return whether a span may hold one of the keys, which are in byte order; True if it may hold nulls."""
    if span.nulls:
        return True
    start, end = span_of(keys, span.least, span.greatest)
    return start < end


@dataclass(frozen=True, slots=True)
class _Footer:
    """The statistics of a footer; ``leaves`` has the number of each flat column."""

    metadata: pq.FileMetaData
    present: pa.Schema
    leaves: Mapping[str, int]

    @classmethod
    def of(cls, parquet: pq.ParquetFile) -> _Footer:
        """Read the footer of an open Parquet file."""
        leaves = {parquet.schema.column(number).path: number for number in range(len(parquet.schema))}
        return cls(parquet.metadata, parquet.schema_arrow, leaves)

    def spans(self, row_group: int, fields: Sequence[pa.Field]) -> dict[str, Span]:
        return {field.name: self.span(row_group, field) for field in fields}

    def span(self, row_group: int, field: pa.Field) -> Span:
        """Return the bounds of a column in a row group.

        These are nulls alone if the file lacks the column, and unknown without statistics.
        """
        if field.name not in self.present.names:
            # A column that the file lacks is read as null.
            return NULLS
        if field.name not in self.leaves:
            # A nested column has no leaf of its own name.
            return Span()
        group = self.metadata.row_group(row_group)
        column = group.column(self.leaves[field.name])
        statistics = column.statistics if column.is_stats_set else None
        if statistics is None:
            return Span()
        nulls = not statistics.has_null_count or statistics.null_count > 0
        if statistics.has_null_count and statistics.null_count == group.num_rows:
            return NULLS
        if not statistics.has_min_max:
            return Span(nulls=nulls)
        kind, types = self.present.field(field.name).type, pa.types
        if is_old(kind, statistics.min_raw) and has_old_days(self.metadata.metadata or {}):
            # Rows are read with other days than these.
            return Span(nulls=nulls)
        if (types.is_string(kind) or types.is_large_string(kind)) and types.is_string(field.type):
            return Span(text_bound(statistics.min_raw), greatest_text(statistics.max_raw), nulls)
        least, greatest = (_bound(raw, kind, field.type) for raw in (statistics.min_raw, statistics.max_raw))
        return Span(least, greatest, nulls)


def _bound(raw: Any, kind: pa.DataType, wanted: pa.DataType) -> Any:
    """Return a bound in the form in which `comparable` returns values, so that predicates can be compared with it.

    ``raw`` is the bound as the footer's statistics have it, ``kind`` the column's type in the file, and ``wanted`` that
    in the table. None, for an unknown bound, if values of the two types do not compare, and for NaN.
    """
    types = pa.types
    if types.is_integer(kind) and types.is_integer(wanted):
        return raw
    if types.is_floating(kind) and types.is_floating(wanted):
        # Compare as rows are read: the float 1.1 as the double with the same digits.
        return None if raw != raw else cast(pa.array([raw], kind), wanted)[0].as_py()  # O(1)
    if (types.is_boolean(kind) and types.is_boolean(wanted)) or (types.is_date32(kind) and types.is_date32(wanted)):
        return raw
    if types.is_decimal(kind) and types.is_decimal(wanted):
        unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
        return Decimal(f"{unscaled}E{-kind.scale}")
    if types.is_timestamp(kind) and types.is_timestamp(wanted) and (kind.tz is None) == (wanted.tz is None):
        times, divisor = _MICROS[kind.unit]
        # Times finer than a microsecond are refused when they are read.
        return raw * times // divisor
    return None
