"""A round of the table services: each does what is due, beside living writers; a failure does not stop the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ...errors import CommitConflictError, ConcurrentWriteError, InvalidOptionError, PyHudiError
from ...storage.base import Storage
from ...table.table import open_table
from ..meeting.taken import was_removed, with_retries
from ..result import ServiceResult, ServicesResult
from .service_entry import Call, Service
from .services import SERVICES

logger = logging.getLogger("pyhudi")


def run_services(call: Call, names: Sequence[str] = ()) -> ServicesResult:
    """Run the named services, or all services, as far as they are due, in the order of the registry.

    If a service meets another process, ``skipped`` of its result has the reason. Raises `InvalidOptionError` for a name
    that no service of a round has, and `TableError` if there is no table.
    """
    start_s = time.monotonic()
    offered = names_of_a_round()
    unknown_names = sorted({*names} - {*offered})
    if unknown_names:
        raise InvalidOptionError(
            f"A round of services has no {unknown_names[0]!r}.", f"Choose among {', '.join(offered)}."
        )
    # Without a table this raises; each service would report that as a failure of its own.
    open_table(call.storage)
    results = tuple(_run_if_due(SERVICES[name], call) for name in offered if not names or name in names)
    warnings = tuple(f"The {run.service} failed: {run.error}" for run in results if run.error)
    return ServicesResult(call.storage.path, results, round(time.monotonic() - start_s, 3), warnings)


def names_of_a_round() -> tuple[str, ...]:
    """Return the names of the services that a round can run."""
    return tuple(service.name for service in SERVICES.values() if service.due is not None)


def run_logged(
    storage: Storage, name: str, run: Callable[[], ServiceResult | None], skipped: str, failed: str
) -> ServiceResult | None:
    """Run a service and return its result with its seconds, None without work; an error is logged, and part of it.

    ``skipped`` and ``failed`` are texts of log lines with "%s" for the table's path, the service and the error.
    """
    start_s = time.monotonic()
    try:
        result = with_retries(run, was_removed)
    except (ConcurrentWriteError, CommitConflictError) as met:
        # Another process works on files that the service needs, or was quicker. A later call does the rest.
        logger.info(skipped, storage.path, name, met.text)
        result = ServiceResult(storage.path, name, skipped=met.what.rstrip("."))
    except Exception as error:
        logger.warning(failed, storage.path, name, error, exc_info=True)
        result = ServiceResult(storage.path, name, error=_text_of(error))
    return None if result is None else replace(result, seconds=round(time.monotonic() - start_s, 3))


def _text_of(error: Exception) -> str:
    """Return the text of an error for a result."""
    return error.text if isinstance(error, PyHudiError) else str(error) or type(error).__name__


def _run_if_due(service: Service, call: Call) -> ServiceResult:
    """Run a service of a round, and return its result; it is empty if the service had no work."""
    # The result has the name that it has after a write, such as compaction for compact.
    name = service.name if service.after_write is None else service.after_write.name
    nothing, due = ServiceResult(call.storage.path, name), service.due
    run = (lambda: nothing) if due is None else partial(due, call)
    texts = ("table %s: the %s is skipped: %s", "table %s: the %s failed: %s")
    return run_logged(call.storage, name, run, *texts) or nothing
