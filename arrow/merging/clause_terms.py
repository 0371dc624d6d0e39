"""The clauses of a merge made ready: their conditions and values as terms, checked against the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...methods.merging.changed_table import ChangedTable
from ...methods.merging.clauses import Clause, ClauseKind, Side
from ...reader.sql.terms import SqlTerm, column_of
from .matching import RowMatch
from .terms import Sides, check_fits, holds_for, of_column

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class ReadyClause:
    """A clause with its terms.

    Attributes:
        condition: None for all rows.
        values: By column of the table.
        keeps_place: Whether the rows that it updates certainly keep their keys and partitions.
        proves_new: Whether the rows that it inserts, with all values of their places, certainly have new keys.
    """

    clause: Clause
    condition: SqlTerm | None
    values: Mapping[str, SqlTerm]
    keeps_place: bool
    proves_new: bool

    @classmethod
    def of(cls, clause: Clause, sides: Sides, match: RowMatch, table: ChangedTable) -> ReadyClause:
        """Return a clause with its terms, each checked against the columns of both sides.

        Args:
            clause: What the user asks for.
            sides: The columns that the clause may name.
            match: How rows match, which tells whether places stay and inserts have new keys.
            table: The table to change, whose columns the values have to fit.

        Raises:
            InvalidOptionError: A condition or a value cannot be read.
            MissingColumnError: It names a column that neither side has.
            SchemaMismatchError: A value has a type that its column cannot take.
        """
        names = [] if sides.source is None else sides.source.names
        values_of_clause = clause.values_of(table, names, sides.with_fields)
        values = {}
        for name, value in values_of_clause.items():
            term = sides.value(value, clause.side, clause.method)
            # A delete has stored values and nulls alone.
            if clause.kind is not ClauseKind.DELETE:
                check_fits(term.kind, table.schema.field(name), clause.method, table.path)
            values[name] = term
        condition = None
        if clause.condition is not None:
            condition = sides.condition(clause.condition, clause.side, f"The condition of {clause.method}")
        keeps = clause.kind is not ClauseKind.INSERT and match.keeps_place(clause, values_of_clause, table)
        return cls(clause, condition, values, keeps, match.proves_new(clause, values_of_clause, table))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of both sides that it needs."""
        condition_columns = frozenset() if self.condition is None else self.condition.columns
        return condition_columns.union(*(term.columns for term in self.values.values()))

    def new_columns(self, rows: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
        """Return the columns of the table for some joined rows."""
        return [of_column(column_of(self.values[field.name].of(rows), rows.num_rows), field) for field in schema]


def chosen(clauses: Sequence[ReadyClause], side: Side, rows: pa.RecordBatch) -> Numbers:
    """Return for each joined row the number of the first clause for its side that takes it; -1 if none does."""
    numbers = np.full(rows.num_rows, -1, np.int64)
    for number, ready in enumerate(clauses):
        if ready.clause.side is not side:
            continue
        # Rows that no earlier clause takes.
        open_rows = numbers < 0
        numbers[open_rows if ready.condition is None else holds_for(ready.condition, rows, open_rows)] = number
    return numbers
