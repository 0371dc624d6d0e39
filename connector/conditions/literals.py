"""Constants of a condition: the possible meanings of Spark's text of a constant beside a column of a type.

Spark shows text without quotes and numbers without types, so a text may have several readings. Spark decides which
reading is right, by comparing the Column made from it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

_WHOLE = re.compile(r"-?\d{1,19}")
_POINT = re.compile(r"-?\d*\.\d+(E-?\d+)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?")
_TYPED = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_NTZ) '([^'\\]*)'")
# Up to this many digits, every reader parses the same double.
_DIGITS_OF_DOUBLE = 15
# With more digits, Spark's comparison of decimals loses precision.
_DIGITS_OF_DECIMAL = 18


@dataclass(frozen=True, slots=True)
class TimeLiteral:
    """A time in the session's time zone, whose value only Spark knows; ``text`` is in Spark's format."""

    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant beside a column.

    Attributes:
        value: As in predicates; None for null, a `TimeLiteral` if only Spark knows the value.
        make_untyped: Makes the constant for Spark, in its own type.
        own_type: The type of the constant.
        column_type: The column's type.
        compared_type: The type in which Spark compares both.
    """

    value: Any
    make_untyped: Callable[[], Column]
    own_type: str
    column_type: str
    compared_type: str

    def make(self) -> Column:
        """Return the constant for Spark, cast to the type of the comparison."""
        return (
            self.make_untyped()
            if self.own_type in {self.compared_type, NULL}
            else self.make_untyped().cast(self.compared_type)
        )


# Spark's type of the constant NULL.
NULL = "void"
_INTEGERS = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
_WIDTHS = {name: width for width, name in _INTEGERS.items()}


def readings(text: str, column_type: pa.DataType) -> Iterator[Literal]:
    """Yield the possible meanings of Spark's text of a constant beside a column of a type, the likeliest first.

    Nothing is yielded if the value is uncertain.
    """
    types, constant = pa.types, _Constant(text)
    if types.is_string(column_type):
        yield Literal(text, constant.as_text, "string", "string", "string")
    elif types.is_boolean(column_type) and text in {"true", "false"}:
        yield Literal(text == "true", lambda: sf.lit(text == "true"), "boolean", "boolean", "boolean")
    elif types.is_integer(column_type):
        yield from constant.beside_whole(_INTEGERS[column_type.bit_width])
    elif types.is_floating(column_type):
        yield from constant.beside_double("float" if types.is_float32(column_type) else "double")
    elif types.is_decimal(column_type) and max(column_type.precision, constant.digits) <= _DIGITS_OF_DECIMAL:
        yield from constant.beside_decimal()
    elif types.is_date(column_type):
        yield from constant.beside_date()
    elif types.is_timestamp(column_type):
        yield from constant.beside_timestamp("timestamp" if column_type.tz is not None else "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class _Constant:
    text: str

    @property
    def digits(self) -> int:
        return sum(map(str.isdigit, self.text))

    def as_sql(self, suffix: str = "") -> Callable[[], Column]:
        """Return a function that makes the text an SQL constant, with a type suffix."""
        return lambda: sf.expr(self.text + suffix)

    def as_text(self) -> Column:
        return sf.lit(self.text)

    def beside_whole(self, spark_type: str) -> Iterator[Literal]:
        """Yield the constants that the text may be beside a column of a type of whole numbers.

        They are a null, and an int or a bigint if the number is in range: Spark shows both by the same text. Spark
        compares in the wider type of constant and column.
        """
        yield from self._null_literals(spark_type)
        if not _WHOLE.fullmatch(self.text):
            return
        value = int(self.text)
        if -(2**31) <= value < 2**31:
            yield Literal(value, self.as_sql(), "int", spark_type, max("int", spark_type, key=_WIDTHS.__getitem__))
        if -(2**63) <= value < 2**63:
            yield Literal(value, self.as_sql("L"), "bigint", spark_type, "bigint")

    def beside_double(self, spark_type: str) -> Iterator[Literal]:
        """Yield a number beside a floating column: an int, or with a point a double and, if short, a decimal."""
        yield from self._null_literals(spark_type)
        if _WHOLE.fullmatch(self.text) and abs(int(self.text)) < 2**31:
            yield Literal(float(self.text), self.as_sql(), "int", spark_type, "double")
        elif _POINT.fullmatch(self.text):
            yield Literal(float(self.text), self.as_sql("D"), "double", spark_type, "double")
            if "E" not in self.text and self.digits <= _DIGITS_OF_DOUBLE:
                yield Literal(float(self.text), self.as_sql("BD"), "decimal", spark_type, "double")

    def beside_decimal(self) -> Iterator[Literal]:
        """Yield a number beside a decimal column: an int or a bigint without a point, else a decimal."""
        yield from self._null_literals("decimal")
        suffixes: tuple[str, ...] = ()
        if _WHOLE.fullmatch(self.text):
            suffixes = ("", "L")
        elif _POINT.fullmatch(self.text) and "E" not in self.text:
            suffixes = ("BD",)
        # Spark compares each of them with the column as decimals, so all have the name of one type.
        for suffix in suffixes:
            yield Literal(Decimal(self.text), self.as_sql(suffix), "decimal", "decimal", "decimal")

    def beside_date(self) -> Iterator[Literal]:
        """Yield a day beside a date column: a constant of that type, or a text."""
        yield from self._null_literals("date")
        typed_match = _TYPED.fullmatch(self.text)
        value = _value_of_form(
            typed_match[2] if typed_match and typed_match[1] == "DATE" else self.text, _DAY, datetime.date.fromisoformat
        )
        if value is not None:
            make, own_type = (self.as_sql(), "date") if typed_match else (self.as_text, "string")
            yield Literal(value, make, own_type, "date", "date")

    def beside_timestamp(self, spark_type: str) -> Iterator[Literal]:
        """Yield a time beside a timestamp column: a constant of that very type, or a text."""
        yield from self._null_literals(spark_type)
        typed_match = _TYPED.fullmatch(self.text)
        if typed_match and typed_match[1] != spark_type.upper():
            return
        time_text = typed_match[2] if typed_match else self.text
        value = _value_of_form(time_text, _TIME, datetime.datetime.fromisoformat)
        if value is not None:
            make, own_type = (self.as_sql(), spark_type) if typed_match else (self.as_text, "string")
            # Only Spark knows the session's time zone, on which the value of a timestamp depends.
            yield Literal(
                TimeLiteral(time_text) if spark_type == "timestamp" else value, make, own_type, spark_type, spark_type
            )

    def _null_literals(self, spark_type: str) -> Iterator[Literal]:
        """Yield null, if the text is that."""
        if self.text == "NULL":
            yield Literal(None, lambda: sf.lit(None), NULL, spark_type, spark_type)


def _value_of_form(text: str, form: re.Pattern[str], parse: Callable[[str], Any]) -> Any:
    """Return what ``parse`` makes of a text that matches ``form``; None for any other text."""
    if not form.fullmatch(text):
        return None
    try:
        return parse(text)
    except ValueError:
        return None
