"""Parses Spark's own text of a condition, as in a column name, into a tree.

The text is the same for SQL and Columns, on classic Spark and on Spark Connect, and has parentheses wherever they
matter. Its constants have no quotes, so it can have several readings. The tree is only a guess, which
`condition.Judge` lets Spark compare with the condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...reader.skipping.expressions import FUNCTIONS, expression_arguments
from .literals import Literal, readings
from .tree import (
    OPERATORS,
    Among,
    Beginning,
    Comparison,
    Connected,
    Flag,
    FunctionOfColumn,
    Node,
    Not,
    Nullness,
    Opaque,
    Ranged,
    column_named,
)

_OPERATOR = re.compile(r" (<=>|<=|>=|=|<|>) ")
_CONNECTIVE = re.compile(r" (AND|OR) ")
_CALL = re.compile(r"(startswith|contains|endswith|between)\((.*)\)", re.DOTALL)
_LIKE = re.compile(r" (LIKE|RLIKE|ILIKE) (.*)", re.DOTALL)
_OF_CALL = re.compile(r"(\w+\(.*\)) (<=>|<=|>=|=|<|>) (.*)", re.DOTALL)
_OF_COLUMN = re.compile(r"(\w+)\(([^()]*)\)")
# Spark's other names of functions that definitions of indexes name.
_NAMES = {"dayofmonth": "day", "lcase": "lower", "ucase": "upper", "substr": "substring"}
_COMPARED: dict[str, Callable[[Column, Column], Column]] = {
    "LIKE": sf.like,
    "ILIKE": sf.ilike,
    "RLIKE": sf.rlike,
    "startswith": sf.startswith,
    "contains": sf.contains,
    "endswith": sf.endswith,
}


class ShownText:
    """Parses Spark's texts of conditions on the columns of ``schema``.

    ``reading`` selects a constant's reading, counted from 0; the last reading if there are fewer.
    """

    def __init__(self, schema: pa.Schema, reading: int) -> None:
        self._types = {field.name: field.type for field in schema}
        self._names = sorted(self._types, key=len, reverse=True)
        self._reading = reading

    def parse(self, text: str) -> Node:
        """Return the tree of a text; a part that is not understood becomes a node without predicates."""
        node = (
            self._parse_inside(text[1:-1])
            if text.startswith("(") and text.endswith(")")
            else self._parse_call_or_flag(text)
        )
        return node or Opaque(lambda: sf.expr(text))

    def _parse_inside(self, text: str) -> Node | None:
        """Parse the text between the outer parentheses; None if it is not understood."""
        if text.startswith("NOT "):
            return Not(self.parse(text[4:]))
        node = self._parse_column_first(text) or self._parse_literal_first(text) or self._parse_function_first(text)
        if node is not None:
            return node
        for match in _outside(_CONNECTIVE, text):
            left, right = self.parse(text[: match.start()]), self.parse(text[match.end() :])
            return Connected(match[1] == "AND", left, right)
        return self._parse_with_quoted_text(text)

    def _parse_call_or_flag(self, text: str) -> Node | None:
        """Parse a text without outer parentheses: a call such as ``startswith``, a LIKE, or a boolean column.

        None for any other text.
        """
        call = _CALL.fullmatch(text)
        name, remaining = self._column_at(call[2] if call else text)
        if name is None:
            return self._between_of_function(call[2]) if call and call[1] == "between" else None
        if not call:
            like = _LIKE.fullmatch(remaining)
            if like:
                return self._text_compared(name, like[1], like[2])
            return Flag(name) if not remaining and pa.types.is_boolean(self._types[name]) else None
        if not remaining.startswith(", "):
            return None
        return (
            self._between(name, remaining[2:])
            if call[1] == "between"
            else self._text_compared(name, call[1], remaining[2:])
        )

    def _parse_column_first(self, text: str) -> Node | None:
        """Parse a comparison that begins with a column; None for any other text."""
        name, remaining = self._column_at(text)
        if name is None:
            return None
        if remaining in {" IS NULL", " IS NOT NULL"}:
            return Nullness(name, remaining == " IS NULL")
        return self._parse_after_column(name, self._types[name], remaining)

    def _parse_after_column(
        self, column: str | FunctionOfColumn, value_type: pa.DataType, remaining: str
    ) -> Node | None:
        """Parse ``remaining``, which follows a column, or a function of a column, with values of ``value_type``.

        None if it is neither an IN nor a comparison with a constant of that type.
        """
        if remaining.startswith(" IN (") and remaining.endswith(")"):
            # The cuts divide a text with a comma in it, too. The tree then has other constants than the condition, and
            # `Judge.proven_nodes`, for which Spark compares the two, discards it.
            several = [self._literal(part, value_type) for part in remaining[5:-1].split(", ")]
            literals = tuple(part for part in several if part is not None)
            return Among(column, literals) if len(literals) == len(several) else None
        operator = _OPERATOR.match(remaining)
        # A column may follow the operator in the place of a constant; such a comparison gives no predicate.
        if not operator or remaining[operator.end() :] in self._types:
            return None
        literal = self._literal(remaining[operator.end() :], value_type)
        return None if literal is None else Comparison(column, operator[1], literal)

    def _parse_function_first(self, text: str) -> Node | None:
        """Parse a comparison of a function of a column, of which there may be an index; None for any other text."""
        match = _OF_COLUMN.match(text)
        function_and_type = match and self._function_of_column(match[1], match[2])
        return (
            self._parse_after_column(*function_and_type, text[match.end() :]) if match and function_and_type else None
        )

    def _function_of_column(self, name: str, inside: str) -> tuple[FunctionOfColumn, pa.DataType] | None:
        """Return a call of a function of a column with its type; None for a function that no index can be of.

        ``inside`` is the text between the parentheses of the call: the column, then the arguments.
        """
        column, *argument_texts = inside.split(", ")
        function = _NAMES.get(name, name)
        arguments = expression_arguments(function, argument_texts)
        if column not in self._types or arguments is None:
            return None
        return FunctionOfColumn(name, function, column, arguments), FUNCTIONS[function].kind or self._types[column]

    def _parse_literal_first(self, text: str) -> Node | None:
        """Parse a comparison with the constant before the column; None for any other text."""
        for match in islice(_OPERATOR.finditer(text), 1):
            name, remaining = self._column_at(text[match.end() :])
            literal = None if name is None or remaining else self._literal(text[: match.start()], self._types[name])
            if name is not None and literal is not None and text[: match.start()] not in self._types:
                return Comparison(name, match[1], literal, literal_first=True)
        return None

    def _between(self, name: str, text: str) -> Node | None:
        """Parse the bounds of ``between`` on a column as two comparisons; None if they are not understood."""
        bounds = self._bounds(self._types[name], text)
        return bounds and Connected(True, Comparison(name, ">=", bounds[0]), Comparison(name, "<=", bounds[1]))

    def _between_of_function(self, text: str) -> Node | None:
        """Parse ``between`` on a function of a column; None if it is anything else."""
        match = _OF_COLUMN.match(text)
        function_and_type = match and self._function_of_column(match[1], match[2])
        follows = match is not None and text[match.end() :].startswith(", ")
        bounds = (
            self._bounds(function_and_type[1], text[match.end() + 2 :])
            if match and function_and_type and follows
            else None
        )
        return Ranged(function_and_type[0], *bounds) if function_and_type and bounds else None

    def _bounds(self, value_type: pa.DataType, text: str) -> tuple[Literal, Literal] | None:
        """Return the two constants of a text, which a comma separates; None for anything else."""
        bounds = [self._literal(part, value_type) for part in text.split(", ")]
        if len(bounds) != 2 or bounds[0] is None or bounds[1] is None:
            return None
        return bounds[0], bounds[1]

    def _text_compared(self, name: str, comparison: str, text: str) -> Node | None:
        """Return a LIKE, or a call such as ``startswith``, on a column of texts; None on other columns.

        ``comparison`` is the name of the function, and ``text`` its constant.
        """
        if not pa.types.is_string(self._types[name]):
            return None

        def make() -> Column:
            """Return the comparison for Spark."""
            return _COMPARED[comparison](column_named(name), sf.lit(text))

        if comparison == "startswith":
            return Beginning(name, text, make)
        return Beginning(name, re.split(r"[%_\\]", text)[0], make) if comparison == "LIKE" else Opaque(make)

    def _parse_with_quoted_text(self, text: str) -> Node | None:
        """Parse a function call compared with a text; the result gives no predicate, and is None for any other text.

        Spark's text of a condition lacks the quotes of constants. With them, Spark can find the whole tree and the
        condition the same, so that the other parts of the condition give their predicates.
        """
        match = _OF_CALL.fullmatch(text)
        if not match or any(mark in match[3] for mark in "()") or match[3] in self._types or match[3][:1].isdigit():
            return None
        compared, left, right = OPERATORS[match[2]], match[1], match[3]
        return Opaque(lambda: compared(sf.expr(left), sf.lit(right)))

    def _literal(self, text: str, value_type: pa.DataType) -> Literal | None:
        """Return a constant of a type in the reading of this object's number, or in its last; None if it has none."""
        literals = list(islice(readings(text, value_type), self._reading + 1))
        return literals[-1] if literals else None

    def _column_at(self, text: str) -> tuple[str | None, str]:
        """Return the column at the start of a text, in any case, and the rest of the text.

        Without a column there, return None and the whole text.
        """
        folded = text.lower()
        candidates = [
            name
            for name in self._names
            if folded.startswith(name.lower()) and text[len(name) : len(name) + 1] in {"", " ", ","}
        ]
        if not candidates:
            return None, text
        name = next((match for match in candidates if text.startswith(match)), candidates[0])
        return name, text[len(name) :]


def _outside(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield matches outside of parentheses, then matches between two parentheses, as constants may contain some."""
    matches = list(pattern.finditer(text))
    for match in matches:
        text_before = text[: match.start()]
        if text_before.count("(") == text_before.count(")"):
            yield match
    yield from (
        match for match in matches if text[match.start() - 1] == ")" and text[match.end() : match.end() + 1] == "("
    )
