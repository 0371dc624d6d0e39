"""The table services after a completed write: it cleans, archives and compacts, where that is due."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from ...errors import CommitConflictError, ConcurrentWriteError
from ...storage.base import Storage
from ...timeline.timeline import Timeline
from ...writer.buffer import MERGE_RESERVE
from ..planning.request import WriteSettings
from ..result import ServiceResult
from ..services.means import Means
from ..services.service import Executor
from ..services.settings import Upkeep
from .service_round import again_if_files_went
from .services import SERVICES, Call

logger = logging.getLogger("pyhudi")


def run_inline(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, means: Means, *, metadata_enable: bool | None = None
) -> tuple[ServiceResult, ...]:
    """Run the table services that are due after a write, in the order of Apache Hudi; return a result for each.

    An error is logged and part of the result: it never fails the write. The timeline may be of any moment since the
    plan of the write.
    """
    done: list[ServiceResult] = []
    call = Call(storage, means.patience, lambda: upkeep, lambda: means, metadata_enable)
    for service in (one.after_write for one in SERVICES.values() if one.after_write is not None):
        if not service.automatic(upkeep):
            continue
        began = time.monotonic()
        try:
            pays = service.pays(timeline, upkeep)
            result = again_if_files_went(partial(service.run, call, timeline)) if pays else None
        except (ConcurrentWriteError, CommitConflictError) as met:
            # Another process is at work on what it needs, or was quicker; a later write does what is due then.
            logger.info("table %s: the %s after the write is skipped: %s", storage.path, service.name, met)
            result = ServiceResult(storage.path, service.name, skipped=met.what.rstrip("."))
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
    """Return the means of a compaction, from the settings of a write.

    A None ``executor`` merges in this process. A compaction beyond ``most_bytes`` is planned, but not executed.
    """
    # This process merges several file slices at once, a task of an engine only one at a time.
    share = MERGE_RESERVE if executor is None else 1.0
    return Means(
        patience=settings.patience,
        output=replace(settings.output, memory=int(settings.output.memory * share)),
        logs=settings.logs,
        executor=executor,
        most_bytes=most_bytes,
        application=application,
    )
