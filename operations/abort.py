"""A failed write undone by its own writer."""

from __future__ import annotations

import logging

from ..errors import TableNotFoundError
from ..storage.base import Storage
from ..table.config import PROPERTIES_PATH, load_config
from ..timeline import owner
from ..timeline.instants import Instant, State
from ..timeline.layout import layout_of
from ..timeline.timeline import inflight_path, load_timeline
from .commit_lock import commit_lock
from .opened_partitions import forget_partitions
from .plan import WritePlan
from .rollback import by_partition, erase, files_of, forget

logger = logging.getLogger("pyhudi")


def abort_write(plan: WritePlan) -> None:
    """Leave nothing of a write, unless it turns out to be completed; may be called twice, and after a failed commit.

    The note "sealed" stays behind for tasks that are still at work; a later write's start removes it.
    """
    if plan.replays is not None:
        return
    storage = plan.storage()
    if not _is_ours(plan, storage):
        return
    owner.seal_for_good(storage, plan.instant_time)
    layout = layout_of(plan.config)
    with commit_lock(storage, plan.instant_time):
        found = load_timeline(storage, plan.config).find(plan.instant_time)
        if found is not None and found.state != State.COMPLETED:
            # Without its inflight file the instant cannot complete any more, whoever still tries.
            storage.delete(inflight_path(layout, found))
    if found is not None and found.state == State.COMPLETED:
        logger.warning("table %s: %s is completed and stays; its answer was lost", plan.path, plan.instant_time)
        forget(storage, plan.instant_time)
        return
    _erase(plan, storage, found)
    logger.warning("table %s: gave up the write %s", plan.path, plan.instant_time)


def _is_ours(plan: WritePlan, storage: Storage) -> bool:
    """Claim the instant time, unless another write that began in the same millisecond holds it."""
    if owner.create(storage, plan.instant_time, plan.owner):
        return True
    known = owner.read(storage, plan.instant_time)
    return known is None or known.write_id == plan.write_id


def _erase(plan: WritePlan, storage: Storage, own: Instant | None) -> None:
    paths = files_of(storage, plan.instant_time)
    if own is None:
        storage.delete(*paths)
    else:
        erase(storage, layout_of(plan.config), own, paths)
    forget_partitions(storage, plan.instant_time, by_partition(paths))
    if plan.creates_table:
        _forget_table(plan, storage)
    forget(storage, plan.instant_time)


def _forget_table(plan: WritePlan, storage: Storage) -> None:
    """Take back the properties of a table that this write was about to create and nobody else uses."""
    if not load_timeline(storage, plan.config).instants:
        try:
            mine = load_config(storage).properties == plan.new_config.properties
        except TableNotFoundError:
            return
        if mine:
            storage.delete(PROPERTIES_PATH)
