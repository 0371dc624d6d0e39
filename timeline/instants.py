"""An instant, something that happened or is happening to a table: its requested time, its action, its state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class State(IntEnum):
    """How far an instant got; a greater state is a later state."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})

# A table service completes under the action of the equivalent write (Apache Hudi's InstantComparatorV2).
_GROUPS = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}


@dataclass(frozen=True, slots=True)
class Instant:
    """One state of one instant.

    ``requested_time`` is its name, 17 digits as a rule; ``completion_time`` is None while pending, and in layouts
    without it.
    """

    requested_time: str
    action: str
    state: State
    completion_time: str | None = None

    @property
    def group(self) -> str:
        """The action of the instant's completed file, which all its states share."""
        return action_group(self.action)

    @property
    def identity(self) -> str:
        return f"{self.requested_time}.{self.group}"

    @property
    def is_write(self) -> bool:
        """Whether it makes or replaces file slices, pending table services included."""
        return self.group in WRITE_ACTIONS

    @property
    def replaces(self) -> bool:
        """Whether it may take file groups away: overwrites and clusterings do."""
        return self.group == "replacecommit"

    @property
    def visible_since(self) -> str:
        """The time from which readers see it: the completion time, or the requested time in layouts without it."""
        return self.completion_time or self.requested_time

    def at(self, state: State) -> Instant:
        return Instant(self.requested_time, self.action, state)


def action_group(action: str) -> str:
    return _GROUPS.get(action, action)
