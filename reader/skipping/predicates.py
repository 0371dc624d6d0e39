"""Predicates, and whether rows with known bounds may satisfy them; free of any engine.

A predicate is a conjunct of a query's filter. If an engine reads, predicates only skip data that certainly holds no
row that the filter keeps, and the engine evaluates the filter; without an engine, `satisfied` does. SQL's rules: a
comparison with null keeps no row. Spark's for NaN: it equals itself, and is greater than every number.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache, reduce
from typing import Any, Literal, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidOptionError
from ...table.arrow.arrays import plain

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_COMPARISONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Compare:
    """A column compared with a value."""

    column: str
    op: Literal["=", "!=", "<", "<=", ">", ">="]
    value: Any


@dataclass(frozen=True, slots=True)
class OneOf:
    """A column that has one of some values: ``IN (…)``."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """A column that has none of some values: ``NOT IN (…)``."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """A column that is null."""

    column: str


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """A column that is not null."""

    column: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """A text column that begins with a prefix."""

    column: str
    prefix: str


@dataclass(frozen=True, slots=True)
class AnyOf:
    """``(…) OR (…)``: each alternative is the conjunction of its predicates."""

    alternatives: tuple[tuple[Predicate, ...], ...]


@dataclass(frozen=True, slots=True)
class OnExpression:
    """``function(column, arguments…)`` satisfies a predicate, which an index of that expression alone can judge.

    ``predicate`` is on the values of the expression. Rows, bounds of columns, keys and partitions say nothing of it.
    """

    function: str
    column: str
    arguments: tuple[str, ...]
    predicate: OnColumn


# An alias at run time, on Python 3.10 too.
OnColumn = Union[Compare, OneOf, NoneOf, IsNull, IsNotNull, StartsWith]  # noqa: UP007
Predicate = Union[OnColumn, AnyOf, OnExpression]  # noqa: UP007


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the columns whose values decide about a predicate; none if it is on an expression."""
    if isinstance(predicate, OnExpression):
        # Only an index of the expression can judge it: bounds and keys of the column do not.
        return frozenset()
    if isinstance(predicate, AnyOf):
        return frozenset(
            name for alternative in predicate.alternatives for each in alternative for name in columns_of(each)
        )
    return frozenset((predicate.column,))


def renamed(predicate: Predicate, name_of: Callable[[str], str]) -> Predicate:
    """Return a predicate with its columns renamed by a function."""
    if isinstance(predicate, AnyOf):
        return AnyOf(
            tuple(tuple(renamed(each, name_of) for each in alternative) for alternative in predicate.alternatives)
        )
    return replace(predicate, column=name_of(predicate.column))


@dataclass(frozen=True, slots=True)
class Span:
    """The bounds of one column's values in some rows, None if unknown, in the form of `comparable`.

    ``nulls`` and ``values`` tell whether there may be nulls, and anything but nulls.
    """

    least: Any = None
    greatest: Any = None
    nulls: bool = True
    values: bool = True


NULLS = Span(values=False)


def comparable(value: Any, kind: pa.DataType) -> Any:
    """Return a value in a form that compares as the values of a column of a canonical type do.

    That is int (dates as days, timestamps as microseconds since the epoch), float, str, bool or Decimal; None for null,
    NaN, and a value of another type, which proves nothing.
    """
    types = pa.types
    if isinstance(value, bool):
        return value if types.is_boolean(kind) else None
    if types.is_integer(kind):
        return value if isinstance(value, int) else None
    if types.is_floating(kind):
        try:
            number = float(value) if isinstance(value, (int, float)) else None
        except OverflowError:
            return None
        return None if number != number else number
    if types.is_string(kind):
        return value if isinstance(value, str) else None
    if types.is_decimal(kind):
        number_or_nan = Decimal(value) if isinstance(value, (int, Decimal)) else Decimal("NaN")
        return number_or_nan if number_or_nan.is_finite() else None
    if types.is_date(kind):
        is_day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
        return value.toordinal() - _EPOCH_DAY if is_day else None
    if types.is_timestamp(kind) and isinstance(value, datetime.datetime):
        return _epoch_micros(value, zoned=kind.tz is not None)
    return None


def is_comparable(value: Any, kind: pa.DataType) -> bool:
    """Return whether `satisfied` compares a value with a column of a type."""
    # `comparable` has no form for NaN, with which values of rows are compared nevertheless.
    if comparable(value, kind) is None and not (_is_nan(value) and pa.types.is_floating(kind)):
        return False
    try:
        # Arrow raises if even the widest type of the column's kind does not hold the value.
        pa.scalar(value, _widest_type(kind))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return False
    return True


def may_match(predicate: OnColumn, span: Span, kind: pa.DataType) -> bool:
    """Return False only if certainly none of some rows satisfies the predicate.

    ``span`` bounds the values that the predicate's column has in these rows, and ``kind`` is the column's type.
    """
    if isinstance(predicate, IsNull):
        return span.nulls
    if not span.values:
        # All rows are null, which satisfies nothing else.
        return False
    if isinstance(predicate, Compare):
        return _may_compare(predicate.op, comparable(predicate.value, kind), span, kind)
    if isinstance(predicate, OneOf):
        values = tuple(value for value in predicate.values if value is not None)
        forms = tuple((type(value), getattr(value, "fold", 0)) for value in values)
        return _may_be_among(_in_order(values, forms, kind), span)
    if isinstance(predicate, NoneOf):
        return all(_may_compare("!=", comparable(value, kind), span, kind) for value in predicate.values)
    if isinstance(predicate, StartsWith):
        return _may_start(predicate.prefix, span)
    # What remains is IsNotNull, which any value satisfies.
    return True


def may_match_all(predicates: Iterable[Predicate], spans: Mapping[str, Span], schema: pa.Schema) -> bool:
    """Return False only if certainly no row satisfies every predicate; a column without a span is unknown."""
    return all(_may_match_one(predicate, spans, schema) for predicate in predicates)


def satisfied(rows: pa.RecordBatch, predicates: Iterable[Predicate]) -> pa.BooleanArray:
    """Return a mask of the rows that satisfy every predicate, as far as columns tell.

    Raises InvalidOptionError for a value of another type than its column's. Predicates on expressions count as
    satisfied: rows do not have the values of expressions, and only an engine that filters rows itself gives such
    predicates.
    """
    matches = pa.array(np.ones(rows.num_rows, np.bool_))
    for predicate in predicates:
        if isinstance(predicate, OnExpression):
            continue
        if isinstance(predicate, AnyOf):
            alternatives = [satisfied(rows, alternative) for alternative in predicate.alternatives]
            holds = reduce(pc.or_, alternatives, pa.array(np.zeros(rows.num_rows, np.bool_)))
        else:
            # A column may come dictionary-encoded; values are compared in the plain column.
            holds = pc.fill_null(_satisfies(predicate, plain(rows.column(predicate.column))), False)
        matches = pc.and_(matches, holds)
    return matches


def _satisfies(predicate: OnColumn, column: pa.Array) -> pa.BooleanArray:
    """Return for each value of a column whether it satisfies a predicate.

    If SQL says null, the result is null or false, and the row does not count either way. Raises InvalidOptionError if
    the column cannot be compared with a value of the predicate.
    """
    if isinstance(predicate, IsNull):
        return column.is_null()
    if isinstance(predicate, IsNotNull):
        return column.is_valid()
    if isinstance(predicate, StartsWith):
        _check_comparable(predicate.prefix, predicate.column, column.type)
        return pc.starts_with(column, predicate.prefix)
    values = (predicate.value,) if isinstance(predicate, Compare) else predicate.values
    not_null = [value for value in values if value is not None]
    for value in not_null:
        _check_comparable(value, predicate.column, column.type)
    # In SQL a comparison with null is null, and so NOT IN with a null among its values is never true.
    if (isinstance(predicate, Compare) and not not_null) or (
        isinstance(predicate, NoneOf) and len(not_null) < len(values)
    ):
        return pa.nulls(len(column), pa.bool_())
    # A value may have more digits than the column's type holds, so both are compared in the widest type.
    wide = column.cast(_widest_type(column.type))
    if isinstance(predicate, Compare):
        return _compare_column(wide, predicate.op, predicate.value)
    wanted = pa.array(not_null, wide.type)
    if pa.types.is_floating(wide.type):
        # A set tells -0.0 and 0.0 apart, which are equal; their sums with 0.0 are both 0.0.
        wide, wanted = pc.add(wide, 0.0), pc.add(wanted, 0.0)
    is_among = pc.is_in(wide, wanted)
    # In Spark NaN equals NaN.
    if any(map(_is_nan, not_null)):
        is_among = pc.or_(is_among, pc.fill_null(pc.is_nan(wide), False))
    # `is_in` says False of a null, which NOT IN must not make True.
    return is_among if isinstance(predicate, OneOf) else pc.and_(column.is_valid(), pc.invert(is_among))


def _compare_column(column: pa.Array, op: str, value: Any) -> pa.BooleanArray:
    """Return how a column compares with a value, row by row; NaN is equal to NaN, and greater than every number."""
    if not pa.types.is_floating(column.type):
        return _COMPARISONS[op](column, pa.scalar(value, column.type))
    is_nan = pc.is_nan(column)
    if _is_nan(value):
        # NaN or not is compared instead of the numbers: False, of all numbers, is less than True, of NaN.
        return _COMPARISONS[op](is_nan, pa.scalar(True))
    compared = _COMPARISONS[op](column, pa.scalar(value, column.type))
    return pc.if_else(is_nan, pa.scalar(op in {">", ">=", "!="}), compared)


def _check_comparable(value: Any, name: str, kind: pa.DataType) -> None:
    """Raise InvalidOptionError if `satisfied` cannot compare a value with a column."""
    if not is_comparable(value, kind):
        raise InvalidOptionError(
            f"The column {name!r} of type {kind} cannot be compared with {value!r}.",
            "Give a value of the column's type.",
        )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _widest_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values of a column are compared: the widest type of its kind."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind):
        return pa.decimal256(76, 38)
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _may_match_one(predicate: Predicate, spans: Mapping[str, Span], schema: pa.Schema) -> bool:
    """Return False only if certainly no row satisfies the predicate; a column without a span is unknown."""
    if isinstance(predicate, AnyOf):
        return any(may_match_all(alternative, spans, schema) for alternative in predicate.alternatives)
    if isinstance(predicate, OnExpression) or predicate.column not in spans:
        return True
    return may_match(predicate, spans[predicate.column], schema.field(predicate.column).type)


def _may_compare(op: str, value: Any, span: Span, kind: pa.DataType) -> bool:
    """Return False only if certainly no value within the span compares so with a value; None compares with all."""
    least, greatest = span.least, span.greatest
    if value is None:
        return True
    # Statistics ignore NaN, which is greater than every number in Spark.
    floating = pa.types.is_floating(kind)
    if op == "!=":
        return floating or least is None or least != greatest or least != value
    if op in {"=", "<", "<="} and least is not None and (least > value or (op == "<" and least == value)):
        return False
    if op == "=" or (op in {">", ">="} and not floating):
        return greatest is None or not (greatest < value or (op == ">" and greatest == value))
    return True


# Equal values of two types, such as 1 and True, are two sets of values, and so are the two hours of one name when the
# clocks go back.
@lru_cache(maxsize=32)
def _in_order(values: tuple[Any, ...], forms: tuple[tuple[type, int], ...], kind: pa.DataType) -> list[Any] | None:
    """Return values in order, in the form of `comparable`; None if a value proves nothing.

    ``forms`` has the type and the fold of each value, and only keeps results for equal values apart in the cache.
    """
    compared = [comparable(value, kind) for value in values]
    return None if None in compared else sorted(compared)


def _may_be_among(values: Sequence[Any] | None, span: Span) -> bool:
    """Return False only if none of the values, which are in order, is between the bounds."""
    if values is None:
        return True
    at = 0 if span.least is None else bisect_left(values, span.least)
    return at < len(values) and (span.greatest is None or not values[at] > span.greatest)


def _may_start(prefix: str, span: Span) -> bool:
    """Return False only if certainly no text within the span begins with a prefix."""
    if isinstance(span.least, str) and span.least[: len(prefix)] > prefix:
        return False
    return not (isinstance(span.greatest, str) and span.greatest < prefix)


def _epoch_micros(value: datetime.datetime, *, zoned: bool) -> int | None:
    """Return a time as microseconds since the epoch; None if one of time and column has a zone, and the other none."""
    if (value.tzinfo is not None) != zoned:
        return None
    # In UTC the moment may be before the first year, which only a difference of times can be.
    since_epoch = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or datetime.timedelta())
    return since_epoch // datetime.timedelta(microseconds=1)
