"""An Avro object container looked at before it is decoded: nothing in it may cost more than the bytes that are there.

Avro has values without bytes (a null, a record of none), of which two bytes can announce a million million, and blocks
that inflate to a thousand times their size. Apache Hudi's records have no such values, and its instants are not
compressed. Format: the Avro specification 1.11, "Object Container Files".
"""

from __future__ import annotations

import zlib
from typing import Any

from ...storage.bounds import MOST_BYTES, parse_json

_MAGIC = b"Obj\x01"
_SYNC = 16
_MOST_TYPES = 10_000
_DEEPEST = 64
_LONGEST_FIXED = 1 << 16
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_RAW_DEFLATE = -15


def check_container(data: bytes) -> None:
    """Refuse a container that cannot be decoded in time and memory of the order of its size.

    Raises:
        ValueError: It is one, or no Avro container.
    """
    header, at = _header(data)
    _Types().check(parse_json(header.get("avro.schema", b"")), "")
    codec = header.get("avro.codec", b"null")
    if codec not in {b"null", b"deflate"}:
        raise ValueError(f"its codec is {codec!r}, where Apache Hudi compresses no instant")
    sync = data[at : at + _SYNC]
    at += _SYNC
    inflated = 0
    while at < len(data):
        _, at = _long(data, at)
        size, at = _long(data, at)
        if not 0 <= size <= len(data) - at - _SYNC or data[at + size : at + size + _SYNC] != sync:
            raise ValueError("a block of it does not end where it says")
        if codec == b"deflate":
            inflated += _inflated_size(data[at : at + size], MOST_BYTES - inflated)
        at += size + _SYNC


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    """Return the file's metadata and where it ends."""
    if not data.startswith(_MAGIC):
        raise ValueError("it does not begin as one")
    found: dict[str, bytes] = {}
    at = len(_MAGIC)
    while True:
        count, at = _long(data, at)
        if count == 0:
            return found, at
        if count < 0:
            _, at = _long(data, at)
        for _ in range(abs(count)):
            key, at = _bytes(data, at)
            found[key.decode()], at = _bytes(data, at)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError("it breaks off in its header")
    return data[at : at + size], at + size


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise ValueError("it breaks off")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise ValueError("a number in it has no end")


def _inflated_size(block: bytes, most: int) -> int:
    """Return how many bytes a compressed block stands for."""
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    try:
        size = len(inflater.decompress(block, most + 1))
    except zlib.error as error:
        raise ValueError(f"a block of it cannot be inflated ({error})") from error
    if size > most:
        raise ValueError(f"it inflates to more than {MOST_BYTES} bytes")
    return size


class _Types:
    """Looks through a schema for types whose values may have no bytes, and for what has no end."""

    def __init__(self) -> None:
        self._seen = 0
        # How deep the values of a named type are; None while it is being looked at.
        self._known: dict[str, int | None] = {}

    def check(self, kind: Any, namespace: str) -> int:
        """Return how deep the values of a type are.

        Raises:
            ValueError: Some may have no bytes or no end, or it is no Avro type.
        """
        self._seen += 1
        if self._seen > _MOST_TYPES:
            raise ValueError("its schema is larger than any of Apache Hudi's")
        if isinstance(kind, list):
            if not kind:
                raise ValueError("its schema has a union of nothing")
            inner = [one for one in kind if one not in ("null", {"type": "null"})]
            depth = max((self.check(one, namespace) for one in inner), default=0)
        elif isinstance(kind, dict):
            depth = self._complex(kind, namespace)
        else:
            depth = self._named(kind, namespace)
        if depth > _DEEPEST:
            raise ValueError("its schema is deeper than any of Apache Hudi's")
        return depth + 1

    def _named(self, name: Any, namespace: str) -> int:
        if name in _PRIMITIVES:
            return 0
        known = self._known.get(_full_name(name, namespace)) if isinstance(name, str) else None
        if known is None:
            raise ValueError(f"its schema has a type {name!r} that is none, has no bytes, or is inside itself")
        return known

    def _complex(self, kind: dict[str, Any], namespace: str) -> int:
        base = kind.get("type")
        if "logicalType" in kind:
            raise ValueError(f"its schema has the logical type {kind['logicalType']!r}")
        if base == "array":
            return self.check(kind.get("items"), namespace)
        if base == "map":
            return self.check(kind.get("values"), namespace)
        if base == "record":
            return self._record(kind, namespace)
        if base == "enum":
            self._known[_name_of(kind, namespace)] = 0
            return 0
        if base == "fixed":
            size = kind.get("size")
            if not isinstance(size, int) or not 0 < size <= _LONGEST_FIXED:
                raise ValueError(f"its schema has a fixed type of {size!r} bytes")
            self._known[_name_of(kind, namespace)] = 0
            return 0
        return self.check(base, namespace)

    def _record(self, kind: dict[str, Any], namespace: str) -> int:
        full = _name_of(kind, namespace)
        fields = kind.get("fields")
        if not isinstance(fields, list) or not fields:
            raise ValueError(f"its schema has a record {full} without fields")
        if not all(isinstance(field, dict) for field in fields):
            raise ValueError(f"its schema has a record {full} with fields that are none")
        self._known[full] = None
        depth = max(self.check(field.get("type"), full.rpartition(".")[0]) for field in fields)
        self._known[full] = depth
        return depth


def _name_of(kind: dict[str, Any], namespace: str) -> str:
    name, own = kind.get("name"), kind.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(own, str):
        raise ValueError("its schema has a type without a name")
    return _full_name(name, own)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
