"""Gathers the figures of a report from one listing of a table, the bodies of its newest writes, and some footers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...errors import PyHudiError
from ...storage.base import Storage
from ...table.last_writer import last_writer
from ...timeline.delta_commits import since_compaction
from ...timeline.writers.patience import Patience
from ..inspect.activity import activity_rows
from ..inspect.metadata_partitions import PartitionSize, metadata_in_use_or_built, partition_sizes
from ..inspect.sizes import sizes_of_groups
from ..inspect.walked_table import WalkedTable
from ..service_settings import Upkeep
from ..state.needs import Need, TableNeeds, pending_work
from .commits import OpenedWrites
from .figures import ReportFigures, Savepoint
from .key_overlap import find_overlap
from .space import debt_of, heat_map, size_bins, space_over_time
from .time_bars import find_bars

MOST_SAVEPOINTS = 50
_MOST_PROBLEMS = 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReportTerms:
    """The settings by which a report judges a table, and how much it reads.

    Attributes:
        target_bytes: The size up to which base files are filled.
        deep: Whether to read the footers of all base files instead of a sample.
    """

    upkeep: Upkeep
    patience: Patience
    target_bytes: int
    deep: bool = False


def gather(storage: Storage, terms: ReportTerms) -> ReportFigures:
    """Return the figures of the table at a store's root; raises `TableError` if pyhudi cannot read it."""
    walked = WalkedTable.now(storage)
    at_ms = int(storage.now() * 1000)
    table, timeline, config = walked.table, walked.timeline, walked.table.config
    problems = Problems()
    opened = OpenedWrites.newest(walked, problems.sentences.append)
    times = find_bars(walked, problems.sentences.append)
    groups = tuple(sizes_of_groups(walked))
    dead = frozenset(group.partition_path for group in groups if group.dead_files)
    heat, unknown_rows = heat_map(walked, opened.rows)
    debt = debt_of(walked)
    judged = TableNeeds(walked, terms.upkeep, terms.patience, dead)
    needs: tuple[Need, ...] = problems.lacking("what the table needs next", judged.found, ())
    return ReportFigures(
        path=storage.path,
        name=config.name,
        type=config.table_type,
        version=config.version,
        written_by=problems.lacking("who wrote last", lambda: last_writer(timeline), None),
        record_key=tuple(config.record_key_fields),
        partition_by=tuple(config.partition_fields),
        order_by=tuple(config.ordering_fields),
        index=walked.index,
        at_ms=at_ms,
        partitions=len(walked.partitions),
        file_groups=len(walked.slices),
        base_files=sum(file_slice.base is not None for file_slice in walked.slices),
        log_files=sum(len(file_slice.logs) for file_slice in walked.slices),
        live_bytes=sum(group.live_bytes for group in groups),
        dead_bytes=sum(group.dead_bytes for group in groups),
        unfinished_bytes=sum(group.unfinished_bytes for group in groups),
        instants=len(timeline.instants),
        unfinished=len(timeline.instants) - len(timeline.completed),
        archived=times.archived,
        bars=times.bars,
        older=times.older,
        before=times.before,
        untimed=times.untimed,
        space=space_over_time(walked),
        size_bins=size_bins(walked),
        target_bytes=terms.target_bytes,
        heat=heat,
        unknown_rows=unknown_rows,
        bodies=len(opened.results),
        timed=opened.timed,
        phases=opened.phases(),
        attempts=opened.attempts(),
        waits=opened.waits(),
        debt=debt.groups,
        debt_groups=debt.count,
        debt_bytes=debt.bytes,
        delta_commits=problems.lacking("delta commits", lambda: len(since_compaction(timeline).since), 0),
        overlap=find_overlap(walked, deep=terms.deep),
        savepoints=problems.lacking("savepoints", lambda: _savepoints(walked), ()),
        at_work=problems.lacking("what is at work", lambda: tuple(activity_rows(table, pending_work(timeline))), ()),
        needs=needs,
        offers=judged.offers(),
        metadata=problems.lacking("the metadata table", lambda: _metadata(walked), ()),
        problems=problems.texts,
    )


class Problems:
    """Collects what could not be read, so that the report shows the rest of a damaged table."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def lacking(self, what: str, call: Callable[[], T], instead: T) -> T:
        """Return what a call returns; if the call fails, note what the report lacks and return ``instead``."""
        try:
            return call()
        except PyHudiError as error:
            self.sentences.append(f"The report lacks {what}: {error}")
            return instead

    @property
    def texts(self) -> tuple[str, ...]:
        """The first problems, and how many more there are."""
        more = len(self.sentences) - _MOST_PROBLEMS
        return (*self.sentences[:_MOST_PROBLEMS], *([f"{more:,} more parts could not be read."] if more > 0 else []))


def _metadata(walked: WalkedTable) -> tuple[PartitionSize, ...]:
    return partition_sizes(walked.table.config, metadata_in_use_or_built(walked.table, walked.timeline))


def _savepoints(walked: WalkedTable) -> tuple[Savepoint, ...]:
    instants = [instant for instant in reversed(walked.timeline.completed) if instant.action == "savepoint"]
    bodies = [(each, walked.timeline.files.read_savepoint(each)) for each in instants[:MOST_SAVEPOINTS]]
    return tuple(Savepoint(each.requested_time, body.savepointed_by, body.comments) for each, body in bodies)
