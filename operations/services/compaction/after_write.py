"""What a write does for its table's log files: carries out pending plans, and plans more where Hudi's rules say so.

The rules, when a compaction or a log compaction is due, are those of Apache Hudi's ``ScheduleCompactionActionExecutor``
and ``CompactionUtils`` (1.2), and need the timeline alone: instants are in order of requested time, and a delta commit
counts from its request on, whether or not it is complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from ....storage.base import Storage
from ....table.config import load_config
from ....table.config.property_keys import MERGE_ON_READ
from ....table.table import open_table
from ....timeline.clock import parse_time
from ....timeline.held import COMPACTION, LOG_COMPACTION, log_compactions
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline
from ...result import ServiceResult
from ..means import Means
from ..settings import (
    NUM_AND_TIME,
    NUM_COMMITS_AFTER_LAST_REQUEST,
    NUM_OR_TIME,
    TIME_ELAPSED,
    CompactionSettings,
    LogCompactionSettings,
)
from ..throughput import Rest, in_backoff, rest_of
from .compact import compact, schedule_compaction


def compact_after_write(
    storage: Storage, timeline: Timeline, settings: CompactionSettings | LogCompactionSettings, means: Means
) -> ServiceResult | None:
    """Carry out pending compactions, or log compactions, then plan and carry out what is due; or plan alone.

    Returns None where no plan was pending or due. Raises `PyHudiError` where it failed; the write stays complete.
    """
    config = load_config(storage)
    due: Callable[[Timeline], bool]
    if isinstance(settings, CompactionSettings):
        action, plans_alone = COMPACTION, not settings.inline
        due = partial(is_due, settings=settings, zone=config.timezone)
    else:
        action, plans_alone = LOG_COMPACTION, False
        due = partial(log_compaction_is_due, delta_commits=settings.blocks)
    if means.within_s is not None:
        if in_backoff(storage.path, action):
            return None
        due = partial(_is_due_again, rest_of(storage.path, action), settings, due)
    pending = any(instant.action == action for instant in timeline.pending)
    # A write that only plans makes no plan while the last plan is pending.
    wanted = not pending and due(timeline) if plans_alone else pending or due(timeline)
    if config.table_type != MERGE_ON_READ or not wanted:
        return None
    if plans_alone:
        enable = means.metadata_enable
        done = schedule_compaction(storage, settings, means.patience, metadata_enable=enable, due=due)
    else:
        done = compact(storage, settings, means, due=due)
    return done if done.instant or done.skipped else None


def compact_where_due(
    storage: Storage, settings: CompactionSettings | LogCompactionSettings, means: Means
) -> ServiceResult | None:
    """As `compact_after_write` for a call of its own, whatever the settings have writes do."""
    if isinstance(settings, CompactionSettings):
        settings = replace(settings, inline=True)
    return compact_after_write(storage, open_table(storage).timeline(), settings, means)


def _is_due_again(
    rest: Rest,
    settings: CompactionSettings | LogCompactionSettings,
    due: Callable[[Timeline], bool],
    timeline: Timeline,
) -> bool:
    """Return whether the file groups that a cut plan lacks have as many delta commits by now as make a plan due."""
    most = settings.delta_commits if isinstance(settings, CompactionSettings) else settings.blocks
    return due(timeline) or rest.by_now(timeline) >= max(most, 1)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Delta commits since the last compaction, and its requested time, or the first delta commit's without any."""

    delta_commits: int
    since: str


def is_due(timeline: Timeline, settings: CompactionSettings, zone: str, now_ms: int | None = None) -> bool:
    """Return whether a compaction is due on a merge-on-read table; `now_ms` is epoch milliseconds, None for now."""
    found = waiting(timeline, requests=settings.trigger == NUM_COMMITS_AFTER_LAST_REQUEST)
    if found is None:
        return False
    many = found.delta_commits >= settings.delta_commits
    if {TIME_ELAPSED: False, NUM_AND_TIME: not many, NUM_OR_TIME: many}.get(settings.trigger, True):
        return many
    now_s = int(time.time()) if now_ms is None else now_ms // 1000
    return now_s - parse_time(found.since, zone) // 1000 >= settings.delta_seconds


def waiting(timeline: Timeline, *, requests: bool = False) -> Waiting | None:
    """Return what has gathered; None without a delta commit.

    With `requests`, a pending compaction counts as the last.
    """
    compactions = [instant for instant in timeline.completed if instant.action == "commit"]
    asked = [instant for instant in timeline.pending if instant.action == COMPACTION] if requests else []
    last = max((instant.requested_time for instant in asked or compactions), default="")
    deltas = [instant.requested_time for instant in timeline.instants if _is_delta(instant)]
    gathered = [time for time in deltas if time > last]
    if last:
        return Waiting(len(gathered), last)
    return Waiting(len(gathered), gathered[0]) if gathered else None


def log_compaction_is_due(timeline: Timeline, delta_commits: int) -> bool:
    """Return whether a log compaction is due on a merge-on-read table, as ``needLogCompact`` says.

    It takes `delta_commits` delta commits both since the last log compaction and since the last compaction, and no
    pending log compaction. Delta commits count if they completed since, or were requested since and are at work, and so
    do all log compactions but the last.
    """
    if any(instant.action == LOG_COMPACTION for instant in timeline.pending):
        return False
    compactions = (instant.requested_time for instant in timeline.completed if instant.action == "commit")
    newest_first = [instant for instant in reversed(timeline.instants) if _is_delta(instant)]
    if len(_modified_after(newest_first, max(compactions, default=""))) < max(delta_commits, 1):
        return False
    joined = log_compactions(timeline)
    last = next((instant.requested_time for instant in newest_first if instant.requested_time in joined), "")
    return len(_modified_after(newest_first, last)) >= delta_commits


def _modified_after(deltas: Iterable[Instant], time: str) -> list[Instant]:
    return [instant for instant in deltas if instant.visible_since > time and instant.requested_time != time]


def _is_delta(instant: Instant) -> bool:
    return instant.action == "deltacommit"
