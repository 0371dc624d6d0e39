"""Reads an HFile: all of it, or the few blocks that can hold some keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import storage_errors
from . import entries as stored
from .blocks import Block, BlockErrors, Compression, Magic, moved_block, read_block
from .entries import FRAME, DataBlock, Entries
from .first_keys import FirstKeys, first_keys, of_two_positions
from .tail import (
    MAGIC,
    TRAILER_BYTES,
    BlockPlace,
    Trailer,
    read_file_info,
    read_inner_index,
    read_root_index,
    read_trailer,
)

T = TypeVar("T")

SCHEMA = b"schema"
AVERAGE_KEY, AVERAGE_VALUE = b"hfile.AVG_KEY_LEN", b"hfile.AVG_VALUE_LEN"
# The end of a file is read at once, with its index as a rule, and of a small file all blocks.
_READ_FIRST = 64 << 10
# Blocks side by side are read at once, up to so many bytes.
_READ_AT_ONCE = 8 << 20
_MOST_LEVELS = 4
# Smaller blocks are better joined.
_WORTH_COPYING = 16 << 10


class HFile:
    """One HFile that is open; ``source`` is a pyarrow ``NativeFile`` with its bytes, ``shown`` names it in errors.

    Every method raises `CorruptFileError` with the file and the block if the file is damaged.
    """

    def __init__(self, source: Any, path: str, shown: str = "") -> None:
        self._source = source
        self._path = path
        self._shown = shown or f"The HFile {path}"
        with storage_errors("read", path):
            self._size: int = source.size()
        self._window_at = max(0, self._size - _READ_FIRST)
        self._window = memoryview(self._read_bytes(self._window_at, self._size))
        self._ahead = (0, memoryview(b""))

    @cached_property
    def trailer(self) -> Trailer:
        """The file's trailer, checked against the file's size."""
        at = self._size - TRAILER_BYTES
        if at < len(MAGIC):
            raise self._errors(0).damaged(f"for the file has {self._size} bytes, too few for any HFile")
        trailer = self._parsed(at, lambda: read_trailer(bytes(self._bytes(at, self._size))))
        if not 0 <= trailer.load_on_open <= trailer.file_info < at or not 0 < trailer.levels <= _MOST_LEVELS:
            raise self._errors(at).damaged("for it leads out of the file")
        return trailer

    @property
    def count(self) -> int:
        """How many entries the file has."""
        return self.trailer.entries

    @cached_property
    def info(self) -> dict[bytes, bytes]:
        """What the file says of itself."""
        at = self.trailer.file_info
        block = self._block(self._bytes(at, self._size - TRAILER_BYTES), 0, at, Magic.INFO)
        return self._parsed(at, lambda: read_file_info(block.content))

    @property
    def schema(self) -> str:
        """The Avro schema of the values, JSON."""
        try:
            return self.info[SCHEMA].decode()
        except (KeyError, UnicodeDecodeError):
            raise self._errors(self.trailer.file_info).damaged("for it names no schema") from None

    @cached_property
    def blocks(self) -> list[BlockPlace]:
        """The data blocks in their order, by the whole index."""
        trailer = self.trailer
        at = trailer.load_on_open
        root = self._block(self._bytes(at, self._size - TRAILER_BYTES), 0, at, Magic.ROOT)
        places = self._parsed(at, lambda: read_root_index(root.content, trailer.index_entries))
        for _ in range(1, trailer.levels):
            places = [place for parent in places for place in self._inner_places(parent)]
        return places

    def _inner_places(self, place: BlockPlace) -> list[BlockPlace]:
        """Return the places in an inner block of the index."""
        self._check_place(place)
        block = self._block(self._bytes(place.at, place.end), 0, place.at, Magic.LEAF, Magic.INTERMEDIATE)
        return self._parsed(place.at, lambda: read_inner_index(block.content))

    def scan(self) -> Iterator[Entries]:
        """Yield all entries in their order, those of some blocks at a time."""
        remaining = self.count
        for _, block, at in self._data_blocks(range(len(self.blocks))):
            entries = self._parsed(at, block.all)
            remaining -= len(entries)
            yield entries
        if remaining:
            raise self._errors(self._size - TRAILER_BYTES).damaged(
                f"for it states {remaining} entries more than there are"
            )

    def entries_in(self, numbers: Sequence[int]) -> Entries:
        """Return the entries of some data blocks, by the blocks' numbers in their order."""
        return stored.joined([self._parsed(at, block.all) for _, block, at in self._data_blocks(numbers)])

    def moved_block(self, number: int, previous_start: int) -> bytes | None:
        """Return a data block's bytes to follow, in a new file, a block that begins there at ``previous_start``.

        ``number`` is the block's in this file. None if the block cannot be copied and has to be made anew. Blocks side
        by side are read at once.
        """
        place = self.blocks[number]
        self._check_place(place)
        start = self._ahead[0]
        if not start <= place.at < place.end <= start + len(self._ahead[1]):
            end = min(max(place.end, place.at + _READ_AT_ONCE), self.trailer.load_on_open)
            self._ahead = (place.at, self._bytes(place.at, end))
            start = place.at
        data = bytes(self._ahead[1][place.at - start : place.end - start])
        return moved_block(data, previous_start, self._errors(place.at))

    @property
    def averages(self) -> tuple[int, int]:
        """How many bytes a key and a value have on average, as far as the file says."""
        key, value = (int.from_bytes(self.info.get(name, b""), "big") for name in (AVERAGE_KEY, AVERAGE_VALUE))
        return key, value

    @property
    def can_be_copied(self) -> bool:
        """Whether blocks of data may become those of a new file by `moved_block`, and are not too small for that."""
        content = (sum(self.averages) + FRAME) * self.count / max(len(self.blocks), 1)
        if self.trailer.compression != Compression.GZIP or content < _WORTH_COPYING:
            return False
        # The first block tells of which type the checksums are.
        return self.moved_block(0, -1) is not None

    def find(self, keys: pa.BinaryArray) -> Entries:
        """Return the entries of those keys that the file has, in the order of the file."""
        if not self.count:
            return stored.NONE
        ordered = pc.unique(keys.take(pc.sort_indices(keys)))
        keys_by_block: dict[int, list[bytes]] = {}
        for index, searched in self._searches(ordered.to_pylist()):  # O(keys that are looked up)
            for number, of_block in index.blocks_of(searched):
                keys_by_block.setdefault(number, []).extend(of_block)
        return self._entries_in(keys_by_block, DataBlock.find)

    def with_prefixes(self, prefixes: Sequence[bytes]) -> Entries:
        """Return the entries whose keys begin with one of some prefixes, in the order of the file."""
        if not self.count:
            return stored.NONE
        prefixes_by_block: dict[int, list[bytes]] = {}
        for index, searched in self._searches(prefixes):
            for prefix in searched:
                for number in index.blocks_with(prefix):  # O(blocks)
                    prefixes_by_block.setdefault(number, []).append(prefix)
        return self._entries_in(prefixes_by_block, DataBlock.with_prefixes)

    def _searches(self, sought: Sequence[bytes]) -> Iterator[tuple[FirstKeys, Sequence[bytes]]]:
        """Yield the first keys of blocks in each order, with the keys or prefixes to search by them."""
        for index in self._first_keys:
            yield index, sought
            # What has the same position in all orders was searched by the first.
            sought = of_two_positions(sought)

    @cached_property
    def _first_keys(self) -> list[FirstKeys]:
        """The first keys of the blocks in each order in which they ascend; raises if they ascend in none."""
        orders = first_keys([place.key for place in self.blocks])
        if not orders:
            raise self._errors(self.trailer.load_on_open).damaged("for its entries are out of order")
        return orders

    def _entries_in(
        self, sought_by_block: dict[int, list[bytes]], find: Callable[[DataBlock, list[bytes]], Entries]
    ) -> Entries:
        """Return what ``find`` finds in some blocks, given by number what to look for in each."""
        parts = []
        for number, block, at in self._data_blocks(sorted(sought_by_block)):
            entries = self._parsed(at, partial(find, block, sought_by_block[number]))
            if len(entries):
                parts.append(entries)
        return stored.joined(parts)

    def _data_blocks(self, numbers: Sequence[int]) -> Iterator[tuple[int, DataBlock, int]]:
        """Yield some data blocks: the number of each, the block, and the byte of the file at which it begins.

        Blocks side by side are fetched at once.
        """
        places = self.blocks
        position = 0
        while position < len(numbers):
            end = position + 1
            start = places[numbers[position]].at
            while (
                end < len(numbers)
                and places[numbers[end]].at == places[numbers[end - 1]].end
                and places[numbers[end]].end - start <= _READ_AT_ONCE
            ):
                end += 1
            neighbours = [(number, places[number]) for number in numbers[position:end]]
            for _, place in neighbours:
                self._check_place(place)
            data = self._bytes(start, neighbours[-1][1].end)
            for number, place in neighbours:
                part = data[place.at - start : place.end - start]
                yield number, DataBlock(self._block(part, 0, place.at, Magic.DATA).content), place.at
            position = end

    def _check_place(self, place: BlockPlace) -> None:
        """Raise if an index leads to a place outside the part of the file with data."""
        if not 0 <= place.at < place.end <= self.trailer.load_on_open:
            raise self._errors(self.trailer.load_on_open).damaged(f"for it leads to byte {place.at}, where no block is")

    def _block(self, data: memoryview, at: int, shown_at: int, *wanted: Magic) -> Block:
        """Return the block at a position of ``data``, of one of the kinds ``wanted``; errors name byte ``shown_at``."""
        return read_block(data, at, self.trailer.compression, wanted, self._errors(shown_at))

    def _bytes(self, start: int, end: int) -> memoryview:
        """Return a range of the file's bytes; those of the file's end were read when it was opened."""
        if start >= self._window_at:
            return self._window[start - self._window_at : end - self._window_at]
        return memoryview(self._read_bytes(start, end))

    def _read_bytes(self, start: int, end: int) -> Any:
        """Return a range of the file's bytes from the store; raises if the file became shorter."""
        with storage_errors("read", self._path):
            data = self._source.read_at(end - start, start)
        if len(data) != end - start:
            raise self._errors(start).damaged("for the file became shorter while it was read")
        return data

    def _parsed(self, at: int, parse: Callable[[], T]) -> T:
        """Return what a parser makes of the bytes at a position; its ValueError becomes a CorruptFileError."""
        try:
            return parse()
        except ValueError as error:
            raise self._errors(at).damaged(str(error)) from error

    def _errors(self, at: int) -> BlockErrors:
        return BlockErrors(self._shown, at)
