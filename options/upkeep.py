"""Options of the services that keep a table small, after each write and on call."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ..errors import OptionConflictError
from ..operations.service_settings import (
    BOUNDED_IO,
    BY_DAY,
    BY_REGEX,
    KEEP_LATEST_COMMITS,
    LOG_COUNT,
    LOG_SIZE,
    TIME_ELAPSED,
    UNBOUNDED,
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    IndexSettings,
    LogCompactionSettings,
    Upkeep,
)
from ..table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from .types import (
    CleanPolicy,
    CleanTrigger,
    CompactionStrategy,
    CompactionTrigger,
    Count,
    Fields,
    FieldsOf,
    OptionPart,
    Pattern,
    Threshold,
    option,
    settings_of,
)

logger = logging.getLogger("pyhudi")

CLEAN, ARCHIVE = FieldsOf(CleanSettings), FieldsOf(ArchiveSettings)
COMPACTION, LOG_COMPACTION = FieldsOf(CompactionSettings), FieldsOf(LogCompactionSettings)
INDEXES = FieldsOf(IndexSettings)
_OF_COLUMNS, _OF_PARTITIONS = (
    "hoodie.metadata.index.column.stats.enable",
    "hoodie.metadata.index.partition.stats.enable",
)
COMMITS, LEAST, MOST = "hoodie.clean.commits.retained", "hoodie.keep.min.commits", "hoodie.keep.max.commits"

# How many more commits stay than a clean keeps the slices of.
MORE_THAN_CLEANED = 2

_warned: set[str] = set()


class UpkeepOptions(OptionPart):
    """How a table is kept small; nothing here is kept in the table."""

    table_services: bool = option(True, "Clean, archive and compact after writes.", "hoodie.table.services.enabled")
    upkeep_seconds: Annotated[float, Field(ge=0)] = option(
        10.0,
        "Seconds that the services after a write of `pyhudi.arrow` may take together; 0 turns them off. Compactions "
        "are cut to sizes that probably fit, and `run_services()` does the rest.",
        "hoodie.pyhudi.upkeep.seconds",
        "upkeep_seconds",
    )
    clean_automatic: bool = option(CLEAN.automatic, "Clean after each write.", "hoodie.clean.automatic")
    clean_policy: CleanPolicy = option(
        CLEAN.policy, "Which file slices a clean keeps.", "hoodie.clean.policy", "hoodie.cleaner.policy"
    )
    clean_commits: Count = option(
        CLEAN.commits,
        "KEEP_LATEST_COMMITS keeps the file slices of this many commits.",
        COMMITS,
        "hoodie.cleaner.commits.retained",
    )
    clean_hours: Count = option(
        CLEAN.hours,
        "KEEP_LATEST_BY_HOURS keeps the file slices of the commits of this many hours.",
        "hoodie.clean.hours.retained",
        "hoodie.cleaner.hours.retained",
    )
    clean_file_versions: Count = option(
        CLEAN.file_versions,
        "KEEP_LATEST_FILE_VERSIONS keeps this many slices of each file group.",
        "hoodie.clean.fileversions.retained",
        "hoodie.cleaner.fileversions.retained",
    )
    clean_trigger: CleanTrigger = option(
        "NUM_COMMITS",
        "What makes a write clean.",
        "hoodie.clean.trigger.strategy",
        supported=["NUM_COMMITS"],
    )
    clean_after_commits: Count = option(
        CLEAN.after_commits,
        "How many commits have to follow a clean before a write cleans again.",
        "hoodie.clean.trigger.max.commits",
        "hoodie.clean.max.commits",
    )
    clean_incremental: bool = option(
        CLEAN.incremental,
        "Let a clean look only at what changed since the previous clean.",
        "hoodie.clean.incremental.enabled",
        "hoodie.cleaner.incremental.mode",
    )
    archive_automatic: bool = option(ARCHIVE.automatic, "Archive after each write.", "hoodie.archive.automatic")
    keep_min_commits: Count = option(
        ARCHIVE.min_commits, "How many commits archiving leaves on the timeline at least.", LEAST
    )
    keep_max_commits: Count = option(
        ARCHIVE.max_commits, "How many commits the timeline may have before some are archived.", MOST
    )
    archive_batch: Count = option(
        ARCHIVE.batch,
        "How many files of one level of the archive are merged into one file of the next level.",
        "hoodie.timeline.compaction.batch.size",
    )

    compact_inline: bool = option(
        COMPACTION.inline,
        "Compact a merge-on-read table after each write, if a compaction is due.",
        "hoodie.compact.inline",
    )
    compact_schedule_inline: bool = option(
        COMPACTION.schedule_inline,
        "Plan a compaction after each write to a merge-on-read table, if it is due and the write does not compact "
        "itself.",
        "hoodie.compact.schedule.inline",
    )
    compact_trigger: CompactionTrigger = option(
        COMPACTION.trigger, "What makes a compaction due.", "hoodie.compact.inline.trigger.strategy"
    )
    compact_delta_commits: Count = option(
        COMPACTION.delta_commits,
        "After how many delta commits a compaction is due.",
        "hoodie.compact.inline.max.delta.commits",
    )
    compact_delta_seconds: Count = option(
        COMPACTION.delta_seconds,
        "After how many seconds a compaction is due, for triggers that use time.",
        "hoodie.compact.inline.max.delta.seconds",
    )
    compaction_strategy: CompactionStrategy = option(
        COMPACTION.strategy,
        "Which file groups a compaction merges, named by Apache Hudi's class.",
        "hoodie.compaction.strategy",
        supported=[LOG_SIZE, LOG_COUNT, BOUNDED_IO, UNBOUNDED, BY_DAY, BY_REGEX],
    )
    compaction_target_io: Count = option(
        COMPACTION.target_io_mb,
        "About how many MB one compaction reads and writes, if its strategy has a bound.",
        "hoodie.compaction.target.io",
    )
    compaction_log_bytes: Threshold = option(
        COMPACTION.log_bytes,
        "LogFileSizeBasedCompactionStrategy skips file groups with fewer bytes of log files.",
        "hoodie.compaction.logfile.size.threshold",
    )
    compaction_log_files: Threshold = option(
        COMPACTION.log_files,
        "LogFileNumBasedCompactionStrategy skips file groups with fewer log files.",
        "hoodie.compaction.logfile.num.threshold",
    )
    compaction_partitions: Count = option(
        COMPACTION.partitions,
        "DayBasedCompactionStrategy looks at this many of the newest days.",
        "hoodie.compaction.daybased.target.partitions",
    )
    compaction_partition_regex: Pattern = option(
        COMPACTION.partition_regex,
        "PartitionRegexBasedCompactionStrategy compacts partitions whose paths contain a match of this expression.",
        "hoodie.compaction.partition.path.regex",
    )
    log_compact_inline: bool = option(
        LOG_COMPACTION.inline,
        "Join the log files of a merge-on-read table into fewer after each write, if a log compaction is due.",
        "hoodie.log.compaction.inline",
    )
    log_compact_blocks: Count = option(
        LOG_COMPACTION.blocks,
        "After how many delta commits a log compaction is due. A file group takes part if it has as many log files, "
        "or blocks in them.",
        "hoodie.log.compaction.blocks.threshold",
    )

    index_column_stats: bool | None = option(
        None,
        "Let a write with hoodie.metadata.enable=true build [column_stats](metadata-table.md#what-it-is-for), the "
        "bounds of columns in each file, if the table lacks it.",
        "hoodie.metadata.index.column.stats.enable",
        otherwise="true",
    )
    index_partition_stats: bool | None = option(
        None,
        "Let a write with hoodie.metadata.enable=true build partition_stats, the bounds of columns in each "
        "partition, if the table is partitioned and lacks it.",
        "hoodie.metadata.index.partition.stats.enable",
        otherwise="what hoodie.metadata.index.column.stats.enable says",
    )
    index_columns: Fields | None = option(
        INDEXES.columns,
        "The columns whose bounds a write with hoodie.metadata.enable=true indexes.",
        "hoodie.metadata.index.column.stats.column.list",
        otherwise="the first 32",
    )

    def indexes_to_build(self) -> IndexSettings:
        """Return what a write builds that asks for a metadata table; what is unset is as in Apache Hudi for Spark."""
        with_columns = self.index_column_stats is not False
        with_partitions = with_columns if self.index_partition_stats is None else self.index_partition_stats
        if with_partitions and not with_columns:
            raise OptionConflictError(
                f"{_OF_PARTITIONS} is true and {_OF_COLUMNS} is false: bounds of partitions come from those of files.",
                f"Leave {_OF_COLUMNS} out, or give {_OF_PARTITIONS} false.",
            )
        names = {FILES: True, COLUMN_STATS: with_columns, PARTITION_STATS: with_partitions}
        built_names = tuple(name for name, is_built in names.items() if is_built)
        # As in Apache Hudi, columns may be named where no bounds are built.
        return settings_of(IndexSettings, self, names=built_names, columns=self.index_columns if with_columns else None)

    def upkeep(self) -> Upkeep:
        """Return how the table is kept small.

        As in Apache Hudi (``ArchivalUtils``), more commits than ``hoodie.keep.min.commits`` stay on the timeline if
        a clean keeps their slices. Raises OptionConflictError if archiving would begin with no more commits than it
        leaves.
        """
        least, most = self.keep_min_commits, self.keep_max_commits
        if most <= least:
            raise OptionConflictError(
                f"{MOST} is {most} and {LEAST} is {least}: archiving would begin before there is anything to archive.",
                f"Give {MOST} a greater number than {LEAST}.",
            )
        # How many commits stay beyond the least, because a clean keeps their slices.
        more = self.clean_commits + MORE_THAN_CLEANED - least
        if self.clean_policy == KEEP_LATEST_COMMITS and more > 0:
            _warn_once(
                f"{LEAST} is {least}, and {COMMITS} keeps the file slices of {self.clean_commits} commits: "
                f"{least + more} commits stay on the timeline, and some are archived when there are more than "
                f"{most + more}."
            )
            least, most = least + more, most + more
        upkeep = settings_of(Upkeep, self)
        # A trigger by the clock alone ignores the number of delta commits.
        delta_commits = None if self.compact_trigger == TIME_ELAPSED else self.compact_delta_commits
        upkeep = replace(
            upkeep, archive=replace(upkeep.archive, min_commits=least, max_commits=most, delta_commits=delta_commits)
        )
        # With table services off, services run only if they are called.
        return upkeep if self.table_services else upkeep.called_for()


def _warn_once(words: str) -> None:
    """Log a warning once per process."""
    if words not in _warned:
        _warned.add(words)
        logger.warning("%s", words)
