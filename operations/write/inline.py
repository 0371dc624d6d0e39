"""What a write does for its table once it is complete: it cleans, archives and compacts, where that is due."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from ...storage.base import Storage
from ...timeline.timeline import Timeline
from ...writer.buffer import MERGE_RESERVE
from ..planning.request import WriteSettings
from ..result import ServiceResult
from ..services.means import Means
from ..services.service import Executor
from ..services.settings import Upkeep
from .services import SERVICES, Call

logger = logging.getLogger("pyhudi")


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
    call = Call(storage, means.patience, lambda: upkeep, lambda: means, metadata_enable)
    for service in (one.after_write for one in SERVICES.values() if one.after_write is not None):
        if not service.automatic(upkeep):
            continue
        began = time.monotonic()
        try:
            result = service.run(call, timeline) if service.pays(timeline, upkeep) else None
        except Exception as error:
            logger.warning(
                "table %s: the write is complete, and the %s after it failed: %s",
                storage.path,
                service.name,
                error,
                exc_info=True,
            )
            result = ServiceResult(storage.path, service.name, error=str(error) or type(error).__name__)
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
