"""Numbers spelt as Java spells them, on whole columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# Exponents between which ``Double.toString`` writes digits around a point, and outside of which it writes an "E".
_LEAST, _GREATEST = -3, 6
_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?:e(?P<exponent>[+-]?\d+))?$"


def float_text(column: pa.Array) -> pa.StringArray:
    """Return Java's ``Float.toString`` or ``Double.toString`` of each value, in the spelling since Java 19.

    ``column`` holds floats of 32 or 64 bits, whose digits Arrow chooses as Java does; null stays null.
    """
    arrow = column.cast(pa.string())
    parts = pc.extract_regex(arrow, _PARTS)
    signs, integer, fraction, exponent = (
        pc.fill_null(pc.struct_field(parts, name), "") for name in ("sign", "whole", "fraction", "exponent")
    )
    all_digits = pc.binary_join_element_wise(integer, fraction, "")
    digits = pc.utf8_ltrim(all_digits, characters="0")
    zeros = pc.subtract(pc.utf8_length(all_digits), pc.utf8_length(digits))
    digits = pc.utf8_rtrim(digits, characters="0")
    power = pc.cast(pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, characters="+")), pa.int32())
    # The value is 0.ddd times ten to the power of `point`.
    point = pc.add(pc.subtract(pc.utf8_length(integer), zeros), power)
    number = _joined(signs, _scientific(digits, point))
    for position in range(_LEAST + 1, _GREATEST + 2):
        at_position = pc.equal(point, position)
        if pc.any(at_position).as_py():  # O(1)
            number = pc.if_else(at_position, _joined(signs, _positional(digits, position)), number)
    # Zeros have no digits left, nor have NaN and the infinities, which get their words below.
    number = pc.if_else(pc.equal(digits, ""), _joined(signs, "0.0"), number)
    for word, java_word in (("nan", "NaN"), ("-nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        number = pc.if_else(pc.equal(arrow, word), java_word, number)
    return number


def decimal_text(column: pa.Array) -> pa.StringArray:
    """Return Java's ``BigDecimal.toString`` of each decimal."""
    # Arrow writes decimals as Java's BigDecimal.toString does; but older releases add a stray point (1.E-10).
    return pc.replace_substring(column.cast(pa.string()), ".E", "E")


def _scientific(digits: pa.Array, point: pa.Array) -> pa.Array:
    """Return the digits as Java spells them with an exponent, such as ``1.5E10``; a value is 0.ddd * 10**point."""
    exponent = pc.cast(pc.subtract(point, 1), pa.string())
    return _joined(
        pc.utf8_slice_codeunits(digits, 0, 1), ".", _or_zero(pc.utf8_slice_codeunits(digits, 1)), "E", exponent
    )


def _positional(digits: pa.Array, point: int) -> pa.Array:
    """Return the digits as Java spells them without an exponent, such as ``0.015``; a value is 0.ddd * 10**point."""
    if point <= 0:
        return _joined("0." + "0" * -point, digits)
    integer = pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, point), point, padding="0")
    return _joined(integer, ".", _or_zero(pc.utf8_slice_codeunits(digits, point)))


def _or_zero(digits: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(digits, ""), "0", digits)


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
