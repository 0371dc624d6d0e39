"""Instants that a pending rollback or restore is going to remove."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from ..errors import CorruptInstantError
from ..storage.threads import for_each
from .instant_files import InstantFiles
from .instants import Instant
from .timeline import Timeline

logger = logging.getLogger("pyhudi")


def pending_rollbacks(timeline: Timeline) -> Mapping[str, tuple[Instant, ...]]:
    """Return the pending rollbacks, oldest first, by the requested time of the write that each undoes.

    The result omits a rollback whose plan cannot be read, as Apache Hudi does.
    """
    rollbacks_by_victim: dict[str, tuple[Instant, ...]] = {}
    rollbacks = [instant for instant in timeline.pending if instant.action == "rollback"]
    victims = for_each(timeline.files.storage, partial(_victim, timeline.files), rollbacks)
    for rollback, victim in zip(rollbacks, victims, strict=True):
        if victim:
            rollbacks_by_victim[victim] = (*rollbacks_by_victim.get(victim, ()), rollback)
    return rollbacks_by_victim


def pending_restore(timeline: Timeline) -> Instant | None:
    """Return the pending restore; None if there is none."""
    return next((instant for instant in timeline.pending if instant.action == "restore"), None)


def on_the_way_out(timeline: Timeline) -> frozenset[str]:
    """Return the requested times of all instants that pending rollbacks and a pending restore are going to remove."""
    restore = pending_restore(timeline)
    restored = [] if restore is None else timeline.files.read_undo_plan(restore)
    return frozenset((*pending_rollbacks(timeline), *restored))


def _victim(files: InstantFiles, rollback: Instant) -> str:
    """Return the requested time of the write that a rollback undoes; "" if its plan is gone or cannot be read."""
    try:
        return next(iter(files.read_undo_plan(rollback)), "")
    except CorruptInstantError as error:
        logger.warning("the rollback %s stays pending: %s", rollback.requested_time, error)
        return ""
