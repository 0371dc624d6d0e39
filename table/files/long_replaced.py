"""Lost files that no reader misses: a clean deleted them, and an archived replacecommit took their file groups away."""

from __future__ import annotations

from collections.abc import Iterable

from ...timeline.archive.archive import Archive
from ...timeline.metadata.codec import InstantBody
from ...timeline.timeline import Timeline
from .file_group import DataFile


def without_long_replaced(archive: Archive, timeline: Timeline, lost: Iterable[DataFile]) -> list[DataFile]:
    """Return the lost files whose file groups no archived replacecommit replaced.

    A clean may stay on the timeline for longer than the replacecommit whose files it deleted. It still names the files,
    and nothing on the timeline says any more that the table does not need them.
    """
    lost_files = list(lost)
    first_write = next((instant.requested_time for instant in timeline.instants if instant.is_write), "")
    oldest_time = min((file.named_time for file in lost_files if file.named_time < first_write), default="")
    if not oldest_time:
        # All are younger than the archived writes, which so replaced none of them.
        return lost_files
    replacing = [
        instant
        for instant in archive.instants(oldest_time, first_write)
        if instant.replaces and timeline.is_committed(instant.requested_time)
    ]
    replaced_at: dict[tuple[str, str], str] = {}
    for instant, body in sorted(archive.bodies(replacing).items(), key=lambda pair: pair[0].requested_time):
        where = f"{instant.requested_time} in the archive"
        commit = timeline.files.codec.decode_files(InstantBody(body, where), replaces=True)
        replaced_at |= {
            (path, file_id): instant.requested_time for path, ids in commit.replaced.items() for file_id in ids
        }
    return [file for file in lost_files if replaced_at.get((_partition_of(file), file.file_id), "") < file.named_time]


def _partition_of(file: DataFile) -> str:
    """Return the path of the partition that a file is in."""
    return file.path.rpartition("/")[0]
