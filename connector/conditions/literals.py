"""The constants of a condition: what Spark's text of one may stand for beside a column of some type.

Spark shows a text without its quotes and a number without its type, so that one spelling has several readings. Which is
the right one is for Spark to say, of the column that is made of it here.
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
# So many digits make one double alone, whoever reads them.
_DIGITS_OF_DOUBLE = 15
# Beyond, Spark compares decimals less exactly than they are.
_DIGITS_OF_DECIMAL = 18


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in the session's zone, whose value is Spark's to tell.

    Attributes:
        text: As Spark reads it.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant beside a column.

    Attributes:
        value: As predicates have it; None for null, a `Moment` where Spark has to be asked.
        bare: Makes it for Spark, in its own type.
        own: That type.
        column: The column's type.
        compared: The type that both are compared in.
    """

    value: Any
    bare: Callable[[], Column]
    own: str
    column: str
    compared: str

    def make(self) -> Column:
        """Return the constant as it is compared."""
        return self.bare() if self.own in {self.compared, NULL} else self.bare().cast(self.compared)


# The type of a constant that says nothing of its own.
NULL = "void"
_INTEGERS = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
_WIDTHS = {name: width for width, name in _INTEGERS.items()}


def readings(text: str, kind: pa.DataType) -> Iterator[Literal]:
    """Yield what a text may stand for beside a column, the likelier first; nothing where nobody is sure of its value.

    Args:
        text: Spark's, of a constant.
        kind: The column's type.
    """
    types = pa.types
    if types.is_string(kind):
        yield _plain(text, lambda: sf.lit(text), "string")
    elif types.is_boolean(kind) and text in {"true", "false"}:
        yield _plain(text == "true", lambda: sf.lit(text == "true"), "boolean")
    elif types.is_integer(kind):
        yield from _whole(text, _INTEGERS[kind.bit_width])
    elif types.is_floating(kind):
        yield from _double(text, "float" if types.is_float32(kind) else "double")
    elif types.is_decimal(kind) and kind.precision <= _DIGITS_OF_DECIMAL and _digits(text) <= _DIGITS_OF_DECIMAL:
        yield from _decimal(text)
    elif types.is_date(kind):
        yield from _date(text)
    elif types.is_timestamp(kind):
        yield from _timestamp(text, "timestamp" if kind.tz is not None else "timestamp_ntz")


def _plain(value: Any, bare: Callable[[], Column], kind: str) -> Literal:
    return Literal(value, bare, kind, kind, kind)


def _null(kind: str) -> Literal:
    return Literal(None, lambda: sf.lit(None), NULL, kind, kind)


def _whole(text: str, kind: str) -> Iterator[Literal]:
    """Yield a whole number as an int, where it is one, and as a bigint; the wider type compares."""
    if text == "NULL":
        yield _null(kind)
    if not _WHOLE.fullmatch(text):
        return
    value = int(text)
    if -(2**31) <= value < 2**31:
        yield Literal(value, lambda: sf.expr(text), "int", kind, max("int", kind, key=_WIDTHS.__getitem__))
    if -(2**63) <= value < 2**63:
        yield Literal(value, lambda: sf.expr(f"{text}L"), "bigint", kind, "bigint")


def _double(text: str, kind: str) -> Iterator[Literal]:
    if text == "NULL":
        yield _null(kind)
    elif _WHOLE.fullmatch(text) and abs(int(text)) < 2**31:
        yield Literal(float(text), lambda: sf.expr(text), "int", kind, "double")
    elif _POINT.fullmatch(text):
        yield Literal(float(text), lambda: sf.expr(f"{text}D"), "double", kind, "double")
        if "E" not in text and _digits(text) <= _DIGITS_OF_DOUBLE:
            yield Literal(float(text), lambda: sf.expr(f"{text}BD"), "decimal", kind, "double")


def _decimal(text: str) -> Iterator[Literal]:
    """Yield a number that is compared with decimals as a decimal; a whole one is an int or a bigint."""
    if text == "NULL":
        yield _null("decimal")
    elif _WHOLE.fullmatch(text):
        yield _plain(Decimal(text), lambda: sf.expr(text), "decimal")
        yield _plain(Decimal(text), lambda: sf.expr(f"{text}L"), "decimal")
    elif _POINT.fullmatch(text) and "E" not in text:
        yield _plain(Decimal(text), lambda: sf.expr(f"{text}BD"), "decimal")


def _date(text: str) -> Iterator[Literal]:
    typed = _TYPED.fullmatch(text)
    day = typed[2] if typed and typed[1] == "DATE" else text
    value = _parsed(day, _DAY, datetime.date.fromisoformat)
    if value is not None:
        yield Literal(value, *_typed(text, bool(typed)), "date", "date")
    elif text == "NULL":
        yield _null("date")


def _timestamp(text: str, kind: str) -> Iterator[Literal]:
    typed = _TYPED.fullmatch(text)
    if typed and typed[1] != kind.upper():
        return
    spelt = typed[2] if typed else text
    value = _parsed(spelt, _TIME, datetime.datetime.fromisoformat)
    if value is not None:
        made, own = _typed(text, bool(typed))
        yield Literal(Moment(spelt) if kind == "timestamp" else value, made, kind if typed else own, kind, kind)
    elif text == "NULL":
        yield _null(kind)


def _typed(text: str, typed: bool) -> tuple[Callable[[], Column], str]:
    """Return what makes a constant that is spelt with its type, or else as a string, and the type of a date."""
    return ((lambda: sf.expr(text)), "date") if typed else ((lambda: sf.lit(text)), "string")


def _parsed(text: str, form: re.Pattern[str], parse: Callable[[str], Any]) -> Any:
    if not form.fullmatch(text):
        return None
    try:
        return parse(text)
    except ValueError:
        return None


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))
