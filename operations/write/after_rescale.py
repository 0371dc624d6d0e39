"""A commit after a rescale: it waits for the rescale, and brings handed-over rows to the new buckets."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...errors import CommitConflictError
from ...index.bucket import BucketIndex
from ...table.arrow.spill import SpillPiece, SpillReader, SpillWriter
from ...table.schema.columns import RECORD_KEY
from ...timeline.rescales import named_rescale
from ...timeline.timeline import Timeline
from ...writer.buffer import GroupRows
from ...writer.routes import Route
from ...writer.rows import cut
from ..planning.plan import WritePlan
from ..rollback.dead import wait_until_over
from ..rollback.pending import OtherWriters
from ..transaction.conflicts import check_rescales
from .merge_spills import SpilledRows


def wait_for_rescale(plan: WritePlan, timeline: Timeline, paths: Collection[str]) -> Timeline:
    """Wait while a rescale holds a write's partitions, and return a timeline of now.

    A micro-batch waits as long as it may be written again. Raises `CommitConflictError` where that takes too long.
    """
    work, settings = plan.transaction, plan.settings
    wait_s = settings.wait_s if settings.batch is None else max(settings.wait_s, settings.retry_s)
    until = time.monotonic() + wait_s
    while True:
        try:
            check_rescales(work, timeline, paths)
        except CommitConflictError as error:
            named = named_rescale(error.what)
            if named is None or time.monotonic() > until:
                raise
        else:
            return timeline
        wait_until_over(OtherWriters(work.table, work.patience), named, until)
        timeline = work.table.timeline()


def with_new_routes(plan: WritePlan, before: WritePlan, spilled: SpilledRows) -> SpilledRows:
    """Return the rows by the routes of ``plan``, of which some differ from those ``before``.

    Rows of one key stay in their order, because they have one route before and one after.
    """
    local, name = spilled.local, f"{uuid.uuid4().hex}.spill"
    kept: dict[Route, GroupRows] = {}
    moving: dict[Route, GroupRows] = {}
    for route, rows in spilled.rows.items():
        moves = plan.buckets_of(route.partition_path) != before.buckets_of(route.partition_path)
        (moving if moves else kept)[route] = rows
    writer = SpillWriter(local, name, "")
    try:
        for route, rows in moving.items():
            for batches in rows.flushes():
                writer.append(_by_bucket(plan, route.partition_path, batches))
        writer.publish()
    except BaseException:
        writer.discard()
        raise
    reader = SpillReader(local, name)
    pieces: dict[Route, list[tuple[SpillReader, SpillPiece]]] = {}
    for piece in reader.pieces:
        pieces.setdefault(Route(*piece.key), []).append((reader, piece))
    moved = {route: GroupRows(tuple(found)) for route, found in pieces.items()}
    return replace(spilled, rows={**kept, **moved})


def _by_bucket(
    plan: WritePlan, partition_path: str, batches: list[pa.RecordBatch]
) -> Mapping[Route, list[pa.RecordBatch]]:
    index = plan.index
    if not isinstance(index, BucketIndex):
        raise TypeError(f"the rows of {plan.path} have no buckets")
    found: dict[Route, list[pa.RecordBatch]] = {}
    for batch in batches:
        places = np.zeros(batch.num_rows, np.int32)
        paths = pa.DictionaryArray.from_arrays(pa.array(places), pa.array([partition_path]))
        buckets = index.buckets_in(paths, batch.column(RECORD_KEY)).astype(np.int64)
        for bucket, rows in cut(batch, buckets):
            found.setdefault(Route(partition_path, bucket), []).append(rows)
    return found
