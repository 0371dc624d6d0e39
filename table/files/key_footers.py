"""What the footer of a base file says of its record keys: between which they lie, and a bloom filter over them.

Footers are kept for as long as the process lives, because a file never changes and its filter is most of a footer.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from ...storage.base import Storage
from ...storage.threads import for_each
from ..arrow.arrays import span_of
from .base_file import MAX_KEY, MIN_KEY, RANGE_CHECKSUM, open_base
from .bloom_filter import FILTER, FILTER_CHECKSUM, OLD_FILTER, SIMPLE, TYPE_CODE, BloomFilter, FilterKeys, checksum
from .file_group import BaseFile

logger = logging.getLogger("pyhudi")

Positions = np.ndarray[Any, np.dtype[np.int64]]
T = TypeVar("T")

# From this character on, the order by Java's 16-bit units differs from the order by code points or by bytes.
_DISPUTED = "\ue000"
_MOST_OF_RANGES = 64 << 20
_MOST_OF_FILTERS = 128 << 20
_A_RANGE = 400
# With more keys than FEW, `possible` does not find out which of them a filter lets pass, only whether any does.
FEW = 1 << 12
# How many keys it probes first to find that out.
_FIRST = 1 << 9


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The least and the greatest record key of a base file."""

    least: str
    greatest: str

    @classmethod
    def of(cls, footer: Mapping[bytes, bytes], path: str) -> KeyRange | None:
        """Return a footer's range of keys; None if it has none, or none that is sure: the file may hold any key.

        Writers of Apache Hudi order texts as Java does or by bytes. A bound with a character that the two order
        differently voids the range. A damaged range is logged.
        """
        bounds = [footer[key.encode()] for key in (MIN_KEY, MAX_KEY) if key.encode() in footer]
        if len(bounds) < 2:
            return None
        stored_checksum = footer.get(RANGE_CHECKSUM.encode())
        if stored_checksum is not None and stored_checksum != checksum(*bounds):
            logger.warning("the range of keys of the base file %s cannot be used: it does not match its checksum", path)
            return None
        try:
            least, greatest = (bound.decode() for bound in bounds)
        except UnicodeDecodeError:
            return None
        if least > greatest or max(least + greatest, default="") >= _DISPUTED:
            return None
        return cls(least, greatest)


class FooterFilter:
    """The bloom filter in a base file's footer, decoded on first use, because most ranges rule it out."""

    def __init__(self, text: bytes, code: bytes, stored_checksum: bytes | None, path: str) -> None:
        self.nbytes = len(text)
        self._encoded: tuple[bytes, bytes, bytes | None, str] | None = (text, code, stored_checksum, path)
        self._decoded: BloomFilter | None = None

    def get(self) -> BloomFilter | None:
        """Return the filter; None if it cannot be read, which is logged: the file may then hold any key."""
        encoded = self._encoded
        if encoded is not None:
            text, code, stored_checksum, path = encoded
            try:
                if stored_checksum is not None and stored_checksum != checksum(text):
                    raise ValueError("it does not match its checksum")
                self._decoded = BloomFilter.decode(text, code.decode())
            except ValueError as error:
                logger.warning("the bloom filter of the base file %s cannot be used: %s", path, error)
            self._encoded = None
        return self._decoded


@dataclass(frozen=True, slots=True)
class KeyFooter:
    """What a footer says of the file's record keys; None for a range or a filter that it lacks."""

    range: KeyRange | None = None
    filter: FooterFilter | None = None

    @classmethod
    def of(cls, footer: Mapping[bytes, bytes], path: str) -> KeyFooter:
        """Return what the key-values of a footer say; ``path`` names the base file in warnings."""
        text = footer.get(FILTER.encode()) or footer.get(OLD_FILTER.encode())
        code = footer.get(TYPE_CODE.encode(), SIMPLE.encode())
        stored_checksum = footer.get(FILTER_CHECKSUM.encode())
        return cls(KeyRange.of(footer, path), None if text is None else FooterFilter(text, code, stored_checksum, path))

    def possible(self, keys: pa.StringArray | FilterKeys, *, by_range: bool = True) -> Positions:
        """Return the positions of the keys that the file may hold; no key that it holds is missing.

        ``keys`` come in the order of their bytes, none null; pass `FilterKeys` if many files are probed. Of more
        than `FEW` keys in the range, either all or none are returned. Without ``by_range`` the filter alone decides.
        """
        filter_keys = keys if isinstance(keys, FilterKeys) else FilterKeys(keys)
        start, end = 0, len(filter_keys.keys)
        if by_range and self.range is not None:
            start, end = span_of(filter_keys.keys, self.range.least, self.range.greatest)
        bloom_filter = None if self.filter is None or start == end else self.filter.get()
        if bloom_filter is None:
            return np.arange(start, end)
        if end - start <= FEW:
            return start + np.flatnonzero(bloom_filter.may_hold_between(filter_keys, start, end))
        # With so many keys, the filter is probed only until the first hit. Reading the key column then answers the rest
        # faster.
        position, step = start, _FIRST
        while (
            position < end and not bloom_filter.may_hold_between(filter_keys, position, min(position + step, end)).any()
        ):
            position, step = position + step, 2 * step
        return np.arange(start if position < end else end, end)


class _FileCache(Generic[T]):
    """Values by file; beyond a number of bytes the least recently used values are dropped."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._values: OrderedDict[tuple[str, int], tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int]) -> tuple[T] | None:
        """Return a file's value alone in a tuple, as it may be None itself; None, without a tuple, if none is kept."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            return (entry[0],)

    def put(self, key: tuple[str, int], value: T, nbytes: int) -> None:
        """Keep a value, and drop the least recently used values until all kept values have few enough bytes."""
        with self._lock:
            previous = self._values.pop(key, None)
            self._bytes += nbytes - (0 if previous is None else previous[1])
            self._values[key] = (value, nbytes)
            while self._bytes > self._most_bytes:
                _, (_, freed) = self._values.popitem(last=False)
                self._bytes -= freed

    def forget(self) -> None:
        """Drop all values, without waiting for a thread that changes them."""
        self._bytes, self._values, self._lock = 0, OrderedDict(), threading.Lock()


class KeyFooters:
    """The footers that this process has read; filters, which are larger, are dropped sooner than ranges."""

    def __init__(self, *, ranges: int = _MOST_OF_RANGES, filters: int = _MOST_OF_FILTERS) -> None:
        self._ranges: _FileCache[KeyRange | None] = _FileCache(ranges)
        self._filters: _FileCache[FooterFilter | None] = _FileCache(filters)

    def peek(self, storage: Storage, file: BaseFile) -> KeyFooter | None:
        """Return what a file's footer says; None unless both its range and its filter are kept."""
        key = _name(storage, file)
        ranges, filters = self._ranges.get(key), self._filters.get(key)
        return None if ranges is None or filters is None else KeyFooter(ranges[0], filters[0])

    def range_of(self, storage: Storage, file: BaseFile) -> KeyRange | None:
        """Return a file's range of keys if it is kept; None if it is not, and for a file without a range."""
        entry = self._ranges.get(_name(storage, file))
        return None if entry is None else entry[0]

    def keep(self, storage: Storage, file: BaseFile, parquet: Any) -> KeyFooter:
        """Return what an opened file's footer says, and keep it; ``parquet`` is pyarrow's reader of the file."""
        footer = KeyFooter.of(parquet.metadata.metadata or {}, file.path)
        key, size = _name(storage, file), 0
        if footer.range is not None:
            size = len(footer.range.least) + len(footer.range.greatest)
        self._ranges.put(key, footer.range, _A_RANGE + len(key[0]) + size)
        self._filters.put(key, footer.filter, _A_RANGE + (0 if footer.filter is None else footer.filter.nbytes))
        return footer

    def read(self, storage: Storage, file: BaseFile) -> KeyFooter:
        """Return what a file's footer says; the file is opened if its footer is not kept."""
        footer = self.peek(storage, file)
        if footer is not None:
            return footer
        with open_base(storage, file) as base:
            return self.keep(storage, file, base.parquet)

    def forget(self) -> None:
        """Drop all footers, for a forked child process: a thread that changes the parent's is not in the child."""
        self._ranges.forget()
        self._filters.forget()


FOOTERS = KeyFooters()
os.register_at_fork(after_in_child=FOOTERS.forget)


def key_ranges(storage: Storage, files: Iterable[BaseFile]) -> list[KeyRange | None]:
    """Return the range of keys of each file, None without one; footers that are not kept are read."""
    return for_each(
        storage, lambda file: FOOTERS.range_of(storage, file) or FOOTERS.read(storage, file).range, files, computes=True
    )


def _name(storage: Storage, file: BaseFile) -> tuple[str, int]:
    return storage.uri(file.path), file.size
