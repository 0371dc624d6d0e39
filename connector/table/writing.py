"""What the methods of `HudiTable` that write have in common: rows placed, written by Spark, and the result told."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...index.registry import index_for
from ...operations.planning.operation import opens_alone
from ...operations.planning.request import WriteRequest, WriteSettings
from ...operations.planning.target import Target, find_target
from ...operations.result import CommitResult, RowCounts, find_write, with_services
from ...operations.services.means import Means
from ...operations.write.inline import means_of, run_inline
from ...operations.write.run import write
from ...operations.write_ids import GENERATED_ID
from ...options.model import HudiOptions
from ...options.names import OPTIONS, name_of
from ...options.sources import DEFAULTS_ENABLED, ResolvedOptions, find_config
from ...storage import Storage, open_storage
from ...table.config import load_config
from ...table.schema.columns import POSITION
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.plain_text import spell
from ...timeline.timeline import Timeline
from ..placement.arranging import arrange
from ..placement.choice import places
from ..placement.colocate import can_place, place, placement_of
from ..placement.key_places import Tagging
from ..placement.slots import Placement
from ..placement.tagging import tag
from ..source.datasource import PyHudiDataSource
from ..source.logs import level_here
from ..source.own_errors import own_errors
from ..source.paths import COUNTED, LOOKED_UP
from ..source.spark_types import to_arrow
from .frames import make_active
from .service_tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("pyhudi")

# The commit merges any number of rows within its bounds of memory; the option's bound is there for df.write.
_NO_BOUND = 1 << 62
_CHOSEN_HERE = {"colocated", "commit_merge_max_bytes"}
# This process learns nothing of what Spark's does after a commit, and so does it itself.
_AFTER_WRITES = (
    "clean_automatic",
    "archive_automatic",
    "compact_inline",
    "compact_schedule_inline",
    "log_compact_inline",
)
_DONE_HERE = {OPTIONS[name].key: "false" for name in _AFTER_WRITES}
_MERGED_BY_THE_COMMIT = (
    "The commit of the write to %s merges its rows, because Spark 4.0 places rows of tables whose keys are not whole "
    "numbers only where pandas is installed."
)


def write_placed(
    df: DataFrame,
    path: str,
    storage: Storage,
    resolved: ResolvedOptions,
    *,
    creates: bool = False,
    counted: RowCounts | None = None,
) -> CommitResult:
    """Write rows, those of each file group brought into one task first where that is worth it.

    Args:
        df: The rows.
        path: The table's path.
        storage: Rooted at it.
        resolved: The options of the write, its operation among them.
        creates: Whether the write may make the table, with its first commit, where none is.
        counted: What becomes of the rows, where whoever made them has counted.

    Raises:
        PyHudiError: The write failed as a whole.
    """
    began = time.monotonic()
    options, spark = resolved.options, df.sparkSession
    write_id = options.write_id or f"{GENERATED_ID}{uuid.uuid4()}"
    request = options.to_write_request(path, to_arrow(df.schema), overwrite=False)
    target = find_target(request, storage, creates=creates)
    settings = {
        OPTIONS["log_level"].key: level_here(),
        **{key: text for key, text in resolved.texts.items() if name_of(key) not in {*_CHOSEN_HERE, *_AFTER_WRITES}},
        **_DONE_HERE,
        DEFAULTS_ENABLED: "false",  # they are in the line above
        OPTIONS["write_id"].key: write_id,
        OPTIONS["application"].key: options.application or _application(spark),
        **({} if counted is None else {COUNTED: spell(counted)}),
    }
    # Only a write that was named can have been done before; one that is new is younger than all that there is.
    named = bool(options.write_id) and target.exists
    until = target.table.timeline().greatest_time() if named else None
    make_active(spark)
    with own_errors(), ExitStack() as kept:
        rows, more = _brought_together(df, target, storage, options, request, kept)
        rows.write.format(PyHudiDataSource.name()).options(**{**settings, **more}).mode("append").save(path)
    # A first write that came without rows, and was to leave no instant then, has made no table.
    made = find_config(storage) if creates else load_config(storage)
    table = None if made is None else Table(storage, made)
    timeline = None if table is None else table.timeline()
    done = None if table is None or timeline is None else find_write(table, timeline, write_id)
    if timeline is None or done is None:
        return _told(CommitResult(path, "", (options.operation or "upsert").upper(), write_id=write_id), began)
    if done.instant > (until or ""):
        done = _looked_after(spark, done, timeline, resolved)
    return _told(done, began)


def _looked_after(
    spark: SparkSession, done: CommitResult, timeline: Timeline, resolved: ResolvedOptions
) -> CommitResult:
    """Return what a write did together with what was done to keep its table small: by this process, or on Spark."""
    options = resolved.options
    storage = open_storage(done.path, options.storage_options, durable=options.durable)
    means = spark_means(spark, options)
    services = run_inline(storage, timeline, options.upkeep(), means, metadata_enable=options.metadata_enable)
    return with_services(done, services)


def spark_means(spark: SparkSession, options: HudiOptions) -> Means:
    """Return with what log files are merged on Spark, one file group a task; by this process where it has no tasks."""
    settings, application = options.write_settings(), options.application or _application(spark)
    own = means_of(settings, most_bytes=settings.commit_merge_max_bytes, application=application)
    by_tasks = means_of(settings, executor=SparkTasks(spark, "compaction"), application=application)
    return replace(by_tasks, without_tasks=own)


def _brought_together(
    df: DataFrame, target: Target, storage: Storage, options: HudiOptions, request: WriteRequest, kept: ExitStack
) -> tuple[DataFrame, dict[str, str]]:
    """Return the rows as they are to be written, and the options that say what was done to them.

    Args:
        df: The rows.
        target: The table of the write, and what is to be done to it.
        storage: Rooted at it.
        options: The options of the write.
        request: The same as the write itself takes them.
        kept: Forgets on its end what Spark keeps until the rows are written.
    """
    left = {OPTIONS["commit_merge_max_bytes"].key: str(_NO_BOUND)}
    if opens_alone(target.operation.name, target.operation.rules, target.config):
        return _arranged(df, target, storage, options, request.write), left
    # What was placed before says where it stood.
    if target.config.generates_keys or not (POSITION in df.columns or places(df, options.place_rows)):
        return df, left
    if index_for(target.config).needs_lookup:
        work = Tagging(target, request, SparkTasks(df.sparkSession, "lookup"), kept)
        tagged = tag(df, work)
        if tagged is None:
            return df, left
        more = {OPTIONS["colocated"].key: "true", OPTIONS["based_on"].key: tagged.moment}
        if tagged.figures is not None:
            more[LOOKED_UP] = spell(tagged.figures)
        return tagged.rows, more
    to_text = options.number_to_text
    placement = placement_of(df, SeenTable.now(target.table), number_to_text=to_text)
    if not can_place(df, placement):
        logger.warning(_MERGED_BY_THE_COMMIT, storage.path)
        return df, left
    rows = place(df, placement, breaks_ties=target.operation.breaks_ties)
    return rows, {OPTIONS["colocated"].key: "true"}


def _arranged(
    df: DataFrame, target: Target, storage: Storage, options: HudiOptions, settings: WriteSettings
) -> DataFrame:
    """Return rows of which each task makes new file groups, as the sort mode of a bulk insert brings them together."""
    if not target.operation.sorts or options.place_rows == "never":
        return df
    config = target.config
    if config.generates_keys:
        placement = Placement(config, None, 1)
    else:
        placement = placement_of(df, SeenTable.now(target.table), number_to_text=settings.number_to_text)
    arranged = arrange(df, placement, settings.bulk_insert_sort_mode, settings.bulk_insert_sort_columns)
    return df if arranged is None else arranged


def delete_partitions(
    spark: SparkSession, path: str, resolved: ResolvedOptions, partitions: Sequence[str]
) -> CommitResult:
    """Delete partitions by their names, in this process, for there are no rows that tasks could take.

    Args:
        spark: The session.
        path: The table's path.
        resolved: The options of the write, its operation among them.
        partitions: Partition paths, with ``*`` for anything.

    Raises:
        PyHudiError: The write failed as a whole.
    """
    began = time.monotonic()
    options = resolved.options
    request = options.to_write_request(path, pa.schema([]), overwrite=False)
    settings = replace(request.write, partitions_to_delete=tuple(partitions))
    application = options.application or _application(spark)
    return _told(write(replace(request, write=settings, application=application)), began)


def _application(spark: SparkSession) -> str:
    return spark.conf.get("spark.app.name", "") or ""


def _told(done: CommitResult, began: float) -> CommitResult:
    """Return a result with the seconds of the whole call, and log it where the user is."""
    result = replace(done, seconds={**done.seconds, "total": round(time.monotonic() - began, 3)})
    logger.info("%s", json.dumps({"event": "write", **asdict(result)}))
    return result
