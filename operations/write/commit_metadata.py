"""The body of a completed instant: write statistics, the schema, and pyhudi's own entries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ...index.base import LookupFigures
from ...table.files.names import FileGroupId
from ...table.schema.changes import format_changes
from ...table.schema.columns import avro_schema
from ...timeline import formats
from ...timeline.metadata.codec import WRITE_ID
from ...timeline.metadata.models import CommitMetadata, ReplaceCommitMetadata, WriteStat
from ...writer.group_writer import GroupOutcome
from ...writer.log_handle import LogOutcome
from ..planning.plan import WritePlan
from ..result import COUNTED, DROPPED, LOOKUP, NOT_FOUND, SCHEMA_CHANGES, SECONDS
from .merge_spills import Merged
from .writers import Outcome


def build_metadata(
    plan: WritePlan,
    outcomes: Sequence[Outcome],
    replaced: Mapping[str, list[str]],
    seconds: Mapping[str, float],
    merged: Merged,
    attempts: Mapping[str, str],
) -> CommitMetadata:
    """Return the metadata of the write's completed instant.

    ``outcomes`` are of every file group that the write met, ``replaced`` has file ids by partition path, and
    ``seconds``, by phase, and ``attempts`` go to extraMetadata.
    """
    stats: dict[str, list[WriteStat]] = {}
    for outcome in sorted(outcomes, key=_place):
        if outcome.path is not None:
            stats.setdefault(outcome.group.partition_path, []).append(_stat(outcome, plan.instant_time))
    dropped = sum(outcome.counts.dropped for outcome in outcomes)
    counted = plan.settings.counted
    if counted is not None:
        counted = replace(counted, inserts=counted.inserts - dropped)
    extra = {
        **plan.settings.extra_metadata,
        "schema": avro_schema(plan.schema, plan.config.name),
        formats.KEY: str(formats.COMMIT_KEYS),
        WRITE_ID: plan.transaction.write_id,
        NOT_FOUND: str(sum(outcome.counts.not_found for outcome in outcomes) + merged.nowhere.not_found),
        DROPPED: str(dropped),
        SECONDS: json.dumps(dict(seconds)),
        **attempts,
        **_of_lookup(merged.figures or plan.settings.looked_up),
        **({SCHEMA_CHANGES: format_changes(plan.schema_changes)} if plan.schema_changes else {}),
        **({} if counted is None else {COUNTED: json.dumps(asdict(counted))}),
    }
    if plan.transaction.action == "replacecommit":
        return ReplaceCommitMetadata(
            partition_to_write_stats=stats,
            extra_metadata=extra,
            operation_type=plan.operation,
            partition_to_replace_file_ids=dict(replaced),
        )
    return CommitMetadata(partition_to_write_stats=stats, extra_metadata=extra, operation_type=plan.operation)


def _of_lookup(figures: LookupFigures | None) -> dict[str, str]:
    return {} if figures is None else {LOOKUP: json.dumps(asdict(replace(figures, seconds=round(figures.seconds, 3))))}


def sum_seconds(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the seconds by phase, summed over tasks."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return {f"tasks.{name}": round(value, 3) for name, value in total.items()}


def _place(outcome: Outcome) -> tuple[FileGroupId, int]:
    return outcome.group, outcome.version if isinstance(outcome, LogOutcome) else 0


def _stat(outcome: Outcome, instant_time: str) -> WriteStat:
    counts = outcome.counts
    return WriteStat(
        file_id=outcome.group.file_id,
        path=outcome.path,
        num_writes=outcome.rows,
        num_deletes=counts.deletes,
        num_update_writes=counts.updates,
        num_inserts=counts.inserts,
        total_write_bytes=outcome.size,
        total_write_errors=0,
        partition_path=outcome.group.partition_path,
        file_size_in_bytes=outcome.size,
        **(_of_log(outcome, instant_time) if isinstance(outcome, LogOutcome) else _of_base(outcome)),
    )


def _of_base(outcome: GroupOutcome) -> dict[str, Any]:
    previous = outcome.previous
    return {
        "prev_commit": "null" if outcome.file_slice is None else outcome.file_slice.base_time,
        "prev_base_file": None if previous is None else previous.name,
    }


def _of_log(outcome: LogOutcome, instant_time: str) -> dict[str, Any]:
    """Return the fields of a log file, as Apache Hudi writes them from table version 8 on: one instant per log file."""
    return {
        "prev_commit": instant_time,
        "base_file": "",
        "log_files": [(outcome.path or "").rpartition("/")[2]],
        "log_version": outcome.version,
        "log_offset": 0,
    }
