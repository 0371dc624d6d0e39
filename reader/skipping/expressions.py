"""Expressions of one column that have indexes, and the predicates on their values that follow from a condition.

An index holds the values that an expression had in the session of its writer. If these depend on the session's time
zone, or on the cases of a release of Unicode, predicates become wider or are dropped.

Source: ``ExpressionIndexSparkFunctions``.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ...table.metadata.index_definitions import IndexDefinition
from .predicates import Compare, OnColumn, OneOf, OnExpression, StartsWith, comparable

IDENTITY = "identity"
# What Spark takes for a format that is left out.
_DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
# Python's formats for those of Spark whose texts are in the order of time, and the longest time with one text.
_FORMATS = {
    "yyyy": ("%Y", 366),
    "yyyy-MM": ("%Y-%m", 31),
    "yyyyMM": ("%Y%m", 31),
    "yyyy-MM-dd": ("%Y-%m-%d", 1),
    "yyyyMMdd": ("%Y%m%d", 1),
    "yyyy-MM-dd HH": ("%Y-%m-%d %H", 1),
    "yyyy-MM-dd HH:mm": ("%Y-%m-%d %H:%M", 1),
    "yyyy-MM-dd HH:mm:ss": ("%Y-%m-%d %H:%M:%S", 1),
}
# More than the greatest difference of two time zones.
_ZONES = datetime.timedelta(days=2)
_FIRST_YEAR, _LAST_YEAR = 1000, 9990
# Arguments that are numbers; Spark's have at most ten digits.
_NUMBERS = ("pos", "len", "days")
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")
_TEXT, _NUMBER, _DAY = pa.string(), pa.int32(), pa.date32()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Spark, whose values are of a type.

    Attributes:
        kind: The type of its values; None for that of the column.
        options: The options of a definition that are its arguments, each with its value if a definition lacks it.
        others: Options with which it is another function.
        exact: Returns the function's value for a value and arguments; None if Spark's value is not certain.
        rises: Whether a greater value never has a smaller value of the function.
    """

    kind: pa.DataType | None
    options: Mapping[str, str | None]
    others: tuple[str, ...] = ()
    exact: Callable[..., Any] | None = None
    rises: bool = False


def _on_ascii(change: Callable[[str], str]) -> Callable[[Any], str | None]:
    """Return a function of texts that is certain for texts of ASCII alone; None for all others."""
    return lambda value: change(value) if isinstance(value, str) and value.isascii() else None


def _on_text(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return a function of texts, None for values of other types."""
    return lambda value: change(value) if isinstance(value, str) else None


def _on_day(change: Callable[[datetime.date], Any]) -> Callable[[Any], Any]:
    """Return a function of days, None for values of other types."""

    def changed(value: Any) -> Any:
        is_day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
        return change(value) if is_day else None

    return changed


def _substring(value: Any, start: str, count: str) -> str | None:
    """Return part of a text as Spark's ``substring`` does; None if it counts from the end, or the value is no text."""
    start_position, length = int(start), int(count)
    if not isinstance(value, str) or start_position < 1 or length < 0:
        return None
    return value[start_position - 1 : start_position - 1 + length]


def _days_shifted(direction: int) -> Callable[[Any, str], datetime.date | None]:
    """Return a function that adds days to a day, or subtracts them if ``direction`` is -1.

    It returns None for a value or a result that is no day.
    """

    def shifted(value: Any, days: str) -> datetime.date | None:
        """Return the day that comes ``days``, a whole number as text, after a day, or before it.

        None if the value is no day, which a time is not either, or if Python has no such day.
        """
        if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
            return None
        try:
            return value + datetime.timedelta(direction * int(days))
        except OverflowError:
            return None

    return shifted


_TRIM = ("trimString",)
FUNCTIONS: Mapping[str, Function] = {
    IDENTITY: Function(None, {}, exact=lambda value: value, rises=True),
    "lower": Function(_TEXT, {}, exact=_on_ascii(str.lower)),
    "upper": Function(_TEXT, {}, exact=_on_ascii(str.upper)),
    "trim": Function(_TEXT, {}, _TRIM, _on_text(lambda text: text.strip(" "))),
    "ltrim": Function(_TEXT, {}, _TRIM, _on_text(lambda text: text.lstrip(" "))),
    "rtrim": Function(_TEXT, {}, _TRIM, _on_text(lambda text: text.rstrip(" "))),
    "length": Function(_NUMBER, {}, exact=_on_text(len)),
    "substring": Function(_TEXT, {"pos": None, "len": None}, exact=_substring),
    "year": Function(_NUMBER, {}, exact=_on_day(lambda day: day.year), rises=True),
    "month": Function(_NUMBER, {}, exact=_on_day(lambda day: day.month)),
    "day": Function(_NUMBER, {}, exact=_on_day(lambda day: day.day)),
    "hour": Function(_NUMBER, {}),
    "date_add": Function(_DAY, {"days": None}, exact=_days_shifted(1), rises=True),
    "date_sub": Function(_DAY, {"days": None}, exact=_days_shifted(-1), rises=True),
    "date_format": Function(_TEXT, {"format": None}),
    "from_unixtime": Function(_TEXT, {"format": _DEFAULT_FORMAT}),
}
_BY_CASE = ("lower", "upper")
_OF_TIME = ("year", "month", "day", "hour", "date_add", "date_sub", "date_format", "from_unixtime")


@dataclass(frozen=True, slots=True)
class IndexedExpression:
    """The expression that an index is of: a function of one column, with arguments.

    Attributes:
        kind: The type of its values.
        of: The type of the column.
    """

    function: str
    column: str
    arguments: tuple[str, ...]
    kind: pa.DataType
    of: pa.DataType

    @classmethod
    def defined(cls, definition: IndexDefinition, schema: pa.Schema) -> IndexedExpression | None:
        """Return the expression of an index; None if it is not understood."""
        function = FUNCTIONS.get(definition.function)
        if function is None or len(definition.columns) != 1 or definition.columns[0] not in schema.names:
            return None
        options = [definition.options.get(name, default) for name, default in function.options.items()]
        arguments = tuple(argument for argument in options if argument is not None)
        if len(arguments) < len(options) or any(name in definition.options for name in function.others):
            return None
        named_arguments = zip(function.options, arguments, strict=True)
        if any(name in _NUMBERS and not _WHOLE.fullmatch(argument) for name, argument in named_arguments):
            return None
        column = schema.field(definition.columns[0])
        return cls(definition.function, column.name, arguments, function.kind or column.type, column.type)

    def derived_from(self, predicate: OnColumn | OnExpression) -> tuple[OnColumn, ...]:
        """Return the predicates on the index's values that follow from a predicate; empty if none is known."""
        if isinstance(predicate, OnExpression):
            same_expression = (predicate.function, predicate.column, predicate.arguments)
            return (
                self._as_written(predicate.predicate)
                if same_expression == (self.function, self.column, self.arguments)
                else ()
            )
        return tuple(self._applied_to_values(predicate)) if predicate.column == self.column else ()

    def _as_written(self, predicate: OnColumn) -> tuple[OnColumn, ...]:
        """Return the predicates on a writer's values that follow from one on the reader's; empty if none follows."""
        # Releases of Unicode differ in the cases of letters that are not ASCII.
        if self.function in _BY_CASE and not _is_ascii(predicate):
            return ()
        # Only moments depend on the session's time zone, not days or times without a zone.
        if self.function not in _OF_TIME or pa.types.is_date(self.of):
            return (predicate,)
        if pa.types.is_timestamp(self.of) and self.of.tz is None:
            return (predicate,)
        return tuple(self._in_any_zone(predicate))

    def _in_any_zone(self, predicate: OnColumn) -> Iterator[OnColumn]:
        """Yield predicates on a writer's values, whose session may have had another time zone."""
        if isinstance(predicate, OneOf):
            not_null = [value for value in predicate.values if value is not None]
            if not_null and all(isinstance(value, type(not_null[0])) for value in not_null):
                yield from self._in_any_zone(Compare(predicate.column, ">=", min(not_null)))
                yield from self._in_any_zone(Compare(predicate.column, "<=", max(not_null)))
            return
        if not isinstance(predicate, Compare) or predicate.op == "!=":
            # Nothing follows for a writer's value that may be greater or less.
            return
        least, greatest = self._bounds_in_any_zone(predicate.value)
        if least is not None and predicate.op in {"=", ">", ">="}:
            yield replace(predicate, op=">=", value=least)
        if greatest is not None and predicate.op in {"=", "<", "<="}:
            yield replace(predicate, op="<=", value=greatest)

    def _bounds_in_any_zone(self, value: Any) -> tuple[Any, Any]:
        """Return the least and the greatest value that a writer may have in place of the reader's; None if unknown."""
        if self.function == "year" and isinstance(value, int):
            return value - 1, value + 1
        form, days = _FORMATS.get(self.arguments[0], ("", 0)) if self.arguments else ("", 0)
        if not form or not isinstance(value, str):
            return None, None
        try:
            time = datetime.datetime.strptime(value, form)
        except ValueError:
            return None, None
        # Texts are in the order of time only if years have four digits, and if Spark would write this text.
        if not _FIRST_YEAR <= time.year <= _LAST_YEAR or time.strftime(form) != value:
            return None, None
        return (time - _ZONES).strftime(form), (time + _ZONES + datetime.timedelta(days)).strftime(form)

    def _applied_to_values(self, predicate: OnColumn) -> Iterator[OnColumn]:
        """Yield the predicates on the expression's values that follow from a predicate on the column, if any do."""
        if self.function == IDENTITY:
            yield predicate
        elif isinstance(predicate, OneOf):
            not_null = [value for value in predicate.values if value is not None]
            values = [self._exact_value(value) for value in not_null]
            if all(value is not None for value in values):
                yield OneOf(self.column, tuple(values))
        elif isinstance(predicate, Compare) and (value := self._exact_value(predicate.value)) is not None:
            if predicate.op == "=":
                yield replace(predicate, value=value)
            # Greater values may have the same value of the function, so that the bound itself is allowed.
            elif predicate.op != "!=" and FUNCTIONS[self.function].rises:
                yield replace(predicate, op="<=" if predicate.op in {"<", "<="} else ">=", value=value)

    def _exact_value(self, value: Any) -> Any:
        """Return the expression's value for a value of the column; None if it is null or not certain."""
        exact = FUNCTIONS[self.function].exact
        if exact is None or value is None or comparable(value, self.of) is None:
            return None
        return exact(value, *self.arguments)


def expression_arguments(function: str, given_arguments: Sequence[str]) -> tuple[str, ...] | None:
    """Return the arguments of a call, with defaults for those left out; None if the function has no such call."""
    described = FUNCTIONS.get(function)
    # The identity is no function that a query calls.
    if described is None or function == IDENTITY or len(given_arguments) > len(described.options):
        return None
    defaults = list(described.options.values())[len(given_arguments) :]
    return None if None in defaults else (*given_arguments, *(text for text in defaults if text is not None))


def _is_ascii(predicate: OnColumn) -> bool:
    """Return whether a predicate compares with texts of ASCII, whose cases all releases of Unicode have alike."""
    if isinstance(predicate, StartsWith):
        return predicate.prefix.isascii()
    if isinstance(predicate, Compare):
        return isinstance(predicate.value, str) and predicate.value.isascii()
    return isinstance(predicate, OneOf) and all(
        value is None or (isinstance(value, str) and value.isascii()) for value in predicate.values
    )
