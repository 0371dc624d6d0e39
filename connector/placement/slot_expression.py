"""The slot of each row as a Spark expression, for tables with simple keys and partitions.

The record key fields must be whole numbers, in the rows perhaps as text, and the key must not contain its field's name.
The partition path must consist of whole numbers, days or strings, without URL encoding.

The expression equals `Placement.slots` and saves the way through Python. ``String.hashCode`` of a number's decimal
digits needs no text: with ``q[i]`` the number without its last ``i`` digits, digit ``i`` is ``q[i] - 10 * q[i + 1]``,
so the sum of ``digit[i] * 31 ** i`` is ``q[0] + 21 * sum(q[i] * 31 ** (i - 1))``. The characters' codes add a term that
depends only on the number's length. All steps are modulo ``2 ** 31``, because the bucket index drops the highest bit,
and fit a long, because Spark's ANSI mode forbids overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from ...errors import UnsupportedTypeError
from ...index.bucket import BucketIndex
from ...index.registry import placing_index_for
from ...table.buckets.numbers import BucketNumbers
from ...table.buckets.rules import path_of
from ...table.schema.casts import fits_by_value
from .key_text import deciding_types, path_text, quoted
from .slots import Placement

if TYPE_CHECKING:
    from pyspark.sql import Column

_MODULUS = 1 << 31
_LOW_BITS = _MODULUS - 1
# All numbers with at most this many digits are below the modulus.
_SURE_DIGITS = 9
# A longer text of SQL takes longer to compile than Python takes.
_MOST_EXPRESSIONS = 32
# The most digits of a number, by its bits.
_MOST_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


def slot_expression(placement: Placement, schema: StructType) -> Column | None:
    """Return the slot of rows of ``schema``, a bigint; None if only Python can compute it."""
    try:
        columns = _AlikeColumns.of(placement, schema)
    except UnsupportedTypeError:
        # The write reports the unsupported type.
        return None
    index, numbers = placing_index_for(placement.config), placement.numbers
    if columns is None or index is None:
        return None
    count = str(index.bucket_count) if numbers is None else _bucket_count(numbers, columns.path)
    if count is None:
        return None
    # SQL text, because each function call from Python would be a message to the JVM.
    return sf.expr(f"(crc32({columns.path}) + {columns.hash(index)} % {count}) % {placement.tasks}")


def _bucket_count(numbers: BucketNumbers, path: str) -> str | None:
    """Return the number of buckets of a row's partition as SQL; None if the rule is absent or has too many expressions.

    ``path`` is SQL of the row's partition path.
    """
    rule = numbers.rule
    if rule is None or len(rule.expressions) > _MOST_EXPRESSIONS:
        return None
    cases = []
    for expression, number in rule.expressions:
        exact_path = path_of(expression)
        # Spark's ``rlike`` is Java's ``find()``, by which Apache Hudi holds a rule against a path.
        comparison = f"rlike {_literal(expression)}" if exact_path is None else f"= {_literal(exact_path)}"
        cases.append(f" when {path} {comparison} then {number}")
    return f"(case{''.join(cases)} else {rule.default} end)" if cases else str(rule.default)


def _literal(text: str) -> str:
    # Options of Spark change what a backslash in a text means.
    return f"cast(X'{text.encode().hex()}' as string)"


@dataclass(frozen=True, slots=True)
class _AlikeColumns:
    """Key and partition columns that Spark and pyhudi spell alike, as SQL.

    Attributes:
        keys: The record key fields, each with the bits of its type.
    """

    keys: tuple[tuple[str, int], ...]
    path: str

    @classmethod
    def of(cls, placement: Placement, schema: StructType) -> _AlikeColumns | None:
        """Return the columns of a table; None if Spark and pyhudi may spell some value in two ways.

        ``placement`` names the key and partition columns, and ``schema`` has the columns of the rows. Raises
        `UnsupportedTypeError` for a column of the rows that a table cannot hold.
        """
        config = placement.config
        row_types, table_types = deciding_types(placement, schema)
        keys = []
        for field in config.record_key_fields:
            # Apache Hudi takes the values to hash out of the key, by these letters.
            if not all(field in schema.names for schema in (row_types, table_types)) or {",", ":"} & {*field}:
                return None
            row_type, table_type = (schema.field(field).type for schema in (row_types, table_types))
            is_text = schema[field].dataType == StringType() and fits_by_value(row_type, table_type)
            if not pa.types.is_integer(table_type) or not (is_text or pa.types.is_integer(row_type)):
                return None
            keys.append((field, (table_type if is_text else row_type).bit_width))
        if config.names_key_field:
            # Such a key and its hash contain the field's name.
            return None
        path = path_text(placement, schema, row_types, table_types)
        return None if path is None else cls(tuple(keys), path)

    def hash(self, index: BucketIndex) -> str:
        """Return Java's ``List.hashCode`` of the key's values without its highest bit."""
        hash_fields = index.hash_fields or index.record_key_fields
        hashed = "1L"
        for field, bits in self.keys:
            if field in hash_fields:
                # Text that is not a number may get any slot, because the task that writes its row refuses it.
                of_field = f"coalesce({_digits_hash(f'try_cast({quoted(field)} as bigint)', bits)}, 0L)"
                hashed = _low_bits(f"{hashed} * 31L + {of_field}")
        return hashed


def _digits_hash(number: str, bits: int) -> str:
    """Return ``String.valueOf(number).hashCode()`` without its highest bit, as SQL; null for null.

    ``number`` is SQL of a whole number of so many ``bits``. The module's docstring has the sum. Its terms are the
    number, the number without its last digits, and the codes of the characters, which depend on the length alone.
    """
    digits = _MOST_DIGITS[bits]
    low = _low_bits(number)
    terms = [f"if({number} < 0, {_MODULUS}L - {low}, {low})"]
    for position in range(1, digits):
        shortened = f"abs({number} div {10**position}L)"
        if digits - position > _SURE_DIGITS:
            shortened = _low_bits(shortened)
        terms.append(_low_bits(f"{shortened} * {21 * pow(31, position - 1, _MODULUS) % _MODULUS}L"))
    codes = [sum(ord("0") * 31**place for place in range(count)) for count in range(digits + 1)]
    signed = [0, *(code + ord("-") * 31**count for count, code in enumerate(codes))]
    length = f"length(cast({number} as string))"
    terms.append(f"if({number} < 0, {_value_at(signed, length)}, {_value_at(codes, length)})")
    return _low_bits(" + ".join(terms))


def _value_at(values: list[int], position: str) -> str:
    """Return the value at a position from 0, modulo 2 ** 31; null outside the list."""
    return f"get(array({', '.join(f'{value % _MODULUS}L' for value in values)}), {position})"


def _low_bits(number: str) -> str:
    return f"(({number}) & {_LOW_BITS}L)"
