"""Checks of an Avro object container before it is decoded, so that the file's size bounds the cost of decoding.

Avro has values without bytes (a null, a record without fields): two bytes can announce a million million of them. And
it has blocks that inflate to a thousand times their size. Apache Hudi's records have no such values, and its instants
are not compressed. Format: the Avro specification 1.11, "Object Container Files".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from ...storage.bounds import MOST_BYTES, parse_json
from ...storage.inputs import in_memory

MAGIC = b"Obj\x01"
_SYNC = 16
_MOST_TYPES = 10_000
_DEEPEST = 64
_LONGEST_FIXED = 1 << 16
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_RAW_DEFLATE = -15
# Apache Hudi's longest schema has some five thousand bytes.
_LONGEST_KEPT = 1 << 16


def read_container(data: bytes, reader_schema: dict[str, Any] | None = None) -> list[Any]:
    """Return the records of a container, read by its own schema.

    ``reader_schema`` is a parsed schema of the fields to decode. Raises ValueError if decoding would cost more than the
    order of the file's size, and any exception if the bytes are damaged.
    """
    from fastavro import schemaless_reader  # noqa: PLC0415 (slow to import)

    header, at = _header(data)
    schema = _parsed_schema(header.get("avro.schema", b""))
    records: list[Any] = []
    # Read to the end: a file truncated in its last bytes must not pass.
    for count, block in _blocks(data, at, header.get("avro.codec", b"null")):
        stream = in_memory(block)
        records += [schemaless_reader(stream, schema, reader_schema) for _ in range(count)]
        if stream.tell() < len(block):
            raise ValueError("a block holds more than its records")
    return records


def read_records(schema: bytes, encoded: Iterable[bytes], reader_schema: dict[str, Any] | None = None) -> list[Any]:
    """Return records of one schema, whose bytes are ``encoded`` one by one; the rest is as in `read_container`."""
    from fastavro import schemaless_reader  # noqa: PLC0415 (slow to import)

    parsed = _parsed_schema(schema)
    records = []
    for data in encoded:
        stream = in_memory(data)
        records.append(schemaless_reader(stream, parsed, reader_schema))
        if stream.tell() < len(data):
            raise ValueError("a record is longer than its fields")
    return records


def _parsed_schema(text: bytes) -> Any:
    """Return the parsed schema of a JSON text; a schema of usual length is kept for the next container."""
    return _kept_schema(text) if len(text) <= _LONGEST_KEPT else _parse_schema(text)


def _parse_schema(text: bytes) -> Any:
    """Return the parsed schema of a JSON text, without defaults; ValueError if `_Types` does not allow it."""
    from fastavro import parse_schema  # noqa: PLC0415 (slow to import)

    schema = parse_json(text)
    _Types().check(schema, "")
    return parse_schema(_without_defaults(schema))


# The instants of a table share few schemas, and parsing a schema takes longer than decoding an instant.
_kept_schema = lru_cache(maxsize=64)(_parse_schema)


def _without_defaults(kind: Any) -> Any:
    """Return a schema without its defaults: only a writer needs them, and they may be wrong."""
    if isinstance(kind, list):
        return [_without_defaults(branch) for branch in kind]
    if isinstance(kind, dict):
        return {name: _without_defaults(value) for name, value in kind.items() if name != "default"}
    return kind


def _blocks(data: bytes, position: int, codec: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number of records and the bytes of each block, inflated; ValueError for damage or an unknown codec.

    ``data`` is the whole container, ``position`` the byte behind its header, where the sync marker that ends each
    block begins, and ``codec`` the compression that the header states.
    """
    # Apache Hudi compresses no instant. These are the two codecs that Avro's specification requires of every reader.
    if codec not in {b"null", b"deflate"}:
        raise ValueError(f"its codec is {codec!r}, and pyhudi knows null and deflate alone")
    sync = data[position : position + _SYNC]
    position += _SYNC
    inflated = 0
    while position < len(data):
        count, position = _long(data, position)
        size, position = _long(data, position)
        if not 0 <= size <= len(data) - position - _SYNC or data[position + size : position + size + _SYNC] != sync:
            raise ValueError("a block does not have the length that it states")
        block = data[position : position + size]
        if codec == b"deflate":
            block = _inflated(block, MOST_BYTES - inflated)
            inflated += len(block)
        yield count, block
        position += size + _SYNC


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    """Return the entries of a container's header, and where they end."""
    if not data.startswith(MAGIC):
        raise ValueError("it does not begin with Avro's magic bytes")
    header: dict[str, bytes] = {}
    position = len(MAGIC)
    while True:
        count, position = _long(data, position)
        if count == 0:
            return header, position
        if count < 0:
            # Behind a negative count comes the size of the block in bytes.
            _, position = _long(data, position)
        for _ in range(abs(count)):
            key, position = _bytes(data, position)
            header[key.decode()], position = _bytes(data, position)


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    """Return bytes with their length before them, and where they end."""
    size, position = _long(data, position)
    if not 0 <= size <= len(data) - position:
        raise ValueError("it ends inside its header")
    return data[position : position + size], position + size


def _long(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag number of variable length and the offset at which it ends."""
    value = shift = 0
    while shift < 70:
        if position >= len(data):
            raise ValueError("it ends inside a number")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift, position = shift + 7, position + 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise ValueError("a number in it is too long")


def _inflated(block: bytes, most_bytes: int) -> bytes:
    """Return an inflated block; ValueError if it has more than ``most_bytes``."""
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    try:
        data = inflater.decompress(block, most_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"a block cannot be inflated ({error})") from error
    if len(data) > most_bytes:
        raise ValueError(f"it inflates to more than {MOST_BYTES} bytes")
    return data


class _Types:
    """Refuses schemas whose values may have no bytes or no end."""

    def __init__(self) -> None:
        self._type_count = 0
        # Nesting depth of each named type; None while `check` is inside it.
        self._depths: dict[str, int | None] = {}

    def check(self, kind: Any, namespace: str) -> int:
        """Return how many levels deep the values of a type nest; ValueError for a type that is not allowed.

        ``kind`` is a type in the JSON of a schema, and ``namespace`` that of the type in which it is.
        """
        self._type_count += 1
        if self._type_count > _MOST_TYPES:
            raise ValueError("its schema is larger than any of Apache Hudi's")
        if isinstance(kind, list):
            if not kind:
                raise ValueError("its schema has an empty union")
            # A null in a union has bytes: the number of its branch.
            branches = [branch for branch in kind if branch not in ("null", {"type": "null"})]
            depth = max((self.check(branch, namespace) for branch in branches), default=0)
        elif isinstance(kind, dict):
            depth = self._depth_of_complex(kind, namespace)
        else:
            depth = self._depth_by_name(kind, namespace)
        if depth > _DEEPEST:
            raise ValueError("its schema is deeper than any of Apache Hudi's")
        return depth + 1

    def _depth_by_name(self, name: Any, namespace: str) -> int:
        """Return how deep values of a primitive or a type defined before nest; ValueError for other names."""
        if name in _PRIMITIVES:
            return 0
        depth = self._depths.get(_full_name(name, namespace)) if isinstance(name, str) else None
        if depth is None:
            raise ValueError(f"its schema has a type {name!r} that is unknown, has no bytes, or contains itself")
        return depth

    def _depth_of_complex(self, kind: dict[str, Any], namespace: str) -> int:
        """Return how deep values of an array, map, record, enum or fixed type nest; remember it for types with names.

        ``kind`` may also be a type in braces, such as ``{"type": "string"}``.
        """
        base = kind.get("type")
        if "logicalType" in kind:
            raise ValueError(f"its schema has the logical type {kind['logicalType']!r}")
        if base == "array":
            return self.check(kind.get("items"), namespace)
        if base == "map":
            return self.check(kind.get("values"), namespace)
        if base == "record":
            return self._depth_of_record(kind, namespace)
        if base == "enum":
            self._depths[_name_of(kind, namespace)] = 0
            return 0
        if base == "fixed":
            size = kind.get("size")
            if not isinstance(size, int) or not 0 < size <= _LONGEST_FIXED:
                raise ValueError(f"its schema has a fixed type of {size!r} bytes")
            self._depths[_name_of(kind, namespace)] = 0
            return 0
        return self.check(base, namespace)

    def _depth_of_record(self, kind: dict[str, Any], namespace: str) -> int:
        """Return how deep a record's values nest; ValueError for a record without fields, or inside itself."""
        full = _name_of(kind, namespace)
        fields = kind.get("fields")
        if not isinstance(fields, list) or not fields:
            raise ValueError(f"its schema has a record {full} without fields")
        if not all(isinstance(field, dict) for field in fields):
            raise ValueError(f"its schema has a record {full} with malformed fields")
        # A field of this very type finds None, and is refused.
        self._depths[full] = None
        depth = max(self.check(field.get("type"), full.rpartition(".")[0]) for field in fields)
        self._depths[full] = depth
        return depth


def _name_of(kind: dict[str, Any], namespace: str) -> str:
    """Return the full name of a type that is defined here."""
    name, own_namespace = kind.get("name"), kind.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(own_namespace, str):
        raise ValueError("its schema has a type without a name")
    return _full_name(name, own_namespace)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
