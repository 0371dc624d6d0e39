"""A dead write undone: its files deleted, its instant taken off the timeline, a rollback instant left as the record.

Order of steps as in Apache Hudi's ``BaseRollbackActionExecutor``: plan, inflight, files, the victim's inflight and
requested, the completed rollback, the victim's markers. Every step can be taken twice, by several tasks at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ...errors import CorruptInstantError
from ...storage.base import Storage, split
from ...table.config import TableConfig, has_config, load_config
from ...table.files.marked_files import marked_files
from ...table.files.names import BaseFileName
from ...table.files.partitions import list_partitions
from ...timeline.clock import next_time
from ...timeline.instant_files import InstantFiles
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers import heartbeat, owner
from ...timeline.writers.decisions import Decision, Kind
from ...timeline.writers.markers import delete_markers, has_markers
from ...timeline.writers.patience import Patience
from ..decisions import retired_metadata
from ..decisions.decide import decide
from .opened_partitions import forget_partitions
from .pending import PlannedRollback, refuse_living

if TYPE_CHECKING:
    from ...timeline.metadata.models import RollbackMetadata, RollbackPlan

logger = logging.getLogger("pyhudi")

# What is left of a rollback whose victim is off the timeline takes moments, whoever is at it.
GIVEN_UP_S = 3600.0


def roll_back(storage: Storage, config: TableConfig, planned: PlannedRollback, patience: Patience) -> None:
    """Undo one dead write, unless it turns out to be completed or gone.

    Raises:
        ConcurrentWriteError: Its writer gave a sign of life since the rollback was planned.
    """
    victim = planned.victim
    began = time.monotonic()
    # A commit looks for rollbacks that name it: once this is decided, the victim cannot complete, however long it
    # slept. Before that nothing of it is deleted.
    timeline = decide(storage, config, partial(_naming, storage, config, planned, patience))
    found = timeline.find(victim.requested_time)
    if found is None or found.state == State.COMPLETED:
        # Its own writer may have undone it once it found itself named.
        for one in timeline.pending:
            if (one.requested_time, one.action) == (planned.at, "rollback"):
                _finish(storage, timeline, config, one)
        return
    timeline.files.start(Instant(planned.at, "rollback", State.INFLIGHT))
    paths = files_of(storage, victim.requested_time)
    erase(timeline.files, victim, paths)
    forget_partitions(storage, config, victim, by_partition(paths))
    _complete(storage, config, planned.at, _plan(storage, victim, paths), time.monotonic() - began)
    forget(storage, victim.requested_time)
    logger.warning(
        "table %s: rolled back the dead %s %s (%d files)",
        storage.path,
        victim.action,
        victim.requested_time,
        len(paths),
    )


def _naming(
    storage: Storage, config: TableConfig, planned: PlannedRollback, patience: Patience, timeline: Timeline
) -> Decision | None:
    """Return the decision that names a dead write to be rolled back; None where it is over, or is named already."""
    found = timeline.find(planned.victim.requested_time)
    if found is None or found.state == State.COMPLETED or _is_there(timeline, planned.at):
        return None
    refuse_living(storage, found, config, patience, known_beat=planned.beat, may_wait=False)
    if storage.has_files(owner.folder(found.requested_time)):
        # Tasks of ours may outlive their driver, or the driver may only have seemed dead. After the seal none of them
        # leaves a file that is not found here.
        owner.seal_for_good(storage, found.requested_time)
    plan = _plan(storage, planned.victim, files_of(storage, found.requested_time))
    named = Instant(planned.at, "rollback", State.REQUESTED)
    return Decision(Kind.MAKE, named, timeline.files.codec.encode(plan), changes=_retirement(storage))


def _is_there(timeline: Timeline, at: str, states: Iterable[State] = State) -> bool:
    return any(
        (one.requested_time, one.action) == (at, "rollback") and one.state in states for one in timeline.instants
    )


def _retirement(storage: Storage) -> dict[str, str | None]:
    return retired_metadata.retirement(load_config(storage)) if has_config(storage) else {}


def finish_rollbacks(storage: Storage, timeline: Timeline, config: TableConfig, age_s: float) -> None:
    """Complete the rollbacks that broke off when their victim was off the timeline already.

    One that broke off earlier needs nothing of this: its victim is still there, and is rolled back anew. Whose a
    rollback is cannot be told, so that each has the time that an unfinished write of somebody else has.

    Args:
        storage: Rooted at the table.
        timeline: As of a moment ago.
        config: The table's properties.
        age_s: Seconds, by the store's clock, after which a pending rollback counts as given up.

    Raises:
        ConcurrentWriteError: Others decided first all the time.
    """
    for one in timeline.pending:
        if one.action != "rollback":
            continue
        changed = storage.modified(timeline.files.path(one))
        if changed is None or storage.now() - changed <= age_s:
            continue
        _finish(storage, timeline, config, one)


def _finish(storage: Storage, timeline: Timeline, config: TableConfig, rollback: Instant) -> None:
    """Complete a pending rollback whose victim is off the timeline."""
    try:
        plan = timeline.files.read_rollback_plan(rollback)
    except CorruptInstantError as error:
        # Apache Hudi passes over such a rollback too; nothing of this write depends on it.
        logger.warning("table %s: the rollback %s stays pending: %s", storage.path, rollback.requested_time, error)
        return
    victim = None if plan is None else plan.instant_to_rollback
    if plan is None or victim is None or timeline.find(victim.commit_time) is not None:
        return
    _complete(storage, config, rollback.requested_time, plan, 0.0)
    logger.warning(
        "table %s: completed the rollback %s of %s, which had broken off",
        storage.path,
        rollback.requested_time,
        victim.commit_time,
    )


def files_of(storage: Storage, instant_time: str, *, rolled_back: bool = False) -> list[str]:
    """Return the data files that a write may have left: by its markers, or by listing where it kept none.

    A write of ours leaves a marker before each file, so that without markers it left no file.

    Args:
        storage: Rooted at the table.
        instant_time: Requested time of the write.
        rolled_back: Whether somebody may have taken the write's markers away while it went on.
    """
    if not rolled_back:
        if has_markers(storage, instant_time):
            return marked_files(storage, instant_time)
        if storage.has_files(owner.folder(instant_time)):
            return []
    found = []
    for partition in list_partitions(storage):
        for info in storage.list(partition):
            name = BaseFileName.parse(split(info.path)[1])
            if name is not None and name.instant_time == instant_time:
                found.append(info.path)
    return sorted(found)


def erase(instants: InstantFiles, victim: Instant, paths: list[str]) -> None:
    """Delete a write's data files, then its inflight and requested files."""
    instants.storage.delete(*paths)
    instants.remove_pending(victim)


def forget(storage: Storage, instant_time: str) -> None:
    """Delete what else a write kept: markers, heartbeat and its working folder."""
    delete_markers(storage, instant_time)
    heartbeat.delete(storage, instant_time)
    storage.delete_folder(owner.folder(instant_time))


def by_partition(paths: list[str]) -> dict[str, list[str]]:
    """Return the paths of files by the partitions that they are in."""
    partitions: dict[str, list[str]] = {}
    for path in paths:
        partitions.setdefault(path.rpartition("/")[0], []).append(path)
    return partitions


def _absolute(storage: Storage, paths: list[str]) -> list[str]:
    """Return paths as Apache Hudi writes them into rollbacks: absolute, without a scheme where they are local."""
    return [storage.uri(path).removeprefix("file://") for path in paths]


def _complete(storage: Storage, config: TableConfig, at: str, plan: RollbackPlan, seconds: float) -> None:
    """Complete a rollback, unless somebody else has: two tasks would do so at two times, each in a file of its own."""

    def completion(timeline: Timeline) -> Decision | None:
        if not _is_there(timeline, at, (State.REQUESTED, State.INFLIGHT)):
            return None
        timeline.files.start(Instant(at, "rollback", State.INFLIGHT))
        finished = next_time(int(time.time() * 1000), timeline.greatest_time(), config.timezone)
        done = Instant(at, "rollback", State.COMPLETED, finished)
        return Decision(
            Kind.MAKE, done, timeline.files.codec.encode(_metadata(at, plan, seconds)), changes=_retirement(storage)
        )

    decide(storage, config, completion)


def _plan(storage: Storage, victim: Instant, paths: list[str]) -> RollbackPlan:
    from ...timeline.metadata.models import InstantInfo, RollbackPlan, RollbackRequest  # noqa: PLC0415 (see timeline/instant_files.py)

    requests = [
        RollbackRequest(partition_path=partition, files_to_be_deleted=_absolute(storage, files))
        for partition, files in by_partition(paths).items()
    ]
    info = InstantInfo(commit_time=victim.requested_time, action=victim.action)
    return RollbackPlan(instant_to_rollback=info, RollbackRequests=requests)


def _metadata(at: str, plan: RollbackPlan, seconds: float) -> RollbackMetadata:
    from ...timeline.metadata.models import RollbackMetadata, RollbackPartition  # noqa: PLC0415

    victims = [] if plan.instant_to_rollback is None else [plan.instant_to_rollback]
    deleted: dict[str, list[str]] = {}
    for one in plan.rollback_requests:
        deleted.setdefault(one.partition_path, []).extend(one.files_to_be_deleted)
    return RollbackMetadata(
        start_rollback_time=at,
        time_taken_in_millis=int(seconds * 1000),
        total_files_deleted=sum(map(len, deleted.values())),
        commits_rollback=[one.commit_time for one in victims],
        partition_metadata={
            partition: RollbackPartition(partition_path=partition, success_delete_files=files)
            for partition, files in deleted.items()
        },
        instants_rollback=victims,
    )
