"""CRC-32C, the checksum that Apache HBase puts into HFiles, and that Python's library lacks.

The checksum of two parts together follows from the checksums of both: the first is moved over as many zeros as the
second part has bytes. So neighbours are joined, twice as long each time, and each step is a few operations on whole
arrays.
Source: RFC 3720, appendix B.4, for the polynomial.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
Words = np.ndarray[Any, np.dtype[np.uint32]]


def crc32c(data: Any) -> int:
    """Return the checksum of some bytes."""
    values = np.frombuffer(data, dtype=np.uint8)
    if len(values) == 0:
        return 0
    length = 1 << (len(values) - 1).bit_length()
    # Zeros in front leave the checksum of what follows as it is, if it begins with zero.
    padded = np.zeros(length, dtype=np.uint8)
    padded[length - len(values) :] = values
    checksums, level = _bytes_table()[padded], 0
    while len(checksums) > 1:
        checksums = _moved(checksums[0::2], level) ^ checksums[1::2]
        level += 1
    # CRC-32C begins with all bits set. They are moved over as many zeros as there are bytes, and then added.
    start = np.array([_ALL], dtype=np.uint32)
    for level in range(len(values).bit_length()):
        if len(values) >> level & 1:
            start = _moved(start, level)
    return int(checksums[0] ^ start[0]) ^ _ALL


def _moved(words: Words, level: int) -> Words:
    """Return checksums moved over 2**level zeros."""
    tables = _tables(level)
    moved: Words = tables[0][words & 0xFF]
    for byte in range(1, 4):
        moved = moved ^ tables[byte][(words >> np.uint32(8 * byte)) & 0xFF]
    return moved


@cache
def _tables(level: int) -> Words:
    """Return for each value of each byte of a checksum what it becomes behind 2**level zeros."""
    values = np.arange(256, dtype=np.uint32)
    words = np.stack([values << np.uint32(8 * byte) for byte in range(4)])
    if level == 0:
        of_lowest_byte = _bytes_table()
        return np.stack([of_lowest_byte, *(words[byte] >> np.uint32(8) for byte in range(1, 4))])
    half = level - 1
    return np.stack([_moved(_moved(row, half), half) for row in words])


@cache
def _bytes_table() -> Words:
    """Return the checksum of each byte, begun with zero."""
    words = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        words = np.where(words & 1, (words >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), words >> np.uint32(1))
    return words
