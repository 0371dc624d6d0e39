"""The changes of a table since the moment up to which an outside index knows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UnreadableTimeError
from ...index.base import GroupKeys
from ...index.outside import News
from ...reader.scan import MergeTerms, RowReader
from ...storage.threads import for_each
from ...table.files.base_file import open_base
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.schema.columns import RECORD_KEY
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.archive.archive import Archive
from ...timeline.instants import WRITE_ACTIONS, Instant
from ...timeline.metadata.codec import InstantBody
from ...timeline.timeline import Timeline
from ...timeline.watermark import Seen, Watermark
from ..carried_values import parse, spell

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata

# These operations change files, but no row.
_SAME_KEYS = frozenset({"COMPACT", "LOG_COMPACT"})
_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])
# How many file groups are read at once; memory holds their keys.
_AT_ONCE = 8


def find_news(table: Table, moment: str | None) -> News | None:
    """Return the changes of a table's file groups since a moment, None if there are none.

    All file groups are news if the table's history does not reach back to the moment, or a restore went back behind it.
    ``moment`` is the text from earlier news; None for the first news.
    """
    # Read the archive before the timeline, so that no instant is archived unseen in between.
    archive = table.archive.state()
    timeline = table.timeline()
    until = spell(replace(timeline.watermark(), archive=archive))
    if moment == until:
        return None
    seen = SeenTable(table, timeline)
    changed, undone = _changed_groups(seen, moment)
    groups = [file_slice.group for file_slice in seen.view.all_slices()] if changed is None else sorted(changed)
    return News(
        table=table.path,
        since=moment,
        until=until,
        anew=changed is None,
        undone=undone,
        groups=_read_keys(seen, groups),
    )


def _changed_groups(now: SeenTable, moment: str | None) -> tuple[set[FileGroupId] | None, tuple[str, ...]]:
    """Return the file groups that changed since a moment, and the requested times of the writes undone since.

    None in place of the file groups stands for all: there is no moment, the history does not say which file groups
    changed, or a write was undone.
    """
    mark = None if moment is None else parse(Watermark, moment)
    if mark is None:
        return None, ()
    archive, timeline = now.table.archive, now.timeline
    try:
        seen = archive.seen_at(timeline, mark)
    except UnreadableTimeError:
        return None, ()
    # Archiving takes instants off the timeline, too, and undoes nothing.
    undone = tuple(time for time in timeline.vanished(seen) if not archive.holds(time))
    archived = archive.completed_since(timeline, seen)
    instants_since = (*timeline.completed_since(seen), *archived)
    if undone or any(instant.action == "restore" for instant in instants_since):
        return None, undone
    writes = _read_writes(archive, timeline, seen, archived)
    return (None if writes is None else _groups_of(writes)), ()


def _read_writes(
    archive: Archive, timeline: Timeline, seen: Seen, archived: Iterable[Instant]
) -> list[CommitMetadata] | None:
    """Return the metadata of the writes since a moment; None if the archive lacks some, so that all groups are news.

    ``archived`` are the instants of the archive that completed since.
    """
    active = [
        timeline.files.read_commit(instant)
        for instant in timeline.completed_since(seen)
        if instant.action in WRITE_ACTIONS
    ]
    archived_writes = [instant for instant in archived if instant.action in WRITE_ACTIONS]
    bodies = archive.bodies(archived_writes)
    if len(bodies) < len(archived_writes):
        return None
    decode = timeline.files.decode_commit
    named_bodies = {
        instant: InstantBody(bodies[instant], f"{instant.requested_time} in the archive") for instant in archived_writes
    }
    return [*active, *(decode(instant, body) for instant, body in named_bodies.items())]


def _groups_of(writes: Iterable[CommitMetadata]) -> set[FileGroupId]:
    """Return the file groups that some writes wrote to or replaced; compactions count for none, as keys stay."""
    groups: set[FileGroupId] = set()
    for write in writes:
        if write.operation_type in _SAME_KEYS:
            continue
        for partition, stats in write.partition_to_write_stats.items():
            groups |= {FileGroupId(partition, stat.file_id) for stat in stats if stat.file_id}
        for partition, ids in write.replaced.items():
            groups |= {FileGroupId(partition, file_id) for file_id in ids}
    return groups


def _read_keys(seen: SeenTable, groups: Sequence[FileGroupId]) -> Iterator[GroupKeys]:
    """Yield the keys of some file groups, a few groups at a time; no keys for file groups that the table lacks."""
    # The groups come sorted by partition, so that the slices of the last partition are enough to remember.
    slices = lru_cache(maxsize=1)(seen.view.slices)
    for start in range(0, len(groups), _AT_ONCE):
        part = groups[start : start + _AT_ONCE]
        file_slices = [slices(group.partition_path).get(group.file_id) for group in part]
        key_arrays = for_each(seen.storage, partial(_keys_of, seen), file_slices)
        yield from (GroupKeys(group, keys) for group, keys in zip(part, key_arrays, strict=True))


def _keys_of(seen: SeenTable, file_slice: FileSlice | None) -> pa.Array:
    """Return the distinct record keys of a slice's rows, as readers see them; none for a slice that does not exist."""
    if file_slice is None:
        return pa.array([], pa.string())
    if file_slice.logs:
        schema, terms = seen.schema or pa.schema([]), MergeTerms(seen.table.config)
        rows = RowReader(seen.storage, _KEYS, schema, terms=terms).merged(file_slice)
        return _distinct([batch.column(RECORD_KEY) for batch in rows])
    with open_base(seen.storage, file_slice.base_file) as reader:
        return _distinct([batch.column(RECORD_KEY) for batch in reader.batches(_KEYS)])


def _distinct(parts: Sequence[pa.Array]) -> pa.Array:
    """Return the distinct keys of some arrays; a null is no key."""
    return pc.unique(pa.chunked_array(parts, pa.string()).drop_null())
