"""When a compaction or a log compaction is due.

The rules are those of Apache Hudi's ``ScheduleCompactionActionExecutor`` and ``CompactionUtils`` (1.2). They read the
timeline alone, in order of requested times. A delta commit counts from its request on, whether or not it is complete.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from ....timeline.clock import parse_time
from ....timeline.held import COMPACTION, LOG_COMPACTION, log_compactions
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline
from ...service_settings import (
    NUM_AND_TIME,
    NUM_COMMITS_AFTER_LAST_REQUEST,
    NUM_OR_TIME,
    TIME_ELAPSED,
    CompactionSettings,
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The number of delta commits since the last compaction, and its requested time.

    Without a compaction, ``since`` is the requested time of the first delta commit.
    """

    delta_commits: int
    since: str


def is_due(timeline: Timeline, settings: CompactionSettings, zone: str, now_ms: int | None = None) -> bool:
    """Return whether a compaction is due on a merge-on-read table; `now_ms` is epoch milliseconds, None for now."""
    counted = waiting(timeline, requests=settings.trigger == NUM_COMMITS_AFTER_LAST_REQUEST)
    if counted is None:
        return False
    has_many = counted.delta_commits >= settings.delta_commits
    # The number alone decides for triggers without a time, for "both" if it is too small, for "either" if it is not.
    if {TIME_ELAPSED: False, NUM_AND_TIME: not has_many, NUM_OR_TIME: has_many}.get(settings.trigger, True):
        return has_many
    now_s = int(time.time()) if now_ms is None else now_ms // 1000
    return now_s - parse_time(counted.since, zone) // 1000 >= settings.delta_seconds


def waiting(timeline: Timeline, *, requests: bool = False) -> Waiting | None:
    """Return how many delta commits wait for a compaction; None if there is neither a delta commit nor a compaction.

    With `requests`, a pending compaction counts as the last compaction.
    """
    compactions = [instant for instant in timeline.completed if instant.action == "commit"]
    pending_compactions = [instant for instant in timeline.pending if instant.action == COMPACTION] if requests else []
    last_time = max((instant.requested_time for instant in pending_compactions or compactions), default="")
    deltas = [instant.requested_time for instant in timeline.instants if _is_delta(instant)]
    waiting_times = [time for time in deltas if time > last_time]
    if last_time:
        return Waiting(len(waiting_times), last_time)
    return Waiting(len(waiting_times), waiting_times[0]) if waiting_times else None


def log_compaction_is_due(timeline: Timeline, delta_commits: int) -> bool:
    """Return whether a log compaction is due on a merge-on-read table, as ``needLogCompact`` says.

    It is due after `delta_commits` delta commits since both the last log compaction and the last compaction, unless a
    log compaction is pending. Delta commits count if they completed since, or were requested since and are at work. All
    log compactions but the last count as delta commits.
    """
    if any(instant.action == LOG_COMPACTION for instant in timeline.pending):
        return False
    compactions = (instant.requested_time for instant in timeline.completed if instant.action == "commit")
    newest_first = [instant for instant in reversed(timeline.instants) if _is_delta(instant)]
    if len(_modified_after(newest_first, max(compactions, default=""))) < max(delta_commits, 1):
        return False
    joined_by_time = log_compactions(timeline)
    last_log_compaction = next(
        (instant.requested_time for instant in newest_first if instant.requested_time in joined_by_time), ""
    )
    return len(_modified_after(newest_first, last_log_compaction)) >= delta_commits


def _modified_after(deltas: Iterable[Instant], time: str) -> list[Instant]:
    """Return the delta commits that completed, or are at work, after a time, except the instant of that time."""
    return [instant for instant in deltas if instant.visible_since > time and instant.requested_time != time]


def _is_delta(instant: Instant) -> bool:
    return instant.action == "deltacommit"
