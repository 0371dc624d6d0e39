"""Filters that decide about each row of a read without an engine: a text of SQL, an expression of Arrow, predicates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOptionError
from ..table.arrow.arrays import plain
from .expression_terms import necessary_for
from .row_condition import read_condition
from .skipping.predicates import Predicate, columns_of, satisfied

# A text of SQL, or an expression of Arrow.
Where: TypeAlias = "str | pc.Expression"


class RowFilter(Protocol):
    """What rows have to satisfy."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that decide."""
        ...

    @property
    def predicates(self) -> Sequence[Predicate]:
        """The predicates that every kept row satisfies, by which files are skipped."""
        ...

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return for each row whether it is kept, never null."""
        ...


def read_where(where: Where, schema: pa.Schema, path: str) -> RowFilter:
    """Return the filter of a condition on a table's columns: SQL by Spark's rules, or an expression by Arrow's.

    Raises `InvalidOptionError` for a condition that does not fit the table's columns.
    """
    if isinstance(where, str):
        return read_condition(where, schema, path)
    if isinstance(where, pc.Expression):
        return ExpressionFilter.of(where, schema, path)
    raise InvalidOptionError(
        f"The condition on the table {path} is a {type(where).__name__}.",
        "Give SQL text such as \"city = 'Rome'\", or an expression such as pyarrow.compute.field('city') == 'Rome'.",
    )


@dataclass(frozen=True, slots=True)
class PredicateFilter:
    """A filter of rows that satisfy all of some predicates."""

    predicates: tuple[Predicate, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for predicate in self.predicates for name in columns_of(predicate))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return satisfied(rows, self.predicates)


@dataclass(frozen=True, slots=True)
class EveryFilter:
    """Several filters, of which a row has to pass each."""

    filters: tuple[RowFilter, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(each.columns for each in self.filters))

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        return tuple(predicate for each in self.filters for predicate in each.predicates)

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return reduce(pc.and_, (each.holds(rows) for each in self.filters))


# How Arrow shows a column that an expression names by its position, unlike a field of a struct, and texts.
_POSITION = re.compile(r"(?<!field_ref=FieldRef\.)FieldPath\(")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ExpressionFilter:
    """An expression of Arrow, evaluated by Arrow; files are skipped by what it says of single columns."""

    expression: pc.Expression
    columns: frozenset[str]
    predicates: tuple[Predicate, ...] = ()

    @classmethod
    def of(cls, expression: pc.Expression, schema: pa.Schema, path: str) -> ExpressionFilter:
        """Return the filter of an expression; InvalidOptionError if it does not fit the columns."""
        empty = schema.empty_table()
        try:
            # Without rows, Arrow only compares the expression with the columns.
            empty.filter(expression)
        except pa.ArrowException as error:
            raise InvalidOptionError(
                f"The expression {expression} does not fit the columns of the table {path}: {error}.",
                f"The table has {', '.join(f'{field.name} ({field.type})' for field in schema)}.",
            ) from error
        return cls(expression, needed_columns(expression, empty), necessary_for(expression, schema))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return pc.fill_null(expression_values(self.expression, rows), False)


def expression_values(expression: pc.Expression, rows: pa.RecordBatch) -> pa.Array:
    """Return the value of an expression for each row."""
    from pyarrow import acero  # noqa: PLC0415 (reads without an expression do not need it)

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([rows])))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]), [source])
    return plain(project.to_table(use_threads=False).column(0))


def needed_columns(expression: pc.Expression, empty: pa.Table) -> frozenset[str]:
    """Return the columns of a table without rows that an expression is about.

    Raises pa.ArrowException if it does not fit the columns, and InvalidOptionError if it names a column by position.
    """
    if _POSITION.search(_QUOTED.sub("", str(expression))):
        raise InvalidOptionError(
            f"The expression {expression} names a column by its position, which differs from read to read.",
            "Name the column, as pyarrow.compute.field('name') does.",
        )
    # A filter takes only truth values; an expression of any type is null or not.
    condition = expression.is_valid()
    empty.filter(condition)
    return frozenset(name for name in empty.column_names if _needs(condition, empty, name))


def _needs(condition: pc.Expression, empty: pa.Table, name: str) -> bool:
    """Return whether a condition is about a column; Arrow does not list the columns of an expression."""
    try:
        # Arrow raises if the condition names a column that is not there.
        empty.drop_columns([name]).filter(condition)
    except pa.ArrowException:
        return True
    return False
