"""The table services after a completed write or a batch of a stream: those that are due and fit into its time."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...storage.base import Storage
from ...storage.kept import keep
from ...timeline.delta_commits import since_compaction
from ...timeline.held import COMPACTION
from ...timeline.timeline import Timeline
from ...writer.buffer import MERGE_RESERVE
from ..planning.request import WriteSettings
from ..result import ServiceResult
from ..service_settings import Upkeep
from ..services.means import Means
from ..services.service import Executor
from ..services.throughput import rest_of
from ..streams.batch import StreamSettings
from .service_entry import AfterWrite, Call
from .service_round import run_logged
from .services import SERVICES

logger = logging.getLogger("pyhudi")

MUCH = 20
_MUCH = (
    "table %s: %d delta commits of some file groups wait for a compaction, more than %d, because the upkeep after a "
    "batch leaves them out. Merge them beside the stream: python -m pyhudi.connector.jobs services --path %s, or "
    "HudiTable.run_services()."
)
# By the table's path: the service that had no time, and whether the log has warned of a large rest.
_NEXT: dict[str, str] = {}
_WARNED: dict[str, bool] = {}
_MOST_TABLES = 256


def run_after_batch(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, means: Means, stream: StreamSettings
) -> tuple[ServiceResult, ...]:
    """Run the services that are due after a batch, and return their results; their errors do not fail the batch.

    The timeline may be of any moment since the plan of the batch.
    """
    if not stream.upkeep_s:
        return ()
    upkeep = upkeep if stream.compacts else upkeep.without_compactions()
    listings = Listings(timeline)
    results, _ = _run_due_services(storage, listings, upkeep, means, stream.upkeep_s)
    _warn_of_much(storage.path, listings.since_write or timeline)
    return results


def run_within(
    storage: Storage, timeline: Timeline, upkeep: Upkeep, means: Means, seconds: float
) -> tuple[ServiceResult, ...]:
    """Run as many of the due services after a write as fit into some seconds; their errors do not fail the write.

    Returns a result for each due service, also if there was no time for it.
    """
    results, services_without_time = _run_due_services(storage, Listings(timeline), upkeep, means, seconds)
    out_of_time = (
        f"it may be due, and the {seconds:g} seconds for services after a write were over; run_services() runs it"
    )
    due_names = [service.name for service in services_without_time if service.pays(timeline, upkeep)]
    return (*map(_with_rest, results), *(ServiceResult(storage.path, name, skipped=out_of_time) for name in due_names))


def _with_rest(result: ServiceResult) -> ServiceResult:
    """Return the result of a service, which says as ``skipped`` if the seconds were too few for all file groups.

    This process remembers what the newest plan of the service left out.
    """
    waiting_rest = rest_of(result.path, result.service)
    if result.skipped or not result.changed or not waiting_rest.delta_commits:
        return result
    reason = "the seconds for services after a write were too few for other file groups; compact() merges them"
    return replace(result, skipped=reason)


def _run_due_services(
    storage: Storage, listings: Listings, upkeep: Upkeep, means: Means, seconds: float
) -> tuple[tuple[ServiceResult, ...], Sequence[AfterWrite]]:
    """Run due services within some seconds; return their results, and the services for which there was no time.

    It begins with the service that had no time after the write before. A service without work has no result.

    Args:
        storage: The table's.
        listings: The timelines by which services find whether they are due.
        upkeep: The settings of the services that may follow a write.
        means: The memory, time and executor that the services may use.
        seconds: For all services together; 0 for no time at all.
    """
    until_s = time.monotonic() + seconds
    results: list[ServiceResult] = []
    services = (service.after_write for service in SERVICES.values())
    wanted_services = [service for service in services if service is not None and service.automatic(upkeep)]
    names = [service.name for service in wanted_services]
    first_name = _NEXT.get(storage.path)
    first_index = names.index(first_name) if first_name in names else 0
    ordered_services = [*wanted_services[first_index:], *wanted_services[:first_index]]
    for number, service in enumerate(ordered_services):
        left_s = until_s - time.monotonic()
        # The first service runs however little time there is, unless there is none by the settings.
        if left_s <= 0 and (results or not seconds):
            keep(_NEXT, storage.path, service.name, _MOST_TABLES)
            return tuple(results), ordered_services[number:]
        means_within = partial(replace, means, within_s=max(left_s, 0.0))
        call = Call(storage, means.patience, lambda: upkeep, means_within)
        result = run_logged(storage, service.name, partial(run_due, service, call, listings), SKIPPED, FAILED)
        results += [] if result is None else [result]
    _NEXT.pop(storage.path, None)
    return tuple(results), ()


def _warn_of_much(path: str, timeline: Timeline) -> None:
    """Warn once of a table whose file groups wait for a compaction with more than `MUCH` delta commits."""
    # The most delta commits of a file group that waits for a compaction: because the newest plan left it out, or
    # because it changed since the last compaction.
    waiting_commits = rest_of(path, COMPACTION).by_now(timeline) or len(since_compaction(timeline).since)
    if waiting_commits > MUCH and not _WARNED.get(path):
        logger.warning(_MUCH, path, waiting_commits, MUCH, path)
    keep(_WARNED, path, waiting_commits > MUCH, _MOST_TABLES)


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

    before_write: Timeline
    since_write: Timeline | None = None


def run_due(service: AfterWrite, call: Call, listings: Listings) -> ServiceResult | None:
    """Run a service after a write, and return its result; None if it has no work.

    The service gets a listing from after the write, which the next service takes over if this one had no failure.
    """
    if not service.pays(listings.before_write, call.upkeep()):
        return None
    timeline, listings.since_write = listings.since_write or listings.before_write.reload(), None
    result = service.run(call, timeline)
    # Not after a failure: a service that runs again because a file is gone must list again.
    listings.since_write = timeline
    return result


def means_of(
    settings: WriteSettings,
    *,
    executor: Executor | None = None,
    most_bytes: int | None = None,
    application: str = "",
) -> Means:
    """Return the `Means` of a compaction, its executor and its bounds, from the settings of a write.

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
