"""Wanted record keys found among those of one file slice, whose key column alone is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import NullKeyError
from ..storage.base import Storage
from ..table.files.base_file import BaseFileReader
from ..table.files.bloom_filter import FilterKeys
from ..table.files.file_group import BaseFile, FileSlice
from ..table.files.footers import leaves_of, row_groups_around
from ..table.files.logs.log_contents import BlockContent
from ..table.files.logs.log_scan import effective_blocks
from ..table.files.logs.whole_log import read_log
from ..table.merging.key_probe import KeyProbe
from ..table.schema.columns import RECORD_KEY
from .base import Positions

# Where one of so many keys is found, each is marked; fewer are put in order.
_MANY = 64

# So many keys of a batch tell whether any lie beyond the wanted ones: to hash a key costs ten times what to compare it
# does, and where keys come in the order of time few of a file have to be hashed.
_TOLD_BY = 16

_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """Unique record keys that are looked for.

    Attributes:
        keys: n keys in the order of their bytes.
        probe: Finds keys of files among them.
        filtered: The keys as filters are asked for them.
    """

    keys: pa.StringArray
    probe: KeyProbe
    filtered: FilterKeys

    @classmethod
    def of(cls, keys: pa.StringArray) -> WantedKeys:
        """Return keys, ready to be found.

        Args:
            keys: n unique keys in the order of their bytes, none null.
        """
        return cls(keys, KeyProbe.over(keys), FilterKeys(keys))

    def __len__(self) -> int:
        """Return n."""
        return len(self.keys)

    def some(self, positions: Positions) -> WantedKeys:
        """Return some of the keys, given their positions in ascending order."""
        return WantedKeys.of(self.keys.take(pa.array(positions)))

    def near(self, keys: pa.StringArray) -> pa.StringArray:
        """Return those of some keys that lie between the least and the greatest wanted one; all, if most seem to."""
        if not len(self) or not len(keys):
            return keys
        some = keys.take(pa.array(np.linspace(0, len(keys) - 1, _TOLD_BY, dtype=np.int64)))
        if pc.all(self._between(some)).as_py():  # O(1)
            return keys
        return keys.filter(self._between(keys))

    def _between(self, keys: pa.StringArray) -> pa.BooleanArray:
        return pc.and_(pc.greater_equal(keys, self.keys[0]), pc.less_equal(keys, self.keys[-1]))


@dataclass(frozen=True, slots=True)
class Hits:
    """Which of n wanted keys a file slice holds.

    Attributes:
        positions: Of the keys, each once, in ascending order.
        bytes: Read to find out: footers, key columns of row groups, log files as a whole.
        was_read: Whether any keys were read; what is told beforehand may rule all of them out.
    """

    positions: Positions
    bytes: int = 0
    was_read: bool = False

    @classmethod
    def none(cls, nbytes: int = 0) -> Hits:
        """Return that no key was found, nor any read."""
        return cls(np.zeros(0, np.int64), nbytes)

    def at(self, positions: Positions) -> Hits:
        """Return the same of keys that were looked for as some of others, given the position of each among those."""
        return Hits(positions[self.positions], self.bytes, self.was_read)

    def __add__(self, other: Hits) -> Hits:
        """Return what two files of one slice hold together."""
        if not other.was_read and not other.bytes:
            return self
        both = np.union1d(self.positions, other.positions)
        return Hits(both, self.bytes + other.bytes, self.was_read or other.was_read)


@dataclass(frozen=True, slots=True)
class SliceKeys:
    """The record keys of one file slice.

    Its methods raise `CorruptFileError` where a file cannot be read, `NullKeyError` where one holds rows without a
    record key, and `StorageError` where one is gone.

    Attributes:
        storage: Rooted at the table.
        slice: The slice.
        sees: Returns whether the blocks of an instant, given its requested time, may be seen.
    """

    storage: Storage
    slice: FileSlice
    sees: Callable[[str], bool]

    def __iter__(self) -> Iterator[pa.StringArray]:
        """Yield all record keys, those of the base file and those of the rows in log files."""
        base = self.slice.base
        if base is not None:
            with BaseFileReader(self.storage, base.path) as reader:
                yield from _keys(reader.batches(_KEYS), f"The base file {base.path}")
        for keys in self._of_blocks():
            yield from keys

    def hits(self, wanted: WantedKeys) -> Hits:
        """Return which wanted keys the slice holds, in its base file or its log files."""
        found = self.hits_of_logs(wanted)
        base = self.slice.base
        if base is None:
            return found
        with BaseFileReader(self.storage, base.path) as reader:
            return hits_of_base(reader, base, wanted) + found

    def hits_of_logs(self, wanted: WantedKeys) -> Hits:
        """Return which wanted keys stand in log files: in rows, whether or not they were deleted since.

        A key of a base file that a log file deletes is the base file's, and one that comes again after its delete has
        to meet that delete: both belong to their file group all the while.

        Raises:
            UnsupportedTableError: A block is of a kind that pyhudi does not read.
        """
        logs = self.slice.logs
        found = [_found(keys, wanted) for keys in self._of_blocks()]
        positions = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        return Hits(positions, sum(log.size for log in logs), bool(found))

    def _of_blocks(self) -> Iterator[Iterator[pa.StringArray]]:
        """Yield the keys of each block of rows in the log files."""
        for block in effective_blocks([read_log(self.storage, log) for log in self.slice.logs], self.sees):
            if block.is_data:
                shown = f"{block.shown[:1].upper()}{block.shown[1:]}"
                yield _keys(BlockContent(self.storage, block).rows(_KEYS), shown)


def hits_of_base(base: BaseFileReader, file: BaseFile, wanted: WantedKeys) -> Hits:
    """Return which wanted keys a base file holds; row groups between whose bounds no key lies are left out.

    Args:
        base: The file, open.
        file: Names it.
        wanted: The keys.

    Raises:
        CorruptFileError: The file cannot be read.
        NullKeyError: It holds rows without a record key.
    """
    metadata = base.parquet.metadata
    groups = row_groups_around(base.parquet, RECORD_KEY, wanted.keys)
    leaves = leaves_of(base.parquet, (RECORD_KEY,))
    chunks = (metadata.row_group(number).column(leaf) for number in groups for leaf in leaves)
    nbytes = metadata.serialized_size + sum(chunk.total_compressed_size for chunk in chunks)
    keys = _keys(base.batches(_KEYS, row_groups=groups), f"The base file {file.path}")
    return Hits(_found(keys, wanted), nbytes, bool(groups))


def _keys(batches: Iterable[pa.RecordBatch], shown: str) -> Iterator[pa.StringArray]:
    for batch in batches:
        keys = batch.column(RECORD_KEY)
        if keys.null_count:
            raise NullKeyError(
                f"{shown} holds {keys.null_count} rows without a record key, so that none can be looked up.",
                "A table written without meta columns (hoodie.populate.meta.fields=false) has no keys: write it "
                "anew, or go on with the writer that made it.",
            )
        yield keys


def _found(batches: Iterable[pa.StringArray], wanted: WantedKeys) -> Positions:
    """Return the positions of the wanted keys that are among others, each once."""
    found = [wanted.probe.find(wanted.near(keys)) for keys in batches]
    met = np.concatenate([np.zeros(0, np.int64), *(positions[positions >= 0] for positions in found)])
    if _MANY * len(met) < len(wanted):
        return np.unique(met)
    held = np.zeros(len(wanted), np.bool_)
    held[met] = True
    return np.flatnonzero(held)
