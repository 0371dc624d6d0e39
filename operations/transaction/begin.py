"""Putting a write's instant on the timeline: once, whoever of its tasks comes first."""

from __future__ import annotations

import time

from ...errors import ConcurrentWriteError, WriteSealedError
from ...storage.base import Storage
from ...timeline.instants import State
from ...timeline.layout import layout_of
from ...timeline.metadata.codec import encode
from ...timeline.timeline import load_timeline, remove_pending, request, start
from ...timeline.writers import heartbeat, owner, reserve
from ...timeline.writers.markers import begin_markers
from ..planning.plan import WritePlan
from ..rollback.rollback import forget, roll_back
from ..rollback.sweep import sweep

_WAIT_FOR_FIRST_S = 30.0
_POLL_S = 0.05


def begin(plan: WritePlan, storage: Storage) -> None:
    """Make the write's requested and inflight files, having rolled back dead writes; safe to call from every task.

    Raises:
        WriteSealedError: The write was committed or given up already.
        ConcurrentWriteError: Another write chose the same time, or all writes on the timeline are younger.
    """
    refuse_sealed(plan, storage)
    known = owner.read(storage, plan.instant_time)
    if known is None:
        if owner.create(storage, plan.instant_time, plan.owner):
            _put_on_timeline(plan, storage)
            return
        known = owner.read(storage, plan.instant_time)
    if known is not None and known.write_id != plan.write_id:
        raise same_millisecond(plan)
    deadline = time.monotonic() + _WAIT_FOR_FIRST_S
    while time.monotonic() < deadline:
        if _begun(plan, storage):
            # What is seen is not yet kept; a data file may not reach the disk before it.
            storage.flush([layout_of(plan.config).folder])
            return
        refuse_sealed(plan, storage)
        time.sleep(_POLL_S)
    # The task that came first died on the way: every step is create-if-absent, so it can be taken again.
    owner.create(storage, plan.instant_time, plan.owner)
    _put_on_timeline(plan, storage)


def same_millisecond(plan: WritePlan) -> ConcurrentWriteError:
    """Return the error of a write whose instant time is another's."""
    return ConcurrentWriteError(
        f"Another write of the table {plan.path} began at the same millisecond and holds the instant "
        f"{plan.instant_time}.",
        "Write again.",
    )


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


def _take_back_if_given_up(plan: WritePlan, storage: Storage) -> None:
    """Undo the beginning of a write that was given up after this task had looked for its seal."""
    if owner.is_given_up(storage, plan.instant_time):
        layout = layout_of(plan.config)
        found = load_timeline(storage, plan.config).find(plan.instant_time)
        if found is not None and found.state != State.COMPLETED:
            remove_pending(storage, layout, found)
        forget(storage, plan.instant_time)
        refuse_sealed(plan, storage)


def _take_back_if_oldest(plan: WritePlan, storage: Storage) -> None:
    """Undo the beginning of a write that is older than every other one on the timeline.

    Whoever read the timeline before this instant stood there takes it for archived, and its files for committed.
    """
    timeline = load_timeline(storage, plan.config)
    writes = [one.requested_time for one in timeline.instants if one.is_write]
    others = [time for time in writes if time != plan.instant_time]
    found = timeline.find(plan.instant_time)
    if found is None or found.state == State.COMPLETED or not others or min(others) < plan.instant_time:
        return
    remove_pending(storage, timeline.layout, found)
    forget(storage, plan.instant_time)
    raise ConcurrentWriteError(
        f"The write {plan.instant_time} of the table {plan.path} was planned before {min(others)}, the oldest write "
        "that is still on its timeline; readers would take the files of an older one for archived and committed.",
        "Write again; compute the rows beforehand if they take hours (df.cache(), or a table of their own).",
    )


def _begun(plan: WritePlan, storage: Storage) -> bool:
    found = load_timeline(storage, plan.config).find(plan.instant_time)
    return found is not None and found.state >= State.INFLIGHT


def _put_on_timeline(plan: WritePlan, storage: Storage) -> None:
    heartbeat.touch(storage, plan.instant_time)
    # Before the instant is on the timeline, where one without a reserve counts as given up.
    reserve.hold(storage, plan.instant_time)
    _roll_back(plan, storage)
    sweep(storage, plan.config, plan.settings, own=plan.instant_time)
    begin_markers(storage, plan.instant_time)
    body = b""
    if plan.action == "replacecommit":
        from ...timeline.metadata.models import RequestedReplaceMetadata  # noqa: PLC0415 (see timeline/metadata/codec.py)

        # A pending replacecommit that says nothing of its operation breaks Apache Hudi's conflict check.
        body = encode(RequestedReplaceMetadata(operation_type=plan.operation))
    layout = layout_of(plan.config)
    request(storage, layout, plan.instant_time, plan.action, body)
    _take_back_if_oldest(plan, storage)
    start(storage, layout, plan.instant_time, plan.action)
    _take_back_if_given_up(plan, storage)


def _roll_back(plan: WritePlan, storage: Storage) -> None:
    """Undo the dead writes that the plan found; they may have filled the disk, and naming them takes space."""
    for planned in plan.rollbacks:
        reserve.release(storage, plan.instant_time)
        roll_back(storage, plan.config, planned, plan.settings)
        reserve.hold(storage, plan.instant_time)
