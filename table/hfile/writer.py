"""Writes an HFile."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc

from .blocks import Compression, Magic, write_block
from .entries import MOST_OF_A_KEY, Entries, encode
from .reader import AVERAGE_KEY, AVERAGE_VALUE, SCHEMA
from .tail import BlockPlace, Trailer, index_key, write_file_info, write_root_index, write_trailer

# Apache Hudi's reader looks for no entry in the last bytes of a block, four for each checksum: in a block of at most
# 64 KiB these are fewer than any entry has.
BLOCK_BYTES = 64 << 10
# How full a block is that has room for more entries.
_FILLED = 0.75
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


@dataclass(slots=True, eq=False)
class HFileWriter:
    """Writes entries, given in the order of their keys as bytes, as one HFile; an entry may be larger than a block.

    ``schema`` is the Avro schema of the values, JSON. ``notes`` are what else the file says of itself.
    """

    stream: Any
    schema: str
    _: KW_ONLY
    compression: Compression = Compression.GZIP
    block_bytes: int = BLOCK_BYTES
    notes: Mapping[bytes, bytes] = field(default_factory=dict)
    made_at: float | None = None
    size: int = field(default=0, init=False)
    count: int = field(default=0, init=False)
    _blocks: list[BlockPlace] = field(default_factory=list, init=False)
    _last_key: bytes | None = field(default=None, init=False)
    _previous_start: int = field(default=-1, init=False)
    _sizes: list[int] = field(default_factory=lambda: [0, 0], init=False)

    def add(self, entries: Entries) -> None:
        """Write entries behind those written so far; each call ends its last block.

        Raises ValueError if a key is not greater than the key before, or longer than an HFile's keys.
        """
        if not len(entries):
            return
        self._check(entries)
        data, places = encode(entries)
        start = 0
        while start < len(entries):
            end = int(np.searchsorted(places, places[start] + self.block_bytes, side="right")) - 1
            # An entry that is larger than a block has a block of its own.
            end = max(end, start + 1)
            first_key = entries.keys[start].as_py()  # one value a block
            self._data_block(first_key, data[places[start] : places[end]])
            start = end
        self._count_entries(entries)

    def _count_entries(self, entries: Entries) -> None:
        """Count written entries, and keep their last key, below which no further entry may be."""
        self.count += len(entries)
        self._last_key = entries.keys[-1].as_py()  # one value a call
        for number, array in enumerate((entries.keys, entries.values)):
            self._sizes[number] += int(pc.sum(pc.binary_length(array)).as_py())  # one value a call

    def add_evenly(self, entries: Entries) -> None:
        """Write entries as `add` does, in blocks of about the same size that have room for more entries."""
        if not len(entries):
            return
        self._check(entries)
        data, places = encode(entries)
        count = -(-int(places[-1]) // int(self.block_bytes * _FILLED))
        ends = np.searchsorted(places, np.arange(1, count + 1) * places[-1] // count, side="right") - 1
        start = 0
        # An entry that is larger than a share of the bytes leaves fewer ends than shares.
        for end in np.unique(ends[ends > 0]).tolist():  # O(blocks)
            self._data_block(entries.keys[start].as_py(), data[places[start] : places[end]])  # one value a block
            start = end
        self._count_entries(entries)

    def copy(self, block: bytes, first_key: bytes) -> None:
        """Write a whole data block of another file with the same compression, as `HFile.moved_block` made it.

        ``first_key`` is not greater than any of its keys. The caller counts its entries by `note_copied`.
        """
        self._previous_start = self.size
        self._blocks.append(BlockPlace(self.size, len(block), first_key))
        self._write(block)
        self._last_key = first_key

    def note_copied(self, count: int, key_bytes: int, value_bytes: int) -> None:
        """Count entries in copied blocks, with the bytes of all their keys and values."""
        self.count += count
        self._sizes[0] += key_bytes
        self._sizes[1] += value_bytes

    @property
    def before(self) -> int:
        """Where the last data block begins, -1 for none."""
        return self._previous_start

    def close(self) -> None:
        """Write the index and the rest of the file's end; the stream stays open."""
        load_on_open = self.size
        self._write(write_block(Magic.ROOT, write_root_index(self._blocks), -1, self.compression))
        # The index of meta blocks, of which there are none.
        self._write(write_block(Magic.ROOT, b"", -1, self.compression))
        file_info = self.size
        self._write(write_block(Magic.INFO, write_file_info(self._info()), -1, self.compression))
        first_block, last_block = (self._blocks[0].at, self._blocks[-1].at) if self._blocks else (0, 0)
        trailer = Trailer(
            file_info,
            load_on_open,
            len(self._blocks),
            self.count,
            1,
            first_block,
            last_block,
            self.compression,
            load_on_open,
        )
        self._write(write_trailer(trailer))

    def _check(self, entries: Entries) -> None:
        """Raise ValueError if keys do not ascend from the last key, or a key is too long."""
        keys = entries.keys
        grows = pc.all(pc.less(keys[:-1], keys[1:]), min_count=0).as_py()  # one value a call
        first_key = keys[0].as_py()  # one value a call
        if not grows or (self._last_key is not None and not self._last_key < first_key):
            raise ValueError("the keys of an HFile come in their order as bytes, each once")
        if pc.max(pc.binary_length(keys)).as_py() > MOST_OF_A_KEY:  # one value a call
            raise ValueError(f"a key of an HFile has at most {MOST_OF_A_KEY} bytes")

    def _data_block(self, first_key: bytes, content: bytes) -> None:
        """Write a data block, and note its place for the index."""
        block = write_block(Magic.DATA, content, self._previous_start, self.compression)
        self._previous_start = self.size
        self._blocks.append(BlockPlace(self.size, len(block), first_key))
        self._write(block)

    def _info(self) -> dict[bytes, bytes]:
        """Return what the file says of itself: the schema, average sizes and the last key, and the caller's notes."""
        made_at = time.time() if self.made_at is None else self.made_at
        keys, values = (size // max(self.count, 1) for size in self._sizes)
        info = {
            SCHEMA: self.schema.encode(),
            AVERAGE_KEY: _INT.pack(keys),
            AVERAGE_VALUE: _INT.pack(values),
            b"hfile.CREATE_TIME_TS": _LONG.pack(int(made_at * 1000)),
            b"KEY_VALUE_VERSION": _INT.pack(1),
            b"MAX_MEMSTORE_TS_KEY": _LONG.pack(0),
        }
        if self._last_key is not None:
            info[b"hfile.LASTKEY"] = index_key(self._last_key)
        return {**info, **self.notes}

    def _write(self, data: bytes) -> None:
        self.stream.write(data)
        self.size += len(data)
