"""How long a writer waits for signs of life of other writers, how often it gives its own, and for what it waited."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """When a writer counts as dead.

    ``foreign_age_s`` and ``eager`` are for foreign pending instants without a heartbeat: seconds without a change, None
    for never; and dead at once (failed writes policy EAGER). ``single_writer`` says that a write is refused, and waits,
    if another writer of pyhudi may live. ``heartbeats_alone`` says that another process may have the host, boot and
    number of this process, so that these prove nothing.
    """

    heartbeat_interval_s: float = 60.0
    heartbeat_misses: int = 2
    foreign_age_s: float | None = None
    eager: bool = False
    single_writer: bool = False
    heartbeats_alone: bool = False

    @property
    def heartbeat_tolerance_s(self) -> float:
        """Seconds without a heartbeat after which a writer of pyhudi counts as dead."""
        return self.heartbeat_interval_s * self.heartbeat_misses


@dataclass(frozen=True, slots=True)
class Waited:
    """For how long a write waited, and the ids of the writes that it waited for."""

    seconds: float = 0.0
    met: tuple[str, ...] = ()

    def and_then(self, further: Waited) -> Waited:
        """Return this wait with a further wait; to look at the tickets alone is no wait."""
        if not further.met:
            return self
        return Waited(self.seconds + further.seconds, tuple(dict.fromkeys((*self.met, *further.met))))


NOT_WAITED = Waited()
