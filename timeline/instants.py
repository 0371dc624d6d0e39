"""An instant, something that happened or is happening to a table: its requested time, its action, its state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class State(IntEnum):
    """How far an instant got; a greater state is a later state."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})

# A table service completes under the action of the equivalent write (Apache Hudi's InstantComparatorV2).
_GROUPS = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
_OF_WRITES = WRITE_ACTIONS | _GROUPS.keys()


@dataclass(frozen=True, slots=True)
class Instant:
    """One state of one instant.

    Attributes:
        requested_time: Its name, 17 digits as a rule.
        completion_time: None while pending, and in layouts without it.
        is_write: Whether it makes or replaces file slices, pending table services included.
        group: The action of the instant's completed file, which all its states share.
        identity: What all states of one instant share, and no other instant has.
    """

    requested_time: str
    action: str
    state: State
    completion_time: str | None = None
    # Found once, because a write asks for them some ten times of each instant.
    is_write: bool = field(init=False, repr=False, compare=False)
    group: str = field(init=False, repr=False, compare=False)
    identity: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        group = action_group(self.action)
        object.__setattr__(self, "is_write", self.action in _OF_WRITES)
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "identity", f"{self.requested_time}.{group}")

    def __hash__(self) -> int:
        # Of one text, which keeps its hash: sets of thousands of instants ask for it.
        return hash(self.identity)

    def __reduce__(self) -> tuple[object, ...]:
        return Instant, (self.requested_time, self.action, self.state, self.completion_time)

    @property
    def replaces(self) -> bool:
        """Whether it may take file groups away: overwrites and clusterings do."""
        return self.group == "replacecommit"

    @property
    def is_undo(self) -> bool:
        """Whether it takes other instants back."""
        return self.action in {"rollback", "restore"}

    @property
    def visible_since(self) -> str:
        """The time from which readers see it: the completion time, or the requested time in layouts without it."""
        return self.completion_time or self.requested_time

    def at(self, state: State) -> Instant:
        """Return the instant in another state, without a completion time."""
        return Instant(self.requested_time, self.action, state)


def action_group(action: str) -> str:
    """Return the action under which an instant completes: that of a write for a table service."""
    return _GROUPS.get(action, action)
