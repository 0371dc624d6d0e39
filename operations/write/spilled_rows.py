"""Rows that tasks handed over to the commit, which may merge them by a later plan of their write.

They are brought to the columns, the keys and the file groups of that plan by the same code as a task's rows.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...index.bucket import BucketIndex
from ...storage import open_storage
from ...storage.base import Storage
from ...storage.parallel import for_each
from ...table.arrow.spill import SpillFile, SpillPiece, SpillReader, SpillWriter, bring_near
from ...table.config import TableConfig
from ...table.schema.columns import RECORD_KEY
from ...table.seen_table import SeenTable
from ...writer.buffer import GroupRows
from ...writer.routes import Route, Routes
from ...writer.rows import IncomingRowReader
from ..locating.routing import routing_of
from ..planning.plan import WritePlan

Flush = Mapping[Route, list[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class SpilledRows:
    """The rows of each route that tasks handed over, in the order of the tasks.

    Attributes:
        plan: The plan of the routes and columns.
        size: Bytes of the spills.
        local: A temporary folder that lasts as long as the rows.
    """

    plan: WritePlan
    rows: Mapping[Route, GroupRows]
    size: int
    local: Storage

    @property
    def paths(self) -> set[str]:
        """The partitions of the rows."""
        return {route.partition_path for route in self.rows}

    def by_plan(self, plan: WritePlan) -> SpilledRows:
        """Return the rows as the tasks would hand them over by a later plan.

        Rows of one key stay in their order, unless the two plans make different partitions of them. Raises
        `CommitConflictError` where rows have too few columns for other keys, and `DataError` as a task does.
        """
        before = self.plan
        if not self.rows or (plan.table is before.table and plan.numbers == before.numbers):
            return self
        if _key_terms(plan.config) != _key_terms(before.config):
            return self._spilled_again(plan, {}, _with_new_keys(plan, before, self.rows))
        fits = plan.spec.schema.equals(before.spec.schema)
        kept = {
            route: rows
            for route, rows in self.rows.items()
            if fits and plan.buckets_of(route.partition_path) == before.buckets_of(route.partition_path)
        }
        moving = {route: rows for route, rows in self.rows.items() if route not in kept}
        return self._spilled_again(plan, kept, _with_kept_keys(plan, moving))

    def _spilled_again(self, plan: WritePlan, kept: Mapping[Route, GroupRows], flushes: Iterator[Flush]) -> SpilledRows:
        """Return the kept rows, and others from a new file."""
        writer = SpillWriter(self.local, f"{uuid.uuid4().hex}.spill", "")
        try:
            for flush in flushes:
                writer.append(flush)
            spill = writer.publish()
        except BaseException:
            writer.discard()
            raise
        moved = _by_route([SpillReader(self.local, spill.path)])
        return replace(self, plan=plan, rows={**kept, **moved})


@contextmanager
def opened_spills(plan: WritePlan, spills: Sequence[SpillFile]) -> Iterator[SpilledRows]:
    """Open the spills of the tasks, given in the order of the tasks; the copies of remote spills stay until the end."""
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        local = open_storage(folder, durable=False)
        readers = for_each(plan.storage, lambda spill: bring_near(plan.storage, spill, local), spills)
        yield SpilledRows(plan, _by_route(readers), sum(spill.size for spill in spills), local)


def _by_route(readers: Iterable[SpillReader]) -> dict[Route, GroupRows]:
    pieces: dict[Route, list[tuple[SpillReader, SpillPiece]]] = {}
    for reader in readers:
        for piece in reader.pieces:
            pieces.setdefault(Route(*piece.key), []).append((reader, piece))
    return {route: GroupRows(tuple(found)) for route, found in pieces.items()}


def _key_terms(config: TableConfig) -> tuple[object, ...]:
    """Return the properties that decide the keys and routes of rows, but for the numbers of buckets."""
    keys = config.record_key_fields, bool(config.names_key_field), config.generates_keys, config.key_generator
    paths = config.partition_fields, config.partition_types, config.hive_style, config.url_encode, config.time_options
    return *keys, *paths, config.index_type, config.hash_fields


def _with_kept_keys(plan: WritePlan, found: Mapping[Route, GroupRows]) -> Iterator[Flush]:
    """Yield rows under their keys and in their partitions, with the columns and the buckets of a plan."""
    index = plan.index if plan.numbers is not None else None
    for route, rows in found.items():
        router = _KeptKeys(route, index if isinstance(index, BucketIndex) else None)
        reader = IncomingRowReader(plan.spec, router)
        for batches in rows.flushes():
            yield _routed(reader, batches)


def _with_new_keys(plan: WritePlan, before: WritePlan, found: Mapping[Route, GroupRows]) -> Iterator[Flush]:
    """Yield rows under the keys and in the partitions that a plan makes of their columns."""
    if before.spec.deletes:
        raise plan.transaction.conflict("Another writer made the table anew meanwhile, with other keys or partitions")
    routing = routing_of(plan, lambda: SeenTable.now(plan.table))
    reader = IncomingRowReader(plan.spec, routing.router(0))
    for rows in found.values():
        for batches in rows.flushes():
            yield _routed(reader, batches)


def _routed(reader: IncomingRowReader, batches: list[pa.RecordBatch]) -> Flush:
    found: dict[Route, list[pa.RecordBatch]] = {}
    for route, rows in reader.routed(iter(batches)):
        found.setdefault(route, []).append(rows)
    return found


@dataclass(frozen=True, slots=True)
class _KeptKeys:
    """Leaves rows in their partition under their keys; ``index`` chooses their buckets, unless it is None."""

    before: Route
    index: BucketIndex | None

    def route(self, rows: pa.RecordBatch) -> Routes:
        places = np.zeros(rows.num_rows, np.int32)
        paths = pa.DictionaryArray.from_arrays(pa.array(places), pa.array([self.before.partition_path]))
        keys = rows.column(RECORD_KEY)
        if self.index is None:
            return Routes(keys, paths, np.full(rows.num_rows, self.before.number, np.int64))
        return Routes(keys, paths, self.index.buckets_in(paths, keys).astype(np.int64))
