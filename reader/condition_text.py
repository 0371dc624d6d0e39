"""Conditions of a small SQL, read without an engine: ``city = 'Rome' AND (fare > 10 OR tip IS NOT NULL)``.

A condition compares columns with constants: ``=``, ``!=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``IN``, ``NOT IN``,
``BETWEEN``, ``IS NULL``, ``IS NOT NULL`` and ``LIKE`` with a prefix; ``AND``, ``OR`` and parentheses join comparisons.
Names with other characters than letters, digits and underscores are quoted by backticks.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ..errors import InvalidOptionError
from .predicates import AnyOf, Compare, IsNotNull, IsNull, NoneOf, OneOf, Predicate, StartsWith

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<word>[^\W\d]\w*)|(?P<mark><=|>=|<>|!=|[=<>(),]))"
)
_OPERATORS = {"=": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class ConditionToken:
    kind: str
    text: str

    @property
    def word(self) -> str:
        """The keyword that it may be, in capitals; empty for a constant or a quoted name."""
        return self.text.upper() if self.kind == "word" else ""


_END = ConditionToken("end", "")


def read_condition(text: str, schema: pa.Schema) -> tuple[Predicate, ...]:
    """Return the predicates of a condition on a table's columns, all of which a row has to satisfy.

    Raises `InvalidOptionError` for a text that is no such condition, or names a column that the table lacks.
    """
    parser = _Parser(text, _tokens(text), schema)
    found = parser.any_of(0)
    if parser.peek() is not _END:
        raise parser.wrong("has something behind its end")
    return found


def constant(text: str, kind: pa.DataType, *, column: str) -> Any:
    """Return a constant beside a column of a type, as predicates take it; raises `InvalidOptionError`."""
    read = next((read for is_kind, read in _READERS if is_kind(kind)), None)
    try:
        if read is not None:
            return read(text, kind)
    except (ValueError, InvalidOperation):
        pass
    raise InvalidOptionError(
        f"The column {column!r} of type {kind} cannot be compared with {text!r}.", "Give a value of the column's type."
    )


def _tokens(text: str) -> list[ConditionToken]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidOptionError(
                f"The condition {text!r} cannot be read from {text[at:].strip()[:20]!r} on.",
                "Write texts in single quotes, and odd names of columns in backticks.",
            )
        kind = match.lastgroup or ""
        found.append(ConditionToken(kind, match[kind]))
        at = match.end()
    return found


class _Parser:
    def __init__(self, text: str, tokens: Sequence[ConditionToken], schema: pa.Schema) -> None:
        self._text = text
        self._tokens = tokens
        self._schema = schema
        self._at = 0

    def peek(self) -> ConditionToken:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def next(self) -> ConditionToken:
        token = self.peek()
        self._at += 1
        return token

    def skip(self, *words: str) -> bool:
        """Pass over keywords or marks if they come next, all of them."""
        coming = [token.word or token.text for token in self._tokens[self._at : self._at + len(words)]]
        if coming != [*words]:
            return False
        self._at += len(words)
        return True

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise self.wrong(f"lacks {mark!r}")

    def wrong(self, what: str) -> InvalidOptionError:
        near = self.peek().text
        where = f" before {near!r}" if near else " at its end"
        return InvalidOptionError(
            f"The condition {self._text!r} {what}{where}.",
            "Compare columns with constants, joined by AND, OR and parentheses: city = 'Rome' AND fare > 10.",
        )

    def any_of(self, depth: int) -> tuple[Predicate, ...]:
        alternatives = [self.all_of(depth)]
        while self.skip("OR"):
            alternatives.append(self.all_of(depth))
        return alternatives[0] if len(alternatives) == 1 else (AnyOf(tuple(alternatives)),)

    def all_of(self, depth: int) -> tuple[Predicate, ...]:
        found = [*self.part(depth)]
        while self.skip("AND"):
            found += self.part(depth)
        return tuple(found)

    def part(self, depth: int) -> tuple[Predicate, ...]:
        if depth > _DEEPEST:
            raise self.wrong("has too many parentheses")
        if not self.skip("("):
            return self.comparison()
        found = self.any_of(depth + 1)
        self.expect(")")
        return found

    def comparison(self) -> tuple[Predicate, ...]:
        name = self.column()
        if self.skip("IS", "NOT", "NULL"):
            return (IsNotNull(name),)
        if self.skip("IS", "NULL"):
            return (IsNull(name),)
        if self.skip("BETWEEN"):
            least = self.value(name)
            self.expect("AND")
            return (Compare(name, ">=", least), Compare(name, "<=", self.value(name)))
        if self.skip("NOT", "IN"):
            return (NoneOf(name, self.values(name)),)
        if self.skip("IN"):
            return (OneOf(name, self.values(name)),)
        if self.skip("LIKE"):
            return (StartsWith(name, self.prefix()),)
        operator: Any = _OPERATORS.get(self.peek().text)
        if operator is None:
            raise self.wrong(f"has no comparison behind the column {name!r}")
        self.next()
        return (Compare(name, operator, self.value(name)),)

    def column(self) -> str:
        token = self.next()
        if token.kind not in {"word", "quoted"}:
            self._at -= 1
            raise self.wrong("lacks the name of a column")
        name = token.text if token.kind == "word" else token.text[1:-1].replace("``", "`")
        if name not in self._schema.names:
            raise InvalidOptionError(
                f"The condition {self._text!r} is about the column {name!r}, which the table lacks.",
                f"It has {', '.join(self._schema.names)}.",
            )
        return name

    def values(self, column: str) -> tuple[Any, ...]:
        self.expect("(")
        found = [self.value(column)]
        while self.skip(","):
            found.append(self.value(column))
        self.expect(")")
        return tuple(found)

    def value(self, column: str) -> Any:
        token = self.next()
        if token.word == "NULL":
            return None
        if token.kind not in {"text", "number"} and token.word not in {"TRUE", "FALSE"}:
            self._at -= 1
            raise self.wrong(f"compares the column {column!r} with no constant")
        text = token.text[1:-1].replace("''", "'") if token.kind == "text" else token.text
        return constant(text, self._schema.field(column).type, column=column)

    def prefix(self) -> str:
        token = self.next()
        text = token.text[1:-1].replace("''", "'")
        if token.kind != "text" or not text.endswith("%") or set(text[:-1]) & {"%", "_", "\\"}:
            self._at -= 1
            raise self.wrong("has LIKE with something else than a prefix such as 'Ro%'")
        return text[:-1]


def _boolean(text: str, _: pa.DataType) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


def _moment(text: str, kind: pa.DataType) -> datetime.datetime:
    """Return a time; without a zone it is in UTC, beside a column of moments."""
    found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
    if kind.tz is None:
        return found if found.tzinfo is None else found.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.timezone.utc)


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], Any]], ...] = (
    (pa.types.is_string, lambda text, _: text),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, lambda text, _: int(text)),
    (pa.types.is_floating, lambda text, _: float(text)),
    (pa.types.is_decimal, lambda text, _: Decimal(text)),
    (pa.types.is_date, lambda text, _: datetime.date.fromisoformat(text)),
    (pa.types.is_timestamp, _moment),
)
