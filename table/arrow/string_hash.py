"""Hashes of Arrow strings, whole columns at a time: Java's ``String.hashCode`` and a well mixed 64-bit one.

Each string is read as 8-byte little-endian words that are aligned to its *end*; the first word is filled up with zero
bytes, which change neither hash. A hash is then a sum of one term per word, and the weight of a word depends on its
distance from the end alone, so that the same few numpy passes hash strings of all lengths. The work runs in chunks that
stay in the processor's cache.

Sources: ``java.lang.String.hashCode``; the finaliser of MurmurHash3 (``fmix64``) by Austin Appleby.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import DataError

Words = np.ndarray[Any, np.dtype[np.uint64]]
Offsets = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Hashes = np.ndarray[Any, Any]
Kernel = Callable[[pa.Array], Hashes]
# The terms of a hash: (words, overwritten; how many words follow each in its string) -> terms.
Mix = Callable[[Words, int | Offsets], Words]

_CHUNK_ROWS = 32_768
_CHUNK_BYTES = 1 << 19
_WORD = 8
_MANY_WORDS = 32
_TABLE_BITS = 12
_NOT_ASCII = 0x80
_BEYOND_BASIC_PLANE = 0xF0
_FIRST_BYTES = -0x40
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio, an odd number
_OTHER = 0x6A09E667F3BCC909  # 2**64 times the digits of the square root of 2 behind the point, an odd number


def java_string_hash(array: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return Java's 32-bit ``String.hashCode`` of each string; null is 0. Raises DataError for invalid UTF-8."""
    return _hashes_of(array, _java_hashes, np.dtype(np.int32))


def hash64(array: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return a 64-bit hash of each string's bytes, good in all its bits and the same in every process; null is 0."""
    return _hashes_of(array, partial(_mixed_hashes, term=_term64, of_length=_GOLDEN), np.dtype(np.uint64))


def other_hash64(array: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return a second hash of the kind of `hash64`; both together are 128 bits."""
    return _hashes_of(array, partial(_mixed_hashes, term=_other_term64, of_length=_OTHER), np.dtype(np.uint64))


def _hashes_of(array: pa.Array | pa.ChunkedArray, kernel: Kernel, dtype: np.dtype[Any]) -> Hashes:
    """Return the hashes of a string, large_string or dictionary array, 0 for null.

    ``kernel`` hashes an array of strings, whatever it returns for nulls, and ``dtype`` is the type of its hashes.
    """
    if isinstance(array, pa.ChunkedArray):
        parts = [_hashes_of(chunk, kernel, dtype) for chunk in array.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype)
    if pa.types.is_dictionary(array.type):
        # One more hash than there are values: null rows point at value 0, which an empty dictionary lacks.
        of_values = np.append(_hashes_of(array.dictionary, kernel, dtype), dtype.type(0))
        hashes: Hashes = of_values[array.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        hashes *= _valid(array, dtype)
        return hashes
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        raise TypeError(f"strings are hashed, not {array.type}")
    hashes = kernel(array)
    if array.null_count:
        hashes *= _valid(array, dtype)
    return hashes


def _valid(array: pa.Array, dtype: np.dtype[Any]) -> Hashes:
    """Return 1 for each value and 0 for each null, as factors that make the hashes of nulls 0."""
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False)).astype(dtype)


def _mixed_hashes(array: pa.Array, term: Mix, of_length: int) -> Words:
    """Return 64-bit hashes: the mixed sum of a ``term`` for each word and of one for the string's length.

    ``of_length`` is the factor of the length, an odd number.
    """
    hashes = np.empty(len(array), np.uint64)
    for first_row, data, offsets in _chunks(array):
        sums = _sum_words(data, offsets, term)
        sums += (np.diff(offsets) + 1).astype(np.uint64) * np.uint64(of_length)
        hashes[first_row : first_row + len(sums)] = _fmix(sums)
    return hashes


def _java_hashes(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return Java's hashes. The bytes of ASCII text are its UTF-16 code units; other strings are hashed again."""
    hashes = np.empty(len(array), np.int32)
    for first_row, data, offsets in _chunks(array):
        end_row = first_row + len(offsets) - 1
        hashes[first_row:end_row] = _sum_words(data, offsets, _term_of_8_bytes).astype(np.uint32).view(np.int32)
        if data.max(initial=0) >= _NOT_ASCII:
            rows = np.flatnonzero(_per_string(np.bitwise_or, data, offsets) >= _NOT_ASCII)
            hashes[first_row + rows] = _java_hashes_of_utf16(
                array.slice(first_row, end_row - first_row).take(pa.array(rows))
            )
    return hashes


def _java_hashes_of_utf16(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return Java's hashes of strings that have characters beyond ASCII, by their UTF-16 code units."""
    data, offsets = string_buffers(array)
    try:
        units = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-16-le"), np.uint8)
    except UnicodeDecodeError as wrong:
        raise DataError(
            f"A string that is a key is not valid UTF-8: {wrong.reason} near {wrong.object[wrong.start :][:40]!r}.",
            "Repair the column, or turn it into text (base64, hex) before it becomes a key.",
        ) from wrong
    # A character is one code unit, beyond the basic plane two; its later bytes in UTF-8 look like 0b10xxxxxx.
    lengths = _per_string(np.add, data.view(np.int8) >= _FIRST_BYTES, offsets)
    if data.max(initial=0) >= _BEYOND_BASIC_PLANE:
        lengths += _per_string(np.add, data >= _BEYOND_BASIC_PLANE, offsets)
    ends = np.zeros(len(offsets), np.int64)
    np.cumsum(2 * lengths, out=ends[1:])
    return _sum_words(units, ends, _term_of_4_units).astype(np.uint32).view(np.int32)


def _per_string(ufunc: np.ufunc, values: np.ndarray[Any, Any], offsets: Offsets) -> Offsets:
    """Return the ufunc's reduction of the values of each string's bytes, 0 for empty strings."""
    reduced = np.zeros(len(offsets) - 1, np.int64)
    filled = offsets[1:] > offsets[:-1]
    reduced[filled] = ufunc.reduceat(values.view(np.uint8), offsets[:-1][filled], dtype=np.int32)
    return reduced


def _chunks(array: pa.Array) -> Iterator[tuple[int, Bytes, Offsets]]:
    """Yield (first row, bytes, offsets from 0) of consecutive rows that fit the cache."""
    data, offsets = string_buffers(array)
    rows = len(array)
    step = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES * rows // max(len(data), 1)))
    for first_row in range(0, rows, step):
        ends = offsets[first_row : first_row + step + 1]
        yield first_row, data[ends[0] : ends[-1]], ends - ends[0]


def string_buffers(array: pa.Array) -> tuple[Bytes, Offsets]:
    """Return the bytes that the array's own rows span, and n + 1 offsets into them, without copying the bytes."""
    if len(array) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offset_buffer, data_buffer = array.buffers()
    dtype = np.int64 if pa.types.is_large_string(array.type) else np.int32
    offsets = np.frombuffer(offset_buffer, dtype)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    return data[offsets[0] : offsets[-1]], np.subtract(offsets, offsets[0], dtype=np.int64)


def _sum_words(data: Bytes, offsets: Offsets, mix: Mix) -> Words:
    """Return for each string the sum of its words' terms, by the way that is faster for these lengths.

    ``data`` are the strings' bytes, one after the other, ``offsets`` where each begins and the last ends, and ``mix``
    makes a term of each word.
    """
    lengths = np.diff(offsets)
    counts = (lengths + (_WORD - 1)) >> 3
    most_words = int(counts.max(initial=0))
    # The first words of strings may reach back beyond all of them.
    front = min(most_words, _MANY_WORDS) * _WORD
    padded = np.empty(front + len(data), np.uint8)
    padded[:front] = 0
    padded[front:] = data
    # By distance, each string takes as many steps as the longest: too many if most strings are shorter.
    if most_words <= _MANY_WORDS and most_words * len(lengths) <= 2 * int(counts.sum()):
        return _sum_by_distance(padded, offsets, lengths, most_words, mix)
    return _sum_by_string(padded, offsets, lengths, counts, mix)


def _sum_by_distance(padded: Bytes, offsets: Offsets, lengths: Offsets, most_words: int, mix: Mix) -> Words:
    """Return sums of terms for strings of similar lengths: all last words at once, then all last but one, and so on.

    ``padded`` are the strings' bytes behind room for ``most_words`` words, the number that the longest string has.
    ``offsets`` is where each string begins, and the last ends, in the bytes without that room. ``mix`` makes terms of
    words and of how many words follow each in its string.
    """
    sums = np.zeros(len(lengths), np.uint64)
    if not most_words:
        return sums
    shortest, longest = int(lengths.min()), int(lengths.max())
    unused = (_WORD - lengths) << 3
    for distance in range(most_words):
        start = (most_words - 1 - distance) * _WORD
        if shortest == longest:
            # The words lie at even distances, and need no positions.
            words = np.ndarray((len(lengths),), "<u8", padded, start + longest, (longest,)).astype(np.uint64)
        else:
            words = _words_at(padded, offsets[1:] + start)
        if shortest < (distance + 1) * _WORD:
            # Some strings begin within this word, or behind it: what is in front of them must not count.
            _clear(words, np.clip(unused + 64 * distance, 0, 64))
        sums += mix(words, distance)
    return sums


def _sum_by_string(padded: Bytes, offsets: Offsets, lengths: Offsets, counts: Offsets, mix: Mix) -> Words:
    """Return sums of terms for strings of any lengths: the words of all strings in one array, last words first.

    ``counts`` is how many words each string has; the other arguments are as in `_sum_words`, from which they come.
    """
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    distance = np.arange(bounds[-1])
    distance -= np.repeat(bounds[:-1], counts)
    starts = np.repeat(offsets[1:] + (len(padded) - int(offsets[-1]) - _WORD), counts)
    starts -= distance << 3
    words = _words_at(padded, starts)
    # The first word of a string whose length is no multiple of a word also has bytes in front of the string.
    not_whole = np.flatnonzero(lengths & (_WORD - 1))
    heads = bounds[1:][not_whole] - 1
    words[heads] = _clear(words[heads], (-lengths[not_whole] & (_WORD - 1)) << 3)
    sums = np.zeros(len(words) + 1, np.uint64)
    np.cumsum(mix(words, distance), out=sums[1:])
    return sums[bounds[1:]] - sums[bounds[:-1]]


def _words_at(padded: Bytes, starts: Offsets) -> Words:
    """Return the 8 bytes at each start as a little-endian number."""
    words_at_bytes = np.ndarray((max(len(padded) - _WORD + 1, 0),), "<u8", padded, 0, (1,))
    words: Words = words_at_bytes[starts].astype(np.uint64, copy=False)
    return words


def _clear(words: Words, bits: Offsets) -> Words:
    """Make the lowest bits of each word zero, in place; they belong to the text in front of the string."""
    shift = bits.astype(np.uint64)
    words >>= shift
    words <<= shift
    return words


def _fmix(words: Words) -> Words:
    """Return words mixed by ``fmix64``, in place: each bit of a word changes about half of the result's bits."""
    words ^= words >> np.uint64(33)
    words *= np.uint64(0xFF51AFD7ED558CCD)
    words ^= words >> np.uint64(33)
    words *= np.uint64(0xC4CEB9FE1A85EC53)
    words ^= words >> np.uint64(33)
    return words


def _term64(words: Words, distance: int | Offsets) -> Words:
    """Return the terms of `hash64`, weighted by how many words follow each word."""
    words *= _powers(_GOLDEN, distance)
    return _fmix(words)


def _other_term64(words: Words, distance: int | Offsets) -> Words:
    """Return the terms of `other_hash64`, weighted by how many words follow each word."""
    # The last word, too, gets a factor: it is the only word of a short string.
    words *= _powers(_OTHER, distance + 1)
    return _fmix(words)


def _term_of_8_bytes(words: Words, distance: int | Offsets) -> Words:
    """Return Java's hash of the 8 ASCII characters of each word, weighted by what follows the word."""
    words = _join(_join(_join(words, 8, 31), 16, 31**2), 32, 31**4)
    words *= _powers(31**8, distance)
    return words


def _term_of_4_units(words: Words, distance: int | Offsets) -> Words:
    """Return Java's hash of the 4 UTF-16 code units of each word, weighted by what follows the word."""
    words = _join(_join(words, 16, 31), 32, 31**2)
    words *= _powers(31**4, distance)
    return words


def _join(words: Words, bits: int, factor: int) -> Words:
    """Return words with half as many lanes, each twice as wide: earlier neighbour * factor + later neighbour.

    ``bits`` is the width of a lane in ``words``, which are overwritten.
    """
    mask = np.uint64(sum((1 << bits) - 1 << shift for shift in range(0, 64, 2 * bits)))
    joined: Words = words & mask
    joined *= np.uint64(factor)
    words >>= np.uint64(bits)
    words &= mask
    joined += words
    return joined


def _powers(base: int, exponents: int | Offsets) -> Any:
    """Return the powers of a base modulo 2**64: of one exponent a number, of an array an array."""
    if isinstance(exponents, int):
        return np.uint64(pow(base, exponents, 1 << 64))
    # A table of all powers would be too large for long strings: the power of the high bits is a factor of its own.
    bits = int(exponents.max(initial=0)).bit_length()
    if bits <= _TABLE_BITS:
        return _power_table(base, bits)[exponents]
    powers = _power_table(base, _TABLE_BITS)[exponents & ((1 << _TABLE_BITS) - 1)]
    powers *= _powers(pow(base, 1 << _TABLE_BITS, 1 << 64), exponents >> _TABLE_BITS)
    return powers


@lru_cache(maxsize=64)
def _power_table(base: int, bits: int) -> Words:
    """Return the powers of a base for all exponents of ``bits`` bits."""
    table = np.full(1 << bits, base, np.uint64)
    table[0] = 1
    return np.cumprod(table)
