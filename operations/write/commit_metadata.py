"""The entries of a write's completed file besides its new files: write id, counts, seconds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from ...index.base import LookupFigures
from ...table.schema.changes import format_changes
from ...timeline.metadata.codec import WRITE_ID
from ...timeline.metadata.models import CommitMetadata
from ...writer.written_file import WrittenFile
from ..planning.plan import WritePlan
from ..result import COUNTED, DROPPED, LOOKUP, NOT_FOUND, SCHEMA_CHANGES, SECONDS
from ..transaction.write_stats import commit_metadata
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

    ``written`` has a result for each file group that the write met, ``replaced`` has file ids by partition path.
    ``seconds``, by phase, and ``attempts`` are entries of extraMetadata.
    """
    dropped = sum(file.counts.dropped for file in written)
    counted = plan.settings.origin.counted
    if counted is not None:
        counted = replace(counted, inserts=counted.inserts - dropped)
    notes = {
        WRITE_ID: plan.transaction.write_id,
        NOT_FOUND: str(sum(file.counts.not_found for file in written) + merged.nowhere.not_found),
        DROPPED: str(dropped),
        SECONDS: json.dumps(dict(seconds)),
        **attempts,
        **_of_lookup(merged.figures or plan.settings.origin.looked_up),
        **({SCHEMA_CHANGES: format_changes(plan.schema_changes)} if plan.schema_changes else {}),
        **({} if counted is None else {COUNTED: json.dumps(asdict(counted))}),
    }
    user_entries = plan.settings.commit.extra_metadata
    work, schema, operation = plan.transaction, plan.schema, plan.operation
    return commit_metadata(work, schema, written, operation, notes, user_entries=user_entries, replaced=replaced)


def _of_lookup(figures: LookupFigures | None) -> dict[str, str]:
    return {} if figures is None else {LOOKUP: json.dumps(asdict(replace(figures, seconds=round(figures.seconds, 3))))}


def sum_seconds(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the seconds by phase, summed over tasks."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return {f"tasks.{name}": round(value, 3) for name, value in total.items()}
