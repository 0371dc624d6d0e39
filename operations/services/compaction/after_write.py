"""Compactions after a write: carries out pending plans, and makes a plan when Apache Hudi's rules make one due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ....storage.base import Storage
from ....table.config import load_config
from ....table.config.property_keys import MERGE_ON_READ
from ....table.table import open_table
from ....timeline.held import COMPACTION, LOG_COMPACTION
from ....timeline.timeline import Timeline
from ...result import ServiceResult
from ...service_settings import CompactionSettings, LogCompactionSettings
from ..means import Means
from ..throughput import Rest, in_backoff, rest_of
from .compact import compact, schedule_compaction
from .due_rules import is_due, log_compaction_is_due


def compact_after_write(
    storage: Storage, timeline: Timeline, settings: CompactionSettings | LogCompactionSettings, means: Means
) -> ServiceResult | None:
    """Carry out pending compactions, or log compactions, then plan one if due and carry it out; or only plan it.

    Return None if no plan was pending or due. Raises `PyHudiError` if it fails; the write stays complete.
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
        result = schedule_compaction(storage, settings, means.patience, due=due)
    else:
        result = compact(storage, settings, means, due=due)
    return result if result.instant or result.skipped else None


def compact_where_due(
    storage: Storage, settings: CompactionSettings | LogCompactionSettings, means: Means
) -> ServiceResult | None:
    """Call `compact_after_write` without a write; plans are carried out even if the settings let writes only plan."""
    if isinstance(settings, CompactionSettings):
        settings = replace(settings, inline=True)
    return compact_after_write(storage, open_table(storage).timeline(), settings, means)


def _is_due_again(
    rest: Rest,
    settings: CompactionSettings | LogCompactionSettings,
    due: Callable[[Timeline], bool],
    timeline: Timeline,
) -> bool:
    """Return whether a plan is due by the rules, or by the delta commits of file groups that the last plan left out."""
    most = settings.delta_commits if isinstance(settings, CompactionSettings) else settings.blocks
    return due(timeline) or rest.by_now(timeline) >= max(most, 1)
