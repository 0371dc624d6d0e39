"""Files of writes that never completed, which would count as committed once the timeline begins after them."""

from __future__ import annotations

from ...storage.base import FileInfo, split
from ...table.files.names import parse_data_name
from ...table.files.partitions import walk_partitions
from ...timeline.archive.lsm import Archive
from ...timeline.timeline import Timeline


def delete_orphans(archive: Archive, timeline: Timeline, until: str) -> list[FileInfo]:
    """Delete the base and log files of instants that are on no timeline, between its first write and a time.

    Readers take whatever is older than the first write for archived, and whatever is absent among younger ones for
    uncommitted.

    Args:
        archive: The table's.
        timeline: As of a moment ago.
        until: What is to be the first write's requested time.

    Returns:
        The files that were deleted.
    """
    first = next((one.requested_time for one in timeline.instants if one.is_write), until)
    found: dict[str, list[FileInfo]] = {}
    for files in walk_partitions(archive.storage).values():
        for info in files:
            name = parse_data_name(split(info.path)[1])
            if name is not None and first <= name.instant_time < until:
                found.setdefault(name.instant_time, []).append(info)
    # Asked after the files: a write is on the timeline before its first file is there, and one that has left the
    # timeline meanwhile came into the archive before.
    now = timeline.reload()
    known = {one.requested_time for one in (*timeline.instants, *now.instants)}
    if not found.keys() <= known:
        known.update(one.requested_time for one in archive.instants(min(found), until))
    orphans = [info for time, files in found.items() if time not in known for info in files]
    archive.storage.delete(*(info.path for info in orphans))
    return orphans
