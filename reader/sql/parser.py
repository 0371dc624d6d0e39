"""Reads the text of a condition or a value: ``city = 'Rome' AND (fare > tip * 2 OR NOT late)``.

The grammar is that of Spark's expressions, without CASE, CAST and functions but ``coalesce``: comparisons of any two
values, ``IN``, ``BETWEEN``, ``LIKE``, ``IS NULL``, ``+ - * / ||``, ``NOT``, ``AND``, ``OR`` and parentheses.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from .coercion import WIDE_DECIMAL, constant, is_number, joined_type, met_in, moment, number_of
from .names import NamedColumns
from .terms import (
    ArithmeticTerm,
    ColumnTerm,
    CompareTerm,
    ConstantTerm,
    FirstTerm,
    JoinedTexts,
    LikeTerm,
    LogicTerm,
    NotTerm,
    NullTerm,
    Operator,
    Sign,
    SqlTerm,
    calculated,
    is_pattern,
)
from .tokens import KEYWORDS, SqlToken, SqlTokens

_OPERATORS: dict[str, Operator] = {
    **{"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<=>": "<=>"},
    **{"<": "<", "<=": "<=", ">": ">", ">=": ">="},
}
_TIMES = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
_DEEPEST = 50
_HINT = "Compare values, joined by AND, OR, NOT and parentheses: city = 'Rome' AND fare > tip."


def parse_condition_text(text: str, names: NamedColumns, what: str = "The condition") -> SqlTerm:
    """Return the term of a condition, which is true, false or null.

    Raises `InvalidOptionError`, with the character, for a text that is no condition, and `MissingColumnError` for a
    column that no side has.
    """
    parser = _Parser(SqlTokens(text, what, _HINT), names, f"{what} {text!r}")
    term = parser.condition(0)
    parser.tokens.expect_end()
    return term


def parse_value_text(text: str, names: NamedColumns, what: str = "The value") -> SqlTerm:
    """Return the term of a value; raises as `parse_condition_text` does."""
    hint = "Write columns, numbers, and texts in single quotes: source.fare + 1."
    parser = _Parser(SqlTokens(text, what, hint), names, f"{what} {text!r}")
    term = parser.any_of(0)
    parser.tokens.expect_end()
    return term


@dataclass(frozen=True, slots=True)
class _Parser:
    """A parser by recursive descent; each method is a level of the grammar, from the weakest to the strongest."""

    tokens: SqlTokens
    names: NamedColumns
    what: str

    def condition(self, depth: int) -> SqlTerm:
        """Read a condition: ``any_of``, checked to be true, false or null."""
        at = self.tokens.peek()
        return self._checked(self.any_of(depth), at)

    def any_of(self, depth: int) -> SqlTerm:
        """Read terms joined by ``OR``, or a single term of any type."""
        return self._joined("OR", depth)

    def _all_of(self, depth: int) -> SqlTerm:
        return self._joined("AND", depth)

    def _joined(self, op: Any, depth: int) -> SqlTerm:
        """Read terms joined by AND or OR, each of which then has to be a condition."""
        next_level = self._all_of if op == "OR" else self._negated
        at = self.tokens.peek()
        parts = [next_level(depth)]
        while self.tokens.skip(op):
            parts[-1] = self._checked(parts[-1], at)
            at = self.tokens.peek()
            parts.append(self._checked(next_level(depth), at))
        return parts[0] if len(parts) == 1 else LogicTerm(op, tuple(parts))

    def _negated(self, depth: int) -> SqlTerm:
        """Read a condition behind ``NOT``, or a comparison."""
        self._check_depth(depth)
        if not self.tokens.skip("NOT"):
            return self._comparison(depth)
        at = self.tokens.peek()
        return NotTerm(self._checked(self._negated(depth + 1), at))

    def _comparison(self, depth: int) -> SqlTerm:
        """Read two compared values, a test of one value such as ``IS NULL`` or ``IN``, or a single value."""
        tokens = self.tokens
        left = self._sum(depth)
        if tokens.skip("IS"):
            negated = tokens.skip("NOT")
            tokens.expect("NULL")
            return NotTerm(NullTerm(left)) if negated else NullTerm(left)
        at = tokens.peek()
        operator = tokens.skip_any([*_OPERATORS])
        if operator is not None:
            return self._compared(_OPERATORS[operator], left, self._sum(depth), at)
        negated = tokens.skip("NOT")
        term = self._range_or_pattern(left, depth, at)
        if term is None and negated:
            raise tokens.wrong("lacks BETWEEN, IN or LIKE behind NOT")
        return left if term is None else NotTerm(term) if negated else term

    def _range_or_pattern(self, left: SqlTerm, depth: int, at: SqlToken) -> SqlTerm | None:
        """Read what follows a value as ``BETWEEN``, ``IN`` or ``LIKE``; None if none of them follows.

        ``left`` is the value, ``depth`` the number of terms around it, ``at`` the token that errors point to.
        """
        tokens = self.tokens
        if tokens.skip("BETWEEN"):
            least = self._sum(depth)
            tokens.expect("AND")
            bounds = (self._compared(">=", left, least, at), self._compared("<=", left, self._sum(depth), at))
            return LogicTerm("AND", bounds)
        if tokens.skip("IN"):
            tokens.expect("(")
            values = [self._compared("=", left, self._sum(depth), at)]
            while tokens.skip(","):
                values.append(self._compared("=", left, self._sum(depth), at))
            tokens.expect(")")
            return values[0] if len(values) == 1 else LogicTerm("OR", tuple(values))
        if tokens.skip("LIKE"):
            pattern = tokens.next()
            if pattern.kind != "text" or not pa.types.is_string(left.kind):
                tokens.back()
                raise tokens.wrong("has LIKE with something else than a text and a pattern such as 'Ro%'")
            text = self._text_of(pattern)
            if not is_pattern(text):
                raise tokens.wrong("has a pattern with a backslash before something else than %, _ or another", pattern)
            return LikeTerm(left, text)
        return None

    def _sum(self, depth: int) -> SqlTerm:
        """Read values joined by ``+``, ``-`` or two bars."""
        left = self._product(depth)
        while True:
            at = self.tokens.peek()
            operator = self.tokens.skip_any(["+", "-", "||"])
            if operator is None:
                return left
            left = self._calculated(operator, left, self._product(depth), at)

    def _product(self, depth: int) -> SqlTerm:
        """Read values joined by ``*`` or ``/``."""
        left = self._primary(depth)
        while True:
            at = self.tokens.peek()
            operator = self.tokens.skip_any(["*", "/"])
            if operator is None:
                return left
            left = self._calculated(operator, left, self._primary(depth), at)

    def _primary(self, depth: int) -> SqlTerm:
        """Read a term in parentheses, a number with its sign, a negated value, a column or a constant."""
        tokens = self.tokens
        self._check_depth(depth)
        if tokens.skip("("):
            term = self.any_of(depth + 1)
            tokens.expect(")")
            return term
        sign = tokens.skip_any(["-", "+"])
        token = tokens.next()
        if token.kind == "number":
            try:
                return ConstantTerm(*number_of(f"-{token.text}" if sign == "-" else token.text))
            except (ValueError, ArithmeticError):
                raise tokens.wrong("has a number that its type does not hold", token) from None
        if sign is not None:
            # A signed value is added to zero, or subtracted from it.
            tokens.back()
            at, zero = tokens.peek(), ConstantTerm(0, pa.int32())
            return self._calculated(sign, zero, self._primary(depth + 1), at)
        return self._named_or_constant(token, depth)

    def _named_or_constant(self, token: SqlToken, depth: int) -> SqlTerm:
        """Read a column, ``coalesce``, or a constant that is no number, of which ``token`` is the first token.

        ``depth`` is the number of terms around it, which the parser limits. Raises InvalidOptionError, which points to
        the token, for anything else.
        """
        tokens = self.tokens
        if token.kind == "text":
            return ConstantTerm(self._text_of(token), pa.string())
        if token.word in {"TRUE", "FALSE"}:
            return ConstantTerm(token.word == "TRUE", pa.bool_())
        if token.word == "NULL":
            return ConstantTerm(None, pa.null())
        if token.word in _TIMES and tokens.peek().kind == "text":
            return self._time(token.word, tokens.next())
        if token.name is None or token.word in KEYWORDS:
            if token.kind != "end":
                tokens.back()
            raise tokens.wrong("lacks a column or a constant")
        parts = [token.name]
        while tokens.skip("."):
            part = tokens.next()
            if part.name is None:
                tokens.back()
                raise tokens.wrong("lacks a name")
            parts.append(part.name)
        if tokens.peek().word == "(":
            if [part.upper() for part in parts] == ["COALESCE"]:
                return self._coalesced(depth)
            raise tokens.wrong(f"calls {'.'.join(parts)!r}, and functions but coalesce are not understood")
        return self.names.find(parts, self.what)

    def _coalesced(self, depth: int) -> SqlTerm:
        """Read the arguments of ``coalesce``."""
        tokens = self.tokens
        # The opening parenthesis, to which errors point.
        at = tokens.next()
        parts = [self.any_of(depth + 1)]
        while tokens.skip(","):
            parts.append(self.any_of(depth + 1))
        tokens.expect(")")
        kind = reduce(joined_type, (part.kind for part in parts))
        if kind is None:
            shown = ", ".join(str(part.kind) for part in parts)
            raise tokens.wrong(f"has coalesce with values of the types {shown}, which no type joins", at)
        return FirstTerm(tuple(parts), kind)

    def _text_of(self, token: SqlToken) -> str:
        """Return the text that a token spells; raise, pointing to it, if an escape is of no character."""
        try:
            return token.constant
        except (ValueError, OverflowError):
            raise self.tokens.wrong("has a text with an escape of no character", token) from None

    def _time(self, word: str, token: SqlToken) -> SqlTerm:
        """Read the text of ``DATE '…'`` or ``TIMESTAMP '…'``; without a zone a timestamp is in UTC."""
        try:
            if word == "DATE":
                return ConstantTerm(datetime.date.fromisoformat(token.constant), pa.date32())
            zone = None if word == "TIMESTAMP_NTZ" else "UTC"
            return ConstantTerm(moment(token.constant, zone), pa.timestamp("us", zone))
        except (ValueError, OverflowError):
            raise self.tokens.wrong(f"has {word} with no {word.lower()}", token) from None

    def _compared(self, op: Operator, left: SqlTerm, right: SqlTerm, at: SqlToken) -> CompareTerm:
        """Return a comparison in the type that both values share; raise, pointing to ``at``, if there is none."""
        left, right = self._typed(left, right), self._typed(right, left)
        common_type = met_in(left.kind, right.kind)
        if common_type is None:
            raise self.tokens.wrong(f"compares a value of type {left.kind} with a value of type {right.kind}", at)
        return CompareTerm(op, left, right, common_type)

    def _typed(self, term: SqlTerm, other: SqlTerm) -> SqlTerm:
        """Return a constant text as a constant of the type of ``other``, with which it is compared.

        Return any other term unchanged, and also a text beside a text or a null.
        """
        is_text = isinstance(term, ConstantTerm) and pa.types.is_string(term.kind)
        if not is_text or pa.types.is_string(other.kind) or pa.types.is_null(other.kind):
            return term
        assert isinstance(term, ConstantTerm)  # noqa: S101 (for the type checker)
        column = other.name if isinstance(other, ColumnTerm) else "value"
        value = constant(term.value, other.kind, column=column)
        kind = WIDE_DECIMAL if pa.types.is_decimal(other.kind) else other.kind
        if pa.types.is_timestamp(kind):
            # Milliseconds would cut off what a finer text says.
            kind = pa.timestamp("us", kind.tz)
        try:
            pa.scalar(value, kind)
        except (pa.ArrowException, OverflowError):
            # The column's type does not hold the value: compare both in a wider type.
            kind = pa.int64() if pa.types.is_integer(kind) and abs(value) < 1 << 63 else WIDE_DECIMAL
        return ConstantTerm(value, kind)

    def _calculated(self, op: Any, left: SqlTerm, right: SqlTerm, at: SqlToken) -> SqlTerm:
        """Return a calculation, or two texts joined; raise if the operator has no exact result for the types.

        The error points to ``at``.
        """
        kinds = [left.kind, right.kind]
        if op == "||":
            if not all(pa.types.is_string(kind) for kind in kinds):
                raise self.tokens.wrong(f"joins values of types {kinds[0]} and {kinds[1]}, which are not both text", at)
            return JoinedTexts(left, right)
        if not all(map(is_number, kinds)) or (op == "/" and any(map(pa.types.is_decimal, kinds))):
            raise self.tokens.wrong(f"calculates {kinds[0]} {op} {kinds[1]}, which is not understood", at)
        try:
            common_type = _calculated_in(op, kinds)
            kind = calculated(op, pa.array([], kinds[0]), pa.array([], kinds[1]), common_type).type
        except pa.ArrowException:
            raise self.tokens.wrong(f"calculates {kinds[0]} {op} {kinds[1]}, which has no exact type", at) from None
        return ArithmeticTerm(op, left, right, common_type, kind)

    def _checked(self, term: SqlTerm, at: SqlToken) -> SqlTerm:
        """Return the term if it is a condition; raise, pointing to ``at``, if it is not."""
        if not (pa.types.is_boolean(term.kind) or pa.types.is_null(term.kind)):
            raise self.tokens.wrong(f"has a value of type {term.kind} where a condition belongs", at)
        return term

    def _check_depth(self, depth: int) -> None:
        """Raise before nested terms exhaust Python's stack; ``depth`` is the number of terms around the next."""
        if depth > _DEEPEST:
            raise self.tokens.wrong("has too many parentheses")


def _calculated_in(op: Sign, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type in which an operator calculates with numbers of two types, by Spark's rules."""
    if op == "/" or any(map(pa.types.is_floating, kinds)):
        return pa.float32() if op != "/" and all(kind == pa.float32() for kind in kinds) else pa.float64()
    if any(map(pa.types.is_decimal, kinds)):
        return WIDE_DECIMAL
    return pa.int64() if pa.int64() in kinds else pa.int32()
