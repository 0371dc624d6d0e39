"""Rows that tasks handed over to the commit, which may merge them by a later plan of their write.

The code that routes the rows of a task also brings them to the columns, keys and file groups of the later plan.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...errors import ColumnValueError, SchemaMismatchError
from ...index.base import ComputedIndex
from ...index.registry import computed_index_for
from ...storage import open_storage
from ...storage.base import Storage
from ...storage.threads import for_each
from ...table.arrow.spill import SpillFile, SpillReader, SpillWriter, bring_near
from ...table.schema.columns import RECORD_KEY
from ...table.schema.fields import root_of
from ...table.seen_table import SeenTable
from ...writer.buffer import GroupRows, rows_by_route
from ...writer.routes import Route, Routes
from ...writer.rows import IncomingRowReader
from ..locating.routing import routing_of
from ..locating.shared_keys import SharedKeys
from ..planning.plan import WritePlan

Flush = Mapping[Route, list[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class SpilledRows:
    """The rows of each route that tasks handed over, in the order of the tasks.

    Attributes:
        plan: The plan of the routes and columns.
        size: Bytes of the spills.
        local: A temporary folder that lasts as long as the rows.
        changed_file: The file of the rows that another plan changed; None if all rows are as the tasks wrote them.
    """

    plan: WritePlan
    rows: Mapping[Route, GroupRows]
    size: int
    local: Storage
    changed_file: SpillReader | None = None

    @property
    def paths(self) -> set[str]:
        """The partitions of the rows."""
        return {route.partition_path for route in self.rows}

    def by_plan(self, plan: WritePlan) -> SpilledRows:
        """Return the rows as the tasks would hand them over by a later plan of the write.

        Raises `CommitConflictError` if only tasks can take the rows in by that plan, and `NullOrderingError` as a task.
        """
        previous_plan = self.plan
        if plan.table is previous_plan.table and plan.numbers == previous_plan.numbers:
            # Both plans see the same table, and differ at most in the instant's time.
            return self
        same_rows: dict[Route, GroupRows] = {}
        if _key_terms(plan) == _key_terms(previous_plan):
            has_same_spec = plan.spec == previous_plan.spec
            for route, rows in self.rows.items():
                if has_same_spec and plan.buckets_of(route.partition_path) == previous_plan.buckets_of(
                    route.partition_path
                ):
                    same_rows[route] = rows
            other_rows = {route: rows for route, rows in self.rows.items() if route not in same_rows}
            changed_rows = _with_kept_keys(plan, other_rows)
        else:
            _refuse_new_keys(plan, previous_plan)
            changed_rows = _with_new_keys(plan, self.rows)
        if len(same_rows) == len(self.rows):
            return replace(self, plan=plan)
        try:
            changed_file = self._spill_changed(changed_rows)
        except (SchemaMismatchError, ColumnValueError) as error:
            # The options allow the columns of the rows, but the first plan made columns wider, or a value is null.
            raise plan.transaction.conflict(
                f"The table has other columns now than when the rows were taken in: {error.what.rstrip('.')}"
            ) from error
        return replace(self, plan=plan, rows={**same_rows, **rows_by_route([changed_file])}, changed_file=changed_file)

    def discard(self) -> None:
        """Delete the rows that another plan changed."""
        if self.changed_file is not None:
            self.changed_file.delete()

    def _spill_changed(self, flushes: Iterator[Flush]) -> SpillReader:
        """Write changed rows to a temporary file, and return its reader."""
        writer = SpillWriter(self.local, f"{uuid.uuid4().hex}.spill", "")
        try:
            for flush in flushes:
                writer.append(flush)
            spill = writer.publish()
        except BaseException:
            writer.discard()
            raise
        return SpillReader(self.local, spill.path)


@contextmanager
def opened_spills(plan: WritePlan, spills: Sequence[SpillFile]) -> Iterator[SpilledRows]:
    """Open the spills in the order of the tasks; local copies of remote spills stay until the block ends."""
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        local = open_storage(folder, durable=False)
        readers = for_each(plan.storage, lambda spill: bring_near(plan.storage, spill, local), spills)
        yield SpilledRows(plan, rows_by_route(readers), sum(spill.size for spill in spills), local)


def _key_terms(plan: WritePlan) -> tuple[object, ...]:
    """Return what decides the keys, partitions and routes of rows, except for the numbers of buckets."""
    config, index = plan.config, plan.index
    keys = config.record_key_fields, bool(config.names_key_field), config.generates_keys
    # Before a lookup, the number of a route is a share of the keys, whichever index looks them up.
    routes = "lookup" if index.needs_lookup else (config.index_type, config.hash_fields)
    return keys, _spelling_types(plan, config.record_key_fields), *_path_terms(plan), routes


def _path_terms(plan: WritePlan) -> tuple[object, ...]:
    """Return what decides the partitions of rows."""
    config = plan.config
    fields, path_style = config.partition_fields, (config.hive_style, config.url_encode, config.time_options)
    return config.key_generator, fields, config.partition_types, path_style, _spelling_types(plan, fields)


def _spelling_types(plan: WritePlan, names: Sequence[str]) -> list[str]:
    """Return the types of some columns as far as they decide how values are spelt: all whole numbers are alike."""
    roots = {root_of(name) for name in names}
    kinds = [column.type for column in plan.schema if column.name in roots]
    return ["whole number" if pa.types.is_signed_integer(kind) else str(kind) for kind in kinds]


def _refuse_new_keys(plan: WritePlan, previous_plan: WritePlan) -> None:
    """Raise if the rows lack the columns for other keys, or the order of rows with an equal new key.

    Rows with equal keys have one route, and so an order, only if their keys by ``previous_plan`` were equal, too.
    """
    # A write that only deletes need not keep the columns of other keys.
    lacks_columns = previous_plan.spec.deletes
    has_other_keys = (
        plan.config.record_key_fields != previous_plan.config.record_key_fields
        and not previous_plan.config.generates_keys
    )
    has_other_places = _path_terms(plan) != _path_terms(previous_plan) or plan.positioned != previous_plan.positioned
    lacks_order = has_other_keys or (bool(previous_plan.config.partition_fields) and has_other_places)
    if lacks_columns or lacks_order:
        raise plan.transaction.conflict("Another writer made the table anew meanwhile, with other keys or partitions")


def _with_kept_keys(plan: WritePlan, spilled: Mapping[Route, GroupRows]) -> Iterator[Flush]:
    """Yield spilled rows by route, with their old keys and partitions, and the columns and buckets of a plan."""
    index = None if plan.numbers is None else computed_index_for(plan.config, plan.numbers)
    for route, rows in spilled.items():
        router = _KeptKeys(route, index)
        reader = IncomingRowReader(plan.spec, router)
        for batches in rows.flushes():
            yield _by_route(reader, batches)


def _with_new_keys(plan: WritePlan, spilled: Mapping[Route, GroupRows]) -> Iterator[Flush]:
    """Yield spilled rows by route, with the keys and partitions that a plan computes from their columns."""
    routing = routing_of(plan, lambda: SeenTable.now(plan.table))
    check = SharedKeys.of(plan, lambda: SeenTable.now(plan.table))
    reader = IncomingRowReader(plan.spec, routing.router(0), check=check)
    for rows in spilled.values():
        for batches in rows.flushes():
            yield _by_route(reader, batches)


def _by_route(reader: IncomingRowReader, batches: list[pa.RecordBatch]) -> Flush:
    """Return the rows of batches by the routes that a reader gives them."""
    flush: dict[Route, list[pa.RecordBatch]] = {}
    for route, rows in reader.routed(iter(batches)):
        flush.setdefault(route, []).append(rows)
    return flush


@dataclass(frozen=True, slots=True)
class _KeptKeys:
    """Keeps the partition and the keys of rows; ``index`` chooses their buckets, unless it is None."""

    any_order: ClassVar[bool] = True
    old_route: Route
    index: ComputedIndex | None

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return the routes of rows, with the keys and the partition that they had."""
        zeros = np.zeros(rows.num_rows, np.int32)
        paths = pa.DictionaryArray.from_arrays(pa.array(zeros), pa.array([self.old_route.partition_path]))
        keys = rows.column(RECORD_KEY)
        if self.index is None:
            return Routes(keys, paths, np.full(rows.num_rows, self.old_route.number, np.int64))
        return Routes(keys, paths, self.index.buckets_in(paths, keys).astype(np.int64))
