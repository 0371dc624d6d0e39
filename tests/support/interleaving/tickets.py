"""What tickets promise, held against each storage step that touches one.

While a writer lives, no write that found its ticket there completes before that ticket is given back; and a write that
waits takes the ticket of a dead writer away as soon as it sees it, so that a dead writer holds no write back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from pyhudi.timeline.writers.tickets import FOLDER
from support.interleaving.scheduler import TOLERANCE_S, Actor, Scheduler

_FOLDER = f"{FOLDER}/"
# Seconds after which a write no longer waits for older ones.
_LONGEST_S = 60.0
Places = dict[str, list[str] | None]


@dataclass(eq=False)
class Left:
    """A ticket that lies there.

    Attributes:
        older: The tickets that its writer found, and has to wait for.
        dead: Those of dead writers that were there when it last looked, and when they were last touched.
        seen: When it first listed each ticket, by the ticket's name and the time when its writer last touched it.
    """

    name: str
    write_id: str
    actor: Actor | None
    places: Places | None
    began: float
    touched: float
    older: list[Left] = field(default_factory=list)
    dead: list[tuple[Left, float]] = field(default_factory=list)
    seen: dict[tuple[str, float], float] = field(default_factory=dict)
    is_given_back: bool = False

    def meets(self, other: Left) -> bool:
        """Return whether two writes rewrite the same data; never of one write that ran twice."""
        if self.write_id == other.write_id:
            return False
        if self.places is None or other.places is None:
            return True
        pairs = [(self.places[path], other.places[path]) for path in self.places if path in other.places]
        return any(mine is None or theirs is None or set(mine) & set(theirs) for mine, theirs in pairs)


@dataclass
class Tickets:
    """The tickets of one interleaving.

    Attributes:
        lives: Whether the writer of a write id gave signs of life all the time, and is at work.
        apart: Whether each writer is on a host of its own.
        met: How many writes completed after an older living write had given its ticket back.
    """

    scheduler: Scheduler
    lives: Callable[[str], bool]
    apart: Callable[[], bool]
    there: dict[str, Left] = field(default_factory=dict)
    met: int = 0

    def made(self, path: str, data: bytes) -> None:
        """Take note of a ticket that a write leaves, or touches."""
        if not path.startswith(_FOLDER):
            return
        now = self.scheduler.now
        if path in self.there:
            self.there[path].touched = now
            return
        told = json.loads(data)
        # The batches of a stream have ids that repetitions share, and the name of the try as their application.
        name, write_id = path.removeprefix(_FOLDER), told["owner"]["application"] or told["owner"]["write_id"]
        left = Left(name, write_id, self.scheduler.here(), told["places"], now, now)
        left.older = [one for one in self.there.values() if one.name < name and one.meets(left)]
        self.there[path] = left

    def deleted(self, path: str) -> None:
        """Check whose ticket is taken away."""
        left = self.there.pop(path, None)
        if left is None:
            return
        left.is_given_back = True
        here = self.scheduler.here()
        # The write id of a killed process may live on in a replay.
        killed = left.actor is not None and left.actor.killed
        if here is not left.actor and not killed and self.lives(left.write_id):
            self.scheduler.fail(f"the ticket {left.name} of {left.write_id} is taken away, though its writer lives")

    def listed(self, folder: str, began: float) -> None:
        """Check that the writer that lists the tickets does not see those of the dead again."""
        here = self.scheduler.here()
        own = next((one for one in self.there.values() if one.actor is here), None) if folder == FOLDER else None
        if own is None:
            return
        for left, touched in own.dead:
            if not left.is_given_back and left.touched == touched:
                self.scheduler.fail(f"{own.write_id} waits for the dead {left.write_id}")
        older = [one for one in self.there.values() if one.name < own.name and one.meets(own)]
        own.dead = [(one, one.touched) for one in older if began - self._silent_since(own, one, began) > TOLERANCE_S]
        # A write begins to watch a ticket when it first lists it.
        for ticket in older:
            own.seen.setdefault((ticket.name, ticket.touched), self.scheduler.now)

    def _silent_since(self, own: Left, other: Left, began: float) -> float:
        """Return since when a write counts another's silence: by its own clock where the other's process still runs."""
        if self.apart() or (other.actor is not None and other.actor.killed):
            return other.touched
        return max(other.touched, own.seen.get((other.name, other.touched), began))

    def completed(self, write_id: str) -> None:
        """Check that a write which completes let each older one go first."""
        own = next((one for one in reversed(self.there.values()) if one.write_id == write_id), None)
        if own is None or self.scheduler.now - own.began > _LONGEST_S:
            return
        passed = [one for one in own.older if not one.is_given_back and self.lives(one.write_id)]
        for ticket in passed:
            self.scheduler.fail(f"{write_id} passed {ticket.write_id}, which lives and whose ticket is older")
        self.met += bool(own.older and not passed)
