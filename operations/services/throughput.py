"""Estimates how much work of a service fits into some seconds of this process, from its earlier work of that kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...storage.kept import keep
from ...table.files.output import MIB
from ...timeline.delta_commits import since_compaction
from ...timeline.timeline import Timeline

# What a plan costs besides its units, in bytes that a process reads and writes in the same time.
_PER_PLAN = MIB
# A first guess. A process's first plan has one unit, or as many as fit by the guess into this part of the seconds.
_GUESS = 32.0 * MIB
_PART = 0.25
# A plan is made for this part of the seconds, so that most plans fit even if they take longer than expected.
_SHARE = 0.8
# After a call for which no unit was small enough, the share grows: the machine may have been busy when it was measured.
_MORE, _MOST = 1.25, 1.6
_BACKOFF = 5
_MOST_TABLES = 256


@dataclass(frozen=True, slots=True)
class Throughput:
    """Bytes that a service reads and writes in a second.

    Attributes:
        share: The part of the seconds that a plan may take for which it is made.
    """

    bytes_s: float = _GUESS
    measured: bool = False
    share: float = _SHARE

    def fits(self, costs: Sequence[int], seconds: float) -> list[int]:
        """Return the positions in `costs`, from 0, of the units that together probably fit into so many seconds.

        A unit's cost is in bytes that are read and written. A unit that does not fit is passed over for smaller ones.
        """
        room = self._room_bytes(seconds)
        chosen: list[int] = []
        for position, cost in enumerate(costs):
            if cost <= room:
                # As long as this is a guess, a plan takes a part of the seconds, or a single unit.
                if not chosen and not self.measured:
                    room = max(room * _PART, cost)
                room -= cost
                chosen.append(position)
        return chosen

    def allows(self, costs: Iterable[int], seconds: float) -> bool:
        """Return whether a plan whose units have these costs probably fits into so many seconds."""
        return sum(costs) <= self._room_bytes(seconds)

    def after(self, costs: Iterable[int], seconds: float) -> Throughput:
        """Return the throughput after units of these costs took so many seconds: the mean with earlier measures."""
        measured = (_PER_PLAN + sum(costs)) / max(seconds, 0.001)
        # Seconds vary with what else the machine does.
        return Throughput((self.bytes_s + measured) / 2 if self.measured else measured, measured=True)

    def _room_bytes(self, seconds: float) -> float:
        """Return how many bytes the units of a plan may cost so that it takes at most so many seconds."""
        return self.bytes_s * self.share * seconds - _PER_PLAN


@dataclass(frozen=True, slots=True)
class Rest:
    """The units that the newest plan of a service left out.

    Attributes:
        delta_commits: The most delta commits that any of them had; 0 if the plan took all units.
        until: The greatest time on the timeline of the plan.
        backoff: How many calls pass before the service looks again, because no unit fitted.
    """

    delta_commits: int = 0
    until: str = ""
    backoff: int = 0

    def by_now(self, timeline: Timeline) -> int:
        """Return how many delta commits a unit that the plan left out may have on a later timeline.

        Each later delta commit may have changed that unit. It is 0 if the plan took all units.
        """
        if not self.delta_commits:
            return 0
        return self.delta_commits + sum(time > self.until for time in since_compaction(timeline).since)


_THROUGHPUTS: dict[tuple[str, str], Throughput] = {}
_RESTS: dict[tuple[str, str], Rest] = {}


def throughput_of(path: str, action: str) -> Throughput:
    """Return the throughput of a service on the table at a path."""
    return _THROUGHPUTS.get((path, action), Throughput())


def rest_of(path: str, action: str) -> Rest:
    """Return how many delta commits wait in units that a service's newest plan left out, and the calls to pass over.

    If this process made no such plan on the table, nothing waits and no call is passed over.
    """
    return _RESTS.get((path, action), Rest())


def note_work(path: str, action: str, costs: Sequence[int], seconds: float) -> None:
    """Note that units of these costs took so many seconds, for the next plan, and end the service's backoff."""
    if costs:
        keep(_THROUGHPUTS, (path, action), throughput_of(path, action).after(costs, seconds), _MOST_TABLES)
        keep(_RESTS, (path, action), replace(rest_of(path, action), backoff=0), _MOST_TABLES)


def note_nothing_fits(path: str, action: str) -> None:
    """Note that no unit fitted: the next plan may take a larger share of the seconds, and some calls are skipped."""
    throughput = throughput_of(path, action)
    keep(_THROUGHPUTS, (path, action), replace(throughput, share=min(throughput.share * _MORE, _MOST)), _MOST_TABLES)
    keep(_RESTS, (path, action), replace(rest_of(path, action), backoff=_BACKOFF), _MOST_TABLES)


def note_left_out(path: str, action: str, delta_commits: int, until: str) -> None:
    """Note what a plan left out, made on a timeline whose greatest time is `until`.

    At most `delta_commits` wait in any unit that it left out; 0 means that it took all units.
    """
    left_out = replace(rest_of(path, action), delta_commits=delta_commits, until=until)
    keep(_RESTS, (path, action), left_out, _MOST_TABLES)


def backoff_skips_call(path: str, action: str) -> bool:
    """Return whether a service on a table does nothing in this call, because no unit fitted before; count the call."""
    left_out = rest_of(path, action)
    if left_out.backoff:
        keep(_RESTS, (path, action), replace(left_out, backoff=left_out.backoff - 1), _MOST_TABLES)
    return left_out.backoff > 0
