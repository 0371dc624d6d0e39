"""The slot of every row as an expression of Spark's own, for tables whose keys are whole numbers.

It finds what `Placement.slots` finds, and spares the rows a way through Python and back. ``String.hashCode`` of a
number's decimal digits needs no text: with ``q[i]`` the number without its last ``i`` digits, digit ``i`` is
``q[i] - 10 * q[i + 1]``, so that the sum of ``digit[i] * 31 ** i`` is ``q[0] + 21 * sum(q[i] * 31 ** (i - 1))``. What
the characters' codes add depends on the number's length alone. All of it is done modulo ``2 ** 31``, as the bucket
index drops the highest bit, in steps that fit a long: Spark's ANSI mode lets nothing overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from ..errors import UnsupportedTypeError
from ..index.bucket import BucketIndex
from ..index.registry import index_for
from ..table.key_types import KeyGeneratorType, PartitionType
from ..table.partition_paths import HIVE_DEFAULT_PARTITION
from .spark_types import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column

    from .placement import Placement

_MODULUS = 1 << 31
_LOW_BITS = _MODULUS - 1
# Digits that a number of so many bits has at most.
_MOST_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


def slot_expression(placement: Placement, schema: StructType) -> Column | None:
    """Return the expression of the slot, a bigint; None where only Python can tell.

    Args:
        placement: Where rows go.
        schema: Of the rows, with the deciding columns.
    """
    try:
        columns = _Columns.of(placement, schema)
    except UnsupportedTypeError:
        # Whoever writes the rows says what is wrong with them.
        return None
    index = index_for(placement.config)
    if columns is None or not isinstance(index, BucketIndex):
        return None
    bucket = columns.hash(index) % index.bucket_count
    return (sf.crc32(columns.path) + bucket) % placement.tasks


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that decide, all of types that Spark and pyhudi spell alike.

    Attributes:
        keys: Bits of each record key field, in the order of the fields.
        path: The partition path.
    """

    keys: dict[str, int]
    path: Column

    @classmethod
    def of(cls, placement: Placement, schema: StructType) -> _Columns | None:
        config = placement.config
        given = to_arrow(StructType([field for field in schema.fields if field.name in placement.columns]))
        known = given if placement.schema is None else placement.schema
        keys = {}
        for field in config.record_key_fields:
            whole = all(field in one.names and pa.types.is_integer(one.field(field).type) for one in (given, known))
            if not whole or {",", ":"} & {*field}:
                return None
            keys[field] = given.field(field).type.bit_width
        if len(keys) == 1 and config.key_generator is KeyGeneratorType.COMPLEX:
            # The name is part of such a key and of its hash.
            return None
        path = _path(placement, schema, given, known)
        return None if path is None else cls(keys, path)

    def hash(self, index: BucketIndex) -> Column:
        """Return Java's ``List.hashCode`` of the key's values without its highest bit."""
        hashed: Any = sf.lit(1).cast("bigint")
        for field in (one for one in self.keys if one in (index.hash_fields or index.record_key_fields)):
            of_field = sf.coalesce(_digits_hash(_column(field).cast("bigint"), self.keys[field]), sf.lit(0))
            hashed = (hashed * 31 + of_field).bitwiseAND(_LOW_BITS)
        return hashed  # type: ignore[no-any-return]


def _path(placement: Placement, schema: StructType, given: pa.Schema, known: pa.Schema) -> Column | None:
    config = placement.config
    if config.key_generator is KeyGeneratorType.NON_PARTITION or not config.partition_fields:
        return sf.lit("")
    if config.url_encode or any(kind is not PartitionType.SIMPLE for kind in config.partition_types):
        return None
    segments = []
    for field in config.partition_fields:
        if field not in given.names or field not in known.names or given.field(field).type != known.field(field).type:
            return None
        kind = given.field(field).type
        spelt_alike = pa.types.is_integer(kind) or pa.types.is_date(kind) or schema[field].dataType == StringType()
        if not spelt_alike:
            return None
        text = sf.coalesce(sf.nullif(_column(field).cast("string"), sf.lit("")), sf.lit(HIVE_DEFAULT_PARTITION))
        segments.append(sf.concat(sf.lit(f"{field}="), text) if config.hive_style else text)
    return sf.concat_ws("/", *segments)


def _column(name: str) -> Column:
    return sf.col(f"`{name.replace('`', '``')}`")


def _digits_hash(number: Column, bits: int) -> Column:
    """Return ``String.valueOf(number).hashCode()`` without its highest bit; null for null."""
    digits = _MOST_DIGITS[bits]
    low = number.bitwiseAND(_LOW_BITS)
    total = sf.when(number < 0, sf.lit(_MODULUS) - low).otherwise(low)
    for place in range(1, digits):
        # The remainder of a greater number may not fit into 31 bits.
        rest = sf.abs(sf.call_function("div", number, sf.lit(10**place)))
        rest = rest.bitwiseAND(_LOW_BITS) if digits - place > 9 else rest
        total = total + (rest * (21 * pow(31, place - 1, _MODULUS) % _MODULUS)).bitwiseAND(_LOW_BITS)
    codes = [sum(ord("0") * 31**place for place in range(count)) for count in range(digits + 1)]
    signed = [0, *(code + ord("-") * 31**count for count, code in enumerate(codes))]
    length = sf.length(number.cast("string"))
    of_length = sf.when(number < 0, _at(signed, length)).otherwise(_at(codes, length))
    return (total + of_length).bitwiseAND(_LOW_BITS)


def _at(values: list[int], position: Column) -> Column:
    """Return the value at a position that counts from 0, modulo 2 ** 31; null where there is none."""
    return sf.get(sf.array(*(sf.lit(value % _MODULUS) for value in values)), position)
