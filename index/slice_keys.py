"""Which wanted record keys one file slice holds; only the key column is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import NullKeyError
from ..storage.base import Storage
from ..table.files.base_file import BaseFileReader, open_base
from ..table.files.bloom_filter import FilterKeys
from ..table.files.file_group import BaseFile, FileSlice
from ..table.files.footers import leaves_of, row_groups_around
from ..table.files.logs.log_contents import BlockContent
from ..table.files.logs.log_scan import effective_blocks
from ..table.files.logs.whole_log import read_log
from ..table.merging.key_probe import KeyProbe
from ..table.merging.key_set import KeySet
from ..table.schema.columns import RECORD_KEY
from .base import Positions
from .gathered_keys import GatheredKeys

# Above one hit in this many wanted keys, a mask over all keys is faster than sorting the hits.
_MANY = 64

# This many keys of a batch are sampled to decide whether any lie outside the range of the wanted keys: hashing a key
# costs ten times as much as comparing it, and if keys ascend with time few keys of a file have to be hashed.
_SAMPLE = 16

_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """Unique record keys to look for, in the order of their bytes, with the probe and filter hashes for them."""

    keys: pa.StringArray
    probe: KeyProbe
    filtered: FilterKeys

    @classmethod
    def of(cls, keys: pa.StringArray) -> WantedKeys:
        return cls(keys, KeyProbe(keys), FilterKeys(keys))

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, positions: Positions) -> WantedKeys:
        """Return some of the keys, given their ascending positions."""
        return WantedKeys.of(self.keys.take(pa.array(positions)))

    def near(self, keys: pa.StringArray) -> pa.StringArray:
        """Return the keys between the least and the greatest wanted key; all keys, if a sample lies in that range."""
        if not len(self) or not len(keys):
            return keys
        sample = keys.take(pa.array(np.linspace(0, len(keys) - 1, _SAMPLE, dtype=np.int64)))
        if pc.all(self._within_bounds(sample)).as_py():  # O(1)
            return keys
        return keys.filter(self._within_bounds(keys))

    def _within_bounds(self, keys: pa.StringArray) -> pa.BooleanArray:
        """Return which keys are between the least and the greatest wanted key."""
        return pc.and_(pc.greater_equal(keys, self.keys[0]), pc.less_equal(keys, self.keys[-1]))


@dataclass(frozen=True, slots=True)
class Hits:
    """Which of n wanted keys a file slice holds, as ascending positions, and the bytes read to find out.

    ``all_keys`` has all keys of the slice if the lookup was to gather them and read them all, ``repeats`` whether
    the base file holds one of the wanted keys several times.
    """

    positions: Positions
    bytes: int = 0
    was_read: bool = False
    all_keys: KeySet | None = None
    repeats: bool = False

    @classmethod
    def none(cls, nbytes: int = 0) -> Hits:
        """Return no hits, for a file that was excluded after so many bytes were read."""
        return cls(np.zeros(0, np.int64), nbytes)

    def at(self, positions: Positions) -> Hits:
        """Return hits among some of the wanted keys as hits among all, given the position of each of these keys."""
        return replace(self, positions=positions[self.positions])

    def __add__(self, other: Hits) -> Hits:
        """Return the hits in the base file and in the log files of one slice together."""
        if not other.was_read and not other.bytes:
            return self
        positions = np.union1d(self.positions, other.positions)
        was_read, repeats = self.was_read or other.was_read, self.repeats or other.repeats
        return Hits(positions, self.bytes + other.bytes, was_read, repeats=repeats)


@dataclass(frozen=True, slots=True)
class SliceKeys:
    """The record keys of one file slice; `sees` says whether the blocks of an instant are visible.

    If ``gathered`` is given, a lookup that reads keys of the base file reads all of them.
    """

    storage: Storage
    slice: FileSlice
    sees: Callable[[str], bool]
    gathered: GatheredKeys | None = None

    def of_base(self) -> Iterator[pa.StringArray]:
        """Yield the record keys of the base file; none if there is no base file."""
        base = self.slice.base
        if base is not None:
            with open_base(self.storage, base) as reader:
                yield from _checked_keys(reader.batches(_KEYS), f"The base file {base.path}")

    def of_logs(self) -> Iterator[pa.StringArray]:
        """Yield the record keys of rows in log files."""
        for keys in self._keys_of_blocks():
            yield from keys

    def hits(self, wanted: WantedKeys) -> Hits:
        """Return which wanted keys the slice holds, in its base file or its log files."""
        of_logs = self.hits_of_logs(wanted)
        base = self.slice.base
        if base is None:
            return of_logs
        with open_base(self.storage, base) as reader:
            return hits_of_base(reader, base, wanted, self.gathered) + of_logs

    def hits_of_logs(self, wanted: WantedKeys) -> Hits:
        """Return which wanted keys are in rows of log files, deleted or not: a later insert has to meet that delete."""
        logs = self.slice.logs
        blocks = self._keys_of_blocks() if self.gathered is None else map(self.gathered.of_log, self._keys_of_blocks())
        positions_of_blocks = [_positions_of(keys, wanted)[0] for keys in blocks]
        positions = np.unique(np.concatenate(positions_of_blocks)) if positions_of_blocks else np.zeros(0, np.int64)
        return Hits(positions, bytes=sum(log.size for log in logs), was_read=bool(positions_of_blocks))

    def _keys_of_blocks(self) -> Iterator[Iterator[pa.StringArray]]:
        """Yield the record keys of each data block that counts."""
        for block in effective_blocks([read_log(self.storage, log) for log in self.slice.logs], self.sees):
            if block.is_data:
                shown = f"{block.shown[:1].upper()}{block.shown[1:]}"
                yield _checked_keys(BlockContent(self.storage, block).rows(_KEYS), shown)


def hits_of_base(
    base: BaseFileReader, file: BaseFile, wanted: WantedKeys, gathered: GatheredKeys | None = None
) -> Hits:
    """Return which wanted keys a base file holds, by its row groups whose key ranges overlap them.

    If ``gathered`` has room for all keys of the file, all row groups are read, and it gets the keys.
    """
    metadata = base.parquet.metadata
    groups = row_groups_around(base.parquet, RECORD_KEY, wanted.keys)
    gathers = gathered is not None and bool(groups) and gathered.takes_base(base.rows)
    groups = list(range(metadata.num_row_groups)) if gathers else groups
    leaves = leaves_of(base.parquet, (RECORD_KEY,))
    chunks = (metadata.row_group(number).column(leaf) for number in groups for leaf in leaves)
    nbytes = metadata.serialized_size + sum(chunk.total_compressed_size for chunk in chunks)
    keys = _checked_keys(base.batches(_KEYS, row_groups=groups), f"The base file {file.path}")
    if gathered is not None and gathers:
        keys = gathered.of_base(keys)
    positions, repeats = _positions_of(keys, wanted)
    return Hits(positions, nbytes, bool(groups), repeats=repeats)


def _checked_keys(batches: Iterable[pa.RecordBatch], shown: str) -> Iterator[pa.StringArray]:
    """Yield the key column of batches; raise `NullKeyError` if a key is null."""
    for batch in batches:
        keys = batch.column(RECORD_KEY)
        if keys.null_count:
            raise NullKeyError(
                f"{shown} holds {keys.null_count} rows without a record key, so that none can be looked up.",
                "A table written without meta columns (hoodie.populate.meta.fields=false) has no keys: write it "
                "anew, or continue with the writer that made it.",
            )
        yield keys


def _positions_of(batches: Iterable[pa.StringArray], wanted: WantedKeys) -> tuple[Positions, bool]:
    """Return the positions of the wanted keys that batches hold, ascending, and whether any key comes several times."""
    positions_of_batches = [wanted.probe.find(wanted.near(keys)) for keys in batches]
    positions_of_hits = np.concatenate(
        [np.zeros(0, np.int64), *(positions[positions >= 0] for positions in positions_of_batches)]
    )
    if _MANY * len(positions_of_hits) < len(wanted):
        positions = np.unique(positions_of_hits)
    else:
        is_held = np.zeros(len(wanted), np.bool_)
        is_held[positions_of_hits] = True
        positions = np.flatnonzero(is_held)
    return positions, len(positions) < len(positions_of_hits)
