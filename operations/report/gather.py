"""Gathers the figures of a report from one listing of a table, the bodies of its newest writes, and some footers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...errors import PyHudiError
from ...storage.base import Storage, split
from ...storage.threads import for_each
from ...table.files.file_group import BaseFile
from ...table.files.key_footers import KeyRange, key_ranges
from ...table.last_writer import last_writer
from ...timeline.delta_commits import since_compaction
from ...timeline.instants import Instant
from ...timeline.metadata.models import CommitMetadata
from ...timeline.writers.patience import Patience
from ..inspect.activity import activity_rows
from ..inspect.metadata_partitions import PartitionSize, metadata_in_use_or_built, partition_sizes
from ..inspect.sizes import sizes_of_groups
from ..inspect.walked_table import WalkedTable
from ..result import SECONDS, CommitResult, result_from
from ..service_settings import Upkeep
from ..state.needs import Need, TableNeeds, pending_work
from .figures import AttemptCount, Overlap, OverlapBin, PhaseSeconds, ReportFigures, Savepoint, WaitOfWrite
from .space import debt_of, heat_map, size_bins, space_over_time
from .time_bars import find_bars

MOST_FOOTERS = 500


def find_overlap(walked: WalkedTable, *, deep: bool) -> Overlap:
    """Return with how many other base files of its partition each base file's range of keys overlaps.

    ``walked`` is the table with one listing of its timeline and files. With ``deep`` this reads the footers of all base
    files, else of a sample of whole partitions. It counts files without a sure range, or unreadable, but compares none.
    """
    by_partition = [
        [file_slice.base for file_slice in slices.values() if file_slice.base is not None]
        for slices in walked.slices_by_partition.values()
    ]
    sampled = by_partition if deep else sample(by_partition, MOST_FOOTERS)
    files = [file for part in sampled for file in part]
    storage = walked.table.storage

    def read(file: BaseFile) -> KeyRange | PyHudiError | None:
        try:
            return key_ranges(storage, [file])[0]
        except PyHudiError as error:
            return error

    read_ranges = iter(for_each(storage, read, files, computes=True))
    counts: Counter[int] = Counter()
    without_range = unreadable = 0
    for part in sampled:
        ranges = [next(read_ranges) for _ in part]
        without_range += sum(each is None for each in ranges)
        unreadable += sum(isinstance(each, PyHudiError) for each in ranges)
        counts.update(overlaps([each for each in ranges if isinstance(each, KeyRange)]))
    return Overlap(len(files), sum(map(len, by_partition)), without_range, unreadable, _overlap_bins(counts))


def sample(by_partition: Sequence[Sequence[BaseFile]], most: int) -> list[Sequence[BaseFile]]:
    """Return the base files of whole partitions at equal distances, at most ``most`` files.

    Files of one partition are comparable, so a sample of single files would show no overlap.
    """
    parts = [part for part in by_partition if part]
    total = sum(map(len, parts))
    if total <= most:
        return parts
    wanted_count = max(1, len(parts) * most // total)
    sampled: list[Sequence[BaseFile]] = []
    room = most
    for number in range(wanted_count):
        part = parts[number * len(parts) // wanted_count][:room]
        room -= len(part)
        if part:
            sampled.append(part)
    return sampled


def overlaps(ranges: Sequence[KeyRange]) -> list[int]:
    """Return with how many other ranges each range overlaps.

    These begin before the end of the range, and do not end before its begin. The range itself is counted, too, hence
    the 1 that is taken off.
    """
    least, greatest = sorted(each.least for each in ranges), sorted(each.greatest for each in ranges)
    return [bisect_right(least, each.greatest) - bisect_left(greatest, each.least) - 1 for each in ranges]


def _overlap_bins(counts: Counter[int]) -> tuple[OverlapBin, ...]:
    """Return the number of files by overlaps, in bins of 0, 1, 2 to 3, 4 to 7 overlaps and so on.

    ``counts`` has the number of files for each number of overlaps. The last bin is the last that has files.
    """
    bins: list[OverlapBin] = []
    least, most = 0, 0
    while counts and least <= max(counts):
        bins.append(OverlapBin(least, most, sum(files for n, files in counts.items() if least <= n <= most)))
        least, most = most + 1, 2 * most + 1
    return tuple(bins)


MOST_BODIES = 300
MOST_PHASES = 30
MOST_WAITS = 50
_MOST_MET = 5
_WAIT = "wait"
_MOST_SECONDS = 1e9


@dataclass(frozen=True)
class OpenedWrites:
    """The newest completed writes, newest first.

    Attributes:
        rows: The rows of base files that these writes state, by file name.
        timed: How many of them recorded seconds by phase.
    """

    results: tuple[CommitResult, ...]
    rows: Mapping[str, int]
    timed: int

    @classmethod
    def newest(cls, walked: WalkedTable, note_problem: Callable[[str], None]) -> OpenedWrites:
        """Open the newest writes of a timeline; ``note_problem`` takes a sentence for each that cannot be read.

        ``walked`` is the table with one listing of its timeline. At most `MOST_BODIES` completed writes are opened.
        """
        timeline = walked.timeline

        def read(write: Instant) -> CommitMetadata | PyHudiError:
            try:
                return timeline.files.read_commit(write)
            except PyHudiError as error:
                return error

        writes = timeline.writes[: -MOST_BODIES - 1 : -1]
        results: list[CommitResult] = []
        rows: dict[str, int] = {}
        timed = 0
        for write, body in zip(writes, for_each(timeline.storage, read, writes), strict=True):
            if isinstance(body, PyHudiError):
                note_problem(f"The report lacks what the {write.action} {write.requested_time} recorded: {body}")
                continue
            results.append(result_from(walked.table.path, write.requested_time, body))
            timed += SECONDS in body.extra_metadata
            for stats in body.partition_to_write_stats.values():
                rows |= {split(stat.path)[1]: stat.num_writes for stat in stats if stat.path}
        return cls(tuple(results), rows, timed)

    def phases(self) -> tuple[PhaseSeconds, ...]:
        """Return the phases that commits recorded, those with most seconds first."""
        commits: Counter[str] = Counter()
        total: Counter[str] = Counter()
        most: dict[str, float] = {}
        for result in self.results:
            for phase, seconds in result.seconds.items():
                # Other software may have written any number here, even infinity.
                if not 0 <= seconds < _MOST_SECONDS:
                    continue
                commits[phase] += 1
                total[phase] += seconds  # type: ignore[assignment]
                most[phase] = max(most.get(phase, 0.0), seconds)
        phases = sorted(commits, key=lambda phase: (-total[phase], phase))[:MOST_PHASES]
        return tuple(PhaseSeconds(phase, commits[phase], round(total[phase], 3), most[phase]) for phase in phases)

    def attempts(self) -> tuple[AttemptCount, ...]:
        """Return the number of commits for each number of attempts."""
        counts = Counter(result.attempts for result in self.results)
        return tuple(AttemptCount(attempts, counts[attempts]) for attempts in sorted(counts)[:MOST_PHASES])

    def waits(self) -> tuple[WaitOfWrite, ...]:
        """Return the newest commits that took several attempts, or waited."""
        results = [result for result in self.results if result.attempts > 1 or result.met or _WAIT in result.seconds]
        return tuple(
            WaitOfWrite(each.instant, each.attempts, float(each.seconds.get(_WAIT, 0.0)), each.met[:_MOST_MET])
            for each in results[:MOST_WAITS]
        )


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
    """Return the figures of the table at a store's root; raises `TableError` if pyhudi cannot read it.

    ``terms`` are the settings by which it judges what the table needs, and how many footers it reads. If some parts of
    the table cannot be read, `problems` of the figures says so, and empty values replace them.
    """
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
    needs: tuple[Need, ...] = problems.lacking("what the table needs next", judged.next_needs, ())
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
        """Return what a call returns; if it fails, note that the report lacks ``what``, and return ``instead``."""
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
    """Return the sizes of the metadata table's partitions that are in use or being built."""
    return partition_sizes(walked.table.config, metadata_in_use_or_built(walked.table, walked.timeline))


def _savepoints(walked: WalkedTable) -> tuple[Savepoint, ...]:
    """Return the newest savepoints, newest first."""
    instants = [instant for instant in reversed(walked.timeline.completed) if instant.action == "savepoint"]
    bodies = [(each, walked.timeline.files.read_savepoint(each)) for each in instants[:MOST_SAVEPOINTS]]
    return tuple(Savepoint(each.requested_time, body.savepointed_by, body.comments) for each, body in bodies)
