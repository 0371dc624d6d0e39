"""The tree of a condition as far as it is understood: for Spark to compare, and as predicates for the reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...reader.skipping.predicates import (
    AnyOf,
    Compare,
    IsNotNull,
    IsNull,
    NoneOf,
    OnColumn,
    OneOf,
    OnExpression,
    Predicate,
    StartsWith,
)
from .literals import Literal, TimeLiteral

# Turns the value of a literal into that of a predicate.
ValueOf: TypeAlias = Callable[[Any], Any]

_WHOLE = re.compile(r"-?\d{1,9}")
_NEGATED: dict[str, Any] = {"=": "!=", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}
_TURNED: dict[str, Any] = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Between:
    """A value known only to lie between two bounds, both included."""

    least: Any
    greatest: Any


class UnknownValue:
    """A value without known bounds."""


class Node(Protocol):
    def make(self) -> Column:
        """Return the condition for Spark, which compares it with the user's own."""

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        """Return predicates that hold for every row for which this part is true or, if not ``positive``, false.

        ``value_of`` converts the value of a literal to that of a predicate.
        """

    def moments(self) -> Iterator[TimeLiteral]:
        """Yield the times whose values only Spark knows."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that gives no predicate."""

    make: Callable[[], Column]

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        return ()

    def moments(self) -> Iterator[TimeLiteral]:
        yield from ()


@dataclass(frozen=True, slots=True)
class Connected:
    """``left AND right`` or ``left OR right``."""

    is_and: bool
    left: Node
    right: Node

    def make(self) -> Column:
        left, right = self.left.make(), self.right.make()
        return left & right if self.is_and else left | right

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        """Return predicates that hold for every row for which this is true or, if not ``positive``, false.

        ``value_of`` turns the value of a literal into a value of the reader. No predicates: any row may satisfy it.
        """
        sides = [side.implied_predicates(positive, value_of) for side in (self.left, self.right)]
        # An AND that is true makes both sides true, and an OR that is false makes both sides false.
        if self.is_and == positive:
            return (*sides[0], *sides[1])
        # A side without predicates may admit any row.
        return (AnyOf((sides[0], sides[1])),) if all(sides) else ()

    def moments(self) -> Iterator[TimeLiteral]:
        yield from (*self.left.moments(), *self.right.moments())


@dataclass(frozen=True, slots=True)
class Not:
    child: Node

    def make(self) -> Column:
        return ~self.child.make()

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        return self.child.implied_predicates(not positive, value_of)

    def moments(self) -> Iterator[TimeLiteral]:
        return self.child.moments()


@dataclass(frozen=True, slots=True)
class FunctionOfColumn:
    """A function of a column, with arguments, as users call it; ``function`` is its name in definitions of indexes."""

    name: str
    function: str
    column: str
    arguments: tuple[str, ...]

    def make(self) -> Column:
        arguments = (sf.lit(int(text)) if _WHOLE.fullmatch(text) else sf.lit(text) for text in self.arguments)
        return sf.call_function(self.name, column_named(self.column), *arguments)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column <op> literal``, or ``literal <op> column`` if ``literal_first``."""

    column: str | FunctionOfColumn
    op: str
    literal: Literal
    literal_first: bool = False

    def make(self) -> Column:
        column, literal = _widened(self.column, self.literal), self.literal.make()
        left, right = (literal, column) if self.literal_first else (column, literal)
        return OPERATORS[self.op](left, right)

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        """Return predicates that hold for every row for which this is true or, if not ``positive``, false.

        ``value_of`` turns the value of the literal into a value of the reader, null into None. If there are no
        predicates, any row may be among these rows.
        """
        value = value_of(self.literal.value)
        if self.op == "<=>":
            predicates = (
                (_predicate_on(self.column, IsNull),)
                if value is None
                else _comparison_predicates(self.column, "=", value)
            )
            # Null satisfies the negation of an equality, but no predicate of a comparison.
            return predicates if positive else ()
        op = _TURNED[self.op] if self.literal_first else self.op
        return _comparison_predicates(self.column, op if positive else _NEGATED[op], value)

    def moments(self) -> Iterator[TimeLiteral]:
        if isinstance(self.literal.value, TimeLiteral):
            yield self.literal.value


OPERATORS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda left, right: left == right,
    "<=>": lambda left, right: left.eqNullSafe(right),
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


@dataclass(frozen=True, slots=True)
class Among:
    """``column IN (literals)``."""

    column: str | FunctionOfColumn
    literals: tuple[Literal, ...]

    def make(self) -> Column:
        """Return the condition with the casts that Spark puts into the user's own, because Spark compares the two."""
        first_literal = self.literals[0]
        if all(literal.own_type == literal.column_type == literal.compared_type for literal in self.literals):
            return _column_of(self.column).isin(*(literal.make_untyped() for literal in self.literals))
        # Spark casts all literals if their types differ.
        casts = (literal.make_untyped().cast(first_literal.compared_type) for literal in self.literals)
        return _column_of(self.column).cast(first_literal.compared_type).isin(*casts)

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        """Return the predicate that the column has one of the values or, if not ``positive``, none of them.

        ``value_of`` turns the value of a literal into a value of the reader. If it does not know some value exactly,
        there is no predicate, so any row may satisfy the condition.
        """
        values = tuple(value_of(literal.value) for literal in self.literals)
        # `OneOf` and `NoneOf` need exact values.
        if any(isinstance(value, (Between, UnknownValue)) for value in values):
            return ()
        return (_predicate_on(self.column, lambda name: OneOf(name, values) if positive else NoneOf(name, values)),)

    def moments(self) -> Iterator[TimeLiteral]:
        yield from (literal.value for literal in self.literals if isinstance(literal.value, TimeLiteral))


@dataclass(frozen=True, slots=True)
class Ranged:
    """``function(column) BETWEEN least AND greatest``, which to Spark is not the same as two comparisons."""

    column: FunctionOfColumn
    least: Literal
    greatest: Literal

    def make(self) -> Column:
        return sf.call_function("between", self.column.make(), self.least.make_untyped(), self.greatest.make_untyped())

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        bounds = Comparison(self.column, ">=", self.least), Comparison(self.column, "<=", self.greatest)
        return Connected(True, *bounds).implied_predicates(positive, value_of)

    def moments(self) -> Iterator[TimeLiteral]:
        yield from ()


@dataclass(frozen=True, slots=True)
class Nullness:
    """``column IS NULL``, or ``IS NOT NULL``."""

    column: str
    is_null: bool

    def make(self) -> Column:
        column = column_named(self.column)
        return column.isNull() if self.is_null else column.isNotNull()

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        return (IsNull(self.column) if self.is_null == positive else IsNotNull(self.column),)

    def moments(self) -> Iterator[TimeLiteral]:
        yield from ()


@dataclass(frozen=True, slots=True)
class Beginning:
    """``column LIKE 'prefix…'``, or ``startswith``."""

    column: str
    prefix: str
    make: Callable[[], Column]

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        return (StartsWith(self.column, self.prefix),) if positive and self.prefix else ()

    def moments(self) -> Iterator[TimeLiteral]:
        yield from ()


@dataclass(frozen=True, slots=True)
class Flag:
    column: str

    def make(self) -> Column:
        return column_named(self.column)

    def implied_predicates(self, positive: bool, value_of: ValueOf) -> tuple[Predicate, ...]:
        return (Compare(self.column, "=", positive),)

    def moments(self) -> Iterator[TimeLiteral]:
        yield from ()


def _comparison_predicates(column: str | FunctionOfColumn, op: Any, value: Any) -> tuple[Predicate, ...]:
    """Return the predicates of a comparison; for a time between bounds, those that hold wherever in them it is.

    There are none if a time between bounds excludes no range of values, as for ``!=``, or if the value is unknown.
    """
    if isinstance(value, UnknownValue):
        return ()
    if not isinstance(value, Between):
        return (_predicate_on(column, lambda name: Compare(name, op, value)),)
    least = _predicate_on(column, lambda name: Compare(name, ">=", value.least))
    greatest = _predicate_on(column, lambda name: Compare(name, "<=", value.greatest))
    return {"=": (least, greatest), "<": (greatest,), "<=": (greatest,), ">": (least,), ">=": (least,)}.get(op, ())


def _predicate_on(column: str | FunctionOfColumn, predicate: Callable[[str], OnColumn]) -> Predicate:
    """Return a predicate on a column, or on a function of a column, of which there may be an index.

    ``predicate`` makes the predicate for the name of the column.
    """
    if isinstance(column, str):
        return predicate(column)
    return OnExpression(column.function, column.column, column.arguments, predicate(column.column))


def column_named(name: str) -> Column:
    """Return a column by its whole name, with any characters."""
    quoted = name.replace("`", "``")
    return sf.col(f"`{quoted}`")


def _column_of(column: str | FunctionOfColumn) -> Column:
    """Return a column, or a function of a column, for Spark."""
    return column_named(column) if isinstance(column, str) else column.make()


def _widened(column: str | FunctionOfColumn, literal: Literal) -> Column:
    """Return a column in the type in which Spark compares it with a literal."""
    return (
        _column_of(column)
        if literal.column_type == literal.compared_type
        else _column_of(column).cast(literal.compared_type)
    )
