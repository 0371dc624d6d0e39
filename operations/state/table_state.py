"""The state of a table on one page: its settings, its size, its debt, the work on it, and its next needs.

It takes one listing of each partition and a bounded number of other requests, whatever the number of file groups and of
instants is. It opens no data file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...storage.base import Storage
from ...table.last_writer import last_writer
from ...timeline.delta_commits import since_compaction
from ...timeline.held import log_compactions
from ...timeline.writers.patience import Patience
from ..inspect.activity import activity_rows
from ..inspect.history import history_rows
from ..inspect.metadata_partitions import PartitionSize, readable_sizes
from ..inspect.sizes import sizes_of_groups
from ..inspect.walked_table import WalkedTable
from ..service_settings import Upkeep
from .needs import Need, TableNeeds, pending_work

# So many of the newest instants are counted by action, because a timeline may never be archived.
NEWEST = 500
_MOST_WRITES = 5


@dataclass(frozen=True, slots=True)
class TableState:
    """The result of `table_state`.

    Attributes:
        buckets: Buckets of each partition; None if the numbers differ or are unknown.
        dead_bytes: Bytes of older slices and replaced file groups; ``unfinished_bytes`` of unfinished writes.
        delta_commits: Delta commits since the last compaction.
        read_optimized_lacks: How many writes are missing from read-optimized queries.
        instants: Instants on the active timeline, of which the newest ``counted_instants`` are counted by action.
        archive_files: Files of the archive.
        newest_writes: The newest completed writes, as values by the columns of `HudiTable.history`.
        pending: The oldest pending instants, as values by the columns of `HudiTable.activity`.
        pending_instants: How many instants are pending.
        written_by: Which software made the newest completed write; None if that is unknown.
        metadata: The partitions of the metadata table, in use or being built; None if it cannot be listed.
        offers: The possible upgrade of the table's version.
    """

    path: str
    name: str
    type: str
    version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    order_by: tuple[str, ...]
    index: str | None
    buckets: int | None
    partitions: int
    file_groups: int
    files: int
    log_files: int
    live_bytes: int
    log_bytes: int
    dead_bytes: int
    unfinished_bytes: int
    delta_commits: int
    read_optimized_lacks: int
    instants: int
    counted_instants: int
    actions: Mapping[str, int]
    archive_files: int
    newest_writes: tuple[Mapping[str, Any], ...]
    pending: tuple[Mapping[str, Any], ...]
    pending_instants: int
    needs: tuple[Need, ...]
    written_by: str | None
    offers: tuple[Need, ...]
    metadata: tuple[PartitionSize, ...] | None = ()


def table_state(storage: Storage, upkeep: Upkeep, patience: Patience) -> TableState:
    """Return the state of the table at a store's root; raises `TableError` if pyhudi cannot read it.

    Args:
        upkeep: The settings of the services that may follow a write: they decide when ``needs`` of the result name a
            clean, an archiving or a compaction.
        patience: After how long without a heartbeat another writer counts as dead, so that ``needs`` name the rollback
            of its write.
    """
    walked = WalkedTable.now(storage)
    table, timeline, slices = walked.table, walked.timeline, walked.slices
    config, numbers = table.config, walked.numbers
    newest = timeline.instants[-NEWEST:]
    live = dead = unfinished = 0
    groups = tuple(sizes_of_groups(walked))
    for group in groups:
        live, dead, unfinished = (
            live + group.live_bytes,
            dead + group.dead_bytes,
            unfinished + group.unfinished_bytes,
        )
    needs = TableNeeds(
        walked, upkeep, patience, frozenset(group.partition_path for group in groups if group.dead_files)
    )
    return TableState(
        path=storage.path,
        name=config.name,
        type=config.table_type,
        version=config.version,
        record_key=config.record_key_fields,
        partition_by=config.partition_fields,
        order_by=config.ordering_fields,
        index=walked.index,
        buckets=None if numbers is None or numbers.differ else numbers.default,
        partitions=len(walked.partitions),
        file_groups=len(slices),
        files=sum(len(file_slice.files) for file_slice in slices),
        log_files=sum(len(file_slice.logs) for file_slice in slices),
        live_bytes=live,
        log_bytes=sum(file_slice.log_bytes for file_slice in slices),
        dead_bytes=dead,
        unfinished_bytes=unfinished,
        delta_commits=len(since_compaction(timeline).since),
        read_optimized_lacks=_writes_in_logs_alone(walked),
        instants=len(timeline.instants),
        counted_instants=len(newest),
        actions=dict(sorted(Counter(instant.action for instant in newest).items())),
        archive_files=len(table.archive.file_names()),
        newest_writes=tuple(history_rows(timeline, timeline.writes[: -_MOST_WRITES - 1 : -1])),
        pending=tuple(activity_rows(table, pending_work(timeline))),
        pending_instants=len(timeline.pending),
        needs=needs.next_needs(),
        written_by=last_writer(timeline),
        offers=needs.offers(),
        metadata=readable_sizes(table, timeline),
    )


def _writes_in_logs_alone(walked: WalkedTable) -> int:
    """Return how many writes have rows in log files alone; a log compaction joins files of others and adds none."""
    logs = [log for file_slice in walked.slices for log in file_slice.logs]
    times = walked.table.format.makers(logs, walked.timeline)
    return len(times - log_compactions(walked.timeline)) if times else 0
