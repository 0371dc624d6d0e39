"""What the archived timeline still tells: when each archived instant was requested, when it completed, what it did.

Format: ``HoodieLSMTimelineInstant`` rows in Parquet files named after the least and greatest requested time in them
(``LSMTimeline``). Files that a newer manifest no longer names repeat what its own files hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptInstantError, StorageError, UnreadableTimeError
from ...storage.base import Storage, join, split
from ...storage.bounds import MOST_BYTES
from ...storage.parallel import for_each
from ..instants import WRITE_ACTIONS, Instant, State
from ..timeline import Timeline
from ..watermark import Seen, Watermark

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_NAME = re.compile(r"(?P<least>\d+)_(?P<greatest>\d+)_\d\.parquet", re.ASCII)
_MOST_ROWS = 10_000_000
_COLUMNS = ["instantTime", "completionTime", "action"]
_BODY = "metadata"


def archived_writes(storage: Storage, folder: str) -> tuple[Instant, ...]:
    """Return the archived commits, deltacommits and replacecommits, in order of requested time.

    Args:
        storage: Rooted at the table.
        folder: The archive's folder, relative to the table's root.

    Raises:
        CorruptInstantError: A file of the archive cannot be read.
        StorageError: The archive was compacted meanwhile, or the store failed.
    """
    return tuple(one for one in archived_instants(storage, folder) if one.action in WRITE_ACTIONS)


def archived_instants(storage: Storage, folder: str) -> tuple[Instant, ...]:
    """Return the archived instants of every action, each once, in order of requested time.

    Raises:
        CorruptInstantError: A file of the archive cannot be read.
        StorageError: The archive was compacted meanwhile, or the store failed.
    """
    parts = for_each(storage, partial(_read, storage, columns=_COLUMNS), _files(storage, folder))
    found = {one.identity: one for part in parts for one in _instants(part)}
    return tuple(found[identity] for identity in sorted(found))


def is_archived(storage: Storage, folder: str, requested_time: str) -> bool:
    """Return whether an instant of this requested time completed and was archived.

    Raises:
        CorruptInstantError: A file of the archive cannot be read.
        StorageError: The archive was compacted meanwhile, or the store failed.
    """
    near = [path for path in _files(storage, folder) if _may_hold(path, requested_time, requested_time)]
    parts = for_each(storage, partial(_read, storage, columns=_COLUMNS), near)
    return any(one.requested_time == requested_time for part in parts for one in _instants(part))


def archived_bodies(storage: Storage, folder: str, wanted: Iterable[Instant]) -> Mapping[Instant, bytes]:
    """Return what the completed files of some archived instants held, of those of which the archive tells it.

    Raises:
        CorruptInstantError: A file of the archive cannot be read.
        StorageError: The archive was compacted meanwhile, or the store failed.
    """
    wanted = set(wanted)
    times = sorted(one.requested_time for one in wanted)
    if not times:
        return {}
    near = [path for path in _files(storage, folder) if _may_hold(path, times[0], times[-1])]
    found: dict[Instant, bytes] = {}
    for part in for_each(storage, partial(_read, storage, columns=[*_COLUMNS, _BODY]), near):
        some = part.filter(pc.is_in(part.column("instantTime").cast(pa.string()), pa.array(times)))
        bodies = some.column(_BODY).to_pylist()
        found |= {one: body for one, body in zip(_instants(some), bodies, strict=True) if one in wanted and body}
    return found


def archive_state(storage: Storage, folder: str) -> str:
    """Return what changes whenever instants are archived, in one listing."""
    return hashlib.sha256("\n".join(_files(storage, folder)).encode()).hexdigest()


def seen_at(storage: Storage, folder: str, timeline: Timeline, watermark: Watermark) -> Seen:
    """Return what was complete at a moment.

    Args:
        storage: Rooted at the table.
        folder: The archive's folder, relative to the table's root.
        timeline: As it is now.
        watermark: The moment.

    Raises:
        UnreadableTimeError: Instants of that time are neither on the timeline nor in the archive any more.
        CorruptInstantError: A file of the archive cannot be read.
        StorageError: The archive was compacted meanwhile, or the store failed.
    """
    seen = watermark.against(timeline.completed, partial(archived_instants, storage, folder))
    if seen is None:
        raise UnreadableTimeError(
            f"What the table {storage.path} held when its newest instant was completed at {watermark.completed_until} "
            "cannot be told any more: instants of that time have left its timeline without being archived, or others "
            "were put between them.",
            "Make the DataFrame anew.",
        )
    return seen


def archived_since(storage: Storage, folder: str, timeline: Timeline, seen: Seen) -> tuple[Instant, ...]:
    """Return the instants that completed after a moment and were archived since, in order of requested time.

    Args:
        storage: Rooted at the table.
        folder: The archive's folder, relative to the table's root.
        timeline: As of a moment ago; what was archived since then is on it.
        seen: What was complete at the moment.

    Raises:
        CorruptInstantError: A file of the archive cannot be read.
        StorageError: The archive was compacted meanwhile, or the store failed.
    """
    known = seen.watermark.archive
    if known and known == archive_state(storage, folder):
        return ()
    active = {one.identity for one in timeline.completed}
    found = archived_instants(storage, folder)
    return tuple(one for one in found if one.identity not in active and not seen.saw_archived(one))


def _files(storage: Storage, folder: str) -> list[str]:
    return [info.path for info in storage.list(folder) if _NAME.fullmatch(split(info.path)[1])]


def _may_hold(path: str, least: str, greatest: str) -> bool:
    match = _NAME.fullmatch(split(path)[1])
    return match is not None and match["least"] <= greatest and least <= match["greatest"]


def _check_size(footer: pq.FileMetaData) -> None:
    """Refuse rows without number: what repeats takes no bytes in the file, and takes them in memory."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    leaves = [number for number in range(footer.num_columns) if footer.schema.column(number).name in _COLUMNS]
    size = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    if footer.num_rows > _MOST_ROWS or size > MOST_BYTES:
        raise ValueError(f"it has {footer.num_rows} instants, with {size} bytes of times")


def _read(storage: Storage, path: str, columns: list[str]) -> pa.Table:
    import pyarrow.parquet as pq  # noqa: PLC0415 (most tables are younger than their archive)

    try:
        with pq.ParquetFile(storage.open_input(path), page_checksum_verification=True) as file:
            _check_size(file.metadata)
            rows = file.read(columns, use_threads=False).select(columns)
            if any(rows.column(name).null_count for name in _COLUMNS):
                raise ValueError("it has an instant without a time or an action")
            return rows
    except FileNotFoundError as error:
        raise StorageError(
            f"The archived timeline's file {join(storage.path, path)} was merged into another one while it was needed.",
            "Run it again.",
        ) from error
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise CorruptInstantError(
            f"The archived timeline's file {join(storage.path, path)} cannot be read "
            f"({type(error).__name__}: {error}).",
            "Restore the file from a backup; until then nobody can tell what was written when.",
        ) from error


def _instants(rows: pa.Table) -> Iterator[Instant]:
    times = (rows.column(name).cast(pa.string()).to_pylist() for name in _COLUMNS)
    for requested, completed, action in zip(*times, strict=True):
        yield Instant(requested, action, State.COMPLETED, completed)
