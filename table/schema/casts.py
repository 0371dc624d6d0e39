"""Which types can be cast to which, and the casts, mostly as Apache Hudi makes them.

Source: ``SchemaChangeUtils.isTypeUpdateAllow`` and ``HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType``. If Hudi
would round a decimal, replace invalid UTF-8 or convert by way of double, pyhudi refuses the value or keeps it exactly.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.java_text import decimal_text, float_text
from .types import is_bytes, is_text

NUMBER_TO_TEXT = "hoodie.pyhudi.schema.number.to.text"
"""The option that lets columns change their types as in Apache Hudi, including from numbers to text."""
INT_TO_DOUBLE = "hoodie.pyhudi.schema.int.to.double"
"""The option that lets int columns become double if rows have float or double."""


def fits(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether `cast` converts values of ``from_type``, a flat type, to ``to_type``.

    `cast` may still refuse single values that do not fit.
    """
    types = pa.types
    if types.is_null(from_type) or from_type == to_type:
        return True
    if types.is_string(to_type):
        numbers = types.is_signed_integer(from_type) or _is_float(from_type) or types.is_decimal(from_type)
        return bool(numbers or is_text(from_type) or is_bytes(from_type) or types.is_date(from_type))
    if types.is_binary(to_type):
        return is_bytes(from_type) or is_text(from_type)
    if types.is_date32(to_type):
        return bool(types.is_date(from_type) or is_text(from_type))
    if types.is_decimal(to_type):
        if types.is_decimal(from_type):
            return _is_wider(to_type, from_type)
        return bool(types.is_signed_integer(from_type) or _is_float(from_type) or is_text(from_type))
    if types.is_signed_integer(to_type):
        return bool(types.is_signed_integer(from_type) and to_type.bit_width >= from_type.bit_width)
    if _is_float(to_type):
        narrower = _is_float(from_type) and to_type.bit_width >= from_type.bit_width
        return bool(types.is_signed_integer(from_type) or narrower)
    if types.is_timestamp(from_type) and types.is_timestamp(to_type):
        # A timestamp with a zone is a moment, without a zone a local time; neither converts to the other.
        return (from_type.tz is None) == (to_type.tz is None)
    return False


def fits_by_value(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether `as_exact_numbers` takes a flat type to another: texts to whole numbers, small bigints to int."""
    types = pa.types
    if not (types.is_int32(to_type) or types.is_int64(to_type)):
        return False
    return is_text(from_type) or bool(types.is_int64(from_type) and types.is_int32(to_type))


def as_exact_numbers(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.BooleanArray | None]:
    """Return values as int32 or int64, and which values do not convert exactly; None if all do.

    The numbers are meaningless if any value does not convert.
    """
    texts = array.cast(pa.string()) if is_text(array.type) else array
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        return texts, _no_numbers(texts, kind)
    if not is_text(array.type):
        return numbers, None
    # Arrow also reads numbers that are not in canonical form: " 7", "+7", "07" or "-0".
    is_canonical = pc.equal(numbers.cast(pa.string()), texts)
    return numbers, None if pc.all(is_canonical, min_count=0).as_py() else _no_numbers(texts, kind)  # O(1)


def fits_if_whole(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether `as_whole_numbers` takes a flat type to another: float and double to int and bigint."""
    return _is_float(from_type) and bool(pa.types.is_int32(to_type) or pa.types.is_int64(to_type))


def whole_bound(from_type: pa.DataType) -> int:
    """Return the size from which on not every whole number has a value of its own in a floating type."""
    return 1 << (24 if pa.types.is_float32(from_type) else 53)


def as_whole_numbers(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.BooleanArray | None]:
    """Return float or double values as int32 or int64, NaN as null, and which of them are not exactly such numbers.

    The second is None if all are; else the numbers are meaningless.
    """
    bound = whole_bound(array.type)
    values = pc.if_else(pc.is_null(array, nan_is_null=True), None, array)
    try:
        numbers = values.cast(kind)
    except pa.ArrowInvalid:
        numbers = None
    if numbers is not None and len(numbers) > numbers.null_count:
        span = pc.min_max(numbers)
        # From the bound on several whole numbers share one float, so that each value is looked at.
        if span["min"].as_py() <= -bound or span["max"].as_py() >= bound:  # one value a batch
            numbers = None
    if numbers is not None:
        return numbers, None
    floats = values.to_numpy(zero_copy_only=False)
    smallest, greatest = max(-bound + 1, -(1 << (kind.bit_width - 1))), min(bound, 1 << (kind.bit_width - 1)) - 1
    exactly = (np.trunc(floats) == floats) & (floats >= smallest) & (floats <= greatest)
    return values, pa.array(~exactly & ~np.isnan(floats))


def _no_numbers(values: pa.Array, kind: pa.DataType) -> pa.BooleanArray:
    """Return which texts or int64 values are not, in canonical form, numbers of the type; null counts as a number."""
    greatest: int = (1 << (kind.bit_width - 1)) - 1
    is_none = pa.array(np.zeros(len(values), np.bool_))
    if is_text(values.type):
        is_none = pc.fill_null(pc.invert(pc.match_substring_regex(values, _CANONICAL)), False)
        values = pc.if_else(is_none, None, values).cast(_ANY_WHOLE)
    bounds = [pa.scalar(Decimal(bound), _ANY_WHOLE) for bound in (-greatest - 1, greatest)]
    if not pa.types.is_decimal(values.type):
        bounds = [bound.cast(values.type) for bound in bounds]
    beyond = pc.or_(pc.less(values, bounds[0]), pc.greater(values, bounds[1]))
    return pc.or_(is_none, pc.fill_null(beyond, False))


def keeps_values(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether a table's column may change its type without a change of any value that it may hold.

    Unlike Apache Hudi, this excludes integers to floats with a narrower mantissa, and double to text: a double may have
    been an integer before, so that older files yield the text "1", and rewritten files "1.0".
    """
    types = pa.types
    if types.is_decimal(from_type) and types.is_decimal(to_type):
        return _is_wider(to_type, from_type)
    return (from_type, to_type) in _KEPT


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast an array, not dictionary-encoded, to a type that it `fits`; pa.ArrowInvalid if a value does not."""
    types = pa.types
    from_type = array.type
    if _is_float(from_type) and types.is_float64(kind):
        # As in Hudi, the double with the text of the float: 1.1 becomes 1.1, not 1.100000023841858.
        return array.cast(pa.string()).cast(kind)
    if _is_float(from_type) and types.is_string(kind):
        return float_text(array)
    if types.is_decimal(kind) and not types.is_decimal(from_type):
        return array.cast(pa.string()).cast(kind)
    if types.is_decimal(from_type) and types.is_string(kind):
        return decimal_text(array)
    # A safe cast would refuse a whole number that a float rounds.
    return array.cast(kind, safe=not (types.is_integer(from_type) and _is_float(kind)))


# A whole number of up to 19 digits as Java and Arrow spell it.
_CANONICAL = r"^(0|-?[1-9][0-9]{0,18})$"
_ANY_WHOLE = pa.decimal128(20, 0)

_KEPT = {
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float64()),
    (pa.int32(), pa.string()),
    (pa.int64(), pa.string()),
    (pa.float32(), pa.float64()),
    (pa.float32(), pa.string()),
}


def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind))


def _is_wider(kind: pa.DataType, narrower: pa.DataType) -> bool:
    """Return whether a decimal type has at least as many digits as another, both before and after the point."""
    return bool(kind.scale >= narrower.scale and kind.precision - kind.scale >= narrower.precision - narrower.scale)
