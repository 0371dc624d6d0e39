"""Which software wrote a table last, by what its completed writes say of their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..timeline.metadata.codec import PYHUDI_KEYS
from ..timeline.timeline import Timeline

if TYPE_CHECKING:
    from ..timeline.metadata.models import CommitMetadata

PYHUDI, RELEASE_0, RELEASE_1 = "pyhudi", "Apache Hudi 0.x", "Apache Hudi 1.x"
# Apache Hudi 1.x alone writes this field into the statistics of its commits.
_FIELD_OF_RELEASE_1 = "num_updates"
# Commits that name no file tell nothing; a table whose newest writes are all of this kind is not worth more requests.
_MOST_OPENED = 5


def last_writer(timeline: Timeline) -> str | None:
    """Return which software made the newest completed write; None if the newest writes do not tell.

    A write that an upgrade carried over counts as one of the software that upgraded the table.
    """
    newest = timeline.writes[: -_MOST_OPENED - 1 : -1]
    return next(filter(None, (writer_of(timeline.files.read_commit(instant)) for instant in newest)), None)


def writer_of(commit: CommitMetadata) -> str | None:
    """Return which software made a completed write; None if it names no file."""
    if any(name.startswith(PYHUDI_KEYS) for name in commit.extra_metadata):
        return PYHUDI
    stats = [stat for of_partition in commit.partition_to_write_stats.values() for stat in of_partition]
    if not stats:
        return None
    return RELEASE_1 if any(_FIELD_OF_RELEASE_1 in stat.model_fields_set for stat in stats) else RELEASE_0
