"""What follows a commit: its work is forgotten, indexes and users learn of it, and the table is looked after."""

from __future__ import annotations

import logging

from ...table.config import TableConfig
from ...table.config.property_keys import BUCKET, COMMIT_TIME_ORDERING, GLOBAL_INDEXES
from ...timeline.timeline import Timeline
from ..indexing.notify import tell
from ..planning.new_table import DEFAULT_BUCKETS
from ..planning.plan import WritePlan
from ..result import CommitResult, with_services
from ..transaction.left_overs import forget
from .inline import means_of, run_inline

logger = logging.getLogger("pyhudi")
# A logger of its own, so that its one line is seen where others of its level are not.
tables = logging.getLogger("pyhudi.tables")


def follow_up(plan: WritePlan, result: CommitResult, timeline: Timeline) -> CommitResult:
    """Return the result of a completed write with what was done for its table; nothing here fails the write.

    Args:
        plan: The write.
        result: What it did.
        timeline: As it was before the write or after it.
    """
    _tidy(plan)
    tell(plan.table, plan.settings.lookup, plan.instant_time)
    if plan.creates_table:
        announce(plan.config, plan.path)
    _announce_changes(plan)
    settings = plan.settings
    # This process may be all that there is: what is much to merge waits for a call with a cluster.
    bound, application = settings.commit_merge_max_bytes, plan.transaction.owner.application
    means = means_of(settings, most_bytes=bound, application=application)
    services = run_inline(plan.storage, timeline, settings.upkeep, means, metadata_enable=settings.metadata_enable)
    return with_services(result, services)


def announce(config: TableConfig, path: str, note: str = "") -> None:
    """Log what a new table makes of its rows.

    Args:
        config: Its properties.
        path: Where it is.
        note: Another sentence.
    """
    tables.info("%s", " ".join(filter(None, (describe(config, path), note))))


def _announce_changes(plan: WritePlan) -> None:
    """Log which columns the commit added or made wider, on one line."""
    if plan.schema_changes:
        changes = ", ".join(map(str, plan.schema_changes))
        tables.info("The commit %s changed columns of the table %s: %s.", plan.instant_time, plan.path, changes)


def describe(config: TableConfig, path: str) -> str:
    """Return in words what identifies a table's rows, where they go, and which of two wins."""
    partitions = f"partitioned by {', '.join(config.partition_fields)}" if config.partition_fields else "unpartitioned"
    if config.generates_keys:
        return f"The new table {path} is {partitions} and has no record key: rows are inserted, and none is looked up."
    scope = "partition" if config.partition_fields and config.index_type not in GLOBAL_INDEXES else "table"
    orders = config.ordering_fields and config.merge_mode != COMMIT_TIME_ORDERING
    wins = f"the one with the greater {', then '.join(config.ordering_fields)}" if orders else "the later one"
    count = f"{config.bucket_count} buckets"
    if config.bucket_count == DEFAULT_BUCKETS:
        count += ", the number where none is given,"
    finds = f"with {count} for each {scope}, fixed for good" if config.index_type == BUCKET else "which looks keys up"
    return (
        f"The new table {path} is {partitions}. Its key is {', '.join(config.record_key_fields)}, unique within its "
        f"{scope}; of two rows with one key {wins} wins. Its index is {config.index_type}, {finds}."
    )


def _tidy(plan: WritePlan) -> None:
    """Remove what the write kept for its own use; the instant is complete, so that nothing here may fail it."""
    try:
        forget(plan.storage, plan.instant_time)
    except Exception:
        logger.warning(
            "table %s: left-overs of %s stay until the next write", plan.path, plan.instant_time, exc_info=True
        )
