"""The delta commits of a merge-on-read table since its last compaction, which make the next compaction due."""

from __future__ import annotations

from dataclasses import dataclass

from .timeline import Timeline

# The default of ``hoodie.compact.inline.max.delta.commits``.
MAKE_COMPACTION_DUE = 5


@dataclass(frozen=True, slots=True)
class DeltaCommits:
    """The completed delta commits since ``last``, the newest completed compaction, by requested time in order."""

    last: str
    since: tuple[str, ...]


def since_compaction(timeline: Timeline) -> DeltaCommits:
    """Return the delta commits since the last compaction, found as Apache Hudi's ``CompactionUtils`` does.

    A completed compaction has the action of a commit.
    """
    last_compaction = max(
        (instant.requested_time for instant in timeline.completed if instant.action == "commit"), default=""
    )
    deltas = (instant.requested_time for instant in timeline.completed if instant.action == "deltacommit")
    return DeltaCommits(last_compaction, tuple(time for time in deltas if time > last_compaction))
