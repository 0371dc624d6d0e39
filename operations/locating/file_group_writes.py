"""The jobs of a write: which rows it puts into which file group, for rows with found keys and for new rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import UnsupportedTableError
from ...index.settings import FileSizes
from ...index.small_files import GroupSizes, Shares, deal, learned_record_bytes
from ...storage.base import Storage
from ...table.arrow.batches import rechunk
from ...table.arrow.spill import SpillWriter
from ...table.arrow.string_hash import hash64
from ...table.config import TableConfig
from ...table.config.property_keys import MERGE_ON_READ
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.files.view import FileView
from ...table.schema.columns import RECORD_KEY
from ...timeline.held import clustered_groups, held_groups, pending_compactions
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...writer.buffer import Gathered, GroupRows, RowBuffers
from ...writer.group_writer import FileGroupWrite
from ...writer.routes import Route
from ...writer.rows import cut
from ..meeting.concurrency import (
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    WRITE,
    Meeting,
    Shared,
    asked_of,
    forbids,
    kind_of,
)
from ..planning.plan import WritePlan
from ..planning.row_plan import RowPlan
from ..rollback.pending import held_by_clustering_error

# Rows that wait to be cut get this fraction of a task's memory, and the deciding columns of one pass as much.
SHARE = 4


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows with found keys by file group, and rows with new keys by partition path.

    Attributes:
        matched: The rows with found keys.
        new: The rows with new keys.
        counts: The most rows that each partition gets.
        repeating: File groups that hold one of the keys several times.
    """

    matched: Mapping[FileGroupId, GroupRows]
    new: Mapping[str, GroupRows]
    counts: Mapping[str, int]
    repeating: frozenset[FileGroupId] = frozenset()


class SlicesByGroup:
    """Finds file slices, and builds the slices of each partition once."""

    def __init__(self, view: FileView | None) -> None:
        self._view = view
        self._slices: dict[str, dict[str, FileSlice]] = {}

    def find(self, group: FileGroupId) -> FileSlice | None:
        """Return the newest slice of a file group; None if the table lacks the group, or the write looks at no file."""
        path = group.partition_path
        if path not in self._slices:
            self._slices[path] = {} if self._view is None else self._view.slices(path)
        return self._slices[path].get(group.file_id)


def unknown_group(plan: RowPlan, group: FileGroupId) -> UnsupportedTableError:
    """Return the error for an index that names a file group which the table does not have."""
    return UnsupportedTableError(
        f"The index {plan.config.index_type} says that keys of the table {plan.path} are in the file group "
        f"{group.file_id} of partition {group.partition_path!r}, which the table does not have.",
        "Rebuild the index with the package that offers it.",
    )


def refuse_clustered(
    plan: WritePlan,
    clustered: Mapping[tuple[str, str], Instant],
    group: FileGroupId,
    shared: Shared = Shared.FILE_GROUP,
) -> None:
    """Refuse to change a file group that a pending clustering replaces, if the rules of concurrency forbid it.

    ``clustered`` has the pending clustering of each file group, and ``shared`` is what the write and the clustering
    share.
    """
    holder = clustered.get((group.partition_path, group.file_id))
    if holder is None:
        return
    meeting = Meeting(WRITE, CLUSTERING, shared=frozenset({shared}), asked=asked_of(plan.instant_time, holder))
    if forbids(meeting):
        raise held_by_clustering_error(plan.path, holder, group)


def jobs_of(
    plan: WritePlan, local: Storage, view: FileView | None, timeline: Timeline, rows: SortedRows
) -> list[tuple[FileGroupWrite, GroupRows]]:
    """Return the file groups that the write changes, each with its rows with found and with new keys.

    ``local`` is a folder on this machine for rows that exceed the memory, and ``rows`` are those of the write, looked
    up. ``view`` is None if the write looks at no existing file. A file group that gets new keys, or holds a key several
    times, is rewritten instead of appended to: an index that reads base files would not find new keys in log files, and
    Apache Hudi merges log entries with one row of a key. Raises UnsupportedTableError if the index names a file group
    that the table lacks, and ConcurrentWriteError if a pending clustering holds a file group.
    """
    rows_by_group: dict[FileGroupId, GroupRows] = dict(rows.matched)
    groups_to_rewrite: set[FileGroupId] = set()
    shares = shares_of(plan.config, plan.settings.lookup.sizes, view, timeline, rows.counts, plan.instant_time)
    for group, new_rows in _new_rows_by_group(plan, local, shares, rows.new).items():
        matched_rows = rows_by_group.get(group, GroupRows())
        # Matched and new rows have different keys, so their order does not matter.
        rows_by_group[group] = GroupRows(matched_rows.pieces + new_rows.pieces, matched_rows.memory + new_rows.memory)
        groups_to_rewrite.add(group)
    groups_to_rewrite |= rows.repeating
    jobs, slices, clustered = [], SlicesByGroup(view), clustered_groups(timeline)
    for group in sorted(rows_by_group):
        file_slice = slices.find(group)
        refuse_clustered(plan, clustered, group)
        if file_slice is None and group in rows.matched:
            raise unknown_group(plan, group)
        jobs.append(
            (
                FileGroupWrite(group, file_slice, rewrites=file_slice is not None and group in groups_to_rewrite),
                rows_by_group[group],
            )
        )
    return jobs


def jobs_of_groups(
    plan: WritePlan,
    view: FileView,
    timeline: Timeline,
    rows: Mapping[FileGroupId, GroupRows],
    repeating: Collection[FileGroupId] = (),
) -> list[tuple[FileGroupWrite, GroupRows]]:
    """Return the jobs for rows of existing file groups, each with its rows; they rewrite the groups ``repeating``."""
    slices, clustered = SlicesByGroup(view), clustered_groups(timeline)
    jobs = []
    for group in sorted(rows):
        file_slice = slices.find(group)
        refuse_clustered(plan, clustered, group)
        if file_slice is None:
            raise unknown_group(plan, group)
        jobs.append((FileGroupWrite(group, file_slice, rewrites=group in repeating), rows[group]))
    return jobs


def shares_of(
    config: TableConfig,
    sizes: FileSizes,
    view: FileView | None,
    timeline: Timeline,
    counts: Mapping[str, int],
    instant_time: str = "",
) -> Mapping[str, Shares]:
    """Return the file groups of new rows by partition: first small files, then new file groups.

    ``counts`` has the number of new rows of each partition, and ``sizes`` says which files are small and how far they
    are filled. The view is None if no existing file takes new rows, the time empty if ids of file groups do not matter
    yet. The timeline tells which file groups pending services hold, and how large a row is.
    """
    counts = {path: count for path, count in counts.items() if count}
    if not counts:
        return {}
    groups = GroupSizes()
    if view is not None:
        held_groups_to_leave = {
            group
            for group, holder in {**held_groups(pending_compactions(timeline)), **clustered_groups(timeline)}.items()
            if _keeps_its_room(holder)
        }
        appends = config.table_type == MERGE_ON_READ
        groups = GroupSizes.of(view, counts, sizes, held=held_groups_to_leave, appends=appends)
    return deal(counts, groups, sizes, learned_record_bytes(timeline, sizes), instant_time)


def _keeps_its_room(holder: Instant) -> bool:
    """Return whether new keys must not join the small files that a pending plan holds."""
    kind = kind_of(holder.action)
    # Of the plans that hold file groups, all but compactions are clusterings.
    holder_kind = kind if kind in {COMPACTION, LOG_COMPACTION} else CLUSTERING
    return forbids(Meeting(WRITE, holder_kind, shared=frozenset({Shared.ROOM})))


def _new_rows_by_group(
    plan: WritePlan, local: Storage, shares: Mapping[str, Shares], new_rows: Mapping[str, GroupRows]
) -> dict[FileGroupId, GroupRows]:
    """Return the rows with new keys by the file group that takes them, as the shares of each partition say.

    If a partition has one share, its rows stay as they are; else they are cut by the hashes of their keys. ``new_rows``
    are the rows by partition path, and ``local`` is a folder on this machine for cut rows that exceed the memory.
    """
    rows_by_group: dict[FileGroupId, GroupRows] = {}
    buffers = open_buffers(plan, local, "dealt")
    try:
        for path, dealt in sorted(shares.items()):
            if len(dealt.shares) == 1:
                rows_by_group[FileGroupId(path, dealt.shares[0].file_id)] = new_rows[path]
                continue
            # The code is the number of the share to which the hash of a key belongs.
            for chunk in rechunk(new_rows[path].batches()):
                for code, part in cut(chunk, dealt.take(hash64(chunk.column(RECORD_KEY))).astype(np.int64)):
                    buffers.add(Route(path, code), part)
        gathered = Gathered(buffers, local)
    except BaseException:
        buffers.discard()
        raise
    for route in gathered.routes():
        share = shares[route.partition_path].shares[route.number]
        rows_by_group[FileGroupId(route.partition_path, share.file_id)] = gathered.take(route)
    return rows_by_group


def open_buffers(plan: WritePlan, local: Storage, name: str) -> RowBuffers:
    """Return buffers for rows that are being cut, which spill to files ``name``.spill in a local folder."""
    settings = plan.settings
    limit = settings.output.memory // SHARE
    return RowBuffers(min(settings.tasks.batch_size, limit), limit, partial(SpillWriter, local, f"{name}.spill", ""))
