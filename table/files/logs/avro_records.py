"""Avro records without a container, decoded many at a time.

fastavro reads the block of a container in one go, so what is to be read is given to it as such a block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import numpy as np
import pyarrow as pa

from .avro_bytes import numbers, sized, slices

_MAGIC = b"Obj\x01"
_SYNC = bytes(16)
CHUNK = 16_384


def decoded(
    schema: dict[str, Any], count: int, data: bytes, reader_schema: dict[str, Any] | None = None
) -> Iterator[list[dict[str, Any]]]:
    """Yield ``count`` records, some thousand at a time; any exception of fastavro means that the bytes are none.

    With ``reader_schema`` they have the fields of that schema alone.
    """
    import fastavro  # noqa: PLC0415 (planning a write opens no file)

    meta = sized(slices(pa.array([b"avro.schema", json.dumps(schema).encode(), b"avro.codec", b"null"])))
    header = _MAGIC + number(2) + meta.data.tobytes() + number(0) + _SYNC
    container = b"".join((header, number(count), number(len(data)), data, _SYNC))
    records = iter(fastavro.reader(pa.BufferReader(container), reader_schema=reader_schema))
    while chunk := list(islice(records, CHUNK)):
        yield cast("list[dict[str, Any]]", chunk)


def number(value: int) -> bytes:
    """Return a number in Avro's encoding."""
    return numbers(np.array([value], dtype=np.int64)).data.tobytes()


def read_number(data: bytes, start: int) -> tuple[int, int]:
    """Return the number in Avro's encoding at a position, and where it ends; ValueError if it does not end."""
    value = 0
    for position, byte in enumerate(data[start : start + 10]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), start + position + 1
    raise ValueError("a number in it has no end")
