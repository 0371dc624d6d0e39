"""Rows of a snapshot as a lazy frame of Polars, whose columns and conditions reach the scan.

Polars hands over what its optimizer pushed down to the source (`polars.io.plugins.register_io_source`), and then relies
on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars.io.plugins import register_io_source

from ..reader.skipping.predicates import Predicate
from .polars_terms import necessary_for_polars
from .reading import PinnedRows


@dataclass(frozen=True, slots=True)
class PolarsFilter:
    """An expression of Polars, which Polars evaluates."""

    expression: pl.Expr
    columns: frozenset[str]
    predicates: tuple[Predicate, ...]

    @classmethod
    def of(cls, expression: pl.Expr, schema: pa.Schema) -> PolarsFilter:
        columns = frozenset(expression.meta.root_names())
        return cls(expression, columns, necessary_for_polars(expression, schema))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        if not self.columns:
            holds = pl.select(self.expression).item()
            return pa.repeat(pa.scalar(holds is True), rows.num_rows)
        frame = _frame(rows.select(sorted(self.columns)))
        values = frame.select(self.expression.alias("holds")).to_series().cast(pl.Boolean)
        return pc.fill_null(values.to_arrow(), False)


def lazy_frame(rows: PinnedRows) -> pl.LazyFrame:
    """Return the rows as a lazy frame; it reads them anew each time that it is collected."""

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        # With both, Polars means the condition for the first rows: `frame.head(n).filter(condition)`.
        pushed, later = (predicate, None) if n_rows is None else (None, predicate)
        condition = None if pushed is None else PolarsFilter.of(pushed, rows.schema)
        more = [] if later is None else later.meta.root_names()
        columns = None if with_columns is None else list(dict.fromkeys([*with_columns, *more]))
        for batch in rows.narrowed(columns, condition, n_rows).batches():
            frame = _frame(batch) if later is None else _frame(batch).filter(later)
            if with_columns is not None and frame.columns != with_columns:
                frame = frame.select(with_columns)
            yield from frame.iter_slices(batch_size) if batch_size and frame.height > batch_size else (frame,)

    schema = _frame(rows.schema.empty_table()).schema
    # The snapshot is pinned: two reads of a plan have the same rows, so that Polars may read them once.
    return register_io_source(read, schema=schema, is_pure=True)


def _frame(rows: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    return cast(pl.DataFrame, pl.from_arrow(rows, rechunk=False))
