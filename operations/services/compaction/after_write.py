"""What a write does for its table's log files: it carries out what is pending, and plans more where that is due."""

from __future__ import annotations

import time
from functools import partial

from ....storage.base import Storage
from ....table.config import load_config
from ....table.config.property_keys import MERGE_ON_READ
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
    settings: CompactionSettings,
    means: Means,
    metadata_enable: bool | None,
) -> ServiceResult | None:
    """Do after a write what Apache Hudi's does: carry out what is pending, then what is due; or plan alone.

    Args:
        storage: Rooted at the table.
        timeline: With the write that is complete.
        settings: What is due, and what is merged.
        means: How.
        metadata_enable: False where a costly metadata table may be dropped.

    Returns:
        What was done; None where nothing was to be done.

    Raises:
        PyHudiError: It failed; the write is complete.
    """
    config = load_config(storage)
    pending = any(one.action == COMPACTION for one in timeline.pending)
    due = partial(_is_due, settings, config.timezone)
    # Whoever only plans waits until the last plan was carried out.
    wanted = pending or due(timeline) if settings.inline else not pending and due(timeline)
    if config.table_type != MERGE_ON_READ or not wanted:
        return None
    if settings.inline:
        done = compact(storage, settings, means, metadata_enable=metadata_enable, due=due)
    else:
        done = schedule_compaction(storage, settings, means.patience, metadata_enable=metadata_enable, due=due)
    return done if done.instant or done.skipped else None


def log_compact_after_write(
    storage: Storage,
    timeline: Timeline,
    settings: LogCompactionSettings,
    means: Means,
    metadata_enable: bool | None,
) -> ServiceResult | None:
    """Do after a write what Apache Hudi's does: carry out the log compactions that are pending, then what is due.

    Args:
        storage: Rooted at the table.
        timeline: With the write that is complete.
        settings: What is due, and what is joined.
        means: How.
        metadata_enable: False where a costly metadata table may be dropped.

    Returns:
        What was done; None where nothing was to be done.

    Raises:
        PyHudiError: It failed; the write is complete.
    """
    due = partial(log_compaction_is_due, delta_commits=settings.blocks)
    pending = any(one.action == LOG_COMPACTION for one in timeline.pending)
    if load_config(storage).table_type != MERGE_ON_READ or not (pending or due(timeline)):
        return None
    done = compact(storage, settings, means, metadata_enable=metadata_enable, due=due)
    return done if done.instant or done.skipped else None


def _is_due(settings: CompactionSettings, zone: str, timeline: Timeline) -> bool:
    return is_due(timeline, settings, int(time.time() * 1000), zone)
