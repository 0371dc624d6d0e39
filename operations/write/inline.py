"""The table services after a completed write: it cleans, archives and compacts if that is due."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from ...storage.base import Storage
from ...timeline.timeline import Timeline
from ...writer.buffer import MERGE_RESERVE
from ..planning.request import WriteSettings
from ..result import ServiceResult
from ..service_settings import Upkeep
from ..services.means import Means
from ..services.service import Executor
from .service_entry import AfterWrite, Call
from .service_round import run_logged
from .services import SERVICES

SKIPPED = "table %s: the %s after the write is skipped: %s"
FAILED = "table %s: the write is complete, and the %s after it failed: %s"


def run_inline(storage: Storage, timeline: Timeline, upkeep: Upkeep, means: Means) -> tuple[ServiceResult, ...]:
    """Run the table services that are due after a write, in the order of Apache Hudi; return their results.

    An error is logged and part of the result, and never fails the write. The timeline may be of any moment since the
    plan of the write.
    """
    results: list[ServiceResult] = []
    listings = Listings(timeline)
    call = Call(storage, means.patience, lambda: upkeep, lambda: means)
    for service in (service.after_write for service in SERVICES.values() if service.after_write is not None):
        if service.automatic(upkeep):
            result = run_logged(storage, service.name, partial(run_due, service, call, listings), SKIPPED, FAILED)
            results += [] if result is None else [result]
    return tuple(results)


@dataclass(slots=True)
class Listings:
    """A timeline from before the end of the write, and a later listing; services find by them what is due."""

    before: Timeline
    since: Timeline | None = None


def run_due(service: AfterWrite, call: Call, listings: Listings) -> ServiceResult | None:
    if not service.pays(listings.before, call.upkeep()):
        return None
    timeline, listings.since = listings.since or listings.before.reload(), None
    result = service.run(call, timeline)
    # Not after a failure: a service that runs again because a file is gone must list again.
    listings.since = timeline
    return result


def means_of(
    settings: WriteSettings,
    *,
    executor: Executor | None = None,
    most_bytes: int | None = None,
    application: str = "",
) -> Means:
    """Return the means of a compaction, from the settings of a write.

    Without an ``executor`` this process merges. A compaction of more than ``most_bytes`` is planned, but not executed.
    """
    # This process merges several file slices at once, but a task of an engine only one at a time.
    share = MERGE_RESERVE if executor is None else 1.0
    return Means(
        patience=settings.patience,
        output=replace(settings.output, memory=int(settings.output.memory * share)),
        logs=settings.logs,
        executor=executor,
        most_bytes=most_bytes,
        application=application,
        wait_s=settings.commit.wait_s,
    )
