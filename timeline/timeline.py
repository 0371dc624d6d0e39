"""All instants of a table at one moment: which are completed, which are pending, which are new since then."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import attrgetter

from ..storage.base import Storage
from .instant_files import InstantFiles
from .instants import WRITE_ACTIONS, Instant, State
from .watermark import Seen, Watermark

_TIME_DIGITS = 17


@dataclass(frozen=True)
class Timeline:
    """The newest states of a table's active instants, in order of requested time.

    ``seen`` holds the instants that were complete at the moment that `as_of` went back to; None for the present.
    ``unfinished_files``: whether the folder had a file in the making, or what a killed process left of it.
    """

    instants: tuple[Instant, ...]
    files: InstantFiles = field(repr=False, compare=False)
    seen: Seen | None = None
    unfinished_files: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def load(cls, files: InstantFiles) -> Timeline:
        """Return the timeline as one listing shows it."""
        instants, unfinished_files = files.listed()
        return cls(instants, files, unfinished_files=unfinished_files)

    def reload(self) -> Timeline:
        return Timeline.load(self.files)

    @property
    def storage(self) -> Storage:
        return self.files.storage

    @cached_property
    def completed(self) -> tuple[Instant, ...]:
        return tuple([instant for instant in self.instants if instant.state == State.COMPLETED])

    @cached_property
    def pending(self) -> tuple[Instant, ...]:
        return tuple([instant for instant in self.instants if instant.state != State.COMPLETED])

    @cached_property
    def writes(self) -> tuple[Instant, ...]:
        """The completed commits, deltacommits and replacecommits."""
        return tuple([instant for instant in self.completed if instant.action in WRITE_ACTIONS])

    def find(self, requested_time: str) -> Instant | None:
        """Return the instant of a requested time; the write, if a savepoint or another action shares the time."""
        instants: list[Instant] = []
        position = bisect_left(self.instants, requested_time, key=attrgetter("requested_time"))
        while position < len(self.instants) and self.instants[position].requested_time == requested_time:
            instants.append(self.instants[position])
            position += 1
        return next((instant for instant in instants if instant.is_write), instants[0] if instants else None)

    def greatest_time(self) -> str | None:
        """Return the greatest requested or completion time of 17 digits; None without one."""
        # Instants are in order of requested time, so the last that has 17 digits has the greatest.
        newest_first = (
            instant.requested_time for instant in reversed(self.instants) if len(instant.requested_time) == _TIME_DIGITS
        )
        times = [instant.completion_time for instant in self.completed if instant.completion_time is not None]
        return max([*islice(newest_first, 1), *[time for time in times if len(time) == _TIME_DIGITS]], default=None)

    @cached_property
    def completed_until(self) -> str:
        """The time from which readers see the newest completed instant; "" without one."""
        if self.seen is not None:
            return self.seen.watermark.completed_until
        return max([instant.visible_since for instant in self.completed], default="")

    def is_committed(self, requested_time: str) -> bool:
        """Return whether readers may see rows that an instant wrote: it is completed, or counts as archived.

        An instant older than the timeline's first write counts as archived (Apache Hudi's
        ``CompletionTimeQueryViewV2``), on a timeline of the past only if it was complete then, or older than the first
        write of then.
        """
        if requested_time in self._writes:
            return requested_time in self._committed
        if self.seen is None:
            return requested_time < self._first_write
        first_write = max(self._first_write, self.seen.watermark.first_write)
        return requested_time < first_write and self.seen.saw_write(requested_time)

    @cached_property
    def _writes(self) -> frozenset[str]:
        return frozenset([instant.requested_time for instant in self.instants if instant.is_write])

    @cached_property
    def _first_write(self) -> str:
        return next((instant.requested_time for instant in self.instants if instant.is_write), "")

    @cached_property
    def _committed(self) -> frozenset[str]:
        return frozenset([instant.requested_time for instant in self.completed if instant.is_write])

    def watermark(self) -> Watermark:
        """Return the timeline's moment, small enough to travel."""
        return Watermark.of(self.instants) if self.seen is None else self.seen.watermark

    def as_of(self, seen: Seen) -> Timeline:
        """Return the timeline with instants that were incomplete at a moment reset to inflight.

        They keep their place, so that the same instants count as archived as at that moment.
        """
        return Timeline(_back_to_inflight(self.instants, seen.saw), self.files, seen)

    def as_of_request(self, time: str) -> Timeline:
        """Return the timeline with instants requested after a time reset to inflight, whenever they completed."""
        instants = _back_to_inflight(self.instants, lambda instant: instant.requested_time <= time)
        return Timeline(instants, self.files, self.seen)

    def as_of_completion(self, time: str) -> Timeline:
        """Return the timeline with instants that completed after a time reset to inflight."""
        instants = _back_to_inflight(self.instants, lambda instant: instant.visible_since <= time)
        return Timeline(instants, self.files, self.seen)

    def without(self, times: Collection[str]) -> Timeline:
        """Return the timeline with some writes, by requested time, reset to inflight.

        A write sees this timeline if it is about to roll these writes back.
        """
        if not times:
            return self
        instants = _back_to_inflight(
            self.instants, lambda instant: not instant.is_write or instant.requested_time not in times
        )
        return Timeline(instants, self.files, self.seen)

    def write_at(self, requested_time: str) -> Instant | None:
        """Return the write of a requested time; None if there is none."""
        instant = self.find(requested_time)
        return instant if instant is not None and instant.is_write else None

    def completed_since(self, seen: Seen) -> tuple[Instant, ...]:
        """Return the instants that completed after a moment, in the order in which readers came to see them."""
        instants = (instant for instant in self.completed if not seen.saw(instant))
        return tuple(sorted(instants, key=lambda instant: (instant.visible_since, instant.requested_time)))

    def vanished(self, seen: Seen) -> tuple[str, ...]:
        """Return the requested times of writes that were complete at a moment, and were removed since.

        A write older than the timeline's first write counts as archived, except the newest: an undo removes that first.
        """
        times = sorted(
            time for time, _, group in (name.partition(".") for name in seen.names) if group in WRITE_ACTIONS
        )
        return tuple(
            time
            for time in times
            if time not in self._committed and (not time < self._first_write or time == times[-1])
        )

    def complete(self, completed: Instant, body: bytes) -> bool:
        """Create the completed file, which makes the instant part of the table; False if it is completed already.

        ``completed`` is the instant in its completed state, and ``body`` the content of the file.
        """
        # The name holds the completion time, so create-if-absent alone would let an instant complete twice.
        if any(
            (instant.requested_time, instant.group) == (completed.requested_time, completed.group)
            for instant in self.completed
        ):
            return False
        return self.files.storage.create(self.files.path(completed), body)


def _back_to_inflight(instants: Iterable[Instant], stays: Callable[[Instant], bool]) -> tuple[Instant, ...]:
    """Return the instants, with each completed instant reset to inflight for which ``stays`` returns false."""
    return tuple(
        instant if instant.state != State.COMPLETED or stays(instant) else instant.at(State.INFLIGHT)
        for instant in instants
    )
