"""Converts Spark's pushed filters to predicates; Spark 4.0 lacks the filter classes, so their names are matched."""

from __future__ import annotations

from typing import Any

from ...reader.predicates import Compare, IsNotNull, IsNull, NoneOf, OneOf, Predicate, StartsWith

_OPERATORS: dict[str, Any] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
# NOT (a > 1) keeps rows for which a > 1 is false, and drops rows for which it is null.
_NEGATED: dict[str, Any] = {
    "EqualTo": "!=",
    "GreaterThan": "<=",
    "GreaterThanOrEqual": "<",
    "LessThan": ">=",
    "LessThanOrEqual": ">",
}


def to_predicate(pushed: Any) -> Predicate | None:
    """Return the predicate of a filter of ``pyspark.sql.datasource``; None if the reader cannot use it."""
    negated = type(pushed).__name__ == "Not"
    inner = pushed.child if negated else pushed
    kind = type(inner).__name__
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    if len(path) != 1:
        return None
    column = path[0]
    if kind in {"IsNull", "IsNotNull"}:
        return IsNull(column) if (kind == "IsNull") != negated else IsNotNull(column)
    if kind == "EqualNullSafe" and inner.value is None:
        return IsNotNull(column) if negated else IsNull(column)
    if kind == "In":
        return NoneOf(column, tuple(inner.value)) if negated else OneOf(column, tuple(inner.value))
    if kind == "StringStartsWith" and not negated:
        return StartsWith(column, inner.value)
    operator = (_NEGATED if negated else _OPERATORS).get(kind)
    return Compare(column, operator, inner.value) if operator else None
