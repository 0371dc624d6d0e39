"""Schedules: which of the actors that are ready takes the next step, by a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# Steps at which the fate of instants is decided.
DECISIVE = ("/timeline/", "/decisions", "/sealed", "/.heartbeat", "owner.json", "reserve", "/announce", "/tickets")
# About as many steps as one write takes.
_LENGTH = 110


@dataclass
class Schedule:
    """Decides by a seed alone.

    A schedule is one of three: an actor is left for another by chance before any step; or mostly before steps at which
    instants are decided; or an actor runs as far as it can, unless at one of a few steps it falls behind all others
    (probabilistic concurrency testing, Burckhardt et al. 2010).
    """

    seed: int
    tick_s: float = field(init=False)
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.tick_s = self._chance.choice([0.00005, 0.0004, 0.003])
        self._kind = self._chance.choice(["any", "decisive", "ranks", "ranks"])
        self._often = self._chance.choice([0.02, 0.1, 0.4])
        self._ranks: list[int] = []
        self._falls: set[int] = set()

    def begin(self, actors: int) -> None:
        """Learn how many actors there are."""
        self._ranks = self._chance.sample(range(actors), actors)
        falls = self._chance.randint(1, 5)
        self._falls = set(self._chance.sample(range(_LENGTH * actors), min(falls, _LENGTH * actors)))

    def choose(self, current: Any, ready: Sequence[Any], step: int, what: str) -> Any:
        """Return which of the actors takes the next step; `current` took the one before."""
        if len(ready) == 1:
            return ready[0]
        if self._kind == "ranks":
            if current is not None and step in self._falls:
                self._ranks[current.number] = min(self._ranks) - 1
            return max(ready, key=lambda one: self._ranks[one.number])
        often = self._often
        if self._kind == "decisive":
            often = min(1.0, 5 * often) if any(one in what for one in DECISIVE) else often / 10
        if current is not None and self._chance.random() >= often:
            return current
        return self._chance.choice(ready)

    def stall(self) -> int:
        """Return for how many steps of others an actor stalls."""
        return self._chance.choice([5, 40, 150, 1000])

    def random(self) -> float:
        """Return a number of an actor's own chance."""
        return self._chance.random()

    def bits(self, count: int) -> int:
        """Return random bits, of which an actor makes names."""
        return self._chance.getrandbits(count)
