"""Instants with a plan that only the planning process carries out; if that process dies, the instant is undone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import ConcurrentWriteError
from ...table.table import Table
from ...timeline.clock import Parity, next_time
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers.first_steps import FirstSteps
from ...timeline.writers.heartbeat import Heartbeat
from ...timeline.writers.owner import Owner
from ...timeline.writers.patience import Patience
from ...timeline.writers.write_notes import new_key
from ..meeting.transaction import Transaction
from .abort import abort
from .commit_path import begin
from .followers import bounded_columns
from .left_overs import forget

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel

# A further time is needed only if another write has claimed the chosen time.
_MOST_TIMES = 100


def begin_claimed(
    table: Table,
    action: str,
    patience: Patience,
    application: str,
    plan: Callable[[Timeline], InstantModel],
    steps_before: Callable[[Timeline, Instant], tuple[FirstSteps, ...]] = lambda _, __: (),
) -> Transaction:
    """Claim a time, request an instant at it, and return the work of that instant. Raises as `begin`.

    The claim names this process as the instant's owner. Without it, other processes would take the instant for another
    engine's.

    Args:
        action: The action of the instant, as on the timeline.
        patience: After how long without a heartbeat another writer counts as dead, and how often this process touches
            its own heartbeat.
        application: The name that the claim gives this process in the messages of other writers.
        plan: Returns the content of the requested file, by a timeline; runs again after each lost race.
        steps_before: Returns the steps right before that file, by a timeline; runs again likewise.
    """
    # By the key, a late task of another write that noted this time finds that the seal is not its own.
    owner = Owner.of_this_process(uuid.uuid4().hex, application, patience, new_key(table.config.timezone))
    claimed_works: list[Transaction] = []

    def plan_and_claim(timeline: Timeline) -> InstantModel:
        """Return the plan for a timeline, and claim a time after it; give up the claim of an earlier round."""
        while claimed_works:
            # Another process decided first.
            forget(table.storage, claimed_works.pop().instant_time)
        body = plan(timeline)
        work = _claim(table, action, patience, owner, timeline)
        # If a step fails from here on, the claim is given up.
        claimed_works.append(work)
        # A pending instant without a reserve counts as given up, so that the reserve comes first.
        work.reserve.hold()
        Heartbeat(table.storage, work.instant_time).touch()
        return body

    try:
        begin(table, action, plan_and_claim, lambda: claimed_works[0].instant_time, steps_before)
    except BaseException:
        for work in claimed_works:
            # The decision may be made although the store failed.
            abort(work)
        raise
    return claimed_works[0]


def _claim(table: Table, action: str, patience: Patience, owner: Owner, timeline: Timeline) -> Transaction:
    """Claim the first free time after a timeline, and return the work of that time.

    The work has the ``action`` of the instant. ``patience`` says after how long without a heartbeat another writer
    counts as dead, and ``owner`` is this process, as the claim names it. Raises `ConcurrentWriteError` if other writers
    have all times that were tried.
    """
    chosen_time = timeline.greatest_time()
    for _ in range(_MOST_TIMES):
        # An even time, as writes take, because it is claimed before the decision. Times chosen in a decision are odd.
        chosen_time = next_time(int(time.time() * 1000), chosen_time, table.config.timezone, parity=Parity.EVEN)
        work = Transaction(
            table=table,
            action=action,
            instant_time=chosen_time,
            write_id=owner.write_id,
            owner=owner,
            watermark=timeline.watermark(),
            patience=patience,
            key=owner.key,
            # Each of its tasks gives its files other names.
            shared=True,
            bounded=bounded_columns(table),
        )
        if work.claim.make(owner):
            if work.seal.key() is None:
                return work
            # A write that had this time is over. Its seal stays, and would stop the tasks of this instant, too.
            forget(table.storage, chosen_time)
    raise ConcurrentWriteError(
        f"The {action} of the table {table.path} found no free time on the timeline, {_MOST_TIMES} times in a row.",
        "Run it again.",
    )
