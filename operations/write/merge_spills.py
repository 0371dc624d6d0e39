"""The commit's share of a plain write: rows of one file group that came from several tasks, merged on this host.

Spark gives a data source no shuffle, so that a plain write may see one file group in many tasks. The bound keeps
this from becoming an engine of our own.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import accumulate

from ...errors import PlacementError
from ...storage import open_storage
from ...storage.base import Storage
from ...storage.parallel import for_each
from ...table.arrow.spill import SpillFile, SpillPiece, SpillReader, bring_near, local_spills
from ...table.files.names import WriteToken
from ...writer.buffer import GroupRows
from ...writer.group_writer import GroupJob
from ...writer.routes import Route
from ..planning.plan import WritePlan
from ..transaction.fence import Fence
from ..transaction.since import snapshot
from .file_groups import JobPlanner
from .phases import Phases, Progress
from .writers import Outcome, versions_of_commit, writers

logger = logging.getLogger("pyhudi")

COMMIT_TOKEN = WriteToken(0, 0, 0)
_WARN_FROM = 8
MOST_WORKERS = 8
"""How many file groups the commit merges at once, at most."""


def merge_spills(plan: WritePlan, storage: Storage, spills: Sequence[SpillFile], phases: Phases) -> list[Outcome]:
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
) -> list[Outcome]:
    readers = for_each(storage, lambda spill: bring_near(storage, spill, local), spills)
    pieces: dict[Route, list[tuple[SpillReader, SpillPiece]]] = {}
    for reader in readers:
        for piece in reader.pieces:
            pieces.setdefault(Route(*piece.key), []).append((reader, piece))
    planner = JobPlanner(plan, storage, snapshot(plan.transaction, storage))
    routes = sorted(pieces)
    jobs, size = _within_bound(plan, spills, {route: planner.job(route) for route in routes}, pieces)
    level = logging.WARNING if _is_much(plan, size) else logging.INFO
    progress = Progress(phases, "merge", len(jobs), level)
    # Tasks count from 1.
    fence = Fence(plan.transaction, storage, 0, sealed_by_us=True, partitions=planner.known_partitions)
    workers = max(1, min(os.cpu_count() or 1, len(jobs), MOST_WORKERS))
    with ThreadPoolExecutor(workers) as pool:
        versions = versions_of_commit(plan)
        to = writers(plan, storage, COMMIT_TOKEN, fence, local_spills(local), planner.timeline, versions)
        fence.announce(map(to.first_file, jobs))
        futures = [
            pool.submit(to.write, job, GroupRows(tuple(pieces[route])), f"{number}")
            for number, (route, job) in enumerate(zip(routes, jobs, strict=True))
        ]
        try:
            _await(futures, progress)
            return [outcome for future in futures for outcome in future.result()]
        finally:
            for future in futures:
                future.cancel()


def _await(futures: Sequence[Future[tuple[Outcome, ...]]], progress: Progress) -> None:
    """Wait until all are done or one has failed, and say now and then how many are."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=progress.every_s, return_when=FIRST_EXCEPTION)
        if any(future.exception() for future in done):
            return
        progress.tell(len(futures) - len(left))


def _is_much(plan: WritePlan, size: int) -> bool:
    return size > plan.settings.commit_merge_max_bytes // _WARN_FROM


def _within_bound(
    plan: WritePlan,
    spills: Sequence[SpillFile],
    jobs: Mapping[Route, GroupJob],
    pieces: Mapping[Route, Sequence[tuple[SpillReader, SpillPiece]]],
) -> tuple[list[GroupJob], int]:
    """Return the jobs, and how many bytes are to be merged.

    A merge-on-read table merges when it is read or compacted: there new file groups that are too much for the commit
    begin with log files, the largest ones first.

    Raises:
        PlacementError: They are too many.
    """
    bound = plan.settings.commit_merge_max_bytes
    size = sum(spill.size for spill in spills)
    if plan.appends:
        if _is_much(plan, size):
            logger.warning(
                "table %s: the commit appends %d bytes on the driver's host; HudiTable lets the executors do it, and "
                "so does a greater hoodie.pyhudi.log.files.per.group, at the price of more log files",
                plan.path,
                size,
            )
        waiting = {route: sum(piece.length for _, piece in pieces[route]) for route in jobs}
        new = sorted((route for route, job in jobs.items() if job.piece is None), key=waiting.__getitem__)
        merged = dict(zip(new, accumulate(map(waiting.__getitem__, new)), strict=True))
        return [replace(job, logs_only=merged.get(route, 0) > bound) for route, job in jobs.items()], size
    size += sum(job.size for job in jobs.values())
    if size > bound:
        raise PlacementError(
            f"The write to {plan.path} left {size:,} bytes of rows and touched files for the commit to merge; "
            f"hoodie.pyhudi.commit.merge.max.bytes allows {bound:,}.",
            f"{_advice(plan)}, so that Spark's executors merge; or raise the bound.",
        )
    if _is_much(plan, size):
        logger.warning(
            "table %s: the commit merges %d bytes on the driver's host; HudiTable lets the executors do it",
            plan.path,
            size,
        )
    return list(jobs.values()), size


def _advice(plan: WritePlan) -> str:
    if plan.creates_table:
        return "Make the table with HudiTable.create(spark, path, df, record_key=…) and write through what it returns"
    return "Write through HudiTable(spark, path), or with pyhudi.colocate(df, path) and hoodie.pyhudi.colocated=true"
