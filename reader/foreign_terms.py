"""Conditions of other libraries as terms, from which pyhudi makes predicates to skip files.

The other library still decides about each row. A part that pyhudi does not understand becomes an `UnknownTerm`, which
skips nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from .skipping.predicates import comparable, is_comparable
from .sql.terms import (
    ColumnTerm,
    CompareTerm,
    ConditionTerm,
    ConstantTerm,
    LogicTerm,
    NotTerm,
    NullTerm,
    Operator,
    SqlTerm,
)

# Whole numbers up to here are doubles, too.
_EXACT = 1 << 53
# Longer lists of values skip nothing.
MOST_VALUES = 10_000


@dataclass(frozen=True, slots=True)
class UnknownTerm(ConditionTerm):
    """A condition that pyhudi does not understand: it may hold for any row, and be false for any."""

    @property
    def columns(self) -> frozenset[str]:
        return frozenset()

    def of(self, rows: pa.RecordBatch) -> pa.Scalar:
        raise NotImplementedError("only its own library evaluates a condition that pyhudi does not understand")


UNKNOWN = UnknownTerm()


def column_in(schema: pa.Schema, name: str) -> ColumnTerm | None:
    """Return a column of a table by its exact name; None if there is none, or its type is nested."""
    if schema.names.count(name) != 1 or pa.types.is_nested(schema.field(name).type):
        return None
    return ColumnTerm(name, schema.field(name).type)


def comparison(op: Operator, column: ColumnTerm | None, constant: pa.Scalar | None) -> SqlTerm:
    """Return a comparison of a column with a constant; `UNKNOWN` if their types do not compare as predicates do."""
    value = None if column is None or constant is None else _value_beside(column.kind, constant)
    if column is None or value is None:
        return UNKNOWN
    return CompareTerm(op, column, value, column.kind)


def among_values(column: ColumnTerm | None, values: pa.Array, *, null_is_value: bool) -> SqlTerm:
    """Return the condition that a column has one of some values; `UNKNOWN` if pyhudi cannot say it.

    ``null_is_value`` says that a null is equal to a null among the values, and unequal to others; else the condition
    is null for a null.
    """
    if column is None or len(values) > MOST_VALUES:
        return UNKNOWN
    equal = [comparison("=", column, value) for value in values if value.is_valid]
    if null_is_value and values.null_count:
        return LogicTerm("OR", (NullTerm(column), *equal))
    if not equal or any(isinstance(term, UnknownTerm) for term in equal):
        return UNKNOWN
    among = equal[0] if len(equal) == 1 else LogicTerm("OR", tuple(equal))
    return joined("AND", [NotTerm(NullTerm(column)), among]) if null_is_value else among


def joined(op: str, parts: Iterable[SqlTerm]) -> SqlTerm:
    """Return the term of conditions joined by ``op``, ``AND`` or ``OR``."""
    return LogicTerm("AND" if op == "AND" else "OR", tuple(parts))


def only_if_true(term: SqlTerm) -> SqlTerm:
    """Return a condition that says nothing of the rows for which it is false."""
    return joined("AND", [term, UNKNOWN])


def _value_beside(kind: pa.DataType, constant: pa.Scalar) -> ConstantTerm | None:
    """Return a constant as predicates on a column of a type take it; None if the types compare otherwise."""
    types, other = pa.types, constant.type
    is_alike = (
        (types.is_integer(kind) and types.is_integer(other))
        or (types.is_floating(kind) and (types.is_integer(other) or types.is_floating(other)))
        or (types.is_string(kind) and (types.is_string(other) or types.is_large_string(other)))
        or (types.is_boolean(kind) and types.is_boolean(other))
        or (types.is_date(kind) and types.is_date32(other))
        or (types.is_decimal(kind) and types.is_decimal(other))
        or (types.is_timestamp(kind) and types.is_timestamp(other) and other.unit != "ns" and _same_zone(kind, other))
    )
    try:
        value = constant.as_py() if is_alike else None  # one value
    except (ValueError, OverflowError):
        # Python knows no day after the year 9999.
        return None
    if types.is_floating(kind) and isinstance(value, int) and abs(value) > _EXACT:
        return None
    # NaN proves nothing.
    fits = value is not None and comparable(value, kind) is not None and is_comparable(value, kind)
    return ConstantTerm(value, kind) if fits else None


def _same_zone(kind: pa.DataType, other: pa.DataType) -> bool:
    """Return whether both are moments, or both times without a zone."""
    return (kind.tz is None) == (other.tz is None)
