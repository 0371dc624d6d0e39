"""A dead write undone: its files deleted, its instant taken off the timeline, a rollback instant left as the record.

Order of steps as in Apache Hudi's ``BaseRollbackActionExecutor``: plan, inflight, files, the victim's inflight and
requested, the completed rollback, the victim's markers. Every step can be taken twice, by several tasks at once.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from ..errors import CorruptInstantError
from ..storage.base import Storage, split
from ..table.config import TableConfig, has_config
from ..table.names import BaseFileName
from ..table.partitions import list_partitions
from ..timeline import heartbeat, owner
from ..timeline.clock import next_time
from ..timeline.codec import encode, read_rollback_plan
from ..timeline.instants import Instant, State
from ..timeline.layout import Layout, layout_of
from ..timeline.markers import delete_markers, has_markers
from ..timeline.timeline import Timeline, complete, load_timeline, path_of, remove_pending, request, start
from . import metadata_table
from .commit_lock import commit_lock
from .marked_files import marked_files
from .opened_partitions import forget_partitions
from .pending import PlannedRollback, refuse_living
from .settings import WriteSettings

if TYPE_CHECKING:
    from ..timeline.metadata import RollbackMetadata, RollbackPlan

logger = logging.getLogger("pyhudi")

# What is left of a rollback whose victim is off the timeline takes moments, whoever is at it.
GIVEN_UP_S = 3600.0


def roll_back(storage: Storage, config: TableConfig, planned: PlannedRollback, settings: WriteSettings) -> None:
    """Undo one dead write, unless it turns out to be completed or gone.

    Raises:
        ConcurrentWriteError: Its writer gave a sign of life since the rollback was planned.
    """
    victim, layout = planned.victim, layout_of(config)
    began = time.monotonic()
    paths = files_of(storage, victim.requested_time)
    plan = _plan(storage, victim, paths)
    # Under the lock a commit looks for rollbacks that name it: from here on the victim cannot complete.
    with commit_lock(storage, planned.at):
        found = load_timeline(storage, config).find(victim.requested_time)
        if found is None or found.state == State.COMPLETED:
            return
        refuse_living(storage, found, config, settings, known_beat=planned.beat, may_wait=False)
        if has_config(storage):
            metadata_table.stop_using(storage)
        if storage.has_files(owner.folder(victim.requested_time)):
            # Tasks of ours may outlive their driver, or the driver may only have seemed dead.
            owner.seal_for_good(storage, victim.requested_time)
        request(storage, layout, planned.at, "rollback", encode(plan))
    start(storage, layout, planned.at, "rollback")
    erase(storage, layout, victim, paths)
    forget_partitions(storage, victim.requested_time, by_partition(paths))
    _complete(storage, config, planned.at, plan, time.monotonic() - began)
    forget(storage, victim.requested_time)
    logger.warning(
        "table %s: rolled back the dead %s %s (%d files)",
        storage.path,
        victim.action,
        victim.requested_time,
        len(paths),
    )


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
        ConcurrentWriteError: Somebody else held the commit lock all the time.
    """
    for one in timeline.pending:
        if one.action != "rollback":
            continue
        changed = storage.modified(path_of(timeline.layout, one))
        if changed is None or storage.now() - changed <= age_s:
            continue
        try:
            plan = read_rollback_plan(storage, timeline.layout, one)
        except CorruptInstantError as error:
            # Apache Hudi passes over such a rollback too; nothing of this write depends on it.
            logger.warning("table %s: the rollback %s stays pending: %s", storage.path, one.requested_time, error)
            continue
        victim = None if plan is None else plan.instant_to_rollback
        if plan is None or victim is None or timeline.find(victim.commit_time) is not None:
            continue
        _complete(storage, config, one.requested_time, plan, 0.0)
        logger.warning(
            "table %s: completed the rollback %s of %s, which had broken off",
            storage.path,
            one.requested_time,
            victim.commit_time,
        )


def files_of(storage: Storage, instant_time: str) -> list[str]:
    """Return the data files that a write may have left: by its markers, or by listing where it kept none.

    A write of ours leaves a marker before each file, so that without markers it left no file.
    """
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


def erase(storage: Storage, layout: Layout, victim: Instant, paths: list[str]) -> None:
    """Delete a write's data files, then its inflight and requested files."""
    storage.delete(*paths)
    remove_pending(storage, layout, victim)


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
    """Complete a rollback, unless somebody else has."""
    # Under the lock, or two tasks could complete it at two times, each in a file of its own.
    with commit_lock(storage, at) as lock:
        timeline = load_timeline(storage, config)
        if not any((one.requested_time, one.action) == (at, "rollback") for one in timeline.pending):
            return
        if has_config(storage):
            metadata_table.stop_using(storage)
        start(storage, timeline.layout, at, "rollback")
        finished = next_time(int(time.time() * 1000), timeline.greatest_time(), config.timezone)
        lock.check()
        complete(storage, timeline, at, "rollback", finished, encode(_metadata(at, plan, seconds)))


def _plan(storage: Storage, victim: Instant, paths: list[str]) -> RollbackPlan:
    from ..timeline.metadata import InstantInfo, RollbackPlan, RollbackRequest  # noqa: PLC0415 (see timeline/codec.py)

    requests = [
        RollbackRequest(partition_path=partition, files_to_be_deleted=_absolute(storage, files))
        for partition, files in by_partition(paths).items()
    ]
    info = InstantInfo(commit_time=victim.requested_time, action=victim.action)
    return RollbackPlan(instant_to_rollback=info, RollbackRequests=requests)


def _metadata(at: str, plan: RollbackPlan, seconds: float) -> RollbackMetadata:
    from ..timeline.metadata import RollbackMetadata, RollbackPartition  # noqa: PLC0415

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
