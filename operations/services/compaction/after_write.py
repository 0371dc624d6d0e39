"""What a write does for its table's log files: carries out pending plans, and plans more where that is due."""

from __future__ import annotations

import time
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
from ..means import Means
from ..settings import CompactionSettings, LogCompactionSettings
from .compact import compact, schedule_compaction
from .triggers import is_due, log_compaction_is_due


def compact_after_write(
    storage: Storage,
    timeline: Timeline,
    settings: CompactionSettings | LogCompactionSettings,
    means: Means,
    metadata_enable: bool | None,
) -> ServiceResult | None:
    """Carry out pending compactions, or log compactions, then what is due; or only plan, as the settings say.

    Returns None where nothing was to be done. Raises `PyHudiError` where it failed; the write is complete all the same.
    """
    config = load_config(storage)
    due: Callable[[Timeline], bool]
    if isinstance(settings, CompactionSettings):
        action, plans_alone, due = COMPACTION, not settings.inline, partial(_is_due, settings, config.timezone)
    else:
        action, plans_alone = LOG_COMPACTION, False
        due = partial(log_compaction_is_due, delta_commits=settings.blocks)
    pending = any(one.action == action for one in timeline.pending)
    # A write that only plans makes no plan while the last plan is pending.
    wanted = not pending and due(timeline) if plans_alone else pending or due(timeline)
    if config.table_type != MERGE_ON_READ or not wanted:
        return None
    if plans_alone:
        done = schedule_compaction(storage, settings, means.patience, metadata_enable=metadata_enable, due=due)
    else:
        done = compact(storage, settings, means, metadata_enable=metadata_enable, due=due)
    return done if done.instant or done.skipped else None


def compact_where_due(
    storage: Storage,
    settings: CompactionSettings | LogCompactionSettings,
    means: Means,
    metadata_enable: bool | None,
) -> ServiceResult | None:
    """As `compact_after_write` for a call of its own, whatever the settings have writes do."""
    if isinstance(settings, CompactionSettings):
        settings = replace(settings, inline=True)
    return compact_after_write(storage, open_table(storage).timeline(), settings, means, metadata_enable)


def _is_due(settings: CompactionSettings, zone: str, timeline: Timeline) -> bool:
    return is_due(timeline, settings, int(time.time() * 1000), zone)
