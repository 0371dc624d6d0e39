"""What a condition of a user asks of rows: predicates that leave files out, and a filter of exactly its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOptionError
from ..reader.condition_text import read_condition
from ..reader.predicates import Predicate, columns_of, satisfied
from ..reader.scan import RowFilter

Where: TypeAlias = "str | pc.Expression"


@dataclass(frozen=True, slots=True)
class ReadCondition:
    """A condition on a table's columns.

    Attributes:
        predicates: Every row for which it holds satisfies them; they may be fewer than the condition says.
        row_filter: Keeps exactly the rows for which it holds; None where that is all rows.
    """

    predicates: tuple[Predicate, ...] = ()
    row_filter: RowFilter | None = None


def read_where(where: Where | None, schema: pa.Schema) -> ReadCondition:
    """Return what a condition asks of rows with some columns; raises `InvalidOptionError` for no such condition."""
    if where is None:
        return ReadCondition()
    if isinstance(where, str):
        predicates = read_condition(where, schema)
        columns = sorted({name for predicate in predicates for name in columns_of(predicate)})
        return ReadCondition(predicates, RowFilter(columns, partial(_satisfying, predicates)))
    if isinstance(where, pc.Expression):
        return ReadCondition((), RowFilter(_columns_of(where, schema), partial(_matching, where)))
    raise InvalidOptionError(
        f"A condition was given as a {type(where).__name__}.",
        "Give text such as \"city = 'Rome' AND fare > 10\", or an expression of pyarrow.compute.",
    )


def _satisfying(predicates: Sequence[Predicate], batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(satisfied(batch, predicates))


def _matching(where: pc.Expression, batch: pa.RecordBatch) -> pa.RecordBatch:
    found = pa.Table.from_batches([batch]).filter(where).combine_chunks().to_batches()
    return found[0] if found else batch.slice(0, 0)


def _columns_of(where: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns that an expression names: without each of them it cannot be evaluated."""
    empty = schema.empty_table()
    try:
        empty.filter(where)
    except (pa.ArrowException, TypeError) as error:
        raise InvalidOptionError(
            f"The condition {where} cannot be evaluated on the columns {', '.join(schema.names)}: {error}.",
            "Correct the names and types, or cast a column in the expression.",
        ) from error
    return [name for name in schema.names if not _evaluates(where, empty.drop_columns([name]))]


def _evaluates(where: pc.Expression, table: pa.Table) -> bool:
    try:
        table.filter(where)
    except pa.ArrowException:
        return False
    return True
