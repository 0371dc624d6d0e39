"""The rules that say how many buckets partitions have: each comes and goes with the instant that changes them."""

from __future__ import annotations

from ...errors import CommitConflictError
from ...table.buckets.numbers import (
    FIRST,
    BucketNumbers,
    BucketRule,
    bucket_numbers,
    delete_bucket_rule,
    rule_file,
    rule_files,
    write_bucket_rule,
)
from ...table.config.property_keys import BUCKET
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.pending_undo import pending_rollbacks
from ...timeline.rescales import REPLACE_COMMIT
from ...timeline.timeline import Timeline
from ...timeline.writers.first_steps import FirstSteps
from ..following.before_completion import file_step
from ..meeting.concurrency import RESCALE, ROLLBACK, Asked, Meeting, Shared, all_shared, forbids


def steps_of_rule(table: Table, rule: BucketRule) -> FirstSteps:
    """Return the steps that bring a rule, the numbers of buckets from an instant on, into force with that instant.

    The rule's file comes before the completed file, so that no reader finds the new file groups without their number.
    """
    return FirstSteps((file_step(table.storage, rule.instant_time, *rule_file(table, rule)),))


def show_rule(table: Table, timeline: Timeline, numbers: BucketNumbers) -> None:
    """Write the rule in force into the folder in which Apache Hudi looks for rules, if that has none.

    Apache Hudi fails if only a pending rule is there. The number of a table without rules becomes the rule `FIRST`. An
    upgraded table has its rules in a folder of pyhudi. Raises `CommitConflictError` if the rule is undone meanwhile.
    """
    rule, java_reads_rules = numbers.rule, table.format.bucket_rules
    if rule is None or (numbers.by_rule and (not java_reads_rules or any(file.for_java for file in rule_files(table)))):
        # The number is unknown, or Apache Hudi has a rule to read, or reads none in this version.
        return
    write_bucket_rule(table, rule if numbers.by_rule else BucketRule(FIRST, rule.default))
    if not numbers.by_rule:
        # Without rules there is no rescale that another process could undo.
        return
    # A process that undoes a rescale puts the rollback on the timeline before it deletes the rule.
    newer_timeline = timeline.reload()
    shared = all_shared({Shared.VICTIM: rule.instant_time in pending_rollbacks(newer_timeline)})
    is_undone = forbids(Meeting(RESCALE, ROLLBACK, shared=shared, asked=Asked.SINCE_PLAN))
    if is_undone or bucket_numbers(table, newer_timeline).rule != rule:
        delete_bucket_rule(table, rule.instant_time)
        raise CommitConflictError(
            f"The rescale of the table {table.path} cannot begin: the earlier rescale {rule.instant_time} is undone.",
            "Run it again.",
        )


def delete_rule(table: Table, victim: Instant) -> None:
    """Delete the rule of an instant that is about to leave the timeline.

    The rule goes before the requested file: Apache Hudi takes the newest rule whose instant is not pending.
    """
    if victim.group == REPLACE_COMMIT and table.config.index_type in {None, BUCKET}:
        delete_bucket_rule(table, victim.requested_time)
