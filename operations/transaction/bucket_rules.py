"""The numbers of buckets that an instant brings into force, made with it and deleted with it."""

from __future__ import annotations

from ...table.bucket_numbers import BucketRule, delete_bucket_rule, write_bucket_rule
from ...table.config.property_keys import BUCKET
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.rescales import REPLACE_COMMIT
from ...timeline.writers.decisions import BucketRuleText


def make_rule(table: Table, instant_time: str, rule: BucketRuleText) -> None:
    """Write the rule of an instant, unless it is there."""
    write_bucket_rule(table, BucketRule(instant_time, rule.default, rule.expressions))


def delete_rule(table: Table, victim: Instant) -> None:
    """Delete the rule of an instant that is going to leave the timeline.

    It goes before the requested file does: Apache Hudi takes the newest rule whose instant is not pending.
    """
    if victim.group == REPLACE_COMMIT and table.config.index_type in {None, BUCKET}:
        delete_bucket_rule(table, victim.requested_time)
