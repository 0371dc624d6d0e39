"""Decimals as the bytes of their unscaled values, the highest first, as Avro has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .avro_bytes import Encoded, Octets, slices

_WIDTH = 16


def unscaled(array: pa.Array) -> Octets:
    """Return decimals, none of them null, as 16 bytes each."""
    values = np.frombuffer(array.buffers()[1], dtype=np.uint8) if len(array) else np.zeros(0, dtype=np.uint8)
    return values.reshape(-1, _WIDTH)[array.offset : array.offset + len(array), ::-1]


def shortest(rows: Octets) -> Encoded:
    """Return each value in as few bytes as keep its sign, as Java's ``BigInteger.toByteArray`` does."""
    sign_bytes = (rows[:, :1] >> 7) * np.uint8(0xFF)
    repeats_sign = (rows[:, :-1] == sign_bytes) & ((rows[:, 1:] >> 7) * np.uint8(0xFF) == sign_bytes)
    leading = np.cumprod(repeats_sign, axis=1, dtype=np.int64).sum(axis=1)
    return Encoded(_WIDTH - leading, rows[np.arange(_WIDTH) >= leading[:, None]])


def decimals(array: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """Return decimals of the type ``kind``, null if the bytes are; `ValueError` if a value does not fit into the type.

    ``array`` is binary: each value has the unscaled number, the highest byte first, in one to sixteen bytes.
    """
    values = slices(array.drop_null())
    is_too_long = np.maximum(values.lengths - _WIDTH, 0)
    if (values.lengths == 0).any() or is_too_long.any():
        raise ValueError("a decimal in it has no bytes, or more than sixteen")
    rows = np.zeros((len(values.lengths), _WIDTH), dtype=np.uint8)
    starts = np.cumsum(values.lengths) - values.lengths
    if len(starts):
        # Bytes in front of a short value repeat its sign.
        rows[:] = (values.data[starts] >> 7)[:, None] * np.uint8(0xFF)
    rows[np.arange(_WIDTH) >= (_WIDTH - values.lengths)[:, None]] = values.data
    low_first = np.ascontiguousarray(rows[:, ::-1])
    values_of_type = pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(low_first)])
    values_of_type.validate(full=True)
    if array.null_count == 0:
        return values_of_type
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return values_of_type.take(pa.array(np.where(valid, np.cumsum(valid) - 1, 0), mask=~valid))
