"""How table services go about their work, in plain values; the defaults are Apache Hudi's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...timeline.delta_commits import MAKE_COMPACTION_DUE

KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"

NUM_COMMITS = "NUM_COMMITS"
NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
TIME_ELAPSED = "TIME_ELAPSED"
NUM_AND_TIME = "NUM_AND_TIME"
NUM_OR_TIME = "NUM_OR_TIME"

LOG_SIZE = "LogFileSizeBasedCompactionStrategy"
LOG_COUNT = "LogFileNumBasedCompactionStrategy"
BOUNDED_IO = "BoundedIOCompactionStrategy"
UNBOUNDED = "UnBoundedCompactionStrategy"
BY_DAY = "DayBasedCompactionStrategy"
BY_REGEX = "PartitionRegexBasedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """Which file slices a clean keeps.

    Attributes:
        automatic: Whether each write cleans once it is complete.
        policy: One of the policies above.
        commits: How many commits' slices KEEP_LATEST_COMMITS keeps.
        file_versions: How many slices of each file group KEEP_LATEST_FILE_VERSIONS keeps.
        hours: For how many hours KEEP_LATEST_BY_HOURS keeps a slice after it was replaced.
        after_commits: How many commits have to follow a clean before a write cleans again.
        incremental: Whether planning looks only at what changed since the last clean.
    """

    automatic: bool = True
    policy: str = KEEP_LATEST_COMMITS
    commits: int = 10
    file_versions: int = 3
    hours: int = 24
    after_commits: int = 1
    incremental: bool = True


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Which instants stay on the timeline.

    Attributes:
        automatic: Whether each write archives once it is complete.
        min_commits: How many completed writes stay, at least.
        max_commits: More than so many are archived, down to the least.
        batch: How many files of one level of the archive are merged into one of the next.
        delta_commits: How many delta commits stay, at least, of those since the last compaction: as many as make the
            next one due. None where nobody counts them for that.
    """

    automatic: bool = True
    min_commits: int = 20
    max_commits: int = 30
    batch: int = 10
    delta_commits: int | None = MAKE_COMPACTION_DUE


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """When the log files of a merge-on-read table are merged into base files, and which of them.

    Attributes:
        inline: Whether each write compacts once it is complete, where that is due.
        schedule_inline: Whether each write plans a compaction where that is due, and leaves it to others to carry out.
        trigger: What makes a compaction due: one of the triggers above.
        delta_commits: After how many delta commits that is.
        delta_seconds: After how many seconds.
        strategy: Which file slices are merged, one of the strategies above.
        target_io_mb: How many MB the strategies with a bound read and write at once, more or less.
        log_bytes: File slices with fewer bytes of log files are left to later by `LOG_SIZE`.
        log_files: Those with fewer log files by `LOG_COUNT`.
        partitions: How many of the newest partitions `BY_DAY` looks at.
        partition_regex: Of whose paths `BY_REGEX` finds this somewhere.
    """

    inline: bool = True
    schedule_inline: bool = False
    trigger: str = NUM_COMMITS
    delta_commits: int = MAKE_COMPACTION_DUE
    delta_seconds: int = 3600
    strategy: str = LOG_SIZE
    target_io_mb: int = 512_000
    log_bytes: int = 0
    log_files: int = 0
    partitions: int = 10
    partition_regex: str = ""


@dataclass(frozen=True, slots=True)
class LogCompactionSettings:
    """When the log files of a merge-on-read table are joined into fewer, and which of them.

    Attributes:
        inline: Whether each write joins log files once it is complete, where that is due.
        blocks: After how many delta commits that is; and how many log files, or blocks in them, a file group has at
            least of which log files are joined.
    """

    inline: bool = False
    blocks: int = 5


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What happens to a table after each write.

    Attributes:
        clean: Of file slices.
        archive: Of instants.
        compaction: Of log files, with their base files.
        log_compaction: Of log files alone.
    """

    clean: CleanSettings = field(default_factory=CleanSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    log_compaction: LogCompactionSettings = field(default_factory=LogCompactionSettings)

    def called_for(self) -> Upkeep:
        """Return the same for services that run where they are called for alone, after no write."""
        return Upkeep(
            replace(self.clean, automatic=False),
            replace(self.archive, automatic=False),
            replace(self.compaction, inline=False, schedule_inline=False),
            replace(self.log_compaction, inline=False),
        )
