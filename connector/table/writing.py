"""The write path of `HudiTable`: place the rows, let Spark write them, return the result."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ...index.registry import index_for
from ...operations.planning.operation import opens_alone
from ...operations.planning.request import WriteRequest, WriteSettings
from ...operations.planning.target import Target, find_target
from ...operations.read_rows import ReadRows
from ...operations.result import NO_PAST, CommitResult, PastAttempts, RowCounts, find_write, with_services
from ...operations.services.means import Means
from ...operations.write.inline import means_of, run_inline
from ...operations.write.run import write
from ...operations.write_ids import GENERATED_ID, generated_id
from ...options.model import HudiOptions
from ...options.names import OPTIONS, name_of
from ...options.sources import DEFAULTS_ENABLED, ResolvedOptions, find_config
from ...storage import Storage, open_storage
from ...table.schema.columns import POSITION
from ...table.seen_table import SeenTable
from ...table.table import open_table
from ...timeline.plain_text import spell
from ...timeline.timeline import Timeline
from ...timeline.writers.write_heartbeat import WriteHeartbeat
from ..placement.arranging import arrange
from ..placement.choice import places
from ..placement.colocate import can_place, place, placement_of
from ..placement.key_places import Tagging
from ..placement.slots import Placement
from ..placement.tagging import tag
from ..source.carried_options import spell_read
from ..source.datasource import PyHudiDataSource
from ..source.logs import level_here
from ..source.own_errors import own_errors
from ..source.paths import COUNTED, LOOKED_UP, PAST, READ, WRITE_KEY
from ..source.spark_types import to_arrow
from .frames import make_active
from .retries import Retries
from .service_tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("pyhudi")

# The commit merges any number of rows in bounded memory; the option limits df.write only.
_NO_BOUND = 1 << 62
_CHOSEN_HERE = {"colocated", "commit_merge_max_bytes"}
# Spark's process does not report inline services, so this process runs them after the commit.
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


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """What rows were made from.

    Attributes:
        moment: The snapshot of the table, as the option ``based_on`` takes it; empty where they were not made from it.
        read: The rows of the snapshot that decided which rows these are, where that counts.
        counted: How many rows they insert, update and delete; None where the caller did not count.
        past: What was done for the write before they were made.
    """

    moment: str = ""
    read: tuple[ReadRows, ...] = ()
    counted: RowCounts | None = None
    past: PastAttempts = NO_PAST


NOTHING_READ = MadeFrom()


def write_placed(
    df: DataFrame,
    path: str,
    storage: Storage,
    resolved: ResolvedOptions,
    *,
    creates: bool = False,
    made_from: MadeFrom = NOTHING_READ,
) -> CommitResult:
    """Write rows, placed by file group first where that is faster; again where another write came first.

    ``creates`` lets the first commit create the table. Rows that were made from the table are written once, as their
    maker has to make them again.
    """
    options, began = resolved.options, time.monotonic()
    attempt = partial(_write_once, df, path, storage, resolved, creates=creates, made_from=made_from)
    if options.based_on:
        done = attempt(options.write_id or generated_id(), made_from.past)
    else:
        done = Retries.of(storage, options).run(attempt)
    return _timed(done, began, resolved.notices)


def _write_once(
    df: DataFrame,
    path: str,
    storage: Storage,
    resolved: ResolvedOptions,
    write_id: str,
    past: PastAttempts,
    *,
    creates: bool,
    made_from: MadeFrom,
) -> CommitResult:
    options, spark = resolved.options, df.sparkSession
    request = options.to_write_request(path, to_arrow(df.schema), overwrite=False)
    target = find_target(request, storage, creates=creates)
    beat = WriteHeartbeat.of_new_write(storage, target.config.timezone, request.write.patience)
    settings = {
        OPTIONS["log_level"].key: level_here(),
        **{key: text for key, text in resolved.texts.items() if name_of(key) not in {*_CHOSEN_HERE, *_AFTER_WRITES}},
        **_DONE_HERE,
        DEFAULTS_ENABLED: "false",  # the resolved texts contain the defaults
        OPTIONS["write_id"].key: write_id,
        WRITE_KEY: beat.key,
        OPTIONS["application"].key: options.application or _application(spark),
        **({} if made_from.counted is None else {COUNTED: spell(made_from.counted)}),
        **({READ: spell_read(made_from.read)} if made_from.read else {}),
        **({PAST: spell(past)} if past != NO_PAST else {}),
    }
    # Only a write with the user's own id can have completed in an earlier call.
    named = not write_id.startswith(GENERATED_ID) and target.exists
    until = target.table.timeline().greatest_time() if named else None
    make_active(spark)
    with own_errors(), ExitStack() as kept:
        rows, more = _placed_rows(df, target, storage, options, request, kept)
        kept.enter_context(beat)
        rows.write.format(PyHudiDataSource.name()).options(**{**settings, **more}).mode("append").save(path)
    # A first write without rows may have left no instant, and so no table.
    table = None if creates and find_config(storage) is None else open_table(storage)
    timeline = None if table is None else table.timeline()
    done = None if table is None or timeline is None else find_write(table, timeline, write_id)
    if timeline is None or done is None:
        return CommitResult(path, "", (options.operation or "upsert").upper(), write_id=write_id)
    return _with_inline_services(spark, done, timeline, resolved) if done.instant > (until or "") else done


def _with_inline_services(
    spark: SparkSession, done: CommitResult, timeline: Timeline, resolved: ResolvedOptions
) -> CommitResult:
    """Run the inline services after a write, and return its result together with theirs."""
    options = resolved.options
    storage = open_storage(done.path, options.storage_options, durable=options.durable)
    means = spark_means(spark, options)
    services = run_inline(storage, timeline, options.upkeep(), means, metadata_enable=options.metadata_enable)
    return with_services(done, services)


def spark_means(spark: SparkSession, options: HudiOptions) -> Means:
    """Return the means to merge log files: Spark tasks for each file group, or this process where Spark runs none."""
    settings, application = options.write_settings(), options.application or _application(spark)
    own = means_of(settings, most_bytes=settings.commit_merge_max_bytes, application=application)
    by_tasks = means_of(settings, executor=SparkTasks(spark, "compaction"), application=application)
    return replace(by_tasks, without_tasks=own)


def _placed_rows(
    df: DataFrame, target: Target, storage: Storage, options: HudiOptions, request: WriteRequest, kept: ExitStack
) -> tuple[DataFrame, dict[str, str]]:
    """Return the rows in the placement for the write, and the options that describe it.

    ``kept`` releases what Spark persists until the rows are written.
    """
    left = {OPTIONS["commit_merge_max_bytes"].key: str(_NO_BOUND)}
    if opens_alone(target.operation.name, target.operation.rules, target.config):
        return _arranged(df, target, storage, options, request.write), left
    # Rows that colocate() placed carry their position.
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
    """Delete partitions by paths, with ``*`` for anything, in this process: there are no rows for tasks."""
    began = time.monotonic()
    options = resolved.options
    request = options.to_write_request(path, pa.schema([]), overwrite=False)
    settings = replace(request.write, partitions_to_delete=tuple(partitions))
    application = options.application or _application(spark)
    return _timed(write(replace(request, write=settings, application=application)), began, resolved.notices)


def _application(spark: SparkSession) -> str:
    return spark.conf.get("spark.app.name", "") or ""


def _timed(done: CommitResult, began: float, notices: tuple[str, ...]) -> CommitResult:
    """Return the result with the seconds of the whole call, and log it."""
    seconds = {**done.seconds, "total": round(time.monotonic() - began, 3)}
    result = replace(done, seconds=seconds, warnings=(*notices, *done.warnings))
    logger.info("%s", json.dumps({"event": "write", **asdict(result)}))
    return result
