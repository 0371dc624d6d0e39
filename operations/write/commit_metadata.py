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
from ...writer.written_file import WrittenFile
from ..planning.plan import WritePlan
from ..result import COUNTED, DROPPED, LOOKUP, NOT_FOUND, SCHEMA_CHANGES, SECONDS
from .merge_spills import Merged


def build_metadata(
    plan: WritePlan,
    written: Sequence[WrittenFile],
    replaced: Mapping[str, list[str]],
    seconds: Mapping[str, float],
    merged: Merged,
    attempts: Mapping[str, str],
) -> CommitMetadata:
    """Return the metadata of the write's completed instant.

    ``written`` are of every file group that the write met, ``replaced`` has file ids by partition path, and
    ``seconds``, by phase, and ``attempts`` go to extraMetadata.
    """
    stats: dict[str, list[WriteStat]] = {}
    for file in sorted(written, key=_place):
        if file.path:
            stats.setdefault(file.group.partition_path, []).append(_stat(file, plan.instant_time))
    dropped = sum(file.counts.dropped for file in written)
    counted = plan.settings.counted
    if counted is not None:
        counted = replace(counted, inserts=counted.inserts - dropped)
    extra = {
        **plan.settings.extra_metadata,
        "schema": avro_schema(plan.schema, plan.config.name),
        formats.KEY: str(formats.COMMIT_KEYS),
        WRITE_ID: plan.transaction.write_id,
        NOT_FOUND: str(sum(file.counts.not_found for file in written) + merged.nowhere.not_found),
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


def _place(file: WrittenFile) -> tuple[FileGroupId, int]:
    return file.group, file.version


def _stat(file: WrittenFile, instant_time: str) -> WriteStat:
    counts = file.counts
    return WriteStat(
        file_id=file.group.file_id,
        path=file.path,
        num_writes=file.rows,
        num_deletes=counts.deletes,
        num_update_writes=counts.updates,
        num_inserts=counts.inserts,
        total_write_bytes=file.size,
        total_write_errors=0,
        partition_path=file.group.partition_path,
        file_size_in_bytes=file.size,
        **(_of_log(file, instant_time) if file.is_log else _of_base(file)),
    )


def _of_base(file: WrittenFile) -> dict[str, Any]:
    previous = file.previous
    return {
        "prev_commit": "null" if previous is None else previous.base_time,
        "prev_base_file": None if previous is None or previous.base is None else previous.base.name,
    }


def _of_log(file: WrittenFile, instant_time: str) -> dict[str, Any]:
    """Return the fields of a log file, as Apache Hudi writes them from table version 8 on: one instant per log file."""
    return {
        "prev_commit": instant_time,
        "base_file": "",
        "log_files": [file.path.rpartition("/")[2]],
        "log_version": file.version,
        "log_offset": 0,
    }
