"""What a write does for its table once it is complete: it cleans, then archives, where there may be something to do."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from ...storage.base import Storage
from ...timeline.timeline import Timeline
from ..result import ARCHIVE, CLEAN, ServiceResult
from .settings import KEEP_LATEST_COMMITS, Upkeep

logger = logging.getLogger("pyhudi")

# A service is imported where there may be something to do: a commit mostly runs in a process of its own.


def run_inline(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, *, metadata_enable: bool | None = None
) -> tuple[ServiceResult, ...]:
    """Clean and archive after a write that is complete.

    What goes wrong is logged and stands in the result: it never fails the write.

    Args:
        storage: Rooted at the table.
        timeline: As it was before the write or after it, which is enough to tell where there is nothing to do.
        upkeep: What is to be done.
        metadata_enable: False lets a service retire an expensive metadata table.

    Returns:
        One result for each service that ran.
    """
    done: list[ServiceResult] = []
    for name, automatic, service in (
        (CLEAN, upkeep.clean.automatic, _clean),
        (ARCHIVE, upkeep.archive.automatic, _archive),
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


def _clean(storage: Storage, timeline: Timeline, upkeep: Upkeep, metadata_enable: bool | None) -> ServiceResult | None:
    settings = upkeep.clean
    left_over = any(one.action == CLEAN for one in timeline.pending)
    if settings.policy == KEEP_LATEST_COMMITS and len(timeline.writes) < settings.commits and not left_over:
        # All of them are kept, and with them what they replaced.
        return None
    from .clean import clean  # noqa: PLC0415

    return clean(storage, settings, metadata_enable=metadata_enable, inline=True)


def _archive(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, metadata_enable: bool | None
) -> ServiceResult | None:
    if len(timeline.writes) < upkeep.archive.max_commits:
        return None
    from .archive import archive  # noqa: PLC0415

    return archive(storage, upkeep.archive, upkeep.clean, metadata_enable=metadata_enable)
