"""A storage that fails at its n-th step, before or after the step took effect, or whose process dies there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyhudi.errors import StorageError

# Of no effect, so that it is all the same whether they fail before or after it.
READS = frozenset({"read", "open_input", "list", "look", "exists", "has_files", "modified"})
STEPS = READS | {"write", "create", "delete", "delete_folder", "stage", "sweep", "flush"}


def failing(steps: Sequence[str], how: str) -> list[int]:
    """Return the numbers of the steps, from 1, whose failures are not those of other steps.

    A step without an effect fails "after" it as it does "before". A process that is "killed" leaves what its last step
    with an effect left.
    """
    before = ["sweep", *steps]
    skipped = {"before": (), "after": steps, "killed": before}[how]
    alike = {number for number, name in enumerate(skipped, 1) if name in READS}
    return [number for number in range(1, len(steps) + 1) if number not in alike]


class Killed(BaseException):
    """The process that made this step is gone: nobody catches it, nobody cleans up."""


@dataclass
class Faults:
    """Counts steps over every storage of a test and fails one of them.

    Attributes:
        at: Which step fails, from 1; 0 for none.
        after: Fail once the step took effect.
        kill: Raise `Killed`, at this step and at every later one.
        steps: The names of the steps taken so far.
        watch: Called before each step, when the store is as a process that is gone then leaves it.
    """

    at: int = 0
    after: bool = False
    kill: bool = False
    steps: list[str] = field(default_factory=list)
    watch: Callable[[], None] = lambda: None

    def take(self, name: str, effect: Callable[[], Any]) -> Any:
        """Take one step, or fail it."""
        self.watch()
        self.steps.append(name)
        number = len(self.steps)
        if self.kill and self.at and number > self.at:
            raise Killed(name)
        if number == self.at and not self.after:
            raise self._error(name)
        result = effect()
        if number == self.at:
            raise self._error(name)
        return result

    def name_of(self, number: int) -> str:
        """Return the name of a step that was taken, from 1; a step may fall away when the clock ticks differently."""
        return self.steps[number - 1] if number <= len(self.steps) else "not reached"

    def _error(self, name: str) -> BaseException:
        if self.kill:
            return Killed(name)
        return StorageError(f"The store failed at step {self.at} ({name}).", "Try again.")


class FaultyStorage:
    """A storage whose every call is a step that may fail."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in STEPS:
            return attribute

        def step(*args: Any, **kwargs: Any) -> Any:
            result = self._faults.take(name, lambda: attribute(*args, **kwargs))
            return FaultyStaged(result, self._faults) if name == "stage" else result

        return step


class FaultyStaged:
    """A staged file whose publishing may fail."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self.stream = inner.stream

    def publish(self) -> int:
        """Publish, or fail."""
        return int(self._faults.take("publish", self._inner.publish))

    def discard(self) -> None:
        """Give the file up; never a step, because a dead process cannot."""
        if not (self._faults.kill and len(self._faults.steps) >= self._faults.at > 0):
            self._inner.discard()
