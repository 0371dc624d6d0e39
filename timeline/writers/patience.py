"""How long a writer waits for signs of life of others, and how often it gives its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """When one writer takes another for dead.

    Attributes:
        heartbeat_interval_s: Seconds between two touches of the heartbeat.
        heartbeat_misses: How many missed touches make a writer dead.
        foreign_age_s: Seconds without a change after which a foreign pending instant without heartbeat counts as dead;
            None for never.
        eager: True when such an instant counts as dead at once (failed writes policy EAGER).
    """

    heartbeat_interval_s: float = 60.0
    heartbeat_misses: int = 2
    foreign_age_s: float | None = None
    eager: bool = False

    @property
    def heartbeat_tolerance_s(self) -> float:
        """Seconds without a heartbeat after which a writer of ours counts as dead."""
        return self.heartbeat_interval_s * self.heartbeat_misses
