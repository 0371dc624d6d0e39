"""Which key generator a table uses: Hudi's enum, its Java classes, and the default.

Source: ``org.apache.hudi.keygen.constant.KeyGeneratorType`` and ``KeyGenUtils.inferKeyGeneratorType``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache

from ...errors import UnsupportedTableError

_PACKAGE = "org.apache.hudi.keygen."


class KeyGeneratorType(str, Enum):
    """How record keys and partition paths are made of columns, as ``hoodie.table.keygenerator.type`` names it."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"

    @property
    def java_class(self) -> str:
        return f"{_PACKAGE}{_CLASSES[self]}KeyGenerator"

    @classmethod
    def parse(cls, text: str) -> KeyGeneratorType:
        """Return the type of its name, its ``_AVRO`` name, or a Java class; UnsupportedTableError for another name."""
        key_generator = _names().get(text.strip().upper())
        if key_generator is None:
            raise UnsupportedTableError(
                f"pyhudi does not know the key generator {text!r}.",
                f"Use one of {', '.join(kind.value for kind in cls)}.",
            )
        return key_generator


class PartitionType(str, Enum):
    """How the key generator CUSTOM makes a part of the path of a field: the ``TIMESTAMP`` of ``ts:TIMESTAMP``."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"


def split_partition_field(text: str) -> tuple[str, PartitionType | None]:
    """Return the name and the type of a partition field, None without a type; ValueError for an unknown type."""
    name, colon, kind = (part.strip() for part in text.partition(":"))
    if not colon:
        return name, None
    try:
        return name, PartitionType(kind.upper())
    except ValueError as error:
        raise ValueError(f"the partition field {text!r} has an unknown type; use SIMPLE or TIMESTAMP") from error


_CLASSES = {
    KeyGeneratorType.SIMPLE: "Simple",
    KeyGeneratorType.COMPLEX: "Complex",
    KeyGeneratorType.NON_PARTITION: "Nonpartitioned",
    KeyGeneratorType.TIMESTAMP: "TimestampBased",
    KeyGeneratorType.CUSTOM: "Custom",
}


@cache
def _names() -> dict[str, KeyGeneratorType]:
    """Return the key generator of each spelling that tables have, in capitals: enum names and Java classes."""
    names: dict[str, KeyGeneratorType] = {}
    for generator, stem in _CLASSES.items():
        names |= {generator.value: generator, f"{generator.value}_AVRO": generator}
        for short in (f"{stem}KeyGenerator", f"{stem}AvroKeyGenerator"):
            names |= {short.upper(): generator, f"{_PACKAGE}{short}".upper(): generator}
    # The package of releases before 0.7.
    return names | {
        name.replace("HUDI.KEYGEN.", "HUDI."): generator for name, generator in names.items() if name.startswith("ORG.")
    }


def choose_key_generator(
    record_key_fields: Sequence[str], partition_fields: Sequence[str], *, is_typed: bool = False
) -> KeyGeneratorType:
    """Return the key generator that Apache Hudi infers by default; ``is_typed``: partition fields have types."""
    if is_typed:
        return KeyGeneratorType.CUSTOM
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if len(partition_fields) == 1 and len(record_key_fields) <= 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def typed_fields(fields: Sequence[str], types: Sequence[PartitionType] | None) -> tuple[str, ...]:
    """Return the partition fields as the key generator CUSTOM names them, ``field:TYPE``; plain without types."""
    return tuple(f"{field}:{kind.value}" for field, kind in zip(fields, types, strict=True)) if types else tuple(fields)
