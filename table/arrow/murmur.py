"""Chains of murmur hashes of Arrow strings, as the bloom filters of Hadoop and Apache Hudi take them.

A link of the chain is the hash of the whole string with the link before it as its seed. What a string's bytes add to a
hash does not depend on the seed, so it is computed once for all links. The work runs in chunks that stay in the
processor's cache: over the first words of all strings at once, then over all second words, and so on.

Source: ``org.apache.hudi.common.util.hash.MurmurHash``, which is Austin Appleby's MurmurHash2 except for the bytes
behind the last whole word (one to three): they are signed, and the first of them is the highest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from .string_hash import Bytes, Offsets, string_buffers

Hashes = np.ndarray[Any, np.dtype[np.uint32]]
Rows = np.ndarray[Any, np.dtype[np.int64]]

_CHUNK_ROWS = 8_192
_CHUNK_BYTES = 1 << 18
_FACTOR = np.uint32(0x5BD1E995)
_WORD = 4


@dataclass(frozen=True, slots=True)
class MurmurStrings:
    """Strings ready to be hashed with any seeds, sorted by their number of words, descending.

    Attributes:
        rows: The position of each string in the array that it comes from.
        words: ``words[i]`` is what word i of each string adds, for the strings that have more than i words.
        tails: What the bytes behind the last whole word of each string add.
        factors: What the hash is multiplied by after the tail; 1 if a string has none.
        first: The first link of each string's chain, whose seed is 0.
    """

    rows: Rows
    words: tuple[Hashes, ...]
    lengths: Hashes
    tails: Hashes
    factors: Hashes
    first: Hashes

    def hashed(self, seeds: Hashes) -> Hashes:
        """Return the hash of each string, given a seed for each."""
        hashes = self.lengths ^ seeds
        for words in self.words:
            # The strings with the most words come first.
            longer = hashes[: len(words)]
            longer *= _FACTOR
            longer ^= words
        hashes ^= self.tails
        hashes *= self.factors
        hashes ^= hashes >> np.uint32(13)
        hashes *= _FACTOR
        hashes ^= hashes >> np.uint32(15)
        return hashes

    def chosen(self, positions: Rows) -> MurmurStrings:
        """Return the strings at these positions, which ascend."""
        # How many of the chosen strings have a word 0, a word 1, and so on.
        counts = np.searchsorted(positions, [len(words) for words in self.words])
        words = tuple(
            words[positions[:count]] for words, count in zip(self.words, counts.tolist(), strict=True) if count
        )
        per_string = (self.lengths, self.tails, self.factors, self.first)
        return MurmurStrings(self.rows[positions], words, *(column[positions] for column in per_string))


def murmur_strings(strings: pa.Array) -> Iterator[MurmurStrings]:
    """Yield the strings of an array in chunks: string, large_string, or a dictionary of either, none null."""
    if pa.types.is_dictionary(strings.type):
        strings = strings.dictionary_decode()
    data, offsets = string_buffers(strings)
    rows = len(strings)
    step = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES * rows // max(len(data), 1)))
    for first_row in range(0, rows, step):
        ends = offsets[first_row : first_row + step + 1]
        yield _prepared(data[ends[0] : ends[-1]], ends - ends[0], first_row)


def _prepared(data: Bytes, offsets: Offsets, first_row: int) -> MurmurStrings:
    """Return strings with all parts of their hashes that no seed changes; the first is in row ``first_row``.

    ``data`` are the strings' bytes, one after the other, and ``offsets`` are where each begins and the last ends.
    """
    lengths = np.diff(offsets)
    counts = lengths >> 2
    # The strings with the most words come first, so that those with a word of any number are the first few.
    order = np.argsort(-counts, kind="stable")
    lengths, counts, starts = lengths[order], counts[order], offsets[:-1][order]
    # Up to three bytes before a string's end are read as its tail; the padding is there for a shorter first string.
    padded = np.zeros(len(data) + _WORD, np.uint8)
    padded[_WORD:] = data
    words_at_bytes = np.ndarray((len(data) + 1,), "<u4", padded, 0, (1,))
    starts = starts + _WORD
    most_words = int(counts[0]) if len(counts) else 0
    # How many strings have a word 0, a word 1, and so on.
    having = np.searchsorted(-counts, -np.arange(most_words), side="left")
    words = tuple(
        _mixed(words_at_bytes[starts[:count] + _WORD * number].astype(np.uint32, copy=False))
        for number, count in enumerate(having.tolist())
    )
    tails = _tails(padded, starts + lengths, lengths & 3)
    factors = np.where(lengths & 3, _FACTOR, np.uint32(1))
    no_seed = np.zeros(len(lengths), np.uint32)
    strings = MurmurStrings(order + first_row, words, lengths.astype(np.uint32), tails, factors, no_seed)
    return replace(strings, first=strings.hashed(no_seed))


def _mixed(words: Hashes) -> Hashes:
    """Return words after the three steps by which MurmurHash2 mixes a word before it enters a hash, in place."""
    words *= _FACTOR
    words ^= words >> np.uint32(24)
    words *= _FACTOR
    return words


def _tails(padded: Bytes, ends: Offsets, lengths: Offsets) -> Hashes:
    """Return what the one to three bytes behind the last whole word of each string add to its hash; 0 for none."""
    added = np.zeros(len(ends), np.uint32)
    signed = padded.view(np.int8)
    for distance in range(_WORD - 1):
        byte = signed[ends - 1 - distance].astype(np.int32) << np.int32(8 * distance)
        added ^= np.where(lengths > distance, byte, np.int32(0)).view(np.uint32)
    return added
