"""The commit's share of a plain write: rows of one file group that came from several tasks, merged on this host.

Spark gives a data source no shuffle, so that a plain write may see one file group in many tasks. The bound keeps
this from becoming an engine of our own.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from ...errors import PlacementError
from ...storage import open_storage
from ...storage.base import Storage
from ...storage.parallel import for_each
from ...table.arrow.spill import SpillFile, SpillPiece, SpillReader, bring_near, local_spills
from ...table.files.names import WriteToken
from ...writer.buffer import MERGE_RESERVE, GroupRows
from ...writer.group_writer import GroupJob, GroupOutcome
from ...writer.routes import Route
from ..planning.plan import WritePlan
from ..transaction.fence import Fence
from ..transaction.since import snapshot
from .file_groups import JobPlanner
from .phases import Phases, Progress
from .task import group_writer

logger = logging.getLogger("pyhudi")

COMMIT_TOKEN = WriteToken(0, 0, 0)
_WARN_FROM = 8
MOST_WORKERS = 8
"""How many file groups the commit merges at once, at most."""


def merge_spills(plan: WritePlan, storage: Storage, spills: Sequence[SpillFile], phases: Phases) -> list[GroupOutcome]:
    """Fold and merge what the tasks spilled, one file group per thread at a time.

    Args:
        plan: The write.
        storage: Rooted at the table.
        spills: One per task that saw rows, in order of the tasks.
        phases: Where it is told how far the work is.

    Raises:
        PlacementError: The spills and the base files they touch are beyond the bound.
    """
    if not spills:
        return []
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        return _merge(plan, storage, spills, open_storage(folder, durable=False), phases)


def _merge(
    plan: WritePlan, storage: Storage, spills: Sequence[SpillFile], local: Storage, phases: Phases
) -> list[GroupOutcome]:
    readers = for_each(storage, lambda spill: bring_near(storage, spill, local), spills)
    pieces: dict[Route, list[tuple[SpillReader, SpillPiece]]] = {}
    for reader in readers:
        for piece in reader.pieces:
            pieces.setdefault(Route(*piece.key), []).append((reader, piece))
    planner = JobPlanner(plan, storage, snapshot(plan.transaction, storage))
    routes = sorted(pieces)
    jobs = [planner.job(route) for route in routes]
    size = _check_bound(plan, spills, jobs)
    level = logging.WARNING if _is_much(plan, size) else logging.INFO
    progress = Progress(phases, "merge", len(jobs), level)
    # Tasks count from 1.
    fence = Fence(plan.transaction, storage, 0, sealed_by_us=True, partitions=planner.known_partitions)
    workers = max(1, min(os.cpu_count() or 1, len(jobs), MOST_WORKERS))
    with ThreadPoolExecutor(workers) as pool:
        writer = group_writer(
            plan,
            storage,
            COMMIT_TOKEN,
            fence,
            local_spills(local),
            memory=int(plan.settings.task_max_size * MERGE_RESERVE),
        )
        fence.announce((writer.path_of(job), job.marker) for job in jobs)
        futures = [
            pool.submit(writer.write, job, GroupRows(tuple(pieces[route])), f"{number}")
            for number, (route, job) in enumerate(zip(routes, jobs, strict=True))
        ]
        try:
            _await(futures, progress)
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def _await(futures: Sequence[Future[GroupOutcome]], progress: Progress) -> None:
    """Wait until all are done or one has failed, and say now and then how many are."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=progress.every_s, return_when=FIRST_EXCEPTION)
        if any(future.exception() for future in done):
            return
        progress.tell(len(futures) - len(left))


def _is_much(plan: WritePlan, size: int) -> bool:
    return size > plan.settings.commit_merge_max_bytes // _WARN_FROM


def _check_bound(plan: WritePlan, spills: Sequence[SpillFile], jobs: Sequence[GroupJob]) -> int:
    """Return how many bytes are to be merged, unless they are too many."""
    size = sum(spill.size for spill in spills) + sum(job.previous.size for job in jobs if job.previous is not None)
    bound = plan.settings.commit_merge_max_bytes
    if size > bound:
        raise PlacementError(
            f"The write to {plan.path} left {size:,} bytes of rows and touched base files for the commit to merge; "
            f"hoodie.pyhudi.commit.merge.max.bytes allows {bound:,}.",
            f"{_advice(plan)}, so that Spark's executors merge; or raise the bound.",
        )
    if _is_much(plan, size):
        logger.warning(
            "table %s: the commit merges %d bytes on the driver's host; HudiTable lets the executors do it",
            plan.path,
            size,
        )
    return size


def _advice(plan: WritePlan) -> str:
    if plan.creates_table:
        return "Make the table with HudiTable.create(spark, path, df, record_key=…) and write through what it returns"
    return "Write through HudiTable(spark, path), or with pyhudi.colocate(df, path) and hoodie.pyhudi.colocated=true"
