"""Builds partitions of the metadata table beside writers, as an ``indexing`` instant of the table.

    begin I: the properties name the partitions as being built; from then on each write logs what it changes
      --> base files of what completed before I, in the working folder of I if they are large
      --> complete I: publishes them, and the properties name the partitions as in use

Source: ``ScheduleIndexActionExecutor``, ``RunIndexActionExecutor``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ....errors import ConcurrentWriteError, PyHudiError
from ....storage.base import Storage
from ....table.config import load_config
from ....table.config.property_keys import INDEX_DEFINITIONS
from ....table.metadata.index_definitions import index_definitions
from ....table.metadata.kinds import COLUMN_STATS
from ....table.metadata.metadata_table import MetadataTable
from ....table.record_index import INDEXES_FILE
from ....table.seen_table import SeenTable
from ....table.table import Table
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import FirstSteps
from ...following.partitions_in_use import being_built
from ...meeting.transaction import Transaction
from ...result import ServiceResult
from ...transaction.claimed import begin_claimed
from ...transaction.commit_path import complete
from ...transaction.instant_changes import remove_file, start
from ...transaction.left_overs import try_to_forget
from ...transaction.outcome import Outcome, Properties
from ..means import Means
from .built_partitions import Built, build_partitions
from .columns_to_index import columns_to_index
from .first_files import first_files
from .index_names import not_in_use
from .pending_indexings import INDEXING, PendingIndexing, dead_indexings, give_up, pending_indexings, steps_to_give_up

if TYPE_CHECKING:
    from ....timeline.metadata.models import IndexCommitMetadata, IndexPlan

# What Apache Hudi calls the instant before all others.
_BEFORE_ALL = "00000000000000"


class BegunIndexing(NamedTuple):
    """The claimed instant, and the partitions that it builds."""

    work: Transaction
    names: tuple[str, ...]


class _NothingLeftError(Exception):
    """Another process has built all wanted partitions meanwhile."""


def begin_indexing(
    table: Table, means: Means, wanted: Sequence[str], columns: Sequence[str] | None
) -> BegunIndexing | None:
    """Request an indexing of the wanted partitions that are not in use, and return it as begun; None if all are in use.

    An indexing is the instant that builds partitions of the metadata table of ``table``. `means` are the memory, time
    and executor that it may use, and the patience with writers that are silent. `columns` are those whose bounds are
    kept, None for Apache Hudi's default. Raises `ConcurrentWriteError` beside another indexing whose process lives,
    and what `columns_to_index` raises.
    """
    storage = table.storage
    dead = dead_indexings(table, table.timeline(), means.patience)
    given_up_times = {indexing.instant.requested_time for indexing in dead}
    builds_bounds = COLUMN_STATS in not_in_use(wanted, table.config.metadata_partitions)
    indexed = columns_to_index(SeenTable.now(table), columns) if builds_bounds else ()
    # What the newest round of the decision builds: another process may build some of the wanted partitions first.
    chosen_names: list[tuple[str, ...]] = [()]

    def plan(timeline: Timeline) -> IndexPlan:
        """Return the plan for a timeline, and note which partitions it builds.

        Raises `ConcurrentWriteError` if another living process builds an index, and `_NothingLeftError` if
        there is none to build.
        """
        living_indexings = [
            each for each in pending_indexings(timeline) if each.instant.requested_time not in given_up_times
        ]
        if living_indexings:
            raise ConcurrentWriteError(
                f"Another process has begun to build an index of the table {table.path} (indexing "
                f"{living_indexings[-1].instant.requested_time}).",
                "Wait until it is complete, and run this again.",
            )
        chosen_names[0] = not_in_use(wanted, load_config(storage).metadata_partitions)
        if not chosen_names[0]:
            raise _NothingLeftError
        return plan_of(chosen_names[0], timeline)

    def first(timeline: Timeline, instant: Instant) -> tuple[FirstSteps, ...]:
        """Return the steps that give up dead indexings, and those that make the first files of the partitions."""
        names = chosen_names[0]
        giving_up = steps_to_give_up(timeline, storage, pending_indexings(timeline), keep=names)
        new_files = first_files(storage, load_config(storage), names, instant.requested_time, indexed)
        return giving_up, FirstSteps(new_files, begins=names)

    try:
        work = begin_claimed(table, INDEXING, means.patience, means.application, plan, first)
    except _NothingLeftError:
        return None
    for indexing in given_up_times:
        try_to_forget(storage, indexing)
    return BegunIndexing(work, chosen_names[0])


def plan_of(names: Sequence[str], timeline: Timeline) -> IndexPlan:
    """Return the plan of an indexing that begins on a timeline."""
    from ....timeline.metadata import models  # noqa: PLC0415 (see timeline/instant_files.py)

    until = timeline.writes[-1].requested_time if timeline.writes else _BEFORE_ALL
    infos = [models.IndexPartitionInfo(metadata_partition_path=name, index_upto_instant=until) for name in names]
    return models.IndexPlan(index_partition_infos=infos)


logger = logging.getLogger("pyhudi")

_BUILDS = 20
_UNDO_S, _POLL_S = 60.0, 0.2


class _BuildAgainError(Exception):
    """Since the build, an instant was undone or is being undone, or a write changed which columns are indexed."""


@dataclass(frozen=True, slots=True)
class Indexing:
    """One indexing of the partitions ``wanted``; it builds those that are not in use when it begins."""

    table: Table
    means: Means
    wanted: tuple[str, ...]
    columns: Sequence[str] | None

    def carry_out(self, result: ServiceResult) -> ServiceResult:
        """Build the partitions and return the result; if another process has built them, `skipped` says so.

        If the build fails, the indexing is given up, so that writers do not log to it for ever.
        """
        begun = begin_indexing(self.table, self.means, self.wanted, self.columns)
        if begun is None:
            return replace(result, indexes=(), skipped=f"another process has built {', '.join(self.wanted)} meanwhile")
        work, names = begun
        indexing = PendingIndexing(work.inflight, names)
        try:
            with work.heartbeat():
                built, instant = self._build_and_complete(work, names)
        except BaseException:
            # Otherwise writers would log to partitions that no process builds.
            with suppress(PyHudiError):
                give_up(self.table, [indexing])
            raise
        try_to_forget(work.storage, work.instant_time)
        logger.info("table %s: built %s (indexing %s)", self.table.path, ", ".join(names), instant.requested_time)
        return replace(
            result,
            instant=instant.requested_time,
            indexes=names,
            files=built.files,
            records=built.index.records,
            bytes=built.index.bytes,
        )

    def _build_and_complete(self, work: Transaction, names: tuple[str, ...]) -> tuple[Built, Instant]:
        """Build partitions of the metadata table, and complete the indexing; return what was built, and the instant.

        ``work`` is the indexing, already requested, and ``names`` are its partitions. If a rollback or restore undid an
        instant that the build read, this builds again. Raises `ConcurrentWriteError` if another process gave the
        indexing up, or if instants keep being undone.
        """
        pending = work.inflight
        start(self.table, pending)
        if not work.storage.exists(self.table.instants.path(pending.at(State.REQUESTED))):
            # Another process gave the indexing up meanwhile, so the new inflight file must not stay.
            remove_file(self.table, pending)
            raise self._given_up_error(pending)
        for _ in range(_BUILDS):
            timeline = self._timeline_without_undoing()
            seen = SeenTable(self.table, timeline.as_of_completion(work.instant_time))
            metadata = MetadataTable.with_partitions(self.table, timeline, names)
            built = build_partitions(seen, metadata, names, pending, self.means)
            undoing_before = _undoing_instants(timeline)
            try:
                completion = complete(self.table, pending, partial(self._outcome, pending, built, undoing_before))
            except _BuildAgainError:
                logger.info("table %s: an instant was undone meanwhile; building again", self.table.path)
                continue
            if completion is None or not set(names) <= set(load_config(self.table.storage).metadata_partitions):
                # The instant is gone, or its partitions did not come into use.
                raise self._given_up_error(pending)
            return built, completion.instant
        raise ConcurrentWriteError(
            f"Instants of the table {self.table.path} were undone while {', '.join(names)} was built, {_BUILDS} times "
            "in a row.",
            "Run create_index again once no rollback runs.",
        )

    def _outcome(
        self, pending: Instant, built: Built, undoing_before: frozenset[str], timeline: Timeline
    ) -> Outcome | None:
        """Return the outcome of the indexing; None if it is no longer pending.

        `undoing_before` has the rollbacks and restores that were on the timeline when the build began. Raises
        `_BuildAgainError` if the build read something that was undone or changed since, and `ConcurrentWriteError` if
        the indexing was given up.
        """
        identity = (pending.requested_time, pending.action)
        if not any((instant.requested_time, instant.action) == identity for instant in timeline.pending):
            return None
        config = load_config(self.table.storage)
        names = built.index.names
        if not set(names) <= set(being_built(config)):
            raise self._given_up_error(pending)
        if _undoing_instants(timeline) != undoing_before or (
            built.indexed and built.indexed != _defined_columns(self.table.storage)
        ):
            raise _BuildAgainError
        # Apache Hudi finds the definition of the indexed columns by this property.
        changes = {INDEX_DEFINITIONS: INDEXES_FILE} if COLUMN_STATS in names else {}
        properties = Properties(changes=changes, current=config)
        return Outcome(_completed_body(names, timeline), properties=properties, own=built.index)

    def _timeline_without_undoing(self) -> Timeline:
        """Return the timeline once no rollback or restore is pending, as these may undo what the build reads."""
        deadline = time.monotonic() + _UNDO_S
        while True:
            timeline = self.table.timeline()
            pending = next((instant for instant in timeline.pending if instant.is_undo), None)
            if pending is None:
                return timeline
            if time.monotonic() > deadline:
                raise ConcurrentWriteError(
                    f"The {pending.action} {pending.requested_time} of the table {self.table.path} is not complete, so "
                    "that no index can be built.",
                    "Run the rollback or restore again, which finishes it, then create_index.",
                )
            time.sleep(_POLL_S)

    def _given_up_error(self, pending: Instant) -> ConcurrentWriteError:
        """Return the error for an indexing that another process took back."""
        return ConcurrentWriteError(
            f"The indexing {pending.requested_time} of the table {self.table.path} was given up by another process: a "
            "drop_index, or a service that took this process for dead.",
            "Run create_index again if the index is still wanted.",
        )


def _defined_columns(storage: Storage) -> tuple[str, ...]:
    """Return the columns that `column_stats` indexes by its definition now."""
    definition = index_definitions(storage).get(COLUMN_STATS)
    return () if definition is None else definition.columns


def _undoing_instants(timeline: Timeline) -> frozenset[str]:
    """Return the rollbacks and restores on a timeline, with their states."""
    instants = (instant for instant in timeline.instants if instant.is_undo)
    return frozenset([f"{instant.identity}.{instant.state.name}" for instant in instants])


def _completed_body(names: Sequence[str], timeline: Timeline) -> IndexCommitMetadata:
    """Return the body of the completed indexing, which names the partitions."""
    from ....timeline.metadata import models  # noqa: PLC0415 (see timeline/instant_files.py)

    return models.IndexCommitMetadata(index_partition_infos=plan_of(names, timeline).index_partition_infos)
