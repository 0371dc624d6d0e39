"""Unfinished writes found on the timeline: refused while their writer lives, rolled back when it is dead."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConcurrentWriteError, UnsupportedTableError
from ...storage.base import Storage
from ...table.config import TableConfig
from ...timeline.instant_files import open_instants
from ...timeline.instants import WRITE_ACTIONS, Instant
from ...timeline.timeline import Timeline
from ...timeline.writers import owner, reserve
from ...timeline.writers.owner import Liveness, judge
from ...timeline.writers.patience import Patience

BLOCKING = frozenset({"clustering", "compaction", "logcompaction", "restore"})


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """A dead write that is to be rolled back.

    Attributes:
        victim: The write.
        at: Requested time of the rollback.
        beat: When its last heartbeat was touched, which was overdue; None where it was not judged by that.
    """

    victim: Instant
    at: str
    beat: float | None = None


def settle_pending(
    storage: Storage, timeline: Timeline, config: TableConfig, patience: Patience
) -> tuple[tuple[Instant, float | None], ...]:
    """Return the pending writes whose writers are dead, oldest first, each with its last heartbeat.

    Raises:
        ConcurrentWriteError: A pending write's writer lives, or may live.
        UnsupportedTableError: A table service of Apache Hudi is pending that forbids updates.
    """
    dead = []
    for instant in timeline.pending:
        if instant.action in BLOCKING:
            raise UnsupportedTableError(
                f"The {instant.action} {instant.requested_time} is pending on the table {storage.path}, and the file "
                "groups that it holds must not be written meanwhile.",
                "Finish it or roll it back with Apache Hudi, then write again.",
            )
        if instant.action not in WRITE_ACTIONS:
            continue
        verdict = refuse_living(storage, instant, config, patience)
        dead.append((instant, verdict.beat))
    return tuple(dead)


def is_given_up(storage: Storage, instant_time: str) -> bool:
    """Return whether a pending write of ours was given up, though its process, and this may be the same, lives on."""
    if owner.read(storage, instant_time) is None:
        return False
    return reserve.is_released(storage, instant_time) or owner.is_given_up(storage, instant_time)


def refuse_living(
    storage: Storage,
    instant: Instant,
    config: TableConfig,
    patience: Patience,
    *,
    known_beat: float | None = None,
    may_wait: bool = True,
) -> Liveness:
    """Raise where the writer of a pending instant lives, or may live, by this write's patience.

    Args:
        storage: Rooted at the table.
        instant: The pending instant.
        config: The table's properties.
        patience: Of the write that is in its way.
        known_beat: A heartbeat of it that was found overdue before.
        may_wait: Whether a heartbeat may be watched for as long as it may miss.

    Raises:
        ConcurrentWriteError: It does.
    """
    if is_given_up(storage, instant.requested_time):
        return Liveness(False, "it was given up")
    verdict = judge(
        open_instants(storage, config),
        instant,
        patience,
        now_s=storage.now(),
        zone=config.timezone,
        known_beat=known_beat,
        may_wait=may_wait,
    )
    if verdict.alive:
        raise ConcurrentWriteError(
            f"The {instant.action} {instant.requested_time} is pending on the table {storage.path}: {verdict.reason}.",
            verdict.todo,
        )
    return verdict
