"""What a Parquet footer tells of each row group's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..table.files.footers import greatest_text, text_bound
from ..table.schema.casts import cast
from .predicates import NULLS, Predicate, Span, columns_of, may_match_all

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


def matching_row_groups(parquet: pq.ParquetFile, predicates: Iterable[Predicate], schema: pa.Schema) -> list[int]:
    """Return the numbers of the row groups that may hold rows which satisfy every predicate.

    Args:
        parquet: An open file; only its footer is looked at.
        predicates: Conjuncts on columns of ``schema``.
        schema: The table's columns, canonical.
    """
    conjuncts = list(predicates)
    asked = {name for one in conjuncts for name in columns_of(one)}
    fields = [schema.field(name) for name in asked if name in schema.names]
    groups = range(parquet.metadata.num_row_groups)
    if not fields:
        return list(groups)
    columns = Columns.of(parquet)
    return [
        number
        for number in groups
        if may_match_all(conjuncts, {one.name: columns.span(number, one.name, one.type) for one in fields}, schema)
    ]


@dataclass(frozen=True, slots=True)
class Columns:
    """What a footer tells of columns, by their names.

    Attributes:
        metadata: The footer.
        present: The file's columns.
        leaves: The number of each flat column.
    """

    metadata: pq.FileMetaData
    present: pa.Schema
    leaves: Mapping[str, int]

    @classmethod
    def of(cls, parquet: pq.ParquetFile) -> Columns:
        """Return what an open file's footer tells."""
        leaves = {parquet.schema.column(number).path: number for number in range(len(parquet.schema))}
        return cls(parquet.metadata, parquet.schema_arrow, leaves)

    def span(self, row_group: int, name: str, wanted: pa.DataType) -> Span:
        """Return what is known of a column in a row group.

        Args:
            row_group: Its number.
            name: The column's.
            wanted: Its type in the table.
        """
        if name not in self.present.names:
            # It is read as null.
            return NULLS
        if name not in self.leaves:
            # A nested one has no leaf of its own name.
            return Span()
        kind = self.present.field(name).type
        return _span(self.metadata.row_group(row_group), self.leaves[name], kind, wanted)


def _span(group: pq.RowGroupMetaData, leaf: int, kind: pa.DataType, wanted: pa.DataType) -> Span:
    """Return what is known of a flat column in a row group.

    Args:
        group: The row group.
        leaf: The column's number in it.
        kind: Its type in the file.
        wanted: Its type in the table.
    """
    column = group.column(leaf)
    statistics = column.statistics if column.is_stats_set else None
    if statistics is None:
        return Span()
    nulls = not statistics.has_null_count or statistics.null_count > 0
    if statistics.has_null_count and statistics.null_count == group.num_rows:
        return NULLS
    if not statistics.has_min_max:
        return Span(nulls=nulls)
    return Span(_bound(statistics, "min", kind, wanted), _bound(statistics, "max", kind, wanted), nulls)


def _bound(statistics: pq.Statistics, which: str, kind: pa.DataType, wanted: pa.DataType) -> Any:
    """Return a bound as `comparable` would, None where the file's type and the table's do not compare."""
    types = pa.types
    raw = getattr(statistics, f"{which}_raw")
    if types.is_integer(kind) and types.is_integer(wanted):
        return raw
    if types.is_floating(kind) and types.is_floating(wanted):
        # Rows are compared as they are read: the float 1.1 as the double that reads like it.
        return None if raw != raw else cast(pa.array([raw], kind), wanted)[0].as_py()  # O(1)
    if (types.is_boolean(kind) and types.is_boolean(wanted)) or (types.is_date32(kind) and types.is_date32(wanted)):
        return raw
    if (types.is_string(kind) or types.is_large_string(kind)) and types.is_string(wanted):
        return text_bound(raw) if which == "min" else greatest_text(raw)
    if types.is_decimal(kind) and types.is_decimal(wanted):
        return Decimal(f"{_unscaled(raw)}E{-kind.scale}")
    if types.is_timestamp(kind) and types.is_timestamp(wanted) and (kind.tz is None) == (wanted.tz is None):
        times, divisor = _MICROS[kind.unit]
        # Times finer than a microsecond are refused when they are read.
        return raw * times // divisor
    return None


def _unscaled(raw: Any) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
