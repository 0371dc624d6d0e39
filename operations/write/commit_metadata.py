"""The body of a completed instant: write statistics, schema, and what pyhudi adds to say what it did."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...table.schema.columns import avro_schema
from ...timeline.metadata.models import CommitMetadata, ReplaceCommitMetadata, WriteStat
from ...writer.group_writer import GroupOutcome
from ..planning.plan import WritePlan
from ..result import DROPPED, NOT_FOUND, SECONDS
from ..write_ids import WRITE_ID


def build_metadata(
    plan: WritePlan,
    outcomes: Sequence[GroupOutcome],
    replaced: Mapping[str, list[str]],
    seconds: Mapping[str, float],
) -> CommitMetadata:
    """Return the metadata of the write's completed instant.

    Args:
        plan: The write.
        outcomes: Every file group that the write met.
        replaced: File ids by partition path that the write takes away as a whole.
        seconds: Seconds by phase, kept in extraMetadata.
    """
    stats: dict[str, list[WriteStat]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.group):
        if outcome.path is not None:
            stats.setdefault(outcome.group.partition_path, []).append(_stat(outcome))
    extra = {
        **plan.settings.extra_metadata,
        "schema": avro_schema(plan.schema, plan.config.name),
        WRITE_ID: plan.transaction.write_id,
        NOT_FOUND: str(sum(outcome.counts.not_found for outcome in outcomes)),
        DROPPED: str(sum(outcome.counts.dropped for outcome in outcomes)),
        SECONDS: json.dumps(dict(seconds)),
    }
    if plan.transaction.action == "replacecommit":
        return ReplaceCommitMetadata(
            partition_to_write_stats=stats,
            extra_metadata=extra,
            operation_type=plan.operation,
            partition_to_replace_file_ids=dict(replaced),
        )
    return CommitMetadata(partition_to_write_stats=stats, extra_metadata=extra, operation_type=plan.operation)


def sum_seconds(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the seconds of all tasks by phase, summed over tasks."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return {f"tasks.{name}": round(value, 3) for name, value in total.items()}


def _stat(outcome: GroupOutcome) -> WriteStat:
    counts, previous = outcome.counts, outcome.previous
    return WriteStat(
        file_id=outcome.group.file_id,
        path=outcome.path,
        prev_commit="null" if previous is None else previous.instant_time,
        num_writes=outcome.rows,
        num_deletes=counts.deletes,
        num_update_writes=counts.updates,
        num_inserts=counts.inserts,
        total_write_bytes=outcome.size,
        total_write_errors=0,
        partition_path=outcome.group.partition_path,
        file_size_in_bytes=outcome.size,
        prev_base_file=None if previous is None else previous.name,
    )
