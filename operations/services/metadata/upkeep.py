"""The upkeep of a metadata table: compacts, cleans and archives it when that is due."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from ....storage.base import Storage
from ....storage.kept import keep
from ....table.config import check_supported, load_config
from ....table.left_behind import refuse_instants_left_by_upgrade
from ....table.table import Table, open_table
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import FirstSteps
from ....timeline.writers.patience import Patience
from ...following.damage import DamagedPartitionError, gone_with, warning_of
from ...result import METADATA, ServiceResult
from ...service_settings import Upkeep
from ...transaction.commit_path import time_after
from ...transaction.without_instant import MetadataSteps, take_metadata_steps
from .archive import archive_metadata
from .clean import clean_metadata
from .compaction import compact_metadata
from .pending_indexings import INDEXING, give_up_dead
from .slices import MetadataSlices

# A file group with more log files, or a metadata table with a greater share of its bytes in them, is slow to read.
MOST_LOG_FILES = 50
MOST_LOG_SHARE = 0.2
# However small the base files are, a compaction waits for so many delta commits, Apache Hudi's default.
LEAST_COMMITS = 10
_MOST_TABLES = 256

# By the table's path, how many writes of this process may pass until it lists the metadata table again.
_PASSES: dict[str, int] = {}


def is_worth_a_look(path: str) -> bool:
    """Return whether a write has to list the metadata table, and count the write."""
    writes_left = _PASSES.get(path, 0)
    if writes_left > 0:
        keep(_PASSES, path, writes_left - 1, _MOST_TABLES)
    return writes_left <= 0


def is_due(path: str, slices: MetadataSlices | None) -> bool:
    """Return whether a compaction is due, and note how many writes of a table may pass until the next listing.

    `slices` is None for a table whose metadata table has no partition in use.
    """
    commits_left = LEAST_COMMITS if slices is None else _commits_left(slices)
    keep(_PASSES, path, max(commits_left - 1, 0), _MOST_TABLES)
    return commits_left <= 0


def _commits_left(slices: MetadataSlices) -> int:
    """Return after how many further delta commits a compaction is due, if they add as many bytes as those so far."""
    delta_commits = commits_since_compaction(slices)
    if delta_commits < LEAST_COMMITS:
        return LEAST_COMMITS - delta_commits
    newest_slices = [file_slice for _, file_slice in slices.newest]
    by_files = MOST_LOG_FILES - max((len(file_slice.logs) for file_slice in newest_slices), default=0)
    logged = sum(file_slice.log_bytes for file_slice in newest_slices)
    room_bytes = (
        MOST_LOG_SHARE * sum(file_slice.base.size for file_slice in newest_slices if file_slice.base is not None)
        - logged
    )
    return min(by_files, int(room_bytes * delta_commits / logged)) if logged else by_files


def commits_since_compaction(slices: MetadataSlices) -> int:
    """Return how many delta commits completed since the metadata table's last compaction."""
    last_compaction = slices.metadata.last_compaction
    last_time = "" if last_compaction is None else last_compaction.requested_time
    return sum(each.action == "deltacommit" and each.visible_since > last_time for each in slices.timeline.completed)


logger = logging.getLogger("pyhudi")

# A time later than all instants.
AT_LAST = "9" * 17


def upkeep_after_write(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, patience: Patience
) -> ServiceResult | None:
    """Keep a metadata table up after a write if that is due; None if it is not."""
    table = open_table(storage)
    give_up_dead(table, timeline, patience)
    return keep_up(storage, upkeep) if is_due(storage.path, MetadataSlices.of(table, timeline)) else None


def upkeep_where_due(storage: Storage, upkeep: Upkeep, patience: Patience) -> ServiceResult:
    """Keep a metadata table up in a round of services if that is due."""
    table = open_table(storage)
    timeline = table.timeline()
    give_up_dead(table, timeline, patience)
    is_due_now = is_due(storage.path, MetadataSlices.of(table, timeline))
    return keep_up(storage, upkeep) if is_due_now else ServiceResult(storage.path, METADATA)


def keep_up(storage: Storage, upkeep: Upkeep, *, dry_run: bool = False) -> ServiceResult:
    """Merge all log files of a metadata table, delete slices that nothing needs, and archive its oldest instants.

    ``storage`` is that of the table to which the metadata table belongs. ``upkeep`` are the settings of the services
    that may follow a write: here those of the clean and of the archiving count. With `dry_run` the result says what
    would be merged. A damaged partition goes out of use, as it does in a write that finds the damage. Otherwise it
    would grow for ever, and instants of the table would wait for its compaction. Raises `PyHudiError`; a later call
    does the rest.
    """
    began, table = time.monotonic(), open_table(storage)
    check_supported(table.config, table.path, writing=True)
    refuse_instants_left_by_upgrade(table)
    result = ServiceResult(table.path, METADATA, dry=dry_run)
    if dry_run:
        return _dry_result(table, result)
    try:
        compacted = compact_metadata(table)
    except DamagedPartitionError as error:
        return replace(result, todo=_take_out_of_use(table, error), seconds=round(time.monotonic() - began, 3))
    if compacted is not None:
        result = replace(
            result,
            instant=compacted.instant,
            files=compacted.file_groups,
            bytes=compacted.bytes,
            file_groups=compacted.file_groups,
            log_files=compacted.log_files,
            bytes_read=compacted.bytes_read,
        )
    clean_metadata(table, upkeep.clean)
    count = archive_metadata(table, upkeep.archive)
    return replace(result, instants=count, seconds=round(time.monotonic() - began, 3))


def _take_out_of_use(table: Table, damage: DamagedPartitionError) -> str:
    """Take a damaged partition out of use, with the partitions that need it; return a warning for the user.

    The warning is empty if the partition was out of use already.
    """
    names = load_config(table.storage).metadata_partitions
    gone_names = gone_with(damage.name, names) if damage.name in names else ()

    def build(timeline: Timeline) -> MetadataSteps | None:
        """Return the decision to take the partitions out of use; None if none of them is in use any more."""
        left_names = {*load_config(table.storage).metadata_partitions} & {*gone_names}
        unnamed = Instant(time_after(table, timeline), INDEXING, State.REQUESTED)
        return MetadataSteps(unnamed, FirstSteps((), drops=tuple(sorted(left_names)))) if left_names else None

    take_metadata_steps(table, build)
    if not gone_names:
        return ""
    warning = warning_of(gone_names, damage.reason)
    logger.warning("table %s: %s", table.path, warning, exc_info=damage)
    return warning


def _dry_result(table: Table, result: ServiceResult) -> ServiceResult:
    """Return the result of a dry run: what a compaction would merge now."""
    slices = MetadataSlices.of(table, table.timeline())
    merged = [] if slices is None else [file_slice for _, file_slice in slices.before(AT_LAST)]
    return replace(
        result,
        file_groups=len(merged),
        log_files=sum(len(file_slice.logs) for file_slice in merged),
        bytes_read=sum(file_slice.size for file_slice in merged),
    )
