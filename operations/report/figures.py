"""The figures of a report: plain values, from which each picture and the table beneath it are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..inspect.metadata_partitions import PartitionSize
from ..state.needs import Need


@dataclass(frozen=True, slots=True)
class InstantBar:
    """One instant: times in epoch milliseconds, and how long it took; None if unknown or still pending."""

    instant: str
    action: str
    state: str
    began_ms: int
    ended_ms: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many instants were requested on a day, in the table's time zone."""

    day: str
    instants: int


@dataclass(frozen=True, slots=True)
class SpacePoint:
    """The live and dead bytes when a write completed, of the files that exist now."""

    instant: str
    at_ms: int
    live_bytes: int
    dead_bytes: int


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Base files with at least ``least`` bytes and fewer than ``below``."""

    least: int
    below: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HeatCell:
    """The file groups of some partitions and buckets; ``rows`` is None if the rows of a file are unknown."""

    row: int
    column: int
    file_groups: int
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Partitions as rows, buckets as columns; if there are too many, neighbours share a row or a column.

    Attributes:
        of_buckets: Whether columns are buckets; otherwise they are file groups of the partition in order of their ids.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[HeatCell, ...]
    partitions: int
    numbers: int
    of_buckets: bool


@dataclass(frozen=True, slots=True)
class DebtOfGroup:
    """A file group whose log files wait for a compaction."""

    partition: str
    file_id: str
    base_bytes: int
    log_bytes: int
    log_files: int


@dataclass(frozen=True, slots=True)
class PhaseSeconds:
    """A phase that commits recorded: the number of commits, their seconds together, and the most of one commit."""

    phase: str
    commits: int
    seconds: float
    most: float


@dataclass(frozen=True, slots=True)
class AttemptCount:
    """How many commits took so many attempts."""

    attempts: int
    commits: int


@dataclass(frozen=True, slots=True)
class WaitOfWrite:
    """A commit that took several attempts or waited for other writes."""

    instant: str
    attempts: int
    seconds: float
    met: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OverlapBin:
    """The number of sampled files whose range of keys overlaps with ``least`` to ``most`` others of the partition."""

    least: int
    most: int
    files: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """How ranges of keys overlap, from the footers of ``sampled`` of ``base_files`` base files."""

    sampled: int
    base_files: int
    without_range: int
    unreadable: int
    bins: tuple[OverlapBin, ...]


@dataclass(frozen=True, slots=True)
class Savepoint:
    instant: str
    user: str
    comment: str


@dataclass(frozen=True, slots=True)
class ReportFigures:
    """All figures of a report.

    Attributes:
        at_ms: When the table was listed.
        older: The number of older instants than those of ``bars``, by day; ``before`` counts those of older days.
        untimed: The number of instants among the newest whose times cannot be read.
        bodies: How many of the newest completed writes were opened; ``timed`` of them recorded phases.
        unknown_rows: The number of file groups whose rows are unknown: they have log files, or no opened write states
            the rows of the base file.
        problems: What could not be read, and what the report therefore lacks.
        metadata: The partitions of the metadata table, also those being built.
    """

    path: str
    name: str
    type: str
    version: int
    written_by: str | None
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    order_by: tuple[str, ...]
    index: str | None
    at_ms: int
    partitions: int
    file_groups: int
    base_files: int
    log_files: int
    live_bytes: int
    dead_bytes: int
    unfinished_bytes: int
    instants: int
    unfinished: int
    archived: int
    bars: tuple[InstantBar, ...]
    older: tuple[DayCount, ...]
    before: int
    untimed: int
    space: tuple[SpacePoint, ...]
    size_bins: tuple[SizeBin, ...]
    target_bytes: int
    heat: HeatMap
    unknown_rows: int
    bodies: int
    timed: int
    phases: tuple[PhaseSeconds, ...]
    attempts: tuple[AttemptCount, ...]
    waits: tuple[WaitOfWrite, ...]
    debt: tuple[DebtOfGroup, ...]
    debt_groups: int
    debt_bytes: int
    delta_commits: int
    overlap: Overlap
    savepoints: tuple[Savepoint, ...]
    at_work: tuple[Mapping[str, object], ...]
    needs: tuple[Need, ...]
    offers: tuple[Need, ...]
    problems: tuple[str, ...]
    metadata: tuple[PartitionSize, ...] = ()
