"""The commit: it takes the results of all tasks, and completes the instant that makes the write part of the table."""

from __future__ import annotations

import json
import logging
from collections import ChainMap, Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial

from ...errors import DuplicateKeyError, PlacementError
from ...index.base import LookupFigures
from ...index.registry import index_for
from ...table.merging.merger import RowMeeting
from ...table.schema.changes import format_changes
from ...timeline.instants import State
from ...timeline.metadata.codec import WRITE_ID
from ...timeline.metadata.models import CommitMetadata
from ...timeline.timeline import Timeline
from ...writer.written_file import WrittenFile
from ..locating.adoption import check_new_properties, check_spelling_of_others
from ..meeting.conflicts import check_ownership
from ..meeting.since import InstantsSincePlan, seen_by
from ..meeting.taken import taken_as_conflicts
from ..planning.operation import REPLACING
from ..planning.plan import WritePlan
from ..result import (
    COUNTED,
    DROPPED,
    LOOKUP,
    NOT_FOUND,
    SCHEMA_CHANGES,
    SECONDS,
    CommitResult,
    find_write,
    result_from,
    result_of,
)
from ..rollback.dead import ONE_PROCESS, give_up_begun
from ..transaction.left_overs import try_to_forget
from ..transaction.life import finish, seal
from ..transaction.write_stats import commit_metadata
from .after_commit import announce_missing, follow_up
from .attempts import Attempt, Attempts, Committed
from .completion import Completion
from .instant import begun
from .merge_spills import Merged, merge_spills
from .phases import Phases
from .replacement import Replacement
from .task import TaskResult


def build_metadata(
    plan: WritePlan,
    written: Sequence[WrittenFile],
    replaced: Mapping[str, list[str]],
    seconds: Mapping[str, float],
    merged: Merged,
    attempts: Mapping[str, str],
) -> CommitMetadata:
    """Return the metadata of the write's completed instant.

    Args:
        plan: The write under its instant.
        written: The result for each file group that the write met.
        replaced: The replaced file ids by partition path.
        seconds: The seconds of each phase, for extraMetadata.
        merged: What the commit's merge of the tasks' rows counted, besides its files.
        attempts: Entries of extraMetadata about the attempts of the commit.
    """
    dropped = sum(file.counts.dropped for file in written)
    counted = plan.settings.origin.counted
    if counted is not None:
        # The count was made before the write dropped rows.
        counted = replace(counted, inserts=counted.inserts - dropped)
    notes = {
        WRITE_ID: plan.transaction.write_id,
        NOT_FOUND: str(sum(file.counts.not_found for file in written) + merged.nowhere.not_found),
        DROPPED: str(dropped),
        SECONDS: json.dumps(dict(seconds)),
        **attempts,
        # The commit looked keys up, or a lookup before the write placed its rows.
        **_lookup_entry(merged.figures or plan.settings.origin.looked_up),
        **({SCHEMA_CHANGES: format_changes(plan.schema_changes)} if plan.schema_changes else {}),
        **({} if counted is None else {COUNTED: json.dumps(asdict(counted))}),
    }
    user_entries = plan.settings.commit.extra_metadata
    work, schema, operation = plan.transaction, plan.schema, plan.operation
    return commit_metadata(work, schema, written, operation, notes, user_entries=user_entries, replaced=replaced)


def _lookup_entry(figures: LookupFigures | None) -> dict[str, str]:
    """Return the entry of extraMetadata about a lookup, by its key; empty without a lookup."""
    return {} if figures is None else {LOOKUP: json.dumps(asdict(replace(figures, seconds=round(figures.seconds, 3))))}


def sum_seconds(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the seconds of tasks by phase, summed over the tasks; each phase gets the prefix "tasks."."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return {f"tasks.{name}": round(value, 3) for name, value in total.items()}


logger = logging.getLogger("pyhudi")


def commit_write(
    plan: WritePlan, results: Sequence[TaskResult], plan_again: Callable[[], WritePlan] | None = None
) -> CommitResult:
    """Complete a write, and return its result; for a replay of a completed write, the result of that write.

    Args:
        plan_again: Plans the write anew after it met another write; the commit brings the handed-over rows to the
            columns and buckets of that plan.

    Raises:
        CommitConflictError: Another writer changed the same file groups, and the commit cannot merge the rows again.
        PlacementError: Two tasks wrote one file group, or the spills exceed the bound of the commit.
        PyHudiError: Any other failure before the point of no return; the caller must then abort the write.
    """
    with _plan_with_instant(plan, results) as first_plan:
        if first_plan is None:
            return _result_without_rows(plan)
        _check_placement(plan, results)
        spills = [
            result.spill for result in sorted(results, key=lambda result: result.token) if result.spill is not None
        ]
        with ExitStack() as open_spills:
            tasks_wrote = any(result.written for result in results)
            attempt = Attempt(first_plan, spills, open_spills, tasks_wrote, plan_again is not None)
            committed = Attempts(attempt, plan_again).run(partial(_attempt_commit, results))
    if committed.plan.instant_time != first_plan.instant_time:
        # A later attempt completed under another instant. The spills were in the folder of the first.
        try_to_forget(plan.storage, first_plan.instant_time)
    if not committed.result.instant:
        # The write changes nothing, so its instant leaves the timeline.
        give_up_begun(first_plan.transaction)
        return committed.result
    announce_missing(committed.plan, results)
    result = follow_up(committed.plan, committed.result, committed.timeline)
    logger.info("%s", json.dumps({"event": "commit", **asdict(result)}))
    return result


@contextmanager
def _plan_with_instant(plan: WritePlan, results: Sequence[TaskResult]) -> Iterator[WritePlan | None]:
    """Yield the plan under its instant, with its heartbeat; None for a replay, or if there is nothing to write.

    A write whose tasks got no rows begins now, and may turn out to change nothing.
    """
    instant_time = next((result.instant_time for result in results if result.rows), "")
    if plan.replays is None and not instant_time:
        # An earlier call of this commit may have begun the write.
        instant_time = plan.transaction.notes.newest() or ""
    if plan.replays is None and instant_time:
        write = plan.at(instant_time)
        with write.transaction.heartbeat():
            yield write
    elif plan.replays is None and (plan.settings.commit.allow_empty_commit or plan.replaces_without_rows):
        with begun(plan) as work:
            yield work.plan
    else:
        yield None


def _result_without_rows(plan: WritePlan) -> CommitResult:
    """Return the result of the replayed write, or of a write without rows."""
    empty_result = CommitResult(plan.path, plan.replays or "", plan.operation, write_id=plan.transaction.write_id)
    if plan.replays is None:
        return empty_result
    timeline = plan.table.timeline()
    instant = timeline.find(plan.replays)
    if instant is not None and instant.state == State.COMPLETED:
        return result_of(timeline, instant)
    # The instant of the replayed write has left the timeline.
    return find_write(plan.table, timeline, plan.transaction.write_id) or empty_result


def _attempt_commit(results: Sequence[TaskResult], attempt: Attempt) -> Committed:
    """Complete the write in one attempt; the result has no instant if there is nothing to change.

    If another process has completed it, the result is that of the completed instant.
    """
    plan = attempt.plan
    phases = Phases(plan.path, plan.instant_time)
    with phases.phase("seal"), taken_as_conflicts(plan.transaction):
        seal(plan.transaction)
        timeline = plan.table.timeline()
        instant = timeline.find(plan.instant_time)
        if instant is not None and instant.state == State.COMPLETED:
            return Committed(plan, result_of(timeline, instant), timeline)
        since_plan = InstantsSincePlan.of_unread(plan.transaction, timeline)
        check_ownership(plan.transaction, timeline, since_plan)
    with attempt.turn(since_plan) as (fresh_plan, current_timeline):
        return _merge_and_complete(fresh_plan, current_timeline, results, attempt, phases)


def _merge_and_complete(
    plan: WritePlan, timeline: Timeline, results: Sequence[TaskResult], attempt: Attempt, phases: Phases
) -> Committed:
    """Merge the rows of the tasks with the table at a timeline, complete the instant, and return the completed write.

    The merged rows are part of the table only if the decision to complete the instant succeeds. An empty write has no
    such decision, and `commit_write` takes its instant back.

    Args:
        plan: The write under the instant of this attempt, which is sealed.
        results: What each task wrote and handed over.
        attempt: The current attempt of the commit, with the rows that the tasks handed over.
        phases: Measures the seconds of each phase.
    """
    seen = seen_by(plan.transaction, timeline)
    written = [file for result in results for file in result.written]
    with phases.phase("merge"), taken_as_conflicts(plan.transaction):
        merged = merge_spills(plan, seen, attempt.rows, phases, attempt.known_keys)
        written += merged.written
    with phases.phase("reconcile"), taken_as_conflicts(plan.transaction):
        if plan.located and plan.rules.meeting is not RowMeeting.ADD:
            partitions_without_match = {
                file.group.partition_path for file in written if file.counts.inserts or file.counts.not_found
            }
            check_spelling_of_others(plan, seen.view, partitions_without_match)
        if not written:
            # The file groups of rows were checked for this when the rows found them.
            check_new_properties(plan, seen)
        touched_partitions = {file.group.partition_path for file in written}.union(
            merged.replaced, *(result.partitions for result in results)
        )
        # The write has no rows in the partitions of these file groups, so these do not count as touched.
        written += merged.gone
        replacement = Replacement(plan, touched_partitions, has_rows=any(result.rows for result in results))
        replaced = _replaced_groups(plan, replacement)
    # The seconds of phases grow until the body is built.
    seconds = ChainMap(attempt.seconds, phases.seconds, sum_seconds(result.seconds for result in results))
    build = partial(build_metadata, plan, written, replaced, seconds, merged, attempt.extra_metadata)
    completion = Completion(plan, written, touched_partitions, replacement, replaced, build)
    _check_counted(completion)
    is_over = completion.is_empty and not plan.settings.commit.allow_empty_commit
    completed = None
    if not is_over:
        completed = finish(completion.made, ONE_PROCESS, phases.phase)
        if attempt.known_keys is not None:
            attempt.known_keys.complete()
        completion.log_outdone()
    result = result_from(plan.path, "" if is_over else plan.instant_time, completion.body.metadata)
    metadata = None if completed is None else completed.metadata
    warnings = (*plan.notices, *replacement.warnings, *(() if metadata is None else metadata.warnings))
    return Committed(plan, replace(result, metadata=metadata, warnings=warnings), timeline)


def _replaced_groups(plan: WritePlan, replacement: Replacement) -> dict[str, list[str]]:
    """Return the file ids by partition path that the write replaces; empty if it merges or adds."""
    if plan.operation not in REPLACING:
        return {}
    # The merge may have begun hours ago, and instants whose bodies name file groups may have been archived since.
    return replacement.groups(seen_by(plan.transaction, plan.table.timeline()))


def _check_placement(plan: WritePlan, results: Sequence[TaskResult]) -> None:
    """Refuse a colocated write in which two tasks wrote one file group: each would undo the other.

    In such a write ``pyhudi.colocate`` has brought all rows of a file group to one task, which writes the group itself.
    ``results`` are those of all tasks of the ``plan``. Raises `PlacementError`.
    """
    if plan.appends and not plan.settings.colocated:
        # Several tasks may append to a file group.
        return
    # Under a bucket index the place is the bucket, because two tasks may have opened two file groups for it.
    rival_key = index_for(plan.config).rival_key
    written_places: set[tuple[str, Hashable]] = set()
    for result in results:
        places = {(file.group.partition_path, rival_key(file.group)) for file in result.written}
        for partition, place in sorted(written_places & places, key=str):
            raise PlacementError(
                f"Two tasks of the write to {plan.path} finished {place} of partition {partition!r}, although "
                f"hoodie.pyhudi.colocated says that one task holds it.",
                "Call pyhudi.colocate last, right before the write, or leave hoodie.pyhudi.colocated out.",
            )
        written_places |= places


def _check_counted(completion: Completion) -> None:
    """Refuse a write that replaces more or fewer rows than a merge or an update counted.

    Only a write that rewrites file groups sees the stored rows; appended rows meet them when they are read. If another
    write took a row away meanwhile, that is a conflict.
    """
    plan, written = completion.plan, completion.written
    counted = plan.settings.origin.counted
    if counted is None or plan.appends:
        return
    new_rows = sum(file.counts.inserts + file.counts.updates for file in written)
    old_rows = sum(file.counts.updates + file.counts.deletes for file in written)
    counted_rows = counted.inserts + counted.updates, counted.updates + counted.deletes
    if (new_rows, old_rows) != counted_rows and completion.is_free(plan.table.timeline()):
        raise DuplicateKeyError(
            f"The merge or update of the table {plan.path} counted {counted_rows[1]:,} rows to replace by "
            f"{counted_rows[0]:,}; the write would replace {old_rows:,} rows by {new_rows:,}. The table holds "
            "duplicate keys, as inserts without a lookup make them, or keys that differ from their columns.",
            "Upsert or delete these keys first, which leaves one row of each or none, and run this again; validate() "
            "names rows whose keys differ from their columns.",
        )
