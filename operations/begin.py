"""Putting a write's instant on the timeline: once, whoever of its tasks comes first."""

from __future__ import annotations

import time

from ..errors import ConcurrentWriteError, WriteSealedError
from ..storage.base import Storage
from ..timeline import heartbeat, owner
from ..timeline.codec import encode
from ..timeline.instants import State
from ..timeline.layout import layout_of
from ..timeline.metadata import RequestedReplaceMetadata
from ..timeline.timeline import Timeline, request, start
from .plan import WritePlan
from .rollback import roll_back
from .sweep import sweep

_WAIT_FOR_FIRST_S = 30.0
_POLL_S = 0.05


def begin(plan: WritePlan, storage: Storage) -> None:
    """Make the write's requested and inflight files, having rolled back dead writes; safe to call from every task.

    Raises:
        WriteSealedError: The write was committed or given up already.
        ConcurrentWriteError: Another write chose the same time.
    """
    refuse_sealed(plan, storage)
    if owner.create(storage, plan.instant_time, plan.owner):
        _put_on_timeline(plan, storage)
        return
    known = owner.read(storage, plan.instant_time)
    if known is not None and known.write_id != plan.write_id:
        raise ConcurrentWriteError(
            f"Another write of the table {plan.path} began at the same millisecond and holds the instant "
            f"{plan.instant_time}.",
            "Write again.",
        )
    deadline = time.monotonic() + _WAIT_FOR_FIRST_S
    while time.monotonic() < deadline:
        if _begun(plan, storage):
            return
        refuse_sealed(plan, storage)
        time.sleep(_POLL_S)
    # The task that came first died on the way: every step is create-if-absent, so it can be taken again.
    _put_on_timeline(plan, storage)


def refuse_sealed(plan: WritePlan, storage: Storage) -> None:
    """Raise when the write is over.

    Raises:
        WriteSealedError: It is.
    """
    if owner.is_sealed(storage, plan.instant_time):
        raise WriteSealedError(
            f"The write {plan.instant_time} of the table {plan.path} was committed or given up while this task ran.",
            "Nothing is to be done: the task's files are not part of the table.",
        )


def _begun(plan: WritePlan, storage: Storage) -> bool:
    found = Timeline.load(storage, layout_of(plan.config)).find(plan.instant_time)
    return found is not None and found.state >= State.INFLIGHT


def _put_on_timeline(plan: WritePlan, storage: Storage) -> None:
    layout = layout_of(plan.config)
    heartbeat.touch(storage, plan.instant_time)
    for planned in plan.rollbacks:
        roll_back(storage, layout, plan.config, planned)
    sweep(storage, Timeline.load(storage, layout), own=plan.instant_time, tolerance_s=_tolerance(plan))
    body = b""
    if plan.action == "replacecommit":
        # A pending replacecommit that says nothing of its operation breaks Apache Hudi's conflict check.
        body = encode(RequestedReplaceMetadata(operation_type=plan.operation))
    request(storage, layout, plan.instant_time, plan.action, body)
    start(storage, layout, plan.instant_time, plan.action)


def _tolerance(plan: WritePlan) -> float:
    return plan.settings.heartbeat_interval_s * plan.settings.heartbeat_misses
