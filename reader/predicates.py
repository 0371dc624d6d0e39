"""What a reader is asked to find, and whether rows of which little is known may hold it; free of any engine.

A predicate is a conjunct of a query's filter. It is only ever used to leave out what certainly holds no row that the
filter keeps; which rows the filter keeps is the engine's to say. SQL's rules: a comparison with null keeps no row.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Union

import pyarrow as pa

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()


@dataclass(frozen=True, slots=True)
class Compare:
    """``column <op> value``."""

    column: str
    op: Literal["=", "!=", "<", "<=", ">", ">="]
    value: Any


@dataclass(frozen=True, slots=True)
class OneOf:
    """``column IN (values)``."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """``column NOT IN (values)``."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """``column IS NULL``."""

    column: str


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """``column IS NOT NULL``."""

    column: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``column LIKE 'prefix%'``."""

    column: str
    prefix: str


@dataclass(frozen=True, slots=True)
class AnyOf:
    """``(…) OR (…)``: each alternative is the conjunction of its predicates."""

    alternatives: tuple[tuple[Predicate, ...], ...]


# An alias at run time, on Python 3.10 too.
Predicate = Union[Compare, OneOf, NoneOf, IsNull, IsNotNull, StartsWith, AnyOf]  # noqa: UP007
OnColumn = Union[Compare, OneOf, NoneOf, IsNull, IsNotNull, StartsWith]  # noqa: UP007


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the names of the columns that a predicate is about."""
    if isinstance(predicate, AnyOf):
        return frozenset(name for one in predicate.alternatives for each in one for name in columns_of(each))
    return frozenset((predicate.column,))


@dataclass(frozen=True, slots=True)
class Span:
    """What is known of one column's values in some rows.

    Attributes:
        least: No value is less, in the form that `comparable` gives; None where unknown.
        greatest: No value is greater; None where unknown.
        nulls: Whether there may be nulls.
        values: Whether there may be anything but nulls.
    """

    least: Any = None
    greatest: Any = None
    nulls: bool = True
    values: bool = True


NULLS = Span(values=False)


def comparable(value: Any, kind: pa.DataType) -> Any:
    """Return a value in a form that compares as a column's values do.

    Args:
        value: A Python value as an engine or a literal gives it.
        kind: The column's canonical type.

    Returns:
        int (dates as days, timestamps as microseconds since the epoch), float, str, bool or Decimal; None where the
        value is null, not a number, or does not belong to the type, so that nothing may be concluded from it.
    """
    types = pa.types
    if isinstance(value, bool):
        return value if types.is_boolean(kind) else None
    if types.is_integer(kind):
        return value if isinstance(value, int) else None
    if types.is_floating(kind):
        number = float(value) if isinstance(value, (int, float)) else None
        return None if number != number else number
    if types.is_string(kind):
        return value if isinstance(value, str) else None
    if types.is_decimal(kind):
        return Decimal(value) if isinstance(value, (int, Decimal)) else None
    if types.is_date(kind):
        is_day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
        return value.toordinal() - _EPOCH_DAY if is_day else None
    if types.is_timestamp(kind) and isinstance(value, datetime.datetime):
        return _micros(value, zoned=kind.tz is not None)
    return None


def may_match(predicate: OnColumn, span: Span, kind: pa.DataType) -> bool:
    """Return False only where certainly none of the rows satisfies the predicate.

    Args:
        predicate: On one column.
        span: What is known of that column in the rows.
        kind: The column's canonical type.
    """
    if isinstance(predicate, IsNull):
        return span.nulls
    if not span.values:
        return False
    if isinstance(predicate, Compare):
        return _may_compare(predicate.op, comparable(predicate.value, kind), span, kind)
    if isinstance(predicate, OneOf):
        wanted = [value for value in predicate.values if value is not None]
        return any(_may_compare("=", comparable(value, kind), span, kind) for value in wanted)
    if isinstance(predicate, NoneOf):
        return all(_may_compare("!=", comparable(value, kind), span, kind) for value in predicate.values)
    if isinstance(predicate, StartsWith):
        return _may_start(predicate.prefix, span)
    return True


def may_match_all(predicates: Iterable[Predicate], spans: Mapping[str, Span], schema: pa.Schema) -> bool:
    """Return False only where certainly none of the rows satisfies every predicate.

    Args:
        predicates: Conjuncts.
        spans: What is known, by column; columns that are absent are unknown.
        schema: The table's columns, canonical.
    """
    return all(_may_match_one(one, spans, schema) for one in predicates)


def _may_match_one(one: Predicate, spans: Mapping[str, Span], schema: pa.Schema) -> bool:
    if isinstance(one, AnyOf):
        return any(may_match_all(alternative, spans, schema) for alternative in one.alternatives)
    return one.column not in spans or may_match(one, spans[one.column], schema.field(one.column).type)


def _may_compare(op: str, value: Any, span: Span, kind: pa.DataType) -> bool:
    least, greatest = span.least, span.greatest
    if value is None:
        return True
    # Statistics leave NaN out, and Spark holds it to be greater than every number.
    floating = pa.types.is_floating(kind)
    if op == "!=":
        return floating or least is None or least != greatest or least != value
    if op in {"=", "<", "<="} and least is not None and (least > value or (op == "<" and least == value)):
        return False
    if op == "=" or (op in {">", ">="} and not floating):
        return greatest is None or not (greatest < value or (op == ">" and greatest == value))
    return True


def _may_start(prefix: str, span: Span) -> bool:
    if isinstance(span.least, str) and span.least[: len(prefix)] > prefix:
        return False
    return not (isinstance(span.greatest, str) and span.greatest < prefix)


def _micros(value: datetime.datetime, *, zoned: bool) -> int | None:
    if (value.tzinfo is not None) != zoned:
        return None
    moment = value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if zoned else value
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)
