"""Threads of which exactly one runs at a time, and a clock that moves only when the scheduler says so.

Each actor is a thread that asks before every storage call and in place of every sleep. What comes next depends on the
schedule alone, so a seed repeats an interleaving step by step.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from support.interleaving.schedule import Schedule

# More than any interleaving takes that gets ahead.
MOST_STEPS = 20_000
# The seconds without a sign of life after which a writer counts as dead, and a stall that is longer.
TOLERANCE_S = 2.0
STALL_S = 1.5 * TOLERANCE_S
_BEGAN = 1_700_000_000.0


class Gone(BaseException):
    """The process that made this step is gone: nothing catches it, nothing cleans up."""


class Fate(Enum):
    """What befalls an actor."""

    KILLED = "killed"
    STALLED = "stalled"
    ASLEEP = "stalled until the others are over"


@dataclass
class Timer:
    """A heartbeat of an actor that has a thread of its own."""

    actor: Actor
    every_s: float
    due: float
    beat: Callable[[], None]


@dataclass
class Actor:
    """One process.

    Attributes:
        fates: What befalls it, by the number of its step.
        steps: How many it took.
        wakes: When it stops to sleep.
        stalls_until: The step of all actors up to which it is stalled; 0 where it is not.
        quiet_s: The longest time without a step since its work began, which a judge may take for its death.
    """

    number: int
    work: Callable[[Actor], None]
    fates: dict[int, Fate] = field(default_factory=dict)
    steps: int = 0
    wakes: float = 0.0
    stalls_until: int = 0
    is_over: bool = False
    killed: bool = False
    quiet_s: float = 0.0
    stepped_at: float = 0.0
    baton: threading.Lock = field(default_factory=threading.Lock)
    error: BaseException | None = None

    def begins(self, now: float) -> None:
        """Begin to count its signs of life anew."""
        self.quiet_s, self.stepped_at = 0.0, now

    def quiet_until(self, now: float) -> float:
        """Return the longest time without a step, up to now."""
        return max(self.quiet_s, now - self.stepped_at)


@dataclass(eq=False)
class Scheduler:
    """Runs actors, one step of one of them at a time.

    Attributes:
        now: Its clock, in epoch seconds.
        steps: How many all actors took.
        taken: Which actor took each step, and what the step was.
        failure: Why the interleaving is over before its end.
    """

    schedule: Schedule
    now: float = _BEGAN
    steps: int = 0
    taken: list[tuple[int, str]] = field(default_factory=list)
    failure: str = ""
    actors: list[Actor] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    _here: dict[int, Actor] = field(default_factory=dict)
    _quiet: bool = False
    _all_over: threading.Lock = field(default_factory=threading.Lock)

    def run(self, actors: Sequence[Actor]) -> None:
        """Run actors until each is over, or gone; those of an earlier call are remembered."""
        self.actors += actors
        self.schedule.begin(len(self.actors))
        for actor in actors:
            actor.baton.acquire()
        self._all_over.acquire()
        threads = [threading.Thread(target=self._live, args=(one,), daemon=True) for one in actors]
        for thread in threads:
            thread.start()
        self._hand_on()
        self._all_over.acquire()
        self._all_over.release()
        for thread in threads:
            thread.join()
        for actor in actors:
            if actor.error is not None:
                raise actor.error

    def here(self) -> Actor | None:
        """Return the actor of the calling thread."""
        return self._here.get(threading.get_ident())

    def step(self, what: str) -> None:
        """Let other actors come first, as the schedule says."""
        actor = self.here()
        if actor is None or self._quiet:
            return
        if actor.killed or self.failure:
            raise Gone(what)
        self.steps += 1
        actor.steps += 1
        self.taken.append((actor.number, what))
        if self.steps > MOST_STEPS:
            self.fail(f"nothing gets ahead any more: {MOST_STEPS} steps were taken")
            raise Gone(what)
        self._pass_time(self.now + self.schedule.tick_s)
        fate = actor.fates.get(actor.steps)
        if fate is not None:
            self._befall(actor, fate)
        self._let_run(actor, what)

    def sleep(self, seconds: float) -> None:
        """Let others run, until the clock has moved."""
        actor = self.here()
        if actor is None or self._quiet:
            return
        if actor.killed or self.failure:
            raise Gone("sleep")
        self.steps += 1
        self.taken.append((actor.number, f"sleep {seconds:.3f}"))
        if self.steps > MOST_STEPS:
            self.fail(f"nothing gets ahead any more: {MOST_STEPS} steps were taken")
            raise Gone("sleep")
        actor.wakes = self.now + max(seconds, 0.0)
        self._let_run(actor, "sleep")

    def let_pass(self, seconds: float) -> None:
        """Let time pass in which no actor does anything."""
        self._pass_time(self.now + seconds)

    def fail(self, why: str) -> None:
        """End the interleaving."""
        self.failure = self.failure or why

    def quietly(self, call: Callable[[], object]) -> object:
        """Call without a step, whatever the call asks of a store."""
        before, self._quiet = self._quiet, True
        try:
            return call()
        finally:
            self._quiet = before

    def beats(self, every_s: float, beat: Callable[[], None]) -> Timer | None:
        """Have an actor give signs of life from now on."""
        actor = self.here()
        if actor is None:
            return None
        timer = Timer(actor, every_s, self.now + every_s, beat)
        self.timers.append(timer)
        return timer

    def text(self) -> str:
        """Return the steps, those that an actor took at once in one line."""
        lines = []
        for number, run in itertools.groupby(self.taken, key=lambda one: one[0]):
            steps = [what for _, what in run]
            lines.append(f"  {number}: {len(steps)} steps: {'; '.join(steps)}")
        return "\n".join(lines)

    # --- which actor comes next

    def _live(self, actor: Actor) -> None:
        self._here[threading.get_ident()] = actor
        actor.baton.acquire()
        try:
            actor.work(actor)
        except Gone:
            pass
        except BaseException as error:  # noqa: BLE001 (of the thread, to be raised where the test sees it)
            actor.error = error
            self.fail(f"actor {actor.number}: {type(error).__name__}: {error}")
        del self._here[threading.get_ident()]
        actor.is_over = True
        self.timers = [one for one in self.timers if one.actor is not actor]
        self._hand_on()

    def _hand_on(self) -> None:
        chosen = self._choose(None, "")
        if chosen is None:
            self._all_over.release()
        else:
            chosen.baton.release()

    def _let_run(self, actor: Actor, what: str) -> None:
        chosen = self._choose(actor, what)
        if chosen is not actor and chosen is not None:
            chosen.baton.release()
            actor.baton.acquire()
        actor.quiet_s = actor.quiet_until(self.now)
        actor.stepped_at = self.now
        if self.failure:
            raise Gone(what)

    def _choose(self, actor: Actor | None, what: str) -> Actor | None:
        left = [one for one in self.actors if not one.is_over]
        if not left:
            return None
        if self.failure:
            return left[0] if actor is None or actor.is_over else actor
        for candidate in left:
            if candidate.stalls_until and candidate.stalls_until <= self.steps:
                candidate.stalls_until = 0
        awake = [one for one in left if not one.stalls_until]
        if not awake:
            awake = left[:1]
            awake[0].stalls_until = 0
        ready = [one for one in awake if one.wakes <= self.now]
        if not ready:
            self._pass_time(min(one.wakes for one in awake))
            ready = [one for one in awake if one.wakes <= self.now]
        return self.schedule.choose(actor if actor in ready else None, ready, self.steps, what)

    def _befall(self, actor: Actor, fate: Fate) -> None:
        if fate is Fate.KILLED:
            actor.killed = True
            self.timers = [one for one in self.timers if one.actor is not actor]
            raise Gone(fate.value)
        # Its heart stops, too, and the others live on for longer than they are patient.
        actor.stalls_until = MOST_STEPS if fate is Fate.ASLEEP else self.steps + self.schedule.stall()
        self._pass_time(self.now + STALL_S)

    def _pass_time(self, until: float) -> None:
        while True:
            due = [one for one in self.timers if one.due <= until and not one.actor.stalls_until]
            if not due:
                break
            first = min(due, key=lambda one: one.due)
            self.now = max(self.now, first.due)
            self.quietly(first.beat)
            first.due = self.now + first.every_s
        self.now = max(self.now, until)
