"""The write path of `HudiTable`: place the rows, let Spark write them, return the result."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import CommitConflictError, PlacementError
from ...methods.writes import timed
from ...operations.carried_values import spell
from ...operations.planning.request import WriteRequest
from ...operations.planning.target import Target, find_target
from ...operations.result import NO_PAST, CommitResult, PastAttempts, find_write
from ...operations.write.turns import Turn
from ...operations.write_ids import generated_id, is_generated
from ...options.names import OPTIONS, name_of
from ...options.sources import DEFAULTS_ENABLED, ResolvedOptions
from ...storage import Storage
from ...table.table import find_table, open_table
from ...timeline.writers.write_heartbeat import WriteHeartbeat
from ..placement.batch_keys import BatchKeys
from ..source.carried_options import spell_read
from ..source.own_errors import own_errors
from ..source.paths import BATCH, COUNTED, DELETES_READ, FORMAT, MARKED, OF_STORED, PAST, READ, WRITE_KEY
from ..source.spark_types import to_arrow
from ..source.workers import level_here
from .frames import make_active
from .local_writes import turn_of, write_here
from .made_from import NOTHING_READ, MadeFrom
from .notebook_progress import noted_write, shown_retries
from .placed_rows import NO_BOUND, placed_rows
from .service_tasks import application_of, with_metadata, with_services_after

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("pyhudi")

# `placed_rows` sets these by the placement.
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


def write_placed(
    df: DataFrame,
    path: str,
    storage: Storage,
    resolved: ResolvedOptions,
    *,
    creates: bool = False,
    made_from: MadeFrom = NOTHING_READ,
) -> CommitResult:
    """Write rows, placed by file group first if that is faster, and write them again if another write came first.

    ``creates`` lets the first commit create the table. Rows that were made from the table are written only once,
    because the caller has to make them anew.
    """
    options, start = resolved.options, time.monotonic()
    turn = None if made_from.batch is not None else turn_of(df, options, storage.path)
    write = _Write(df, path, storage, resolved, creates, made_from, turn)
    if options.based_on:
        commit_result = write.attempt(options.write_id or generated_id(), made_from.past)
    else:
        with turn or nullcontext():
            commit_result = shown_retries(storage, options).run(write.attempt)
    return timed(commit_result, start, resolved.notices)


@dataclass(frozen=True, slots=True)
class _Write:
    """One call of `write_placed`; without a ``turn`` Spark writes the rows."""

    df: DataFrame
    path: str
    storage: Storage
    resolved: ResolvedOptions
    creates: bool
    made_from: MadeFrom
    turn: Turn | None

    def attempt(self, write_id: str, past: PastAttempts) -> CommitResult:
        """Write the rows once, in this process if they are few, else by Spark, and return the result.

        All attempts of a write have the id ``write_id``, and the commit notes ``past``, the attempts before this
        attempt. The result names no instant if the write made none. A write that completed under its id in an earlier
        call is returned as it is, and no services follow it.
        """
        options, batch = self.resolved.options, self.made_from.batch
        request = options.to_write_request(self.path, to_arrow(self.df.schema), overwrite=False, batch=batch)
        target = find_target(request, self.storage, creates=self.creates)
        application = options.application or application_of(self.df.sparkSession)
        made_from = self.made_from
        origin = replace(request.write.origin, of_stored=made_from.of_stored, counted=made_from.counted)
        settings = replace(request.write, origin=origin)
        request = replace(request, write=settings, write_id=write_id, application=application)
        commit = replace(request.write.commit, merge_max_bytes=NO_BOUND)
        # Spark's writer gets these from `_settings`, as options.
        origin = replace(origin, read=made_from.read, deletes_read=made_from.deletes_read)
        local_settings = replace(request.write, colocated=False, commit=commit, origin=origin, past=past)
        commit_result = write_here(self.df, replace(request, write=local_settings), options, self.turn)
        if commit_result is not None:
            return commit_result
        # Only a write with the user's own id can have completed in an earlier call.
        may_be_complete = not is_generated(write_id) and target.exists
        last_time_before = target.table.timeline().greatest_time() if may_be_complete else None
        batch_keys = BatchKeys.of(target, request.write)
        self._by_spark(request, target, past, batch_keys)
        # A first write without rows may have left no instant, and so no table.
        table = find_table(self.storage) if self.creates else open_table(self.storage)
        timeline = None if table is None else table.timeline()
        commit_result = None if table is None or timeline is None else find_write(table, timeline, write_id)
        if timeline is None or commit_result is None:
            return CommitResult(self.path, "", (options.operation or "upsert").upper(), write_id=write_id)
        if commit_result.instant <= (last_time_before or ""):
            # An earlier call completed this instant, and ran its services.
            return commit_result
        if batch_keys is not None:
            batch_keys.complete(timeline, commit_result.instant)
        commit_result = replace(commit_result, warnings=(*target.notices, *commit_result.warnings))
        if target.exists and table is not None:
            commit_result = with_metadata(commit_result, table, target.config)
        return with_services_after(self.df.sparkSession, commit_result, timeline, options, is_batch=batch is not None)

    def _by_spark(
        self, request: WriteRequest, target: Target, past: PastAttempts, batch_keys: BatchKeys | None
    ) -> None:
        """Let the data source write the rows, placed if that pays."""
        beat = WriteHeartbeat.of_new_write(self.storage, target.config.timezone, request.write.patience)
        settings = {**self._settings(request, past), WRITE_KEY: beat.key}
        make_active(self.df.sparkSession)
        with _made_anew_as_conflict(target, request), own_errors(), ExitStack() as on_exit:
            rows, placement_options = placed_rows(self.df, target, self.resolved.options, request, on_exit, batch_keys)
            on_exit.enter_context(beat)
            on_exit.enter_context(noted_write(beat))
            rows.write.format(FORMAT).options(**{**settings, **placement_options}).mode("append").save(self.path)

    def _settings(self, request: WriteRequest, past: PastAttempts) -> dict[str, str]:
        """Return the options of the data source's write: those of the user, and what only this process knows.

        ``request`` has the ids of the write and its application, and the commit notes ``past``, the earlier attempts.
        """
        made_from, texts = self.made_from, self.resolved.texts
        return {
            OPTIONS["log_level"].key: level_here(),
            **{key: text for key, text in texts.items() if name_of(key) not in {*_CHOSEN_HERE, *_AFTER_WRITES}},
            **_DONE_HERE,
            DEFAULTS_ENABLED: "false",  # the resolved texts contain the defaults
            OPTIONS["write_id"].key: request.write_id,
            OPTIONS["application"].key: request.application,
            **({} if made_from.counted is None else {COUNTED: spell(made_from.counted)}),
            **({READ: spell_read(made_from.read)} if made_from.read else {}),
            **({DELETES_READ: MARKED} if made_from.deletes_read else {}),
            **({OF_STORED: MARKED} if made_from.of_stored else {}),
            **({PAST: spell(past)} if past != NO_PAST else {}),
            # This process runs the services after a batch.
            **(
                {} if made_from.batch is None else {BATCH: spell(made_from.batch), OPTIONS["stream_upkeep_ms"].key: "0"}
            ),
        }


@contextmanager
def _made_anew_as_conflict(target: Target, request: WriteRequest) -> Iterator[None]:
    """Raise `CommitConflictError` if rows were placed for a table that was made anew or rescaled before the plan.

    ``target`` is the table of the write ``request`` as it was before the rows were placed. Upon a conflict the caller
    places the rows again, while a `PlacementError` of any other cause ends the write.
    """
    planned_until = target.table.timeline().completed_until if target.exists else ""
    try:
        yield
    except PlacementError as error:
        config = find_target(request, target.table.storage, creates=not target.exists).config
        if config != target.config:
            meeting = f"Another writer made the table {request.path} anew, with other properties"
        elif any(
            instant.replaces and instant.visible_since > planned_until for instant in target.table.timeline().writes
        ):
            meeting = f"Another writer replaced file groups of the table {request.path}, as a rescale does"
        else:
            raise
        raise CommitConflictError(
            f"{meeting}, after the rows were placed.", "This write left nothing behind; write again."
        ) from error
