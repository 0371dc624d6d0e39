"""A condition on a table's rows: what skips files, and what decides about each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOptionError, MissingColumnError
from .skipping.predicates import (
    AnyOf,
    Compare,
    IsNotNull,
    IsNull,
    NoneOf,
    OneOf,
    Predicate,
    StartsWith,
    columns_of,
    comparable,
)
from .sql.names import NamedColumns
from .sql.parser import parse_condition_text
from .sql.terms import (
    ColumnTerm,
    CompareTerm,
    ConstantTerm,
    LikeTerm,
    LogicTerm,
    NotTerm,
    NullTerm,
    SqlTerm,
    column_of,
)

_MIRRORED: dict[str, Any] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: dict[str, Any] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition that has been read.

    Attributes:
        term: The whole condition.
        predicates: What every row satisfies for which the condition holds; empty if single columns tell nothing.
    """

    term: SqlTerm
    predicates: tuple[Predicate, ...]

    @property
    def columns(self) -> frozenset[str]:
        return self.term.columns.union(*map(columns_of, self.predicates))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return for each row whether the condition holds; a null condition does not."""
        return pc.fill_null(column_of(self.term.of(rows), rows.num_rows).cast(pa.bool_()), False)


def read_condition(text: str, schema: pa.Schema, path: str = "") -> RowCondition:
    """Return the condition of a text on a table's columns.

    Raises `InvalidOptionError` for a text that is no condition, or names a column that the table lacks.
    """
    try:
        term = parse_condition_text(text, NamedColumns.of_table(schema, path))
    except MissingColumnError as error:
        raise InvalidOptionError(error.what, error.todo) from error
    return RowCondition(term, necessary(term))


def necessary(term: SqlTerm) -> tuple[Predicate, ...]:
    """Return predicates that every row satisfies for which a condition holds; none if single columns tell nothing."""
    if isinstance(term, LogicTerm):
        if term.op == "AND":
            return tuple(predicate for part in term.parts for predicate in necessary(part))
        return _alternatives(term)
    if isinstance(term, CompareTerm):
        compare = _compare(term)
        return () if compare is None else (compare,)
    if isinstance(term, NullTerm) and _is_column(term.part):
        return (IsNull(_name_of_column(term.part)),)
    if isinstance(term, LikeTerm) and _is_column(term.part):
        return _prefix_of_pattern(term)
    if isinstance(term, ColumnTerm) and _is_column(term):
        return (Compare(term.name, "=", True),)
    return _if_false(term.part) if isinstance(term, NotTerm) else ()


def _alternatives(term: LogicTerm) -> tuple[Predicate, ...]:
    """Return what all rows satisfy for which one of the joined conditions holds.

    Nothing if no predicates follow from one of them.
    """
    alternatives = tuple(necessary(part) for part in term.parts)
    if not all(alternatives):
        return ()
    values = _values_of_alternatives(alternatives)
    return (values,) if values is not None else (AnyOf(alternatives),)


def _values_of_alternatives(alternatives: tuple[tuple[Predicate, ...], ...]) -> OneOf | None:
    """Return the values that a single column may have; None if the alternatives say anything else."""
    single_predicates = [
        predicate for alternative in alternatives for predicate in alternative if len(alternative) == 1
    ]
    equalities = [
        predicate for predicate in single_predicates if isinstance(predicate, Compare) and predicate.op == "="
    ]
    if len(equalities) < len(alternatives) or len({predicate.column for predicate in equalities}) > 1:
        return None
    return OneOf(equalities[0].column, tuple(predicate.value for predicate in equalities))


def _if_false(term: SqlTerm) -> tuple[Predicate, ...]:
    """Return predicates that every row satisfies for which the condition ``term`` is false, and not null.

    Empty if single columns tell nothing.
    """
    if isinstance(term, NullTerm) and _is_column(term.part):
        return (IsNotNull(_name_of_column(term.part)),)
    if isinstance(term, NotTerm):
        return necessary(term.part)
    if isinstance(term, CompareTerm) and term.op in _NEGATED:
        return necessary(CompareTerm(_NEGATED[term.op], term.left, term.right, term.met))
    if isinstance(term, ColumnTerm) and _is_column(term):
        return (Compare(term.name, "=", False),)
    if isinstance(term, LogicTerm) and term.op == "OR":
        # Then all its parts are false.
        predicates = tuple(predicate for part in term.parts for predicate in _if_false(part))
        inequalities = [
            predicate for predicate in predicates if isinstance(predicate, Compare) and predicate.op == "!="
        ]
        if len(inequalities) == len(term.parts) and len({predicate.column for predicate in inequalities}) == 1:
            return (NoneOf(inequalities[0].column, tuple(predicate.value for predicate in inequalities)),)
        return predicates
    if isinstance(term, LogicTerm):
        # An AND is false if any of its parts is.
        alternatives = tuple(_if_false(part) for part in term.parts)
        return (AnyOf(alternatives),) if all(alternatives) else ()
    return ()


def _compare(term: CompareTerm) -> Compare | None:
    """Return a comparison of a column with a constant that its type has; None for any other."""
    operator: Any = "=" if term.op == "<=>" else term.op
    for column, constant, op in ((term.left, term.right, operator), (term.right, term.left, _MIRRORED[operator])):
        if isinstance(column, ColumnTerm) and _is_column(column) and isinstance(constant, ConstantTerm):
            value = _in_type_of(column.kind, constant.value)
            return None if value is None else Compare(column.name, op, value)
    return None


def _in_type_of(kind: pa.DataType, value: Any) -> Any:
    """Return a constant as predicates on a column of a type take it; None if the type does not have it exactly."""
    if pa.types.is_floating(kind) and value is not None and not isinstance(value, (str, bool)):
        # A float column is compared as a double, in which a decimal or a large whole number is rounded.
        value = float(value)
        return value if pa.types.is_float64(kind) else None
    if pa.types.is_integer(kind) and not isinstance(value, int):
        return None
    return None if value is None or comparable(value, kind) is None else value


def _prefix_of_pattern(term: LikeTerm) -> tuple[Predicate, ...]:
    """Return the text with which all texts of a pattern begin, as a predicate.

    Nothing if the pattern begins with a wildcard.
    """
    prefix = ""
    for character in term.pattern:  # O(characters of the pattern)
        if character in "%_\\":
            break
        prefix += character
    return (StartsWith(_name_of_column(term.part), prefix),) if prefix else ()


def _is_column(term: SqlTerm) -> bool:
    """Return whether a term is a column of the table, and no field inside of a struct."""
    return isinstance(term, ColumnTerm) and not term.fields


def _name_of_column(term: SqlTerm) -> str:
    """Return the name of the only column of a term."""
    (name,) = term.columns
    return name
