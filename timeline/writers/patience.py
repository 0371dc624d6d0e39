"""How long a writer waits for signs of life of other writers, and how often it gives its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """When a writer counts as dead.

    ``foreign_age_s`` and ``eager`` are for foreign pending instants without a heartbeat: seconds without a change, None
    for never; and dead at once (failed writes policy EAGER). ``single_writer`` says that a write is refused, and waits,
    where another writer of pyhudi may live.
    """

    heartbeat_interval_s: float = 60.0
    heartbeat_misses: int = 2
    foreign_age_s: float | None = None
    eager: bool = False
    single_writer: bool = False

    @property
    def heartbeat_tolerance_s(self) -> float:
        """Seconds without a heartbeat after which a writer of pyhudi counts as dead."""
        return self.heartbeat_interval_s * self.heartbeat_misses
