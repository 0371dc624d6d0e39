"""The machine on which actors run: one clock, one store, a process for each, and no thread beside the actors'."""

from __future__ import annotations

import concurrent.futures
import functools
import os
import random
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.process import Process
from pyhudi.timeline.writers.heartbeat import HeartbeatThread
from support.interleaving.schedule import Schedule
from support.interleaving.scheduler import Actor, Scheduler
from support.interleaving.store import SteppedStorage
from support.seams import patch_seam, read_seam

_FIRST_PID = 1 << 20

Made = Callable[[SteppedStorage, str, bytes], None]


@dataclass(eq=False)
class Machine:
    """What the actors of an interleaving share.

    Attributes:
        scheduler: Of the interleaving that runs.
        torn: Whether listings may be torn.
        apart: Whether each actor is on a host of its own, so that only heartbeats tell whether it lives.
        ahead_s: By how much the clock of each actor's host is ahead of the store's, by the actor's number.
        step: By how many seconds the clock of the one host, which is the store's too, steps, and after which step.
        made: Called for each new file.
        deleted: Called for each file that is deleted.
        listed: Called after each listing, with the folder and the time at which the listing began.
    """

    scheduler: Scheduler = field(default_factory=lambda: Scheduler(Schedule(0)))
    torn: bool = False
    apart: bool = False
    ahead_s: Mapping[int, float] = field(default_factory=dict)
    step: tuple[float, int] = (0.0, 0)
    made: Made = lambda *_: None
    deleted: Callable[[str], None] = lambda _: None
    listed: Callable[[str, float], None] = lambda *_: None

    def open(self, path: str, _: object = None) -> SteppedStorage:
        """Open a table's store."""
        return SteppedStorage(MemoryStorage.open(path), self)

    def forget(self) -> None:
        """Have the process know nothing of any table, as a new one."""
        read_seam("written files that the process knows").clear()
        read_seam("checkpoints of streams that the process knows").clear()
        read_seam("schemas of a metadata table that the process knows").clear()
        read_seam("writes until the process looks at a metadata table").clear()
        read_seam("files that the process watches").clear()
        read_seam("where this process met other writers").clear()
        read_seam("archived rescales that the process knows").clear()
        read_seam("footers in memory").__init__()
        read_seam("slices that this process knows").__init__()

    # --- clocks

    def store_clock(self) -> float:
        """Return the clock by which the store stamps files."""
        seconds, after = self.step
        return self.scheduler.now + (seconds if self.scheduler.steps > after else 0.0)

    def clock(self) -> float:
        """Return the clock of the host that calls."""
        actor = self.scheduler.here()
        return self.store_clock() + (0.0 if actor is None else self.ahead_s.get(actor.number, 0.0))

    # --- processes

    def process(self) -> Process:
        """Return the process that calls."""
        actor = self.scheduler.here()
        return Process(_FIRST_PID + (0 if actor is None else 1 + actor.number), "python", started="1")

    def find_process(self, pid: int) -> Process | None:
        """Return a process that is there."""
        number = pid - _FIRST_PID - 1
        found = [one for one in self.scheduler.actors if one.number == number]
        return None if found and found[0].killed else Process(pid, "python", started="1")

    def machine_id(self) -> str:
        """Return the name of the host that calls."""
        actor = self.scheduler.here()
        return f"host {actor.number}" if self.apart and actor is not None else "host"


class _Beats(HeartbeatThread):
    """A heartbeat by the scheduler's clock."""

    machine: Machine

    def __enter__(self) -> HeartbeatThread:
        self._touch()
        scheduler = self.machine.scheduler
        self._timer = scheduler.beats(self._interval_s, self._touch)
        return self

    def __exit__(self, *_: object) -> None:
        timers = self.machine.scheduler.timers
        if self._timer in timers:
            timers.remove(self._timer)


@contextmanager
def machine() -> Iterator[Machine]:
    """Have all that pyhudi does in this process happen on a machine of its own."""
    own_machine = Machine()
    with pytest.MonkeyPatch.context() as patch:
        _patch_clocks(patch, own_machine)
        _patch_chance(patch, own_machine)
        _patch_threads(patch, own_machine)
        patch_seam(patch, "stores by scheme", {**read_seam("stores by scheme"), "memory": own_machine.open})
        patch_seam(patch, "process that answers for a write", own_machine.process)
        patch_seam(patch, "find a process", own_machine.find_process)
        patch_seam(patch, "id of the machine", own_machine.machine_id)
        patch_seam(patch, "size of the reserve on the disk", 8)
        # Each actor is a process of its own.
        patch_seam(patch, "turn of a thread to write", lambda _: nullcontext())
        yield own_machine


def _patch_clocks(patch: pytest.MonkeyPatch, there: Machine) -> None:
    sleep = time.sleep

    def slept(seconds: float) -> None:
        if there.scheduler.here() is None:
            sleep(seconds)
        else:
            there.scheduler.sleep(seconds)

    patch.setattr(time, "time", there.clock)
    patch_seam(patch, "time of a store in memory", lambda _: there.store_clock())
    patch.setattr(time, "monotonic", lambda: there.scheduler.now)
    patch.setattr(time, "sleep", slept)
    waited = threading.Event.wait

    def wait(self: threading.Event, timeout: float | None = None) -> bool:
        if timeout is None or there.scheduler.here() is None:
            return waited(self, timeout)
        over = there.scheduler.now + timeout
        while not self.is_set() and there.scheduler.now < over:
            there.scheduler.sleep(min(0.05, over - there.scheduler.now))
        return self.is_set()

    patch.setattr(threading.Event, "wait", wait)


def _patch_chance(patch: pytest.MonkeyPatch, there: Machine) -> None:
    patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=there.scheduler.schedule.bits(128), version=4))
    patch.setattr(random, "uniform", lambda least, most: least + (most - least) * there.scheduler.schedule.random())

    patch.setattr(secrets, "randbelow", lambda bound: there.scheduler.schedule.bits(64) % bound)


def _get_cached(self: Any, instance: Any, owner: object = None) -> Any:
    if instance is None:
        return self
    if self.attrname not in instance.__dict__:
        instance.__dict__[self.attrname] = self.func(instance)
    return instance.__dict__[self.attrname]


def _patch_threads(patch: pytest.MonkeyPatch, there: Machine) -> None:
    submitted = ThreadPoolExecutor.submit

    def submit(self: ThreadPoolExecutor, call: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        if there.scheduler.here() is None:
            return submitted(self, call, *args, **options)
        future: Future[Any] = Future()
        try:
            future.set_result(call(*args, **options))
        except Exception as error:  # noqa: BLE001 (as a pool keeps it)
            future.set_exception(error)
        return future

    patch.setattr(concurrent.futures.thread.ThreadPoolExecutor, "submit", submit)
    patch.setattr(os, "cpu_count", lambda: 1)
    # Before Python 3.12 all threads that ask for one property wait for each other, as for a lock over steps.
    patch.setattr(functools.cached_property, "__get__", _get_cached)
    patch_seam(patch, "heartbeat in a thread", type("Beats", (_Beats,), {"machine": there}))


__all__ = ["Actor", "Machine", "machine"]
