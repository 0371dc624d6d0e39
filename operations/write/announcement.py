"""What the log shows of every new table and of every change of a table's columns, whatever else it leaves out."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...table.config import TableConfig
from ...table.config.property_keys import BUCKET, COMMIT_TIME_ORDERING, GLOBAL_INDEXES
from ...table.schema.changes import SchemaChange
from ..planning.new_table import DEFAULT_BUCKETS

# A logger of its own, so that its one line is seen where others of its level are not.
logger = logging.getLogger("pyhudi.tables")


def announce(config: TableConfig, path: str, note: str = "") -> None:
    """Log what a new table makes of its rows.

    Args:
        config: Its properties.
        path: Where it is.
        note: Another sentence.
    """
    logger.info("%s", " ".join(filter(None, (describe(config, path), note))))


def announce_changes(changes: Sequence[SchemaChange], path: str, instant: str) -> None:
    """Log which columns a commit added or made wider, on one line; nothing where there are none.

    Args:
        changes: The changes.
        path: Where the table is.
        instant: Requested time of the commit.
    """
    if changes:
        logger.info("The commit %s changed columns of the table %s: %s.", instant, path, ", ".join(map(str, changes)))


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
