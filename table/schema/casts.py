"""Which values have a place in which type, and how they are brought there: to the letter as Apache Hudi does it.

Source: ``SchemaChangeUtils.isTypeUpdateAllow`` and ``HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType``. Where Hudi
would round a decimal, replace bytes that are no UTF-8, or take a detour through double, the value is refused or kept.
"""

from __future__ import annotations

import pyarrow as pa

from ..arrow.java_text import decimal_text, float_text
from .types import is_bytes, is_text


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
