"""The commit: from the results of all tasks to the completed instant, which makes a write part of the table."""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace

from ...errors import DuplicateKeyError, PlacementError
from ...index.registry import index_for
from ...table.files.marked_files import marked_files
from ...table.merging.merger import RowMeeting
from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ...timeline.writers import heartbeat, owner
from ..locating.adoption import check_new_properties, check_spelling_of_others
from ..planning.operation import REPLACING
from ..planning.plan import WritePlan
from ..result import CommitResult, find_write, result_from, result_of
from ..transaction.begin import same_millisecond
from ..transaction.conflicts import check_ownership
from ..transaction.since import seen_by
from .abort import abort_write
from .after_commit import follow_up
from .begin import begin
from .commit_metadata import build_metadata, sum_seconds
from .completion import Completion
from .merge_spills import merge_spills
from .phases import Phases
from .replacement import Replacement
from .task import TaskResult
from .writers import Outcome

logger = logging.getLogger("pyhudi")


def commit_write(plan: WritePlan, results: Sequence[TaskResult]) -> CommitResult:
    """Complete a write, and return its result; for a replay of a completed write, the result of that write.

    Raises:
        CommitConflictError: Another writer changed the same file groups.
        PlacementError: Two tasks wrote one file group, or the spills exceed the bound of the commit.
        PyHudiError: Any other failure before the point of no return; the caller must then abort the write.
    """
    work = plan.transaction
    if plan.replays is not None or not any(result.rows for result in results):
        known = _without_rows(plan)
        if known is not None:
            return known
    with heartbeat.HeartbeatThread(work.storage, plan.instant_time, interval_s=work.patience.heartbeat_interval_s):
        result, timeline = _carry_out(plan, results)
    if not result.instant:
        abort_write(plan)
        return result
    result = follow_up(plan, result, timeline)
    logger.info("%s", json.dumps({"event": "commit", **asdict(result)}))
    return result


def _without_rows(plan: WritePlan) -> CommitResult | None:
    """Return the result of a write whose tasks got no rows; None where the write begins now, to be completed."""
    timeline = plan.table.timeline()
    done = completed_write(plan, timeline)
    if done is not None:
        return done
    write_id = plan.transaction.write_id
    nothing = CommitResult(plan.path, plan.replays or "", plan.operation, write_id=write_id)
    if plan.replays is not None:
        # The instant of the replayed write has left the timeline.
        return find_write(plan.table, timeline, write_id) or nothing
    if not plan.settings.allow_empty_commit and plan.operation not in REPLACING:
        return nothing
    heartbeat.Heartbeat(plan.storage, plan.instant_time).touch()
    begin(plan)
    return None


def completed_write(plan: WritePlan, timeline: Timeline) -> CommitResult | None:
    """Return the result of the write if it is completed, as by a replay or before a lost answer; None otherwise.

    Raises:
        ConcurrentWriteError: The instant belongs to another write that began in the same millisecond.
    """
    found = timeline.find(plan.replays or plan.instant_time)
    if found is None or found.state != State.COMPLETED:
        return None
    result = result_of(timeline, found)
    if result.write_id != plan.transaction.write_id:
        raise same_millisecond(plan.transaction)
    return result


def _carry_out(plan: WritePlan, results: Sequence[TaskResult]) -> tuple[CommitResult, Timeline]:
    """Complete the write; return its result, without an instant if it is empty, and the timeline after the seal."""
    phases = Phases(plan.path, plan.instant_time)
    with phases.phase("seal"):
        owner.Seal(plan.storage, plan.instant_time).set()
        timeline = plan.table.timeline()
        done = completed_write(plan, timeline)
        if done is not None:
            return done, timeline
        check_ownership(plan.transaction, timeline)
        seen = seen_by(plan.transaction, timeline)
    outcomes = [outcome for result in results for outcome in result.outcomes]
    _check_placement(plan, results)
    spills = [result.spill for result in sorted(results, key=lambda one: one.token) if result.spill is not None]
    with phases.phase("merge"):
        merged = merge_spills(plan, seen, spills, phases)
        outcomes += merged.outcomes
        _check_counted(plan, outcomes)
    with phases.phase("reconcile"):
        if plan.located and plan.rules.meeting is not RowMeeting.ADD:
            absent = {one.group.partition_path for one in outcomes if one.counts.inserts or one.counts.not_found}
            check_spelling_of_others(plan, seen.view, absent)
        if not outcomes:
            check_new_properties(plan, seen)
        touched = {one.group.partition_path for one in outcomes}.union(*(one.partitions for one in results))
        replacement = Replacement(plan, touched)
        replaced = _replaced(plan, replacement)
        _reconcile(plan, outcomes)
    completion = Completion(plan, outcomes, touched, replacement, replaced)
    with phases.phase("flush"):
        # Flush data files before the commit names them.
        plan.storage.flush([*completion.written, *([plan.config.timeline_folder] if plan.creates_table else [])])
    seconds = {**sum_seconds(result.seconds for result in results), **phases.seconds}
    metadata = build_metadata(plan, outcomes, replaced, seconds, merged)
    if completion.is_empty and not plan.settings.allow_empty_commit:
        return replace(result_from(plan.path, "", metadata), warnings=replacement.warnings), timeline
    with phases.phase("complete"):
        completion.complete(plan.table.instants.codec.encode(metadata))
    done = result_from(plan.path, plan.instant_time, metadata)
    return replace(done, warnings=replacement.warnings), timeline


def _replaced(plan: WritePlan, replacement: Replacement) -> dict[str, list[str]]:
    if plan.operation not in REPLACING:
        return {}
    # Instants whose bodies name file groups may be archived since the merge began, which may be hours ago.
    return replacement.groups(seen_by(plan.transaction, plan.table.timeline()))


def _check_placement(plan: WritePlan, results: Sequence[TaskResult]) -> None:
    """Refuse a colocated write in which two tasks wrote one file group: each would undo the other."""
    if plan.appends and not plan.settings.colocated:
        return
    rival_key = index_for(plan.config).rival_key
    seen: set[tuple[str, Hashable]] = set()
    for result in results:
        places = {(one.group.partition_path, rival_key(one.group)) for one in result.outcomes}
        for partition, place in sorted(seen & places, key=str):
            raise PlacementError(
                f"Two tasks of the write to {plan.path} finished {place} of partition {partition!r}, although "
                f"hoodie.pyhudi.colocated says that one task holds it.",
                "Call pyhudi.colocate last, right before the write, or leave hoodie.pyhudi.colocated out.",
            )
        seen |= places


def _check_counted(plan: WritePlan, outcomes: Sequence[Outcome]) -> None:
    """Refuse a write that replaces other rows than a merge or an update counted.

    Only a rewrite of file groups meets stored rows; log files meet them when they are read.
    """
    counted = plan.settings.counted
    if counted is None or plan.appends:
        return
    came = sum(one.counts.inserts + one.counts.updates for one in outcomes)
    left = sum(one.counts.updates + one.counts.deletes for one in outcomes)
    asked = counted.inserts + counted.updates, counted.updates + counted.deletes
    if (came, left) != asked:
        raise DuplicateKeyError(
            f"The rows for the table {plan.path} were to replace {asked[1]:,} rows by {asked[0]:,}, and this write "
            f"would replace {left:,} rows by {came:,}: the table holds some of their keys several times, as inserts "
            "without a lookup make them.",
            "Upsert or delete these keys first, which leaves one row of each or none, and run this again.",
        )


def _reconcile(plan: WritePlan, outcomes: Sequence[Outcome]) -> None:
    """Delete files that markers name and no finished task reported: files of attempts that failed or ran twice."""
    kept = {outcome.path for outcome in outcomes if outcome.path is not None}
    plan.storage.delete(*(path for path in marked_files(plan.storage, plan.instant_time) if path not in kept))
