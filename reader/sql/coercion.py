"""The types in which two values meet, by Spark's rules (``AnsiTypeCoercion``), and constants in a column's type."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidOptionError

Datum: TypeAlias = "pa.Array | pa.Scalar"

# The widest decimals: values of any two decimal types are equal in it if and only if they are equal.
WIDE_DECIMAL = pa.decimal256(76, 38)


_SUFFIXES = {"L": pa.int64(), "S": pa.int32(), "Y": pa.int32(), "D": pa.float64(), "F": pa.float32()}


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def met_in(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of two types are compared; None if they cannot be compared as they are.

    Spark also compares text with numbers and times, after a cast that may fail, and times with days in the session's
    time zone. Neither is done here.
    """
    types = pa.types
    if types.is_null(left) or types.is_null(right):
        return right if types.is_null(left) else left
    if types.is_decimal(left) and types.is_decimal(right):
        return WIDE_DECIMAL
    if left == right:
        return None if types.is_nested(left) else left
    if is_number(left) and is_number(right):
        if types.is_floating(left) or types.is_floating(right):
            return pa.float64()
        return WIDE_DECIMAL if types.is_decimal(left) or types.is_decimal(right) else pa.int64()
    times = [kind for kind in (left, right) if types.is_timestamp(kind)]
    if len(times) == 2 and (left.tz is None) == (right.tz is None):
        # Tables of other engines have milliseconds, and all other times are microseconds.
        return pa.timestamp("us", left.tz)
    if len(times) == 1 and times[0].tz is None and (types.is_date(left) or types.is_date(right)):
        return times[0]
    return None


def in_type(values: Datum, kind: pa.DataType) -> Datum:
    """Return values in a type in which they are compared or calculated; a number may be rounded to it, as in Spark."""
    if pa.types.is_decimal(values.type) and pa.types.is_floating(kind):
        # Arrow's own cast may be one unit off in the last place: 0.3 became 0.30000000000000004.
        values = pc.cast(values, pa.string())
    return pc.cast(values, kind, safe=False)


def joined_type(left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:
    """Return the type that has all values of two types; None if there is none, or either is None."""
    if left is None or right is None or left == right:
        return None if right is None else left
    if pa.types.is_null(left) or pa.types.is_null(right):
        return right if pa.types.is_null(left) else left
    # The widest decimal type serves comparisons alone: Spark gives such values another type.
    common_type = met_in(left, right)
    return None if common_type == WIDE_DECIMAL else common_type


def constant(text: str, kind: pa.DataType, *, column: str) -> Any:
    """Return a constant beside a column of a type, as predicates take it; raises `InvalidOptionError`."""
    reader = next((read for is_kind, read in _READERS if is_kind(kind)), None)
    try:
        if reader is not None:
            return reader(text, kind)
    except (ValueError, ArithmeticError):
        pass
    raise InvalidOptionError(
        f"The column {column!r} of type {kind} cannot be compared with {text!r}.", "Give a value of the column's type."
    )


def number_of(text: str) -> tuple[Any, pa.DataType]:
    """Return a number as Spark types it: by its suffix; with an exponent a double, with a point a decimal.

    Raises ValueError or ArithmeticError for a number that its type does not hold.
    """
    value, kind = _typed_number(text)
    held_value = pa.scalar(value, kind)
    # A float is the double next to its number.
    return (held_value.as_py() if pa.types.is_float32(kind) else value), kind  # one value


def _typed_number(text: str) -> tuple[Any, pa.DataType]:
    """Return a number and its type, which may not hold it."""
    number, suffix = _number_and_suffix(text)
    if suffix in _SUFFIXES:
        kind = _SUFFIXES[suffix]
        return (float(number) if pa.types.is_floating(kind) else int(number)), kind
    if "e" in number.lower() and not suffix:
        return float(number), pa.float64()
    if "." in number or suffix:
        exact = Decimal(number)
        scale = max(-int(exact.as_tuple().exponent), 0)
        return exact, pa.decimal128(min(max(len(exact.as_tuple().digits), scale + 1), 38), scale)
    value = int(number)
    return value, pa.int32() if abs(value) < 1 << 31 else pa.int64() if abs(value) < 1 << 63 else pa.decimal128(38, 0)


def _number_and_suffix(text: str) -> tuple[str, str]:
    """Return a number's text without its suffix, and the suffix of its type in capitals, such as ``L``; else empty."""
    number = text.rstrip("lsydfbLSYDFB")
    return number, text[len(number) :].upper()


def moment(text: str, zone: str | None) -> datetime.datetime:
    """Return a time; without a zone it is in UTC, beside a column of moments. Raises ValueError."""
    value = datetime.datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
    if zone is None:
        return value if value.tzinfo is None else value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)


def _held(value: Any, kind: pa.DataType) -> Any:
    """Return a value that a type holds; raises ValueError or OverflowError for any other."""
    pa.scalar(value, kind)
    return value


def _boolean(text: str, _: pa.DataType) -> bool:
    """Return the truth value that a text spells; ValueError for any other text."""
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], Any]], ...] = (
    (pa.types.is_string, lambda text, _: text),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, lambda text, _: _held(int(text), WIDE_DECIMAL)),
    (pa.types.is_floating, lambda text, _: float(text)),
    (pa.types.is_decimal, lambda text, _: _held(Decimal(text), WIDE_DECIMAL)),
    (pa.types.is_date, lambda text, _: datetime.date.fromisoformat(text)),
    (pa.types.is_timestamp, lambda text, kind: _held(moment(text, kind.tz), kind)),
)
