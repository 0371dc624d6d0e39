"""How a decision is carried out: by its own process or by the next process that decides, any number of times."""

from __future__ import annotations

import logging
import time
from functools import partial

from ...errors import PartitionValueError
from ...storage.base import Storage
from ...storage.bounds import MOST_OF_A_NOTE
from ...table.buckets.rules import BucketRule
from ...table.config import TableConfig, create_config, is_replaced, replace_config, update_config
from ...table.files.file_group import data_file
from ...table.files.partitions import metafile_of, parse_partition_metafile, write_partition_metafile
from ...table.table import Table, refuse_other_version
from ...timeline.held import COMPACTING
from ...timeline.instants import Instant, State
from ...timeline.old_layout import state_of
from ...timeline.pending_undo import on_the_way_out
from ...timeline.timeline import Timeline
from ...timeline.writers import decisions, owner
from ...timeline.writers.decisions import Decision, DecisionKind
from ...timeline.writers.first_steps import DeleteFile, FirstSteps
from ..following.before_completion import LATE_S, AsideFileGoneError, take_back_steps, take_steps
from .beside_upgrade import refuse_instant_left_by_upgrade
from .bucket_rules import steps_of_rule
from .locks import HeldLock

logger = logging.getLogger("pyhudi")


def is_carried_out(decision: Decision, timeline: Timeline) -> bool:
    """Return whether a timeline shows that the steps of a decision are taken, so that no process must take them.

    That is so, too, if the instant of a completed file has left the timeline, or a rollback undoes it: no process makes
    that file again. An outdated change of properties is never made.
    """
    if decision.kind == DecisionKind.CLOSE:
        # The timeline does not show its effect, and it is harmless to delete metafiles of partitions again.
        return False
    if decision.kind == DecisionKind.SET_PROPERTIES:
        return is_replaced(timeline.storage, decision.replaces) or _is_outdated(decision, timeline)
    if decision.kind == DecisionKind.TAKE_STEPS:
        return all(_is_taken(timeline.storage, first_steps) for first_steps in decision.first)
    instant = decision.instant
    states = [each.state for each in timeline.instants if _is_instant_of(each.requested_time, each.group, decision)]
    if decision.kind == DecisionKind.GIVE_UP:
        return State.INFLIGHT not in states
    if instant.state == State.COMPLETED:
        # Its maker may have died before an upgrade, so that its file would not be of this version.
        if not states or State.COMPLETED in states or not timeline.files.layout.is_whole(instant):
            return True
        return instant.is_write and instant.requested_time in on_the_way_out(timeline)
    # To request an instant: any file of the instant shows that its requested file was made.
    return bool(states)


def carry_out(held_lock: HeldLock, decision: Decision, timeline: Timeline) -> None:
    """Take the steps of the newest decision that are not taken yet.

    ``held_lock`` is the lock of the table while this process holds it, and ``timeline`` was read before the steps.
    Raises `CommitConflictError` if it is to complete an instant and the table has another version by now.
    """
    table, instant = held_lock.table, decision.instant
    storage = table.storage
    if decision.kind == DecisionKind.CLOSE:
        for partition in decision.partitions:
            _close_if_unused(storage, partition, instant.requested_time)
    elif decision.kind == DecisionKind.GIVE_UP:
        # Without its inflight file the instant can no longer complete, whichever process tries.
        storage.delete(timeline.files.path(instant.at(State.INFLIGHT)))
    elif decision.kind == DecisionKind.SET_PROPERTIES:
        if not _is_outdated(decision, timeline):
            replace_config(storage, decision.replaces, decision.changes)
    elif decision.kind == DecisionKind.TAKE_STEPS:
        # Another process may have carried it out and archived the instant, which must not come back.
        for first_steps in decision.first if is_newest(storage, decision) else ():
            _take_first_steps(table, decision, first_steps)
    else:
        if instant.state == State.COMPLETED and not decision.new_table:
            refuse_other_version(table)
        # Properties come before the instant that needs them.
        if decision.new_table:
            create_config(storage, TableConfig(dict(decision.new_table)))
        if decision.changes:
            update_config(storage, decision.changes)
        if instant.state == State.REQUESTED:
            for first_steps in decision.first:
                _take_first_steps(table, decision, first_steps)
            if decision.first and not is_newest(storage, decision):
                # Another process may have carried it out and given the instant up, which must not come back.
                return
            timeline.files.request(instant, decision.body)
            if instant.action in COMPACTING and owner.Seal(storage, instant.requested_time).is_given_up():
                # Another process took the plan back while this process stalled, so it must not come back.
                storage.delete(timeline.files.path(instant))
        else:
            start_s, steps = time.monotonic(), first_steps_of(table, decision)
            for first_steps in steps:
                _take_first_steps(table, decision, first_steps)
            # In version 6 Apache Hudi may be moving the instant to another version, so that its files seem gone.
            is_late = bool(steps) and time.monotonic() - start_s >= LATE_S and timeline.files.layout.next is None
            if is_late and is_undone(timeline.reload(), instant):
                # Another process carried this out, and undid or archived the instant, which must not come back.
                return
            timeline.complete(instant, decision.body)
            refuse_instant_left_by_upgrade(table, timeline, instant)


def is_undone(timeline: Timeline, instant: Instant) -> bool:
    """Return whether another process undid, is undoing or archived an instant whose completion was decided.

    Such an instant has no file, or only a completed file that a late process made again.
    """
    states = timeline.files.paths().get(instant.identity, {})
    return states.keys() <= {State.COMPLETED} or instant.requested_time in on_the_way_out(timeline)


def _is_taken(storage: Storage, first_steps: FirstSteps) -> bool:
    """Return whether steps are taken: their last file exists, or if they make none, the last file to delete is gone.

    Steps are taken in their order, so the last step shows that all are taken.
    """
    if first_steps.paths:
        return storage.exists(first_steps.paths[-1])
    deleted_paths = [step.path for step in first_steps.steps if isinstance(step, DeleteFile)]
    return not deleted_paths or not storage.exists(deleted_paths[-1])


def first_steps_of(table: Table, decision: Decision) -> tuple[FirstSteps, ...]:
    """Return the steps of a decision before the completed file; an earlier release may have stored them as a rule."""
    if decision.rule is None:
        return decision.first
    rule = BucketRule(decision.instant.requested_time, decision.rule.default, decision.rule.expressions)
    return (steps_of_rule(table, rule),)


def _is_outdated(decision: Decision, timeline: Timeline) -> bool:
    """Return whether other software has changed the state of the timeline on which a change of properties depends.

    The body of such a decision is that state; it is empty if the change depends on none.
    """
    # A write that begins later gives way to the change. If its instant outdated the decision, another process would
    # skip the decision while its maker carries it out.
    files = timeline.files
    return bool(decision.body) and state_of(files.storage, files.layout).completed != decision.body


def _take_first_steps(table: Table, decision: Decision, first_steps: FirstSteps) -> None:
    """Take the steps of one follower; if a file to be published is gone, take the follower out of use instead.

    A follower is a part of the table that each instant must update, such as the metadata table. ``first_steps`` are
    among the steps that the ``decision`` names before its own file.
    """
    is_binding = partial(is_newest, table.storage, decision)
    if decision.instant.state == State.REQUESTED and not is_binding():
        # The caller checks the same after the steps, and makes no requested file.
        return
    try:
        take_steps(table.storage, decision.instant.requested_time, first_steps, is_binding)
    except AsideFileGoneError:
        # The maker also deletes that file once the instant is complete. And if others decided since, this decision was
        # carried out, even if its files have left the timeline by now.
        if not is_carried_out(decision, table.timeline()) and is_newest(table.storage, decision):
            logger.warning(
                "table %s: a file to be published before the %s %s is gone, so these properties are set: %s",
                table.path,
                decision.instant.action,
                decision.instant.requested_time,
                dict(first_steps.out_of_use),
                exc_info=True,
            )
            if first_steps.out_of_use:
                update_config(table.storage, first_steps.out_of_use)
            # Half an instant of the metadata table would stay pending, and no later instant could be archived there.
            take_back_steps(table.storage, first_steps)


def is_newest(storage: Storage, decision: Decision) -> bool:
    """Return whether a decision is still the newest: other processes decide only once it is carried out."""
    newest = decisions.newest(storage)
    return newest is None or newest.maker == decision.maker


def is_unused(storage: Storage, partition: str, instant_time: str) -> bool:
    """Return whether an instant opened a partition that has no data file."""
    return opened_by(storage, partition) == instant_time and not _has_data(storage, partition)


def opened_by(storage: Storage, partition: str) -> str | None:
    """Return the requested time of the instant that opened a partition; None for a folder without a metafile."""
    metafile = metafile_of(partition)
    try:
        return parse_partition_metafile(storage.read(metafile, MOST_OF_A_NOTE), metafile).instant_time
    except FileNotFoundError:
        return None


def _is_instant_of(requested_time: str, group: str, decision: Decision) -> bool:
    """Return whether a decision is about the instant of a time and a group of actions."""
    return (requested_time, group) == (decision.instant.requested_time, decision.instant.group)


def _close_if_unused(storage: Storage, partition: str, instant_time: str) -> None:
    """Delete the metafile of a partition that this instant opened, if the partition has no data file."""
    if not is_unused(storage, partition, instant_time):
        return
    storage.delete(metafile_of(partition))
    # A write may have relied on the metafile while this process stalled before it deleted it.
    if _has_data(storage, partition):
        try:
            write_partition_metafile(storage, partition, instant_time)
        except PartitionValueError:
            logger.warning("table %s: %r stays no partition", storage.path, partition, exc_info=True)


def _has_data(storage: Storage, partition: str) -> bool:
    """Return whether a partition has a data file, change data included."""
    return any(data_file(file.path, changes=True) is not None for file in storage.list(partition))
