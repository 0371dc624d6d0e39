"""Incoming rows joined with the base rows of their keys, or added beside them, within a bound of memory.

If the incoming rows do not fit into memory, their deciding columns are read first, and the whole rows are read
again, batch by batch, once it is known which of them arrive. If even the deciding columns do not fit, both sides are
spilled in parts by the hash of the record key (a grace hash join), and each part is merged alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DuplicateKeyError
from ...storage.base import Storage
from ..arrow.arrays import Mask
from ..arrow.batches import concat, joined, rechunk, within
from ..arrow.spill import SpillReader, SpillWriter
from ..arrow.string_hash import hash64
from ..schema.columns import RECORD_KEY
from .key_probe import KeyProbe
from .merger import MergeCounts, Merger, MergeRules, RowMeeting, check_known, folded
from .row_spec import Judged
from .stored_copies import StoredCopies

# Rows that arrive are joined up to so many bytes, as each batch has a price; beyond that a copy costs more.
_FEW_BYTES = 2 << 20
# What deciding columns count, as a multiple of their bytes, while the rows wait elsewhere: folding rows and looking up
# keys takes several times these bytes.
_DECIDING_SHARE = 2
# Bytes that folding takes for each row, beside its columns: hashes, their order, codes and masks.
FOLDING_BYTES = 48


class Rows(Protocol):
    """Incoming rows of a file group, in their order, in memory or spilled."""

    @property
    def nbytes(self) -> int:
        """An upper estimate of the rows' Arrow bytes; read if the rows do not fit into memory."""
        ...

    def within(self, nbytes: int) -> list[pa.RecordBatch] | None: ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows, with these columns or all; may be called again."""
        ...


class PartialRows(Protocol):
    """Incoming rows that lack values, laid over each other."""

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield the base rows that no incoming row deletes, and whether an incoming row changed them."""
        ...

    def arrivals(self) -> pa.RecordBatch:
        """Return the rows of keys that no base row had; called after `survivors` is exhausted."""
        ...

    @property
    def counts(self) -> MergeCounts:
        """What became of the rows, once `survivors` is exhausted."""
        ...


@dataclass(frozen=True, slots=True)
class Met:
    """Some rows of a file group after the merge; ``arrived``: they are incoming rows or changed by incoming rows."""

    rows: pa.RecordBatch
    arrived: bool


class Inserter:
    """Compares incoming rows with a base of which every row stays; deletes among the rows remove nothing."""

    def __init__(self, spec: Judged, incoming: pa.RecordBatch, rules: MergeRules, where: str) -> None:
        self._meeting = rules.meeting
        self._where = where
        self._added = np.ones(incoming.num_rows, dtype=np.bool_)
        if rules.fold:
            self._added[:] = False
            self._added[folded(spec, incoming)] = True
        deleted = spec.deleted(incoming) & self._added
        self._added &= ~deleted
        self._keys = incoming.column(RECORD_KEY)
        self.counts = MergeCounts(not_found=int(np.count_nonzero(deleted)))

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield all base rows, and note which incoming keys they have; DuplicateKeyError if that is refused."""
        if self._meeting is RowMeeting.ADD:
            yield from base
            return
        # Keys may repeat among the incoming rows; look up each distinct key once.
        keys = self._keys.filter(pa.array(self._added)).dictionary_encode()
        probe: KeyProbe | None = None
        is_stored = np.zeros(len(keys.dictionary), dtype=np.bool_)
        for batch in base:
            # A new file group has no base, and needs no probe.
            if probe is None:
                probe = KeyProbe(keys.dictionary)
            positions = probe.find(batch.column(RECORD_KEY))
            is_stored[positions[positions >= 0]] = True
            if self._meeting is RowMeeting.FAIL and is_stored.any():
                raise self._duplicate(keys.dictionary.filter(pa.array(is_stored)))
            yield batch
        dropped = is_stored[keys.indices.to_numpy(zero_copy_only=False)]
        self.counts.dropped = int(np.count_nonzero(dropped))
        self._added[np.flatnonzero(self._added)[dropped]] = False

    def arrivals(self) -> Mask:
        """Return which incoming rows are added; call it after `survivors` is exhausted."""
        self.counts.inserts = int(np.count_nonzero(self._added))
        return self._added

    def _duplicate(self, keys: pa.Array) -> DuplicateKeyError:
        """Return the error for keys that the base holds already."""
        return DuplicateKeyError(
            f"The record key {keys[0].as_py()!r} is in {self._where} already.",  # one value, for the error
            "Write with the operation upsert, leave such rows out with hoodie.datasource.insert.dup.policy=drop, or "
            "keep both with hoodie.datasource.insert.dup.policy=none.",
        )


@dataclass(slots=True)
class Encounter:
    """One set of incoming rows that meets one base.

    Attributes:
        memory: Arrow bytes of incoming rows that may be merged at once.
        open_spill: Opens a spill for parts beyond memory, with the storage that reads it back.
        row_bytes: What each row counts beyond its deciding columns.
        join: Merges the incoming rows of each key into one row before they meet the base; None if one row of each
            key wins as it is. Not called if the rules do not fold rows.
        lay: Makes an overlay of incoming rows that leave columns to the base rows; None if rows are whole.
        base_columns: Columns of the base rows to yield if rows are merged, at least one; None for all. Others may
            come along.
    """

    spec: Judged
    rules: MergeRules
    memory: int
    open_spill: Callable[[], tuple[SpillWriter, Storage]]
    where: str
    row_bytes: int = 0
    join: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
    lay: Callable[[pa.RecordBatch], PartialRows] | None = None
    base_columns: Sequence[str] | None = None
    counts: MergeCounts = field(default_factory=MergeCounts)

    def meet(self, rows: Rows, base: Iterator[pa.RecordBatch]) -> Generator[Met]:
        """Yield the base rows that stay and the incoming rows that arrive; the base is read once, batch by batch."""
        with closing(self._parts(rows, base)) as parts:
            for incoming, of_base in parts:
                if incoming is None:
                    for batch in of_base:
                        yield Met(batch, arrived=False)
                else:
                    yield from self._merged_part(incoming, of_base)

    def _merged_part(self, incoming: _Incoming, base: Iterator[pa.RecordBatch]) -> Iterator[Met]:
        """Yield one part's base rows that stay, then its rows that arrive, merged in the way that the rules ask for."""
        # The keys of all incoming rows, before a join leaves one row of each.
        given_keys = incoming.deciding.column(RECORD_KEY)
        if self.join is not None and self.rules.fold:
            incoming = _Incoming.of([self.join(concat(list(incoming.batches())))], self.spec.deciding)
        if self.lay is not None:
            if self.rules.of_stored:
                # Each key must have as many incoming rows as stored rows, of which they were made.
                base = self._counted(base, StoredCopies.of_keys(pc.unique(given_keys), given_keys))
            yield from self._overlaid(self.lay(concat(list(incoming.batches()))), base)
            return
        merger: Merger | Inserter
        if self.rules.meeting is RowMeeting.MERGE:
            merger = Merger(self.spec, incoming.deciding, self.rules, self.where, self.base_columns, given_keys)
        else:
            merger = Inserter(self.spec, incoming.deciding, self.rules, self.where)
        for batch in merger.survivors(base):
            yield Met(batch, arrived=False)
        for batch in rechunk(incoming.arriving_rows(merger.arrivals()), _FEW_BYTES):
            yield Met(batch, arrived=True)
        self.counts.add(merger.counts)

    def _counted(self, base: Iterator[pa.RecordBatch], copies: StoredCopies) -> Iterator[pa.RecordBatch]:
        """Yield base rows, and raise at their end if the write changes some rows of a key and not all."""
        for batch in base:
            copies.add_keys(batch.column(RECORD_KEY))
            yield batch
        copies.check(self.where)

    def _overlaid(self, overlay: PartialRows, base: Iterator[pa.RecordBatch]) -> Iterator[Met]:
        """Yield the base rows that stay, with the values of partial rows laid over them, then the rows of new keys.

        Raises for a new key if only known keys may be updated.
        """
        for batch, changed in overlay.survivors(base):
            yield Met(batch, arrived=changed)
        arrivals = overlay.arrivals()
        if self.rules.known_only:
            check_known(arrivals.column(RECORD_KEY), self.where)
        else:
            yield Met(arrivals, arrived=True)
        self.counts.add(overlay.counts)

    def _parts(
        self, rows: Rows, whole_base: Iterator[pa.RecordBatch]
    ) -> Generator[tuple[_Incoming | None, Iterator[pa.RecordBatch]]]:
        """Yield parts of the incoming rows that fit into memory, each with the base rows that may have its keys.

        None stands for a part without incoming rows.
        """
        deciding = self.spec.deciding
        adds = self.rules.meeting is RowMeeting.ADD
        # Added rows are compared with no base row.
        if adds:
            yield None, whole_base
        if adds and not self.rules.fold:
            for batch in rechunk(rows.batches(), _FEW_BYTES):
                yield _Incoming.of([batch], deciding), iter(())
            return
        base = iter(()) if adds else whole_base
        # A join or an overlay needs all columns of the rows in memory, and makes other rows of them.
        needs_all_columns = self.lay is not None or self.join is not None
        in_memory = rows.within(self.memory // 2 if needs_all_columns else self.memory)
        if in_memory is not None:
            yield _Incoming.of(in_memory, deciding) if in_memory else None, base
            return
        # If the deciding columns alone fit, the whole rows are read again once it is known which of them arrive.
        deciding_batches = None if needs_all_columns else within(rows.batches(deciding), self.memory, self._bytes_taken)
        if deciding_batches is not None:
            yield _Incoming(joined(deciding_batches), rows.batches), base
            return
        # Parts of half the memory, because parts differ in size and the previous part may still be in memory.
        parts = math.ceil((4 if needs_all_columns else 2) * rows.nbytes / self.memory)
        with self._spilled(rows.batches(), parts) as incoming, self._spilled(base, parts) as of_base:
            for part in range(parts):
                batches = list(incoming.part(part))
                yield _Incoming.of(batches, deciding) if batches else None, of_base.part(part)

    def _bytes_taken(self, deciding: pa.RecordBatch) -> int:
        """Return how many bytes of the memory a batch of deciding columns takes while its rows are merged."""
        nbytes: int = _DECIDING_SHARE * deciding.nbytes + self.row_bytes * deciding.num_rows
        return nbytes

    @contextmanager
    def _spilled(self, batches: Iterator[pa.RecordBatch], parts: int) -> Iterator[_Parts]:
        """Spill batches in parts by the hash of the record key, and delete the spill at the end."""
        writer, storage = self.open_spill()
        try:
            self._deal_out(batches, parts, writer)
            reader = SpillReader(storage, writer.publish().path)
        except BaseException:
            writer.discard()
            raise
        try:
            yield _Parts(reader)
        finally:
            reader.delete()

    def _deal_out(self, batches: Iterator[pa.RecordBatch], parts: int, writer: SpillWriter) -> None:
        """Write batches to a spill, each row under the number of its part, holding half of the memory at most."""
        waiting: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
        size = 0
        for batch in batches:
            # The low bits order the probe's table; high bits choose the part, so that each part stays well mixed.
            part = (hash64(batch.column(RECORD_KEY)) >> np.uint64(40)) % np.uint64(parts)
            for number in range(parts):
                rows = np.flatnonzero(part == number)
                if len(rows):
                    waiting[number].append(batch.take(pa.array(rows)))
            size += batch.nbytes
            if size > self.memory // 2:
                writer.append({n: batches_of_part for n, batches_of_part in enumerate(waiting) if batches_of_part})
                waiting, size = [[] for _ in range(parts)], 0
        writer.append({n: batches_of_part for n, batches_of_part in enumerate(waiting) if batches_of_part})


@dataclass(frozen=True, slots=True)
class _Incoming:
    """Rows that are merged at once: their deciding columns in memory, and what yields the whole rows."""

    deciding: pa.RecordBatch
    batches: Callable[[], Iterable[pa.RecordBatch]]

    @classmethod
    def of(cls, batches: list[pa.RecordBatch], deciding: list[str]) -> _Incoming:
        """Return rows that are in memory; ``deciding`` names the columns that decide which rows win."""
        return cls(concat([batch.select(deciding) for batch in batches]), lambda: batches)

    def arriving_rows(self, arrives: Mask) -> Iterator[pa.RecordBatch]:
        """Yield the rows that ``arrives`` marks, with all columns; it has an entry for each row of all batches."""
        start = 0
        for batch in self.batches():
            of_batch = arrives[start : start + batch.num_rows]
            start += batch.num_rows
            yield batch if of_batch.all() else batch.filter(pa.array(of_batch))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of rows in a spill."""

    reader: SpillReader

    def part(self, number: int) -> Iterator[pa.RecordBatch]:
        for piece in self.reader.pieces:
            if piece.key == number:
                yield from self.reader.batches(piece)
