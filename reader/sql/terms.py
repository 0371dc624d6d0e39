"""The terms of the small SQL, and their values on Arrow arrays: null as in SQL, NaN as in Spark.

A comparison with null is null, and conditions join by the logic of three values. NaN equals itself, and is greater than
every number. Whole numbers that grow beyond their type, and a division by zero, are errors, as in Spark's ANSI mode.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ColumnValueError
from ...table.arrow.arrays import plain
from .coercion import Datum, in_type

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "<=>"]
Sign = Literal["+", "-", "*", "/"]

_BY_ORDER = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_COMPARES = {"=": pc.equal, "!=": pc.not_equal, **_BY_ORDER}
_CALCULATES = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked, "/": pc.divide}
_ESCAPED = re.compile(r"\\[%_\\]")
_PARTS_OF_PATTERN = re.compile(r"\\.|.", re.DOTALL)
# The most digits that a whole number of a type has.
_DIGITS = {pa.int32(): 10, pa.int64(): 19}


class SqlTerm(Protocol):
    """A part of a condition or of a value."""

    @property
    def kind(self) -> pa.DataType: ...

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the values are made of."""
        ...

    def of(self, rows: pa.RecordBatch) -> Datum:
        """Return the values, a row each, or a scalar that all rows share."""
        ...


@dataclass(frozen=True, slots=True)
class ColumnTerm:
    """A column, or a field of a struct inside of it."""

    name: str
    kind: pa.DataType
    fields: tuple[str, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((self.name,))

    def of(self, rows: pa.RecordBatch) -> Datum:
        column = plain(rows.column(self.name))
        for field in self.fields:
            column = pc.struct_field(column, field)
        return column


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    """A constant of a type."""

    value: Any
    kind: pa.DataType

    @property
    def columns(self) -> frozenset[str]:
        return frozenset()

    def of(self, rows: pa.RecordBatch) -> Datum:
        return pa.scalar(self.value, self.kind)


class ConditionTerm:
    """The base of terms that are true, false or null."""

    __slots__ = ()

    @property
    def kind(self) -> pa.DataType:
        return pa.bool_()


class PairTerm:
    """The base of terms that are made of two terms."""

    __slots__ = ()
    left: SqlTerm
    right: SqlTerm

    @property
    def columns(self) -> frozenset[str]:
        return self.left.columns | self.right.columns


class PartTerm:
    """The base of terms that are made of a single term."""

    __slots__ = ()
    part: SqlTerm

    @property
    def columns(self) -> frozenset[str]:
        return self.part.columns


@dataclass(frozen=True, slots=True)
class CompareTerm(ConditionTerm, PairTerm):
    """Two values compared in the type ``met``."""

    op: Operator
    left: SqlTerm
    right: SqlTerm
    met: pa.DataType

    def of(self, rows: pa.RecordBatch) -> Datum:
        # Every value fits; a large whole number loses digits in a double, as in Spark.
        return compared(self.op, *(in_type(side.of(rows), self.met) for side in (self.left, self.right)))


@dataclass(frozen=True, slots=True)
class LogicTerm(ConditionTerm):
    """Conditions joined by AND or OR."""

    op: Literal["AND", "OR"]
    parts: tuple[SqlTerm, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(part.columns for part in self.parts))

    def of(self, rows: pa.RecordBatch) -> Datum:
        """Return for each row whether the joined conditions hold, with SQL's rules for null."""
        # The casts give a constant NULL, which has a type of its own, the type of a condition.
        join = pc.and_kleene if self.op == "AND" else pc.or_kleene
        first, *rest = self.parts
        values = first.of(rows).cast(pa.bool_())
        for part in rest:
            values = join(values, part.of(rows).cast(pa.bool_()))
        return values


@dataclass(frozen=True, slots=True)
class NotTerm(ConditionTerm, PartTerm):
    """The negation of a condition."""

    part: SqlTerm

    def of(self, rows: pa.RecordBatch) -> Datum:
        return pc.invert(self.part.of(rows).cast(pa.bool_()))


@dataclass(frozen=True, slots=True)
class NullTerm(ConditionTerm, PartTerm):
    """Whether a value is null."""

    part: SqlTerm

    def of(self, rows: pa.RecordBatch) -> Datum:
        # NaN is a value.
        return pc.is_null(self.part.of(rows))


@dataclass(frozen=True, slots=True)
class LikeTerm(ConditionTerm, PartTerm):
    """Whether a text matches a pattern, in which ``%`` is any text, ``_`` any character, and a backslash escapes."""

    part: SqlTerm
    pattern: str

    def of(self, rows: pa.RecordBatch) -> Datum:
        texts = self.part.of(rows).cast(pa.string())
        if "\\" in self.pattern:
            # Arrow's own LIKE takes two backslashes for two where it looks for a part of the text.
            return pc.match_substring_regex(texts, _regex_of_pattern(self.pattern))
        return pc.match_like(texts, self.pattern)


def is_pattern(text: str) -> bool:
    """Return whether a text can be a pattern of LIKE: a backslash escapes ``%``, ``_`` or a backslash, as in Spark."""
    return _ESCAPED.sub("", text).find("\\") < 0


def _regex_of_pattern(pattern: str) -> str:
    """Return the regular expression of whole texts that a pattern of LIKE matches."""
    parts = [
        {"%": ".*", "_": "."}.get(part) or re.escape(part[-1])
        for part in _PARTS_OF_PATTERN.findall(pattern)  # O(characters of the pattern)
    ]
    return f"(?s)^{''.join(parts)}$"


@dataclass(frozen=True, slots=True)
class ArithmeticTerm(PairTerm):
    """Two numbers added, subtracted, multiplied or divided in the type ``met``."""

    op: Sign
    left: SqlTerm
    right: SqlTerm
    met: pa.DataType
    kind: pa.DataType

    def of(self, rows: pa.RecordBatch) -> Datum:
        return calculated(self.op, self.left.of(rows), self.right.of(rows), self.met)


@dataclass(frozen=True, slots=True)
class JoinedTexts(PairTerm):
    """Two texts, one behind the other; null if one of them is."""

    left: SqlTerm
    right: SqlTerm

    @property
    def kind(self) -> pa.DataType:
        return pa.string()

    def of(self, rows: pa.RecordBatch) -> Datum:
        texts = [side.of(rows).cast(pa.string()) for side in (self.left, self.right)]
        return pc.binary_join_element_wise(*texts, "")


@dataclass(frozen=True, slots=True)
class FirstTerm:
    """The first of some values that is not null."""

    parts: tuple[SqlTerm, ...]
    kind: pa.DataType

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(part.columns for part in self.parts))

    def of(self, rows: pa.RecordBatch) -> Datum:
        return pc.coalesce(*(in_type(part.of(rows), self.kind) for part in self.parts))


def compared(op: Operator, left: Datum, right: Datum) -> Datum:
    """Return how values of one type compare, NaN by Spark's rules."""
    if op == "<=>":
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both_null, pc.coalesce(compared("=", left, right), pa.scalar(False)))
    result = _COMPARES[op](left, right)
    if not pa.types.is_floating(left.type):
        return result
    left_is_nan, right_is_nan = pc.is_nan(left), pc.is_nan(right)
    # If a side is NaN, the two truth values compare as the sides do: True, of NaN, is greater than False.
    return pc.if_else(pc.or_(left_is_nan, right_is_nan), _COMPARES[op](left_is_nan, right_is_nan), result)


def calculated(op: Sign, left: Datum, right: Datum, met: pa.DataType) -> Datum:
    """Return a result for each pair of numbers, calculated in the type ``met``; decimals keep their own scales."""
    left, right = _operand_in_type(left, met), _operand_in_type(right, met)
    if op == "/" and pc.any(column_of(pc.and_(pc.equal(right, 0.0), pc.is_valid(left)), 1)).as_py():  # one value
        raise ColumnValueError("A value is divided by zero.", "Leave such rows out by a condition.")
    try:
        return _CALCULATES[op](left, right)
    except pa.ArrowInvalid as error:
        raise ColumnValueError(
            f"A result of {op} does not fit its type: {error}.",
            "Leave such rows out by a condition, or make the columns wider first.",
        ) from error


def _operand_in_type(values: Datum, result_type: pa.DataType) -> Datum:
    """Return an operand cast for a calculation in a type; decimals keep their own digits and scale.

    For decimals Arrow widens the result by itself, so each operand needs only the digits that its type can have.
    """
    kind = values.type
    if pa.types.is_decimal(result_type):
        digits = (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (_DIGITS.get(kind, 1), 0)
        result_type = pa.decimal256(*digits)
    return in_type(values, result_type)


def column_of(datum: Datum, count: int) -> pa.Array:
    """Return values as a plain array; a single value for all rows is repeated ``count`` times."""
    return plain(datum) if not isinstance(datum, pa.Scalar) else pa.repeat(datum, count)
