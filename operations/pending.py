"""Unfinished writes found on the timeline: refused while their writer lives, rolled back when it is dead."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConcurrentWriteError, UnsupportedTableError
from ..storage.base import Storage
from ..table.config import TableConfig
from ..timeline.instants import WRITE_ACTIONS, Instant
from ..timeline.layout import layout_of
from ..timeline.owner import judge
from ..timeline.timeline import Timeline
from .settings import WriteSettings

BLOCKING = frozenset({"clustering", "compaction", "logcompaction", "restore"})


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """A dead write and the requested time under which it will be rolled back."""

    victim: Instant
    at: str


def settle_pending(
    storage: Storage, timeline: Timeline, config: TableConfig, settings: WriteSettings
) -> tuple[Instant, ...]:
    """Return the pending writes whose writers are dead, oldest first.

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
        refuse_living(storage, instant, config, settings)
        dead.append(instant)
    return tuple(dead)


def refuse_living(storage: Storage, instant: Instant, config: TableConfig, settings: WriteSettings) -> None:
    """Raise where the writer of a pending instant lives, or may live, under this write's options.

    Raises:
        ConcurrentWriteError: It does.
    """
    verdict = judge(
        storage,
        instant,
        now_s=storage.now(),
        heartbeat_tolerance_s=settings.heartbeat_tolerance_s,
        foreign_age_s=settings.foreign_age_s,
        eager=settings.eager_rollback,
        zone=config.timezone,
        layout=layout_of(config),
    )
    if verdict.alive:
        raise ConcurrentWriteError(
            f"The {instant.action} {instant.requested_time} is pending on the table {storage.path}: {verdict.reason}.",
            "Wait until that writer is done and write again; if it is dead, the next write rolls it back once its "
            "heartbeat is overdue, and hoodie.clean.failed.writes.policy=EAGER or "
            "hoodie.pyhudi.foreign.pending.max.age.seconds do so earlier for Apache Hudi's.",
        )
