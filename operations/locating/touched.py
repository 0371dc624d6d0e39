"""The file groups and bytes that the rows of a write touch, found before the write begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...index.registry import index_for
from ...table.files.file_group import FileSlice
from ...table.seen_table import SeenTable
from ...writer.routes import Route, Router
from ..planning.plan import WritePlan
from .routing import FileGroups, routing_of


@dataclass(frozen=True, slots=True)
class Touched:
    """File groups that a write changes or looks keys up in, and the bytes of their files that it may read."""

    groups: int
    size: int


def touched_by(plan: WritePlan, seen: SeenTable, batches: Sequence[pa.RecordBatch], most_groups: int) -> Touched | None:
    """Return the file groups and bytes that rows touch, by which the caller decides whether one process writes them.

    None stands for more than ``most_groups`` file groups. Raises errors of bad keys.
    """
    routing = routing_of(plan, lambda: seen)
    routes = _routes_of(routing.router(0), batches)
    if isinstance(routing, FileGroups):
        if len(routes) > most_groups:
            return None
        jobs = [routing.job(route) for route in sorted(routes)]
        # An append to log files reads no stored rows, unless the write combines columns with them or counts them.
        reads = plan.lays_rows or plan.counts_copies or not plan.appends
        return Touched(len(jobs), sum(job.size for job in jobs) if reads else 0)
    slices = _slices_with_keys(plan, seen, {route.partition_path for route in routes}, most_groups)
    return (
        None
        if slices is None
        else Touched(len(slices), sum(file.size for file_slice in slices for file in file_slice.data_files))
    )


def _routes_of(router: Router, batches: Sequence[pa.RecordBatch]) -> set[Route]:
    """Return the routes of all rows; these are file groups if the key or the row names its file group."""
    all_routes: set[Route] = set()
    for batch in batches:
        routes = router.route(batch)
        names = routes.paths.dictionary.to_pylist()  # O(partitions)
        pairs = np.stack([routes.paths.indices.to_numpy(zero_copy_only=False), routes.groups])
        all_routes.update(Route(names[code], number) for code, number in np.unique(pairs, axis=1).T.tolist())
    return all_routes


def _slices_with_keys(plan: WritePlan, seen: SeenTable, paths: set[str], most: int) -> list[FileSlice] | None:
    """Return the slices in which the write looks keys up; None for more than ``most``."""
    view = seen.view
    if index_for(plan.config).is_global:
        if len(view.named_partitions()) > most:
            return None
        paths = set(view.partitions())
    slices = [file_slice for path in paths for file_slice in view.slices(path).values()]
    return slices if len(slices) <= most else None
