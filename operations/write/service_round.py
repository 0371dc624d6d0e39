"""A round of the table services: each does what is due, beside living writers, and no failure stops the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ...errors import CommitConflictError, ConcurrentWriteError, InvalidOptionError, StorageError
from ...table.table import open_table
from ..result import ServiceResult, ServicesResult
from .services import SERVICES, Call, Service

logger = logging.getLogger("pyhudi")

Result = TypeVar("Result")

_TRIES = 3


def run_services(call: Call, names: Sequence[str] = ()) -> ServicesResult:
    """Run the named services, or all that have something due, in the order of the registry.

    A service that meets another process is skipped with the reason. Raises `InvalidOptionError` for a name that no
    service of a round has, and `TableError` where there is no table.
    """
    began = time.monotonic()
    chosen = _chosen(names)
    open_table(call.storage)
    done = tuple(_run(one, call) for one in chosen)
    warnings = tuple(f"The {one.service} failed: {one.error}" for one in done if one.error)
    return ServicesResult(call.storage.path, done, round(time.monotonic() - began, 3), warnings)


def names_of_a_round() -> tuple[str, ...]:
    return tuple(one.name for one in SERVICES.values() if one.due is not None)


def again_if_files_went(run: Callable[[], Result]) -> Result:
    """Call a service, and again where another process archived or cleaned a file between a listing and a read."""
    for _ in range(_TRIES - 1):
        try:
            return run()
        except StorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return run()


def _chosen(names: Sequence[str]) -> list[Service]:
    known = names_of_a_round()
    wrong = sorted({*names} - {*known})
    if wrong:
        raise InvalidOptionError(f"A round of services has no {wrong[0]!r}.", f"Choose among {', '.join(known)}.")
    return [SERVICES[name] for name in known if not names or name in names]


def _run(service: Service, call: Call) -> ServiceResult:
    began = time.monotonic()
    done = ServiceResult(call.storage.path, service.name if service.after_write is None else service.after_write.name)
    try:
        done = done if service.due is None else again_if_files_went(partial(service.due, call))
    except (ConcurrentWriteError, CommitConflictError) as met:
        # Another process is at work on what this service needs, or was quicker: the next round tries again.
        logger.info("table %s: %s is skipped: %s", done.path, done.service, met)
        done = replace(done, skipped=met.what.rstrip("."))
    except Exception as error:
        logger.warning("table %s: the %s failed", done.path, done.service, exc_info=True)
        done = replace(done, error=str(error) or type(error).__name__)
    return replace(done, seconds=round(time.monotonic() - began, 3))
