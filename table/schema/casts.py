"""Which values have a place in which type, and how they are brought there, mostly as Apache Hudi does it.

Source: ``SchemaChangeUtils.isTypeUpdateAllow`` and ``HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType``. Where Hudi
would round a decimal, replace bytes that are no UTF-8, or take a detour through double, the value is refused or kept.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.java_text import decimal_text, float_text
from .types import is_bytes, is_text

NUMBER_TO_TEXT = "hoodie.pyhudi.schema.number.to.text"
"""The option under which columns change their types as Apache Hudi changes them, from numbers to text too."""


def fits(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether values of a flat type have a place in another, each that does not being refused by `cast`."""
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
        # What has a zone is a moment, what has none is a reading of a clock: neither stands for the other.
        return (from_type.tz is None) == (to_type.tz is None)
    return False


def fits_by_value(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether some values of a flat type have an exact place in another, and `exact` can tell which.

    Text has one in whole numbers where it is spelt as the number is, and a bigint in int where it is small enough.
    """
    types = pa.types
    if not (types.is_int32(to_type) or types.is_int64(to_type)):
        return False
    return is_text(from_type) or bool(types.is_int64(from_type) and types.is_int32(to_type))


def exact(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.BooleanArray | None]:
    """Return values as whole numbers, and which of them have no exact place there; None where all have one.

    Args:
        array: Flat, not dictionary-encoded, of a type that `fits_by_value`.
        kind: int32 or int64.

    Returns:
        The numbers, which are nothing to go by where some value has no place; and the mask of these values.
    """
    texts = array.cast(pa.string()) if is_text(array.type) else array
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        return texts, _without_place(texts, kind)
    if not is_text(array.type):
        return numbers, None
    # What reads as a number may be spelt otherwise: " 7", "+7", "07" or "-0".
    spelt = pc.equal(numbers.cast(pa.string()), texts)
    return numbers, None if pc.all(spelt, min_count=0).as_py() else _without_place(texts, kind)  # O(1)


def _without_place(values: pa.Array, kind: pa.DataType) -> pa.BooleanArray:
    """Return which values, texts or int64, are no number of a type in its canonical spelling; null is none of them."""
    greatest: int = (1 << (kind.bit_width - 1)) - 1
    strange = pa.array(np.zeros(len(values), np.bool_))
    if is_text(values.type):
        strange = pc.fill_null(pc.invert(pc.match_substring_regex(values, _CANONICAL)), False)
        values = pc.if_else(strange, None, values).cast(_ANY_WHOLE)
    bounds = [pa.scalar(Decimal(one), _ANY_WHOLE) for one in (-greatest - 1, greatest)]
    if not pa.types.is_decimal(values.type):
        bounds = [one.cast(values.type) for one in bounds]
    beyond = pc.or_(pc.less(values, bounds[0]), pc.greater(values, bounds[1]))
    return pc.or_(strange, pc.fill_null(beyond, False))


def keeps_values(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether a table's column may change its type and every value that it may hold stays what it is.

    Of the changes that Apache Hudi makes those from integers to narrower mantissas are left out, and that from double
    to text: a double may have been an integer before, as which older files still hold it, and reads "1" from them where
    it reads "1.0" from a file that was rewritten in between.
    """
    types = pa.types
    if types.is_decimal(from_type) and types.is_decimal(to_type):
        return _is_wider(to_type, from_type)
    return (from_type, to_type) in _KEPT


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values of a flat array, not dictionary-encoded, as values of a type that they fit.

    Raises:
        pa.ArrowInvalid: A value has no place in the type: a text is no date, a time or a number too fine.
    """
    types = pa.types
    from_type = array.type
    if _is_float(from_type) and types.is_float64(kind):
        # The double that reads like the float, as Hudi has it: 1.1 becomes 1.1, not 1.100000023841858.
        return array.cast(pa.string()).cast(kind)
    if _is_float(from_type) and types.is_string(kind):
        return float_text(array)
    if types.is_decimal(kind) and not types.is_decimal(from_type):
        return array.cast(pa.string()).cast(kind)
    if types.is_decimal(from_type) and types.is_string(kind):
        return decimal_text(array)
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


def _is_wider(kind: pa.DataType, other: pa.DataType) -> bool:
    """Return whether a decimal type holds every value of another: as many digits before the point, and after it."""
    return bool(kind.scale >= other.scale and kind.precision - kind.scale >= other.precision - other.scale)
