"""What happened to a table since a moment that an index outside of it knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import UnreadableTimeError
from ...index.outside import News
from ...table.files.lost import open_view
from ...table.files.names import FileGroupId
from ...table.latest_schema import latest_schema
from ...table.table import Table
from ...timeline.archive.lsm import Archive
from ...timeline.instants import WRITE_ACTIONS, Instant
from ...timeline.plain_text import parse, spell
from ...timeline.timeline import Timeline
from ...timeline.watermark import Seen, Watermark
from .group_keys import read_keys

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata

# They change how rows are kept, and no row.
_SAME_KEYS = frozenset({"COMPACT", "LOG_COMPACT"})


def find_news(table: Table, known: str | None) -> News | None:
    """Return what became of a table's file groups since a moment, None where nothing did.

    Where the table's history does not tell it, or went back behind that moment, all file groups are news.

    Args:
        table: The table.
        known: The moment, as it was told before; None where nothing is known.

    Raises:
        MissingFileError: A file that a completed write names is gone.
        CorruptInstantError: An instant's file cannot be parsed.
        StorageError: The store failed.
    """
    # Asked before the timeline, so that nothing is archived unseen in between.
    archive = table.archive.state()
    timeline = table.timeline()
    until = spell(replace(timeline.watermark(), archive=archive))
    if known == until:
        return None
    changed, undone = _changed(table, timeline, known)
    view = open_view(timeline)
    groups = [one.group for one in view.all_slices()] if changed is None else sorted(changed)
    schema = latest_schema(table.config, timeline) or pa.schema([])
    return News(
        table=table.path,
        since=known,
        until=until,
        anew=changed is None,
        undone=undone,
        groups=read_keys(table, view, schema, groups),
    )


def _changed(table: Table, timeline: Timeline, known: str | None) -> tuple[set[FileGroupId] | None, tuple[str, ...]]:
    """Return the file groups that changed since a moment, None for all there are, and the writes undone since."""
    mark = None if known is None else parse(Watermark, known)
    if mark is None:
        return None, ()
    archive = table.archive
    try:
        seen = archive.seen_at(timeline, mark)
    except UnreadableTimeError:
        return None, ()
    undone = tuple(one for one in timeline.vanished(seen) if not archive.holds(one))
    archived = archive.since(timeline, seen)
    since = (*timeline.completed_since(seen), *archived)
    if undone or any(one.action == "restore" for one in since):
        return None, undone
    writes = _writes(archive, timeline, seen, archived)
    return (None if writes is None else _touched(writes)), ()


def _writes(
    archive: Archive, timeline: Timeline, seen: Seen, archived: Iterable[Instant]
) -> list[CommitMetadata] | None:
    """Return what the writes since a moment did, None where the archive does not tell it."""
    done = [timeline.files.read_commit(one) for one in timeline.completed_since(seen) if one.action in WRITE_ACTIONS]
    gone = [one for one in archived if one.action in WRITE_ACTIONS]
    bodies = archive.bodies(gone)
    if len(bodies) < len(gone):
        return None
    decode = timeline.files.decode_commit
    return [*done, *(decode(one, bodies[one], f"{one.requested_time} in the archive") for one in gone)]


def _touched(writes: Iterable[CommitMetadata]) -> set[FileGroupId]:
    """Return the file groups that some writes wrote to or replaced."""
    found: set[FileGroupId] = set()
    for one in writes:
        if one.operation_type in _SAME_KEYS:
            continue
        for partition, stats in one.partition_to_write_stats.items():
            found |= {FileGroupId(partition, stat.file_id) for stat in stats if stat.file_id}
        for partition, ids in one.replaced.items():
            found |= {FileGroupId(partition, file_id) for file_id in ids}
    return found
