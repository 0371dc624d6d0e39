"""A storage that stops before one of its steps, for as long as something else takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.faults.faulty import Faults


@dataclass
class Stop(Faults):
    """Stops before one of the steps of a storage; whatever others do then takes no steps of its own.

    Attributes:
        meanwhile: What happens while the step waits.
    """

    meanwhile: Callable[[], None] = lambda: None
    asleep: bool = False
    awake: bool = field(default=False)

    def take(self, name: str, effect: Callable[[], Any]) -> Any:
        """Take a step, or stop there."""
        if self.asleep or not self.awake:
            return effect()
        self.steps.append(name)
        if len(self.steps) == self.at:
            self.asleep = True
            self.meanwhile()
            self.asleep = False
        return effect()


@contextmanager
def counted(stop: Stop, at: int) -> Iterator[None]:
    """Count the steps of the block, and stop at one."""
    stop.steps.clear()
    stop.at, stop.awake = at, True
    try:
        yield
    finally:
        stop.awake = False
