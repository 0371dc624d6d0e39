"""The instants that have left a table's timeline: what an archive answers in each format, and what its writer does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...errors import UnreadableTimeError
from ...storage.base import Storage
from ..instant_files import InstantFiles
from ..instants import WRITE_ACTIONS, Instant
from ..timeline import Timeline
from ..watermark import Seen, Watermark


@dataclass(frozen=True, slots=True)
class Archive(ABC):
    """The archive of one table; a format reads its files, and all else follows from them.

    Every method raises CorruptInstantError if a file of the archive cannot be read, and StorageError if the store
    failed. Instants are in order of requested time, each once.
    """

    storage: Storage
    folder: str

    @abstractmethod
    def instants(self, since: str = "", until: str | None = None) -> tuple[Instant, ...]:
        """Return the archived instants, opening only files with requested times from ``since`` to ``until``."""

    @abstractmethod
    def newest(self, count: int | None, besides: frozenset[str]) -> tuple[Instant, ...]:
        """Return the ``count`` youngest archived instants, the youngest first, opening few files; all for None.

        ``besides`` are the identities of instants to leave out.
        """

    @abstractmethod
    def bodies(self, wanted: Iterable[Instant]) -> Mapping[Instant, bytes]:
        """Return the bodies of some completed instants, as far as the archive has them."""

    @abstractmethod
    def file_names(self) -> frozenset[str]:
        """Return the names of the files that hold the archived instants; such a file never changes."""

    @abstractmethod
    def bodies_in(self, names: Iterable[str], times: Sequence[str] | None = None) -> Iterator[tuple[Instant, bytes]]:
        """Yield the instants that have a body in some files, with the body.

        ``times`` are the requested times wanted, in order; None for all.
        """

    @abstractmethod
    def state(self) -> str:
        """Return a text that changes whenever instants are archived, in one listing and one read."""

    @abstractmethod
    def is_there(self) -> bool:
        """Return whether the folder has a file of an archive, whole or not."""

    def timed(self) -> tuple[Instant, ...]:
        """Return the archived instants with their completion times, as far as the archive tells them."""
        return self.instants()

    def writes(self) -> tuple[Instant, ...]:
        """Return the archived writes."""
        return tuple(instant for instant in self.instants() if instant.action in WRITE_ACTIONS)

    def known_of(self, instants: Sequence[Instant]) -> frozenset[Instant]:
        """Return those of some instants, given in order of requested time, that the archive holds."""
        if not instants:
            return frozenset()
        archived = self.instants(instants[0].requested_time, instants[-1].requested_time)
        return frozenset(archived).intersection(instants)

    def holds(self, requested_time: str) -> bool:
        """Return whether an instant with a requested time is archived."""
        near = self.instants(requested_time, requested_time)
        return any(instant.requested_time == requested_time for instant in near)

    def write_at(self, requested_time: str) -> Instant | None:
        """Return the archived write of a requested time; None if there is none."""
        near = self.instants(requested_time, requested_time)
        return next(
            (instant for instant in near if instant.requested_time == requested_time and instant.is_write), None
        )

    def seen_at(self, timeline: Timeline, watermark: Watermark) -> Seen:
        """Return the instants that were complete at a watermark's moment; UnreadableTimeError if that is unknown."""
        seen_instants = watermark.find_completed(timeline.completed, lambda: self._older_than_recent(watermark))
        if seen_instants is None:
            raise UnreadableTimeError(
                f"What the table {self.storage.path} held when its newest instant was completed at "
                f"{watermark.completed_until} is unknown now: instants of that time have left its timeline without "
                "being archived, or other instants were put between them.",
                "Make the DataFrame anew.",
            )
        return seen_instants

    def completed_since(self, timeline: Timeline, seen: Seen) -> tuple[Instant, ...]:
        """Return the archived instants that completed after the moment of ``seen`` and are not on ``timeline``."""
        state = seen.watermark.archive
        # Nothing was archived since. An empty state is unknown, so that the archive is read.
        if state and state == self.state():
            return ()
        active = {instant.identity for instant in timeline.completed}
        # A clean or rollback older than the first write of then is archived together with writes that were on the
        # timeline then. A moment that a user gave does not have its first write.
        archived = self.instants("" if seen.watermark.by_time else seen.watermark.first_write)
        return tuple(
            instant for instant in archived if instant.identity not in active and not seen.saw_archived(instant)
        )

    def _older_than_recent(self, watermark: Watermark) -> tuple[Instant, ...]:
        """Return the archived instants that may be among those that a watermark counts and does not name.

        They lie between its first and its least recent instant, whose identities begin with the requested time.
        """
        first = watermark.older.first.partition(".")[0]
        return self.instants(first, min(watermark.recent).partition(".")[0])


@dataclass(frozen=True, slots=True)
class MergedFile:
    """A file of an archive that took the place of others."""

    name: str
    inputs: tuple[str, ...]


class ArchiveWriter(Protocol):
    """Changes an archive; every method may be called again after it broke off, and beside other processes."""

    def put(self, instants: Sequence[Instant], files: InstantFiles) -> None:
        """Add instants of a timeline, in order of requested time, with what their files hold."""

    def merge(self, aside: str, batch: int) -> list[MergedFile]:
        """Merge small files of the archive, ``batch`` or more, in the making in the folder ``aside``."""

    def tidy(self, merged: Sequence[MergedFile]) -> None:
        """Delete what no reader needs any more after `merge`."""
