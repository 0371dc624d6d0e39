"""Incoming rows brought together with the base rows of their keys, within bounds of memory.

Of rows that do not fit into memory the columns are read first by which rows are judged; the rows themselves are read
again, batch by batch, when it is known which of them arrive. Where even these columns do not fit, both sides are spread
over as many spilled parts as needed by the hash of the record key (a grace hash join), and each part is merged alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from ...storage.base import Storage
from ..arrow.arrays import Mask
from ..arrow.batches import concat, joined, rechunk, within
from ..arrow.spill import SpillReader, SpillWriter
from ..arrow.string_hash import hash64
from ..schema.columns import RECORD_KEY
from .inserter import Inserter
from .merger import Meeting, MergeCounts, Merger, MergeRules, check_known
from .row_spec import Judged

# Of what may be merged at once, the share of the deciding columns of rows that wait elsewhere: folding them and looking
# keys up takes several times their bytes.
_DECIDING_SHARE = 2
# What that takes for each row, beside its columns: hashes, their order, codes and masks.
FOLDING_BYTES = 48


class Rows(Protocol):
    """Keyed rows that come to a file group, in their order, wherever they wait."""

    @property
    def nbytes(self) -> int:
        """Arrow bytes of all rows, about, and not less; asked where they are too many for memory."""
        ...

    def within(self, nbytes: int) -> list[pa.RecordBatch] | None:
        """Return all rows, None where they take more bytes than that."""
        ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows, with some of their columns or all; they may be asked for again."""
        ...


class PartialRows(Protocol):
    """Incoming rows that hold some of their columns only, laid over each other."""

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield the base rows that nothing deletes, and whether they are changed by what is laid over or below them."""
        ...

    def arrivals(self) -> pa.RecordBatch:
        """Return the rows of keys that no base row had; called after `survivors` is exhausted."""
        ...

    @property
    def counts(self) -> MergeCounts:
        """What became of the rows, once all were met."""
        ...


@dataclass(frozen=True, slots=True)
class Met:
    """Some rows of a file group as it is after the merge; ``arrived`` where they are incoming or changed by such."""

    rows: pa.RecordBatch
    arrived: bool


@dataclass(slots=True)
class Encounter:
    """One set of incoming rows that meets one base.

    Attributes:
        spec: What incoming rows hold.
        rules: How they meet one another and the base.
        memory: Arrow bytes of incoming rows that may be merged at once.
        open_spill: Opens a spill for parts beyond memory, with the storage that reads it back.
        where: Names the file group, for errors.
        row_bytes: What each row counts beyond the columns that decide.
        join: Puts the incoming rows of each key together before they meet the base, where one of them does not make
            all others needless; None where it does. It leaves rows alone that the rules do not fold.
        lay: Lays together incoming rows, where they leave columns to the rows that they meet; None where rows are
            whole.
        kept: Which columns of the base rows that stay are wanted, at least one, where rows are merged; None for all.
            Others may come along.
        counts: What has become of the rows so far.
    """

    spec: Judged
    rules: MergeRules
    memory: int
    open_spill: Callable[[], tuple[SpillWriter, Storage]]
    where: str
    row_bytes: int = 0
    join: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
    lay: Callable[[pa.RecordBatch], PartialRows] | None = None
    kept: Sequence[str] | None = None
    counts: MergeCounts = field(default_factory=MergeCounts)

    def meet(self, rows: Rows, base: Iterator[pa.RecordBatch]) -> Generator[Met]:
        """Yield the base rows that stay and the incoming rows that arrive.

        Args:
            rows: The incoming rows, with the columns that decide and any others.
            base: The base rows, with their record keys and ordering fields; read once, and not at once.

        Raises:
            DuplicateKeyError: A key is there already, and the rules forbid it.
            KeyNotFoundError: A key to be deleted, or to be updated in part, is not there, and the rules forbid it.
        """
        with closing(self._parts(rows, base)) as parts:
            for incoming, of_base in parts:
                if incoming is None:
                    for batch in of_base:
                        yield Met(batch, arrived=False)
                else:
                    yield from self._part(incoming, of_base)

    def _part(self, incoming: _Incoming, base: Iterator[pa.RecordBatch]) -> Iterator[Met]:
        if self.join is not None and self.rules.fold:
            incoming = _Incoming.of([self.join(concat(list(incoming.batches())))], self.spec.deciding)
        if self.lay is not None:
            yield from self._laid(self.lay(concat(list(incoming.batches()))), base)
            return
        merger: Merger | Inserter
        if self.rules.meeting is Meeting.MERGE:
            merger = Merger(self.spec, incoming.deciding, self.rules, self.where, self.kept)
        else:
            merger = Inserter(self.spec, incoming.deciding, self.rules, self.where)
        for batch in merger.survivors(base):
            yield Met(batch, arrived=False)
        for batch in rechunk(incoming.chosen(merger.arrivals())):
            yield Met(batch, arrived=True)
        self.counts.add(merger.counts)

    def _laid(self, overlay: PartialRows, base: Iterator[pa.RecordBatch]) -> Iterator[Met]:
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
        """Yield incoming rows few enough for memory, each with the base rows that may hold their keys.

        Base rows whose keys nobody looks up come alone.
        """
        deciding = self.spec.deciding
        adds = self.rules.meeting is Meeting.ADD
        if adds:
            yield None, whole_base
        if adds and not self.rules.fold:
            for batch in rechunk(rows.batches()):
                yield _Incoming.of([batch], deciding), iter(())
            return
        base = iter(()) if adds else whole_base
        # What puts rows together from several holds whole ones.
        whole = self.lay is not None or self.join is not None
        held = rows.within(self.memory // 2 if whole else self.memory)
        if held is not None:
            yield _Incoming.of(held, deciding) if held else None, base
            return
        judges = None if whole else within(rows.batches(deciding), self.memory, self._cost)
        if judges is not None:
            yield _Incoming(joined(judges), rows.batches), base
            return
        # Half of what fits, because parts are not equal and what was read last is still in memory.
        parts = math.ceil((4 if whole else 2) * rows.nbytes / self.memory)
        with self._spread(rows.batches(), parts) as incoming, self._spread(base, parts) as of_base:
            for part in range(parts):
                batches = list(incoming.part(part))
                yield _Incoming.of(batches, deciding) if batches else None, of_base.part(part)

    def _cost(self, deciding: pa.RecordBatch) -> int:
        """Return the bytes that merging some rows takes, given the columns that decide."""
        nbytes: int = _DECIDING_SHARE * deciding.nbytes + self.row_bytes * deciding.num_rows
        return nbytes

    @contextmanager
    def _spread(self, batches: Iterator[pa.RecordBatch], parts: int) -> Iterator[_Parts]:
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
        waiting: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
        size = 0
        for batch in batches:
            # The low bits order the probe's table; the high ones choose the part, so that each part stays well mixed.
            part = (hash64(batch.column(RECORD_KEY)) >> np.uint64(40)) % np.uint64(parts)
            for one in range(parts):
                rows = np.flatnonzero(part == one)
                if len(rows):
                    waiting[one].append(batch.take(pa.array(rows)))
            size += batch.nbytes
            if size > self.memory // 2:
                writer.append({n: held for n, held in enumerate(waiting) if held})
                waiting, size = [[] for _ in range(parts)], 0
        writer.append({n: held for n, held in enumerate(waiting) if held})


@dataclass(frozen=True, slots=True)
class _Incoming:
    """Incoming rows that are merged at once.

    Attributes:
        deciding: The columns by which they are judged, of all rows, in memory.
        batches: Yields the whole rows, in the same order, from wherever they wait.
    """

    deciding: pa.RecordBatch
    batches: Callable[[], Iterable[pa.RecordBatch]]

    @classmethod
    def of(cls, batches: list[pa.RecordBatch], deciding: list[str]) -> _Incoming:
        """Return rows that are in memory; at least one batch."""
        return cls(concat([batch.select(deciding) for batch in batches]), lambda: batches)

    def chosen(self, wanted: Mask) -> Iterator[pa.RecordBatch]:
        """Yield those of the rows that are wanted."""
        start = 0
        for batch in self.batches():
            of_batch = wanted[start : start + batch.num_rows]
            start += batch.num_rows
            yield batch if of_batch.all() else batch.filter(pa.array(of_batch))


@dataclass(frozen=True, slots=True)
class _Parts:
    """Rows spread over parts by the hash of their key."""

    reader: SpillReader

    def part(self, number: int) -> Iterator[pa.RecordBatch]:
        for piece in self.reader.pieces:
            if piece.key == number:
                yield from self.reader.batches(piece)
