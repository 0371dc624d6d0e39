"""The work after a commit: delete the write's own left-overs, update indexes, log, and run table services."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ...storage.kept import keep
from ...table.config import TableConfig
from ...table.config.property_keys import BUCKET, COMMIT_TIME_ORDERING, GLOBAL_INDEXES
from ...table.files.read_written import note_written
from ...timeline.timeline import Timeline
from ..indexing.notify import tell
from ..planning.new_table import DEFAULT_BUCKETS
from ..planning.plan import WritePlan
from ..result import CommitResult, with_services
from ..rollback.dead import try_to_undo_dead
from ..transaction.left_overs import try_to_forget
from ..upkeep.after_write import means_of, run_after_batch, run_inline
from .metrics import report_commit
from .task import TaskResult

logger = logging.getLogger("pyhudi")
# A logger of its own, so that a user can show its lines without other lines of that level.
tables = logging.getLogger("pyhudi.tables")

_noticed: dict[str, None] = {}
_MOST_NOTICED = 256


def follow_up(plan: WritePlan, result: CommitResult, timeline: Timeline) -> CommitResult:
    """Do the work after a commit, and return its result with the results of services; no failure here fails the write.

    The timeline may be of any moment since the plan of the write.
    """
    try_to_forget(plan.storage, plan.instant_time)
    # An index outside of the table learns of the commit, so that the next write need not bring it up to date.
    tell(plan.table, plan.settings.lookup, plan.instant_time)
    if plan.creates_table:
        tables.info("%s", describe(plan.config, plan.path))
    _announce_changes(plan)
    warn_once(plan.notices)
    try_to_undo_dead(plan.transaction, timeline)
    try:
        note_written(timeline)
    except Exception:
        logger.warning("table %s: the contents of old writes could not be noted", plan.path, exc_info=True)
    settings = plan.settings
    # This process may run without a cluster, so it leaves large merges to a later service run.
    most_bytes, application = settings.commit.merge_max_bytes, plan.transaction.owner.application
    means = means_of(settings, most_bytes=most_bytes, application=application)
    # If the write wrote nothing to a metadata table, the table has none to keep up.
    upkeep = settings.upkeep if result.metadata is not None else replace(settings.upkeep, metadata=False)
    if settings.batch is None:
        services = run_inline(plan.storage, timeline, upkeep, means)
    else:
        services = run_after_batch(plan.storage, timeline, upkeep, means, settings.stream)
    result_with_services = with_services(result, services)
    report_commit(settings.metrics, plan.config, plan.table, result_with_services)
    return result_with_services


def announce_missing(plan: WritePlan, results: Iterable[TaskResult]) -> None:
    """Log by column how many values were missing among floats that became whole numbers."""
    missing_counts: Counter[str] = Counter()
    for result in results:
        missing_counts.update(result.missing)
    if missing_counts:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(missing_counts.items()))
        tables.info(
            "The commit %s stored null or NaN among floats as null in whole numbers of the table %s: %s.",
            plan.instant_time,
            plan.path,
            counts,
        )


def _announce_changes(plan: WritePlan) -> None:
    """Log which columns of the table the commit changed."""
    if plan.schema_changes:
        changes = ", ".join(map(str, plan.schema_changes))
        tables.info("The commit %s changed columns of the table %s: %s.", plan.instant_time, plan.path, changes)


def warn_once(notices: Iterable[str]) -> None:
    """Log each notice once in this process: a stream has the same options with each batch."""
    for notice in notices:
        if notice not in _noticed:
            logger.warning("%s", notice)
        keep(_noticed, notice, None, _MOST_NOTICED)


def describe(config: TableConfig, path: str) -> str:
    """Return sentences about a new table's record key, partitions and index, and which of two rows wins.

    They are for the log. ``config`` are the properties with which the table at ``path`` was made.
    """
    partitions = f"partitioned by {', '.join(config.partition_fields)}" if config.partition_fields else "unpartitioned"
    if config.generates_keys:
        return f"The new table {path} is {partitions} and has no record key: rows are inserted, and none is looked up."
    scope = "partition" if config.partition_fields and config.index_type not in GLOBAL_INDEXES else "table"
    has_order = config.ordering_fields and config.merge_mode != COMMIT_TIME_ORDERING
    winner = f"the row with the greater {', then '.join(config.ordering_fields)}" if has_order else "the later row"
    bucket_text = f"{config.bucket_count} buckets"
    if config.bucket_count == DEFAULT_BUCKETS:
        bucket_text += ", the number where none is given,"
    index_text = (
        f"with {bucket_text} for each {scope}, until a rescale"
        if config.index_type == BUCKET
        else "which looks keys up"
    )
    return (
        f"The new table {path} is {partitions}. Its key is {', '.join(config.record_key_fields)}, unique within its "
        f"{scope}; of two rows with one key {winner} wins. Its index is {config.index_type}, {index_text}."
    )
