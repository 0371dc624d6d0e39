"""What a completed write wrote to the metadata table, for a process that did not complete the write.

Spark completes the write of a DataFrame in another process, and drops the result there.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from ...table.metadata.metadata_table import instants_of_metadata
from ...table.table import Table
from ...timeline.timeline import Timeline
from ..result import MetadataWritten
from .damage import DAMAGE, warning_of
from .metadata_commit import ACTION, WARNINGS
from .partitions_in_use import written_partitions

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata

_UNKNOWN_REASON = "the log of the process that completed the write says more."


def metadata_of_write(table: Table, time: str, partitions_before: Collection[str]) -> MetadataWritten | None:
    """Return what the write of a requested time wrote to the metadata table; None without one, or if it is unknown.

    ``partitions_before`` are the partitions of the metadata table at the plan of the write. The seconds are unknown.
    """
    if not partitions_before or not table.format.keeps_metadata:
        return None
    body = _commit_at(table, time)
    if body is None:
        # The write may have taken partitions out of use instead, or others have done so since.
        gone_names = {*partitions_before} - {*written_partitions(table.config)}
        return MetadataWritten(warnings=(warning_of(gone_names, _UNKNOWN_REASON),)) if gone_names else None
    stats = [stat for of_partition in body.partition_to_write_stats.values() for stat in of_partition]
    return MetadataWritten(
        tuple(sorted(body.partition_to_write_stats)),
        sum(stat.num_writes for stat in stats),
        sum(stat.file_size_in_bytes for stat in stats),
        warnings=tuple(json.loads((body.extra_metadata or {}).get(WARNINGS, "[]"))),
    )


def _commit_at(table: Table, time: str) -> CommitMetadata | None:
    """Return the content of the delta commit at a time; None if there is none, or it cannot be read."""
    try:
        timeline = Timeline.load(instants_of_metadata(table))
        commits = (each for each in timeline.completed if (each.requested_time, each.action) == (time, ACTION))
        commit = next(commits, None)
        return None if commit is None else timeline.files.read_commit(commit)
    except DAMAGE:
        return None
