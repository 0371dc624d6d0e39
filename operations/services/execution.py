"""One process at a time carries out a plan on the timeline: it claims the plan, or takes it over from a dead process.

As in Apache Hudi, each process works under the plan's own time, and may find files that another process made of the
same plan. So each has an id of its own: in ``owner.json``, its claim, which only one process at a time can make; in the
seal, a file that stops its tasks from publishing more files; and in the names of its files:

    requested --claim--> owner.json, heartbeat, inflight --publish, complete--> completed
                    <--a rollback that names the instant: its files, inflight and owner.json go, requested stays--
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...errors import CommitConflictError, ConcurrentWriteError, WriteSealedError
from ...table.files.file_group import BaseFile, DataFile, data_file
from ...table.files.names import WriteToken
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.pending_undo import pending_rollbacks
from ...timeline.timeline import Timeline
from ...timeline.writers import heartbeat, owner
from ...timeline.writers.owner import Liveness, Owner
from ...timeline.writers.patience import Patience
from ..meeting.concurrency import COMPACTION, Known, Meeting, Shared, Verdict, judge, kind_of
from ..meeting.conflicts import check_ownership
from ..meeting.transaction import Transaction
from ..rollback.pending import OtherWriters
from ..rollback.rollback import carry_out_rollback, plan_of
from ..transaction.commit_path import begin
from ..transaction.followers import bounded_columns
from ..transaction.instant_changes import remove_file, remove_pending, start
from ..transaction.left_overs import files_of, forget
from ..transaction.life import Ownership
from ..write_ids import GENERATED_ID

if TYPE_CHECKING:
    from ...timeline.metadata.models import RollbackPlan

_ROUNDS = 20
# Apache Hudi parses the parts of a write token as Java's ints.
_MOST_OF_A_TOKEN = (1 << 31) - 1


def claim(table: Table, instant: Instant, patience: Patience, *, application: str = "") -> Transaction | None:
    """Begin to carry out a plan, after undoing what a dead process did of it; None if the plan is complete or gone.

    `instant` is the pending instant of the plan, such as a compaction, and the result is the work in the making.
    `application` names this program in the claim, for messages of other processes. Raises `ConcurrentWriteError` if
    another process is at work on it, or may be by the rules of `patience`: after how long without a heartbeat another
    writer counts as dead.
    """
    if table.archive.holds(instant.requested_time):
        # The plan is complete and archived; a process that stalled put its files on the timeline again.
        remove_pending(table, instant)
        return None
    # A round that only removes another process's work leaves the claim to the next round.
    for _ in range(_ROUNDS):
        timeline = table.timeline()
        pending = _pending_state(table, timeline, instant)
        if pending is None:
            return None
        rollbacks = pending_rollbacks(timeline).get(instant.requested_time, ())
        process = owner.Claim(table.storage, instant.requested_time).owner()
        if rollbacks:
            carry_out_rollback(table, timeline, rollbacks[0].requested_time)
        elif process is None and pending.state == State.REQUESTED:
            own_note = Owner.of_this_process(uuid.uuid4().hex, application, patience)
            work = _claim_and_start(table, pending, own_note, patience)
            if work is not None:
                return work
        else:
            liveness = _refuse_living_owner(OtherWriters(table, patience), pending, process)
            if liveness is not None:
                # The next round carries this rollback out.
                begin(table, "rollback", partial(_plan_to_undo_work, table, pending, process, patience, liveness.beat))
    raise ConcurrentWriteError(
        f"Other processes began and gave up the {instant.action} {instant.requested_time} of the table {table.path} "
        f"{_ROUNDS} times in a row.",
        "Run it again.",
    )


def give_up(work: Transaction) -> None:
    """Undo what this process did of a plan, so that the next process may begin at once."""
    owner.Seal(work.storage, work.seals[-1]).set_for_good()
    timeline = work.table.timeline()
    pending = _pending_state(work.table, timeline, work.inflight)
    if pending is None:
        # Another process has completed the plan or taken it back, so no process needs what this one left.
        forget(work.storage, work.instant_time)
        return
    # Without patience, as no sign of life counts: this process ends its own work.
    begin(work.table, "rollback", partial(_plan_to_undo_work, work.table, pending, work.owner, None, None))
    _finish_rollbacks(work.table, pending)


def take_back(table: Table, instant: Instant) -> None:
    """Take a plan off the timeline, with all work on it; a process at work on it counts as dead.

    `instant` is the pending instant of the plan. A completed plan stays. If the plan is gone, this deletes the inflight
    file that a stalled process may have made since.
    """

    def plan_undo(timeline: Timeline) -> RollbackPlan | None:
        """Stop all work on the plan, and return the plan to undo it; None if it is over or being rolled back."""
        pending = _pending_state(table, timeline, instant, in_round=True)
        if pending is None:
            return None
        # The seal stops the processes at work on the plan, and tells the process that finishes this rollback to delete
        # the plan, too.
        owner.Seal(table.storage, instant.requested_time).set_for_good()
        # The claim stays: the rollback deletes it (`_undo_execution`).
        if instant.requested_time in pending_rollbacks(timeline):
            return None
        process = owner.Claim(table.storage, instant.requested_time).owner()
        return _seal_and_plan_undo(table, timeline, pending, process)

    begin(table, "rollback", plan_undo)
    _finish_rollbacks(table, instant)


def check_claim(work: Transaction, timeline: Timeline) -> None:
    """Raise `CommitConflictError` if another process has taken this work over, or has taken its plan back."""
    check_ownership(work, timeline)
    process = work.claim.owner()
    is_given_up = any(owner.Seal(work.storage, seal).is_given_up() for seal in work.seals)
    if is_given_up or (process is not None and process.write_id != work.write_id):
        raise CommitConflictError(
            f"The {work.action} {work.instant_time} of the table {work.path} was taken over, or taken back, while this "
            "process carried it out.",
            "This work left nothing behind; run it again if the instant is still pending.",
        )


@contextmanager
def naming_who_took_over(work: Transaction) -> Iterator[None]:
    """Turn a task's `WriteSealedError` into a `ConcurrentWriteError` that says which process took the plan over."""
    try:
        yield
    except WriteSealedError as error:
        process = work.claim.owner()
        instant = work.table.timeline().find(work.instant_time)
        if process is not None and process.write_id != work.write_id:
            maker = f"{process.application!r}, " if process.application else ""
            outcome = f"taken over by another process ({maker}process {process.pid} on {process.host})"
        elif instant is not None and instant.state == State.COMPLETED:
            outcome = "completed by another process"
        else:
            outcome = "taken back by another process"
        raise ConcurrentWriteError(
            f"The {work.action} {work.instant_time} of the table {work.path} was {outcome} while this process carried "
            "it out. Nothing of this process's work is part of the table.",
            "Run it again: it carries out what is pending then, and plans anew.",
        ) from error


def new_token(work: Transaction) -> WriteToken:
    """Return a new token for an attempt at a file, so that no two attempts write under the same name."""
    return WriteToken(*_token_of(work), secrets.randbelow(_MOST_OF_A_TOKEN))


def files_of_process(work: Transaction, partitions: Collection[str]) -> Iterator[list[str]]:
    """Yield the files of each partition whose tokens are this process's, not those of the instant's other owners."""
    rule, prefix = work.table.format.slices, "-".join(map(str, (*_token_of(work), "")))
    for partition in partitions:
        files = [file for info in work.storage.list(partition) if (file := data_file(info.path)) is not None]
        instant_files = (file for file in files if rule.may_be_of(file, work.instant_time))
        yield [file.path for file in instant_files if _token_text(file).startswith(prefix)]


def _token_of(work: Transaction) -> tuple[int, int]:
    """Return the two numbers in the names of this process's files; no other process has the same numbers."""
    number = uuid.UUID(hex=work.write_id.removeprefix(GENERATED_ID)).int
    return number % _MOST_OF_A_TOKEN, (number >> 64) % _MOST_OF_A_TOKEN


def _token_text(file: DataFile) -> str:
    """Return the write token in a data file's name; empty without one."""
    return file.write_token if isinstance(file, BaseFile) else str(file.name.write_token or "")


# Any process may carry a plan out: a process that gives up undoes its own work alone, and the next begins at once.
ANY_PROCESS = Ownership(files_of_process, give_up)


def _finish_rollbacks(table: Table, instant: Instant) -> None:
    """Carry out the pending rollbacks of an instant; if there are none, delete an inflight file whose plan is gone."""
    timeline = table.timeline()
    rollbacks = pending_rollbacks(timeline).get(instant.requested_time, ())
    for rollback in rollbacks:
        carry_out_rollback(table, timeline, rollback.requested_time)
    if not rollbacks:
        # Looking for the state deletes an inflight file whose plan is gone.
        _pending_state(table, timeline, instant)


def _pending_state(table: Table, timeline: Timeline, instant: Instant, *, in_round: bool = False) -> Instant | None:
    """Return the newest state of an instant whose plan is on the timeline; None if it is completed or taken back.

    If the plan is gone, this deletes the instant's inflight file, except ``in_round``: while a decision is being
    made, no file of the timeline may change.
    """
    identity = (instant.requested_time, instant.action)
    pending = next(
        (instant for instant in timeline.pending if (instant.requested_time, instant.action) == identity), None
    )
    if pending is None or table.storage.exists(timeline.files.path(pending.at(State.REQUESTED))):
        return pending
    # The plan is gone, and a process that stalled has made the inflight file since.
    if not in_round:
        remove_file(table, pending.at(State.INFLIGHT))
    return None


def _claim_and_start(table: Table, instant: Instant, own_note: Owner, patience: Patience) -> Transaction | None:
    """Return the work on a plan that this process has claimed with its `own_note` and made inflight.

    `instant` is the pending instant of the plan. The work carries `patience`, after how long without a heartbeat
    another writer counts as dead.
    Return None if another process claimed it first, undoes the last owner's work, or has taken the plan back.
    """
    if not owner.Claim(table.storage, instant.requested_time).make(own_note):
        return None
    heartbeat.Heartbeat(table.storage, instant.requested_time).touch()
    start(table, instant)
    # A process that decided before this claim to undo the last owner's work, or the plan, did not see the claim.
    timeline = table.timeline()
    if instant.requested_time in pending_rollbacks(timeline):
        return None
    if _pending_state(table, timeline, instant) is None:
        forget(table.storage, instant.requested_time)
        return None
    return Transaction(
        table=table,
        action=instant.action,
        instant_time=instant.requested_time,
        write_id=own_note.write_id,
        owner=own_note,
        watermark=timeline.watermark(),
        patience=patience,
        shared=True,
        bounded=bounded_columns(table),
    )


def _refuse_living_owner(
    other_writers: OtherWriters,
    instant: Instant,
    process: Owner | None,
    *,
    known_beat: float | None = None,
    may_wait: bool = True,
) -> Liveness | None:
    """Return why the process at work on a plan counts as dead; None if nothing keeps this process out.

    `known_beat` is the time of the process's last heartbeat at an earlier look, if it was overdue then. With `may_wait`
    it watches an overdue heartbeat for a while. Raises `ConcurrentWriteError` if the process lives, or may live. Work
    that was given up counts as dead at once.
    """
    kind = kind_of(instant.action) or COMPACTION
    meeting = Meeting(kind, kind, shared=frozenset({Shared.PLAN}))
    seal = "" if process is None else owner.seal_of(instant.requested_time, process.write_id)
    if seal and owner.Seal(other_writers.table.storage, seal).is_given_up():
        given_up = Liveness(False, "it was given up")
        return None if judge(replace(meeting, their_state=Known.DEAD)) is Verdict.GO_ON else given_up
    state = f"of the table {other_writers.table.path} is being carried out by another process"
    return other_writers.refuse_unless_dead(instant, state, meeting, known_beat=known_beat, may_wait=may_wait)


def _plan_to_undo_work(
    table: Table,
    instant: Instant,
    process: Owner | None,
    patience: Patience | None,
    beat: float | None,
    timeline: Timeline,
) -> RollbackPlan | None:
    """Return the rollback plan for what a process did of a plan; None if there is nothing to roll back.

    That is so if the work is over or is being rolled back, or if another process is at work on the plan by now. Raises
    `ConcurrentWriteError` if the process lives after all.

    `instant` is the pending instant of the plan that the process carried out, and `timeline` is that of the decision to
    roll back. `process` is None if it is not pyhudi's; `patience` is None if a process stops itself. `beat` is the
    time of the overdue heartbeat by which the caller judged the process, None without any.
    """
    pending = _pending_state(table, timeline, instant, in_round=True)
    if pending is None or instant.requested_time in pending_rollbacks(timeline):
        return None
    current = owner.Claim(table.storage, instant.requested_time).owner()
    if current is None and pending.state == State.REQUESTED:
        return None
    # A process that stops itself goes by the inflight file, even if its claim is gone.
    if current != process and not (current is None and patience is None):
        # Another process is at work on the plan by now.
        return None
    if patience is not None:
        _refuse_living_owner(OtherWriters(table, patience), pending, current, known_beat=beat, may_wait=False)
    return _seal_and_plan_undo(table, timeline, pending, current)


def _seal_and_plan_undo(table: Table, timeline: Timeline, instant: Instant, process: Owner | None) -> RollbackPlan:
    """Seal the work of a plan's owner, so that its tasks publish no more files, and return the plan to undo it."""
    if process is not None:
        owner.Seal(table.storage, owner.seal_of(instant.requested_time, process.write_id)).set_for_good()
    return plan_of(table, instant, files_of(table, timeline, instant.requested_time))
