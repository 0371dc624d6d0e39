"""The bloom filter in a base file's footer: which record keys the file may hold, and which it certainly does not.

Sources: ``BloomFilterFactory``, ``SimpleBloomFilter``, ``HoodieDynamicBoundedBloomFilter`` and what they are made of in
``org.apache.hudi.common.bloom``. The bytes are those of Hadoop's filters.
"""

from __future__ import annotations

import base64
import math
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidOptionError
from ..arrow.arrays import Mask, mask, plain
from ..arrow.murmur import Hashes, MurmurStrings, murmur_strings

FILTER = "org.apache.hudi.bloomfilter"
# The filter's key in releases before 0.5.
OLD_FILTER = "com.uber.hoodie.bloomfilter"
TYPE_CODE = "hoodie_bloom_filter_type_code"
# pyhudi's own keys: the filter's checksum, and how many keys were ever put into it.
FILTER_CHECKSUM = "pyhudi.bloomfilter.crc32"
FILTER_KEYS = "pyhudi.bloomfilter.keys"
DYNAMIC = "DYNAMIC_V0"
SIMPLE = "SIMPLE"

_HEAD = struct.Struct(">iibi")
_ROWS = struct.Struct(">iii")
_VERSION = -1
_MURMUR = 1
_MOST_BITS = (1 << 31) - 1
# A forged filter must not keep a process busy: the default filter takes 60 hashes of a key.
_MOST_HASHES = 1 << 16

# The most keys of a file, and of a write, for which all hashes are worked out at once. So few take little memory, and
# probing all their bits at once is faster than one bit after another.
_FEW = 1 << 12
_FEW_IN_ALL = 1 << 17
# The most hashes of a key that are kept.
_MOST_LINKS = 64
# The most keys that a filter may have taken in for each row of its file before it is rebuilt without deleted keys.
_MOST_TAKEN = 1.25

# One array for each hash function, with the hashes of n keys.
Chains = np.ndarray[Any, np.dtype[np.uint32]]
Packed = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """The bloom filters that base files get, from ``hoodie.index.bloom.*`` and ``hoodie.bloom.index.filter.*``."""

    entries: int = 60_000
    false_positives: float = 1e-9
    dynamic: bool = True
    most_entries: int = 100_000

    @property
    def bits(self) -> int:
        return math.ceil(self.entries * (-math.log(self.false_positives) / (math.log(2) * math.log(2))))

    @property
    def hashes(self) -> int:
        return math.ceil(math.log(2) * self.bits / self.entries)


class BloomFilterBuilder:
    """Builds the filter of a base file, as Apache Hudi does, from record keys in the order in which they are added."""

    def __init__(self, settings: BloomSettings) -> None:
        self._settings = settings
        self._size = settings.bits
        if self._size > _MOST_BITS:
            raise InvalidOptionError(
                f"A bloom filter for {settings.entries} keys with a false-positive rate of {settings.false_positives} "
                f"takes {self._size} bits, and Apache Hudi reads {_MOST_BITS} at most.",
                "Lower hoodie.index.bloom.num_entries, or raise hoodie.index.bloom.fpp.",
            )
        # The bits of one row after another, each a byte while the filter is built, so that NumPy sets many at once.
        self._bits = np.zeros(self._size, np.bool_)
        self._rows = 1
        self._in_row = 0
        self._full = False
        self._turn = 0

    @classmethod
    def after(cls, extended: BloomFilter, settings: BloomSettings) -> BloomFilterBuilder:
        """Return a builder that extends a filter for which `BloomFilter.is_of` holds."""
        builder = cls(settings)
        builder._rows, builder._in_row = len(extended.rows), extended.in_row
        builder._bits = np.concatenate(
            [np.unpackbits(row.bits, count=row.size, bitorder="little").view(np.bool_) for row in extended.rows]
        )
        if settings.dynamic and builder._in_row > settings.entries:
            # The key that found the filter full took no turn.
            builder._full, builder._turn = True, builder._in_row - settings.entries - 1
        return builder

    def add(self, keys: pa.Array) -> None:
        """Add record keys, none null; a filter that grows depends on their order."""
        # All rows lie in one array: a key's bits are counted from where its row begins.
        first_bits = self._rows_of(len(keys)) * self._size
        for strings in murmur_strings(keys):
            starts, links = first_bits[strings.rows], strings.first
            # Keys of one row, as most are, need no addition of their starts for each hash.
            in_one = bool((starts == starts[0]).all())
            bits = self._bits[starts[0] :] if in_one else self._bits
            for number in range(self._settings.hashes):
                links = strings.hashed(links) if number else links
                positions = _positions(links, self._size)
                bits[positions if in_one else starts + positions] = True

    def footer(self) -> dict[str, str]:
        """Return the entries of a Parquet footer that hold the filter."""
        head = _HEAD.pack(_VERSION, self._settings.hashes, _MURMUR, self._size)
        bits = self._bits[: self._rows * self._size].reshape(self._rows, self._size)
        rows = [head + np.packbits(row, bitorder="little").tobytes() for row in bits]
        if not self._settings.dynamic:
            return {FILTER: base64.b64encode(rows[0]).decode()}
        counts = _ROWS.pack(self._settings.entries, self._in_row, self._rows)
        return {FILTER: base64.b64encode(b"".join([head, counts, *rows])).decode(), TYPE_CODE: DYNAMIC}

    def _rows_of(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return for each of the next ``count`` keys the number of the filter's row that takes it, and count the keys.

        The last row takes keys until it has `entries` of them; then the filter gets another row. Once its rows have
        room for `most_entries` keys, the filter is full, and further keys go to all rows by turns, as in Apache Hudi.
        """
        rows = np.zeros(count, np.int64)
        if not self._settings.dynamic:
            return rows
        position = 0
        while position < count and not self._full:
            free = self._settings.entries - self._in_row
            if free > 0:
                rows[position : position + free] = self._rows - 1
                self._in_row += min(free, count - position)
                position += free
            elif self._rows * self._settings.entries < self._settings.most_entries:
                self._rows += 1
                self._in_row = 0
                if self._rows * self._size > len(self._bits):
                    self._bits = np.append(self._bits, np.zeros_like(self._bits))
            else:
                # The key that finds the filter full goes to the first row, the keys behind it by turns to each row.
                self._full = True
                self._in_row += 1
                position += 1
        remaining = max(count - position, 0)
        if remaining:
            rows[position:] = (self._turn + np.arange(remaining)) % self._rows
            self._turn += remaining
            self._in_row += remaining
        return rows


class FileFilter:
    """The bloom filter of a base file that is being written; it extends the previous file's filter if it can.

    ``footer`` has the key-values in the previous file's footer, and ``rows`` is how many rows that file has; they are
    empty and 0 for a new file group.
    """

    def __init__(self, settings: BloomSettings, footer: Mapping[bytes, bytes], rows: int) -> None:
        self._extended = _previous_filter(settings, footer, rows)
        if self._extended is None:
            self._builder, self._keys = BloomFilterBuilder(settings), 0
        else:
            self._builder = BloomFilterBuilder.after(self._extended, settings)
            self._keys = int(footer[FILTER_KEYS.encode()])

    def add(self, keys: pa.Array, *, from_previous: bool) -> None:
        """Add record keys, none null; ``from_previous`` says that they are of the previous file."""
        if self._extended is not None:
            if from_previous:
                # The filter that is extended has these keys.
                return
            # A key that the old filter may hold has all of its bits set already.
            keys = keys.filter(pa.array(~self._extended.may_hold(keys)))
        if len(keys):
            self._builder.add(keys)
            self._keys += len(keys)

    def footer(self) -> dict[str, str]:
        entries = self._builder.footer()
        return {**entries, FILTER_CHECKSUM: checksum(entries[FILTER].encode()).decode(), FILTER_KEYS: str(self._keys)}


def checksum(*values: bytes) -> bytes:
    """Return the CRC-32 of values with a zero byte between each two, as eight hexadecimal digits."""
    return b"%08x" % zlib.crc32(b"\0".join(values))


class FilterKeys:
    """Record keys, none null, to be probed in many filters: their hashes are worked out once, when they are needed."""

    def __init__(self, keys: pa.Array) -> None:
        self.keys = plain(keys)
        self._chunks: list[MurmurStrings] = []
        self._chains: Chains | None = None
        self._lock = threading.Lock()

    def between(self, start: int, end: int) -> Iterator[MurmurStrings]:
        """Yield the keys from a position up to another in chunks, ready to be hashed.

        The ``rows`` of a chunk are the positions of its keys.
        """
        if start == end:
            return
        with self._lock:
            self._prepare()
        step = len(self._chunks[0].rows)
        for chunk in self._chunks[start // step : (end - 1) // step + 1]:
            inside = (chunk.rows >= start) & (chunk.rows < end)
            yield chunk if inside.all() else chunk.chosen(np.flatnonzero(inside))

    def chains(self, start: int, end: int, count: int) -> Chains | None:
        """Return the first ``count`` hashes of each key from ``start`` to ``end``, an array for each hash function.

        Each hash is the seed of the next. None if the hashes of all keys would take too much memory.
        """
        if end - start > _FEW or len(self.keys) > _FEW_IN_ALL or count > _MOST_LINKS:
            return None
        with self._lock:
            self._prepare()
            if self._chains is None or len(self._chains) < count:
                self._chains = np.empty((count, len(self.keys)), np.uint32)
                for chunk in self._chunks:
                    links = chunk.first
                    for number in range(count):
                        links = chunk.hashed(links) if number else links
                        self._chains[number, chunk.rows] = links
            return self._chains[:count, start:end]

    def _prepare(self) -> None:
        if not self._chunks:
            self._chunks = list(murmur_strings(self.keys))


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A filter as it was read: it holds a key if any of its rows does.

    Of a filter that grows, each row takes ``entries`` keys, 0 otherwise, and the last row has ``in_row`` keys. Once the
    filter is full, keys beyond that count in ``in_row``, too, whichever row takes them.
    """

    rows: tuple[_Row, ...]
    entries: int = 0
    in_row: int = 0

    @property
    def nbytes(self) -> int:
        return sum(row.bits.nbytes for row in self.rows)

    @classmethod
    def decode(cls, text: bytes, code: str = SIMPLE) -> BloomFilter:
        """Return the filter of a file's footer; ValueError, upon which the caller lets the file hold any key.

        ``text`` is the filter in base64, and ``code`` the name of its type: `SIMPLE`, or `DYNAMIC` for a filter that
        grows by rows.
        """
        data = memoryview(base64.b64decode(text, validate=True))
        entries = in_row = 0
        if code.upper() == SIMPLE:
            rows, end = _read_rows(data, 0, 1)
        elif code.upper() == DYNAMIC:
            counts = _HEAD.size + _ROWS.size
            if len(data) < counts:
                raise ValueError(f"it ends after {len(data)} bytes")
            entries, in_row, count = _ROWS.unpack_from(data, _HEAD.size)
            rows, end = _read_rows(data, counts, count)
        else:
            raise ValueError(f"its type is {code}")
        if end != len(data):
            raise ValueError(f"{len(data) - end} bytes follow its end")
        return cls(rows, entries, in_row)

    def is_of(self, settings: BloomSettings) -> bool:
        """Return whether the filter has the sizes that these settings ask for, so that it can be extended."""
        grows = settings.entries if settings.dynamic else 0
        return self.entries == grows and all(
            row.size == settings.bits and row.hashes == settings.hashes for row in self.rows
        )

    def may_hold(self, keys: pa.Array) -> Mask:
        """Return which record keys, none null, the file may hold; no key that it holds is missing."""
        return self.may_hold_between(FilterKeys(keys), 0, len(keys))

    def may_hold_between(self, keys: FilterKeys, start: int, end: int) -> Mask:
        """Return which keys from ``start`` to ``end`` the file may hold."""
        # No writer can put an empty key into a filter.
        possible = mask(pc.equal(pc.binary_length(keys.keys.slice(start, end - start)), 0))
        chains = keys.chains(start, end, max(row.hashes for row in self.rows))
        if chains is not None:
            # The keys are few, and so all their bits are probed at once.
            for row in self.rows:
                possible |= row.has(chains[: row.hashes]).all(axis=0)
            return possible
        for strings in keys.between(start, end):
            # A key that one row holds is not looked up in the next.
            unanswered = strings
            for row in self.rows:
                is_held = row.holds(unanswered)
                possible[unanswered.rows[is_held] - start] = True
                if is_held.all():
                    break
                unanswered = unanswered.chosen(np.flatnonzero(~is_held))
        return possible


@dataclass(frozen=True, slots=True)
class _Row:
    bits: Packed
    size: int
    hashes: int

    @property
    def head(self) -> bytes:
        """The bytes that say how to read its bits; a filter that grows begins with the same bytes."""
        return _HEAD.pack(_VERSION, self.hashes, _MURMUR, self.size)

    def holds(self, strings: MurmurStrings) -> Mask:
        """Return for which strings all bits are set; strings with an unset bit soon drop out.

        Each hash of a string is the seed of its next hash.
        """
        result = np.zeros(len(strings.rows), np.bool_)
        numbers = np.arange(len(result))
        is_held = np.ones(len(result), np.bool_)
        links = strings.first
        for number in range(self.hashes):
            links = strings.hashed(links) if number else links
            is_held &= self.has(links)
            undecided = np.flatnonzero(is_held)
            if not len(undecided):
                return result
            # To copy the undecided strings pays once at least half of the strings have dropped out.
            if 2 * len(undecided) < len(is_held):
                strings, links, numbers, is_held = (
                    strings.chosen(undecided),
                    links[undecided],
                    numbers[undecided],
                    is_held[undecided],
                )
        result[numbers[is_held]] = True
        return result

    def has(self, links: Chains) -> Mask:
        """Return which of the bits that these hashes mean are set."""
        positions = _positions(links, self.size)
        set_bits: Mask = (self.bits[positions >> np.uint32(3)] >> (positions & np.uint32(7)).astype(np.uint8)) & 1 != 0
        return set_bits


def _previous_filter(settings: BloomSettings, footer: Mapping[bytes, bytes], rows: int) -> BloomFilter | None:
    """Return a footer's filter if it can be extended, else None: pyhudi's checksum shows that it lost no bit.

    None, too, if it took in many more keys than the file has ``rows``: the new filter then leaves deleted keys out.
    """
    text, keys = footer.get(FILTER.encode()), footer.get(FILTER_KEYS.encode())
    if text is None or keys is None or footer.get(FILTER_CHECKSUM.encode()) != checksum(text):
        return None
    if not keys.isdigit() or int(keys) > _MOST_TAKEN * rows:
        return None
    try:
        bloom_filter = BloomFilter.decode(text, footer.get(TYPE_CODE.encode(), SIMPLE.encode()).decode())
    except ValueError:
        return None
    return bloom_filter if bloom_filter.is_of(settings) else None


def _positions(links: Hashes, size: int) -> Hashes:
    """Return which bit each hash means: Java's remainder of the signed hash, without its sign."""
    unsigned = np.abs(links.view(np.int32)).view(np.uint32)
    positions: Hashes = unsigned - unsigned // np.uint32(size) * np.uint32(size)
    return positions


def _read_rows(data: memoryview, position: int, count: int) -> tuple[tuple[_Row, ...], int]:
    """Return the ``count`` rows that begin at a position, and where they end; ValueError for a damaged filter.

    Each row is a bloom filter of its own: a filter that grows gets a new row once its last row is full.
    """
    rows: list[_Row] = []
    hashes_of_all = 0
    for _ in range(count):
        if len(data) < position + _HEAD.size:
            raise ValueError(f"it ends after {len(data)} bytes, in row {len(rows) + 1} of {count}")
        version, hashes, hash_kind, size = _HEAD.unpack_from(data, position)
        if version != _VERSION or hash_kind != _MURMUR:
            raise ValueError("its hashes are not murmur's, or it is older than Hudi")
        position += _HEAD.size
        end = position + (size + 7) // 8
        hashes_of_all += hashes
        # The limit of hashes keeps a forged filter from occupying the process.
        if size < 1 or hashes < 1 or end > len(data) or hashes_of_all > _MOST_HASHES:
            raise ValueError(f"row {len(rows) + 1} of {count} has {hashes} hashes and {size} bits")
        rows.append(_Row(np.frombuffer(data[position:end], np.uint8), size, hashes))
        position = end
    if not rows:
        raise ValueError("it has no rows")
    return tuple(rows), position
