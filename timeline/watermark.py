"""A moment of a timeline that can be found again later, however much completed and was archived since.

The moment is the set of completed instants, never a time, as the clocks of several hosts differ. It names the youngest
instants. Of all older instants it has the number and a digest, against which the same instants are found again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .instants import WRITE_ACTIONS, Instant, State

RECENT = 500

# A savepoint has the time of the commit that it keeps, and its deletion leaves no trace.
_SAVEPOINT = "savepoint"


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of instants in a set, the least identity, and a digest of all identities."""

    count: int = 0
    first: str = ""
    digest: str = ""

    @classmethod
    def of(cls, identities: Iterable[str]) -> Tally:
        """Return the tally of a set of identities."""
        ordered = sorted(identities)
        if not ordered:
            return cls()
        return cls(len(ordered), ordered[0], hashlib.sha256("\n".join(ordered).encode()).hexdigest())


def spell_moment(completed: Iterable[Instant]) -> str:
    """Return a text for the set of completed instants: its last time, its number and its digest.

    Rows that were made from a table's rows carry it, and their write checks that the timeline still shows that moment.
    """
    completed = tuple(completed)
    tally = Tally.of(instant.identity for instant in completed if instant.action != _SAVEPOINT)
    return f"{max((instant.visible_since for instant in completed), default='')}:{tally.count}:{tally.digest}"


@dataclass(frozen=True, slots=True)
class Watermark:
    """A moment of a timeline, small enough to travel with every task.

    Attributes:
        first_write: Requested time of the first write, pending or completed: an older instant counts as archived.
        recent: Identities of the youngest completed instants, `RECENT` at most.
        older: The tally of all other completed instants.
        archive: The state of the archive right before the moment was taken; "" if unknown.
        by_time: Whether a user gave the moment as a completion time: it sees archived instants that completed until
            then, whatever was on the timeline.
    """

    completed_until: str
    first_write: str = ""
    recent: frozenset[str] = frozenset()
    older: Tally = Tally()
    archive: str = ""
    by_time: bool = False

    @classmethod
    def of(cls, instants: Iterable[Instant]) -> Watermark:
        """Return the moment at which these instants were the timeline's."""
        instants = tuple(instants)
        completed = [instant for instant in instants if instant.state == State.COMPLETED]
        identities = sorted(instant.identity for instant in completed if instant.action != _SAVEPOINT)
        return cls(
            completed_until=max((instant.visible_since for instant in completed), default=""),
            first_write=min((instant.requested_time for instant in instants if instant.is_write), default=""),
            recent=frozenset(identities[-RECENT:]),
            older=Tally.of(identities[:-RECENT]),
        )

    def find_completed(
        self, completed: Iterable[Instant], archived: Callable[[], Iterable[Instant]] = tuple
    ) -> Seen | None:
        """Return the instants that were complete at that moment; None if they cannot be found any more.

        ``archived`` returns all archived instants, and is called only if the active timeline does not suffice.
        """
        if not self.older.count:
            # The watermark itself names them all.
            return Seen(self)
        active = self._possibly_older(completed)
        if Tally.of(active) == self.older:
            return Seen(self, active)
        # Some of them were archived since.
        candidates = active | self._possibly_older(archived())
        return Seen(self, candidates) if Tally.of(candidates) == self.older else None

    def _possibly_older(self, completed: Iterable[Instant]) -> frozenset[str]:
        """Return the identities of instants that may be among those that the watermark counts and does not name."""
        least_recent = min(self.recent)
        return frozenset(
            instant.identity
            for instant in completed
            if instant.action != _SAVEPOINT
            and self.older.first <= instant.identity < least_recent
            and instant.visible_since <= self.completed_until
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """The instants that were complete at a moment; ``older`` are those that the watermark itself does not name."""

    watermark: Watermark
    older: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Identities of the completed instants, without savepoints."""
        return self.watermark.recent | self.older

    def saw(self, instant: Instant) -> bool:
        """Return whether an instant was complete at that moment."""
        # No moment names savepoints, so their time decides.
        if instant.action == _SAVEPOINT:
            return instant.visible_since <= self.watermark.completed_until
        return self._names(instant.identity)

    def saw_archived(self, instant: Instant) -> bool:
        """Return whether an instant that is archived now was completed, or archived already, at that moment."""
        if self.saw(instant):
            return True
        mark = self.watermark
        if mark.by_time:
            return instant.visible_since <= mark.completed_until
        # An instant older than the first write of then counted as archived.
        return instant.requested_time < mark.first_write and instant.visible_since <= mark.completed_until

    def saw_write(self, requested_time: str) -> bool:
        """Return whether a write was completed at that moment, or archived already."""
        if requested_time < self.watermark.first_write:
            return True
        return any(self._names(Instant(requested_time, action, State.COMPLETED).identity) for action in WRITE_ACTIONS)

    def _names(self, identity: str) -> bool:
        return identity in self.watermark.recent or identity in self.older
