"""A timeline that also holds the archived instants, whose bodies are read from the archive."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from ...errors import StorageError
from ..instant_files import InstantFiles
from ..instants import Instant, State
from ..listing import newest_states
from ..metadata.codec import InstantBody
from ..pending_undo import on_the_way_out
from ..timeline import Timeline
from .archive import Archive

# Callers read bodies in the order of their instants, so a row group is decoded once for this many.
_AT_ONCE = 32
_MOST_BODIES = 2 * _AT_ONCE


class SilentArchiveError(Exception):
    """The archive holds an instant without its body; readers turn this into an error for users."""

    def __init__(self, instant: Instant) -> None:
        super().__init__(f"the archive does not say what the {instant.action} {instant.requested_time} did")
        self.instant = instant


class _Bodies:
    """Reads the bodies of archived instants some at a time, and keeps the last that it read."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._instants: list[Instant] = []
        self._positions: dict[str, int] = {}
        self._bodies_by_part: OrderedDict[int, Mapping[Instant, bytes]] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[_Bodies], tuple[Archive]]:
        return _Bodies, (self.archive,)

    def expect(self, instants: Iterable[Instant]) -> None:
        """Set the instants that the archive holds, in order of requested time."""
        with self._lock:
            self._instants = list(instants)
            self._positions = {instant.identity: number for number, instant in enumerate(self._instants)}
            self._bodies_by_part.clear()

    def holds(self, instant: Instant) -> bool:
        """Return whether the archive held an instant when its instants were read."""
        return instant.identity in self._positions

    def find(self, instant: Instant) -> bytes | None:
        """Return an instant's body; None if the archive did not hold the instant, or has no body of it.

        The bodies of its neighbours are read along, as callers ask for them next; those of older parts are dropped.
        """
        with self._lock:
            if not self.holds(instant):
                return None
            part = self._positions[instant.identity] // _AT_ONCE
            if part not in self._bodies_by_part:
                start = part * _AT_ONCE
                self._bodies_by_part[part] = self.archive.bodies(self._instants[start : start + _AT_ONCE])
                while len(self._bodies_by_part) * _AT_ONCE > _MOST_BODIES:
                    self._bodies_by_part.popitem(last=False)
            return self._bodies_by_part[part].get(instant)


@dataclass(frozen=True, slots=True)
class HistoryFiles(InstantFiles):
    """The instants of a table, with the archived instants, of which only the bodies can be read."""

    bodies: _Bodies

    @property
    def source(self) -> str:
        return f"{self.folder} {self.bodies.archive.folder}"

    def listed(self) -> tuple[tuple[Instant, ...], bool]:
        """Return the newest state of each active or archived instant, and whether the timeline has unfinished files."""
        # An instant is in the archive before it leaves the timeline, so the timeline is listed first.
        active, unfinished_files = InstantFiles.listed(self)
        archived = self.bodies.archive.instants()
        self.bodies.expect(archived)
        return newest_states([*active, *archived]), unfinished_files

    def _read(self, instant: Instant) -> InstantBody:
        """Return a body from the archive, or from the timeline; from the archive again if it moved meanwhile.

        Raises SilentArchiveError if the archive holds the instant without its body.
        """
        where = f"{instant.requested_time} in the archive of {self.storage.path}"
        body = self.bodies.find(instant)
        if body is not None:
            return InstantBody(body, where)
        try:
            return InstantFiles._read(self, instant)
        except StorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if self.bodies.holds(instant):
                raise SilentArchiveError(instant) from error
            # The instant was archived since the timeline was listed, or rolled back.
            body = self.bodies.archive.bodies([instant]).get(instant)
            if body is None:
                raise
            return InstantBody(body, where)


def with_archived(archive: Archive, timeline: Timeline) -> Timeline | None:
    """Return a timeline with the archived instants, too, in order of requested time.

    None if the archive does not show which instants were complete at the timeline's moment, or their actions: readers
    then do without the archived instants.
    """
    active, bodies = timeline.files, _Bodies(archive)
    archived = archive.instants()
    bodies.expect(archived)
    # A completed instant has the action of its group; with any other, the archive does not show its action.
    if any(instant.action != instant.group for instant in archived):
        return None
    seen_then = timeline.seen
    if seen_then is not None:
        # Such an instant completed after all that the moment names; it may or may not have been archived before.
        if any(
            not seen_then.saw_archived(instant) and instant.requested_time < seen_then.watermark.first_write
            for instant in archived
        ):
            return None
        archived = tuple(
            instant if seen_then.saw_archived(instant) else instant.at(State.INFLIGHT) for instant in archived
        )
    files = HistoryFiles(active.storage, active.layout, active.codec, archive, active.is_current, bodies)
    return Timeline(newest_states([*timeline.instants, *archived]), files)


def undone(history: Timeline) -> frozenset[str]:
    """Return the requested times of writes that a rollback or restore of a timeline undid, or is going to undo."""
    times = set(on_the_way_out(history))
    for instant in history.completed:
        if instant.is_undo:
            times.update(history.files.read_undone(instant))
    return frozenset(times)
