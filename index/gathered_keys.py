"""The keys of a file slice, gathered while a lookup reads them, within a bound of memory."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from ..table.files.file_group import FileSlice
from ..table.merging.key_set import BYTES_OF_A_KEY, KeyHashes, KeySet


class Room:
    """Free bytes of memory, which several threads take."""

    def __init__(self, free: int) -> None:
        self._free = free
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        return max(self._free, 0)

    def take(self, nbytes: int) -> bool:
        """Take so many bytes; False, without effect, if fewer are free."""
        with self._lock:
            if nbytes > self._free:
                return False
            self._free -= nbytes
            return True


@dataclass(slots=True)
class GatheredKeys:
    """Takes the keys that a lookup of one slice reads, as long as there is room, so that the process can keep them."""

    room: Room
    _base: list[KeyHashes] = field(default_factory=list)
    _logs: list[KeyHashes] = field(default_factory=list)
    _has_base: bool = False
    _lacks_some: bool = False

    def takes_base(self, rows: int) -> bool:
        """Return whether there is room for the keys of a base file; the caller then reads all of them."""
        self._has_base = self.room.take(BYTES_OF_A_KEY * rows)
        return self._has_base

    def of_base(self, batches: Iterable[pa.StringArray]) -> Iterator[pa.StringArray]:
        """Yield the keys of a base file unchanged, and gather them; only after `takes_base` returned True."""
        for keys in batches:
            self._base.append(KeyHashes.of(keys))
            yield keys

    def of_log(self, batches: Iterable[pa.StringArray]) -> Iterator[pa.StringArray]:
        """Yield the keys of a log block unchanged, and gather them; without room for them, `all_keys` returns None."""
        for keys in batches:
            if self._lacks_some or not self.room.take(BYTES_OF_A_KEY * len(keys)):
                self._lacks_some = True
            else:
                self._logs.append(KeyHashes.of(keys))
            yield keys

    def all_keys(self, file_slice: FileSlice) -> KeySet | None:
        """Return the keys of the slice; None if the lookup did not read all, or found no room for some.

        None, too, if the base file holds a key several times, which each lookup has to see.
        """
        if self._lacks_some or (file_slice.base is not None and not self._has_base):
            return None
        keys = KeySet.of(self._base)
        if len(keys) < sum(map(len, self._base)):
            return None
        return keys.added(KeyHashes.joined(self._logs)) if self._logs else keys
