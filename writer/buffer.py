"""The rows of one task until it ends: in memory up to a bound, the rest in spills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ..storage.base import Storage
from ..table.arrow.batches import concat
from ..table.arrow.spill import SpillFile, SpillPiece, SpillReader, SpillWriter
from .routes import Route

# Share of the task's bound that stays free for the merge: it holds the folded rows and one row group.
MERGE_RESERVE = 0.25
# Bytes of the objects that describe a column of a batch, which matter if batches are small.
_COLUMN_OVERHEAD = 700
_MANY_BATCHES = 64
_SMALL_BYTES = 8 << 20

Flush = Callable[[Route, Sequence[pa.RecordBatch]], bool]


@dataclass(slots=True)
class _Buffer:
    """The rows of one route in memory."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    nbytes: int = 0


class RowBuffers:
    """Rows by file group, flushed when a group or the task exceeds its Arrow bytes in memory.

    `flush` takes rows of a route for which memory has no room; rows for which it returns False are spilled.
    """

    def __init__(
        self,
        group_limit: int,
        task_limit: int,
        open_spill: Callable[[], SpillWriter],
        flush: Flush | None = None,
    ) -> None:
        self._group_limit = group_limit
        self._task_limit = int(task_limit * (1 - MERGE_RESERVE))
        self._open_spill = open_spill
        self._flush_to = flush
        self._buffers: dict[Route, _Buffer] = {}
        self._nbytes = 0
        self._spill: SpillWriter | None = None
        self.rows = 0

    def add(self, route: Route, rows: pa.RecordBatch) -> None:
        """Take rows of a route.

        If the route or the task then exceeds its bound, hand routes to ``flush`` or the spill.
        """
        buffer = self._buffers.setdefault(route, _Buffer())
        size = rows.nbytes + _COLUMN_OVERHEAD * rows.num_columns
        buffer.batches.append(rows)
        buffer.nbytes += size
        self._nbytes += size
        self.rows += rows.num_rows
        # Many small batches are joined, as their objects take memory besides their rows.
        if len(buffer.batches) >= _MANY_BATCHES and buffer.nbytes < _SMALL_BYTES:
            buffer.batches = [concat(buffer.batches)]
        if buffer.nbytes > self._group_limit:
            self._flush([route])
        while self._nbytes > self._task_limit:
            self._flush([max(self._buffers, key=lambda route: self._buffers[route].nbytes)])

    def spill_all(self) -> SpillFile | None:
        """Spill all rows in memory, and return the spill; None if no row was spilled."""
        if self._buffers:
            self._flush(list(self._buffers))
        return self.finish_spill()

    def finish_spill(self) -> SpillFile | None:
        """End the spill, and return it; None if no row was spilled."""
        return None if self._spill is None else self._spill.publish()

    def take(self, route: Route) -> list[pa.RecordBatch]:
        """Return the rows of a route that are in memory, and forget them."""
        buffer = self._buffers.pop(route, _Buffer())
        self._nbytes -= buffer.nbytes
        return buffer.batches

    def routes(self) -> list[Route]:
        """Return the routes that have rows in memory."""
        return list(self._buffers)

    def discard(self) -> None:
        """Delete the unfinished spill, if there is one."""
        if self._spill is not None:
            self._spill.discard()

    def _flush(self, routes: list[Route]) -> None:
        """Free the memory of routes: ``flush`` takes their rows, and the spill those that it refuses."""
        batches_by_route = {route: self.take(route) for route in routes}
        if self._flush_to is not None:
            batches_by_route = {
                route: batches for route, batches in batches_by_route.items() if not self._flush_to(route, batches)
            }
        if not batches_by_route:
            return
        if self._spill is None:
            self._spill = self._open_spill()
        self._spill.append(batches_by_route)


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The incoming rows of one file group in their order: spilled pieces, then rows in memory."""

    pieces: tuple[tuple[SpillReader, SpillPiece], ...] = ()
    memory: tuple[pa.RecordBatch, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for _, piece in self.pieces) + sum(int(batch.nbytes) for batch in self.memory)

    @property
    def rows(self) -> int:
        return sum(piece.rows for _, piece in self.pieces) + sum(int(batch.num_rows) for batch in self.memory)

    def flushes(self) -> Iterator[list[pa.RecordBatch]]:
        """Yield the rows as they left memory: the batches of each spilled piece, then those still in memory."""
        for reader, piece in self.pieces:
            yield list(reader.batches(piece))
        if self.memory:
            yield list(self.memory)

    def within(self, nbytes: int) -> list[pa.RecordBatch] | None:
        """Return all rows if they have at most so many Arrow bytes, else None."""
        return list(self.batches()) if self.nbytes <= nbytes else None

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        for reader, piece in self.pieces:
            yield from reader.batches(piece, columns)
        for batch in self.memory:
            yield batch if columns is None else batch.select(columns)


def rows_by_route(readers: Iterable[SpillReader]) -> dict[Route, GroupRows]:
    """Return the rows of each route in some spills whose keys are routes, in the order of the spills."""
    by_route: dict[Route, list[tuple[SpillReader, SpillPiece]]] = {}
    for reader in readers:
        for piece in reader.pieces:
            by_route.setdefault(Route(*piece.key), []).append((reader, piece))
    return {route: GroupRows(tuple(pieces)) for route, pieces in by_route.items()}


class Gathered:
    """The rows of all routes after the last row came, in memory and in the spill."""

    def __init__(self, buffers: RowBuffers, storage: Storage) -> None:
        self._buffers = buffers
        spill = buffers.finish_spill()
        self._spilled = rows_by_route([] if spill is None else [SpillReader(storage, spill.path)])

    def routes(self) -> list[Route]:
        return sorted({*self._spilled, *self._buffers.routes()})

    def take(self, route: Route) -> GroupRows:
        """Return the rows of a route, and free those in memory."""
        spilled = self._spilled.get(route, GroupRows())
        return GroupRows(spilled.pieces, tuple(self._buffers.take(route)))
