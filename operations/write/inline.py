"""What a write does for its table once it is complete: it cleans, archives and compacts, where that is due."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from ...storage.base import Storage
from ...timeline.timeline import Timeline
from ...writer.buffer import MERGE_RESERVE
from ..planning.request import WriteSettings
from ..result import ARCHIVE, CLEAN, COMPACTION, LOG_COMPACTION, ServiceResult
from ..services.means import Means
from ..services.service import Executor
from ..services.settings import KEEP_LATEST_COMMITS, Upkeep

logger = logging.getLogger("pyhudi")

# A service is imported where there may be something to do: a commit mostly runs in a process of its own.


def run_inline(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, means: Means, *, metadata_enable: bool | None = None
) -> tuple[ServiceResult, ...]:
    """Clean, archive and compact after a write that is complete, in the order in which Apache Hudi does.

    What goes wrong is logged and stands in the result: it never fails the write.

    Args:
        storage: Rooted at the table.
        timeline: As it was before the write or after it, which is enough to tell where there is nothing to do.
        upkeep: What is to be done.
        means: With what log files are merged.
        metadata_enable: False lets a service retire an expensive metadata table.

    Returns:
        One result for each service that ran.
    """
    done: list[ServiceResult] = []
    compacts = upkeep.compaction.inline or upkeep.compaction.schedule_inline
    for name, automatic, service in (
        (CLEAN, upkeep.clean.automatic, _clean),
        (ARCHIVE, upkeep.archive.automatic, _archive),
        (COMPACTION, compacts, partial(_compact, means=means)),
        (LOG_COMPACTION, upkeep.log_compaction.inline, partial(_log_compact, means=means)),
    ):
        if not automatic:
            continue
        began = time.monotonic()
        try:
            result = service(storage, timeline, upkeep, metadata_enable)
        except Exception as error:
            logger.warning(
                "table %s: the write is complete, and the %s after it failed: %s",
                storage.path,
                name,
                error,
                exc_info=True,
            )
            result = ServiceResult(storage.path, name, error=str(error) or type(error).__name__)
        if result is not None:
            done.append(replace(result, seconds=round(time.monotonic() - began, 3)))
    return tuple(done)


def means_of(
    settings: WriteSettings,
    *,
    executor: Executor | None = None,
    most_bytes: int | None = None,
    application: str = "",
) -> Means:
    """Return with what a compaction is carried out that goes by the settings of a write.

    Args:
        settings: Those of the write, or of the options that a write would have.
        executor: Where file slices are merged; None for this process.
        most_bytes: What is beyond so many bytes is planned and left; None for no bound.
        application: Name of the application.
    """
    # In this process several are merged at once, in a task of an engine's one.
    share = MERGE_RESERVE if executor is None else 1.0
    return Means(
        patience=settings.patience,
        output=replace(settings.output, memory=int(settings.output.memory * share)),
        logs=settings.logs,
        executor=executor,
        most_bytes=most_bytes,
        application=application,
    )


def _clean(storage: Storage, timeline: Timeline, upkeep: Upkeep, metadata_enable: bool | None) -> ServiceResult | None:
    settings = upkeep.clean
    left_over = any(one.action == CLEAN for one in timeline.pending)
    if settings.policy == KEEP_LATEST_COMMITS and len(timeline.writes) < settings.commits and not left_over:
        # All of them are kept, and with them what they replaced.
        return None
    from ..services.clean import clean  # noqa: PLC0415

    return clean(storage, settings, metadata_enable=metadata_enable, inline=True)


def _archive(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, metadata_enable: bool | None
) -> ServiceResult | None:
    if len(timeline.writes) < upkeep.archive.max_commits:
        return None
    from ..services.archive import archive  # noqa: PLC0415

    return archive(storage, upkeep.archive, upkeep.clean, metadata_enable=metadata_enable)


def _compact(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, metadata_enable: bool | None, *, means: Means
) -> ServiceResult | None:
    if not any(one.action == "deltacommit" for one in timeline.instants):
        # Of a copy-on-write table, or one that has just been made.
        return None
    from ..services.compaction.after_write import compact_after_write  # noqa: PLC0415

    return compact_after_write(storage, timeline.reload(), upkeep.compaction, means, metadata_enable)


def _log_compact(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, metadata_enable: bool | None, *, means: Means
) -> ServiceResult | None:
    if not any(one.group == "deltacommit" for one in timeline.instants):
        return None
    from ..services.compaction.after_write import log_compact_after_write  # noqa: PLC0415

    return log_compact_after_write(storage, timeline.reload(), upkeep.log_compaction, means, metadata_enable)
