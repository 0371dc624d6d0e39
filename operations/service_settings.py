"""Settings of table services, as plain values; the defaults are Apache Hudi's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..errors import InvalidOptionError
from ..timeline.delta_commits import MAKE_COMPACTION_DUE

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
    """The file slices that a clean keeps, by one of the policies above.

    Attributes:
        hours: How many hours KEEP_LATEST_BY_HOURS keeps a slice after another replaced it.
        after_commits: How many commits must follow a clean before a write cleans again.
        incremental: Whether planning looks only at what changed since the last clean.
    """

    automatic: bool = True
    policy: str = KEEP_LATEST_COMMITS
    commits: int = 10
    file_versions: int = 3
    hours: int = 24
    after_commits: int = 1
    incremental: bool = True

    def retaining(self, count: int | None) -> CleanSettings:
        """Return the settings with another count of what the policy counts: commits, slices or hours.

        None changes nothing.

        Raises InvalidOptionError if the count is below 1.
        """
        if count is None:
            return self
        if count < 1:
            raise InvalidOptionError(f"A clean was called with retain={count}.", "Give a number of 1 or more.")
        if self.policy == KEEP_LATEST_FILE_VERSIONS:
            return replace(self, file_versions=count)
        return replace(self, hours=count) if self.policy == KEEP_LATEST_BY_HOURS else replace(self, commits=count)


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The instants that stay on the timeline: above `max_commits` writes, archiving leaves `min_commits` of them.

    Attributes:
        batch: How many files of one archive level are merged into one of the next.
        delta_commits: How many delta commits since the last compaction stay, for its trigger to count them; None for
            no trigger.
    """

    automatic: bool = True
    min_commits: int = 20
    max_commits: int = 30
    batch: int = 10
    delta_commits: int | None = MAKE_COMPACTION_DUE

    def keeping(self, count: int | None) -> ArchiveSettings:
        """Return the settings with another number of completed writes that stay; None changes nothing.

        Raises InvalidOptionError if the count is below 1.
        """
        if count is None:
            return self
        if count < 1:
            raise InvalidOptionError(f"An archiving was called with keep={count}.", "Give a number of 1 or more.")
        return replace(self, min_commits=count, max_commits=count)


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """When the log files of a merge-on-read table are merged into base files, and which log files.

    Attributes:
        schedule_inline: Whether each write plans a due compaction, for another process to carry out.
        target_io_mb: A strategy with a bound takes no more slices after so many MB, read and written.
        log_bytes: `LOG_SIZE` skips slices with fewer bytes of log files.
        log_files: `LOG_COUNT` skips slices with fewer log files.
        partitions: How many of the newest partitions `BY_DAY` looks at.
        partition_regex: `BY_REGEX` looks at partitions whose path contains a match.
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
    """When the log files of a merge-on-read table are joined into fewer, and which log files.

    Attributes:
        blocks: It is due after so many delta commits; a file group needs so many log files, or blocks in them.
    """

    inline: bool = False
    blocks: int = 5


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The partitions of the metadata table that a write builds if the table lacks them.

    Attributes:
        names: In the order in which they are built.
        columns: The columns whose bounds are kept; None for the default.
    """

    names: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The services that may follow each write.

    Attributes:
        metadata: Whether a write compacts, cleans and archives the metadata table.
    """

    clean: CleanSettings = field(default_factory=CleanSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    log_compaction: LogCompactionSettings = field(default_factory=LogCompactionSettings)
    indexes: IndexSettings = field(default_factory=IndexSettings)
    metadata: bool = True

    def called_for(self) -> Upkeep:
        """Return the same settings for services that run only when called, not after writes."""
        return replace(
            self.without_compactions(),
            clean=replace(self.clean, automatic=False),
            archive=replace(self.archive, automatic=False),
            indexes=IndexSettings(),
            metadata=False,
        )

    def without_compactions(self) -> Upkeep:
        """Return the same settings, except that no write merges log files or plans to."""
        return replace(
            self,
            compaction=replace(self.compaction, inline=False, schedule_inline=False),
            log_compaction=replace(self.log_compaction, inline=False),
        )
