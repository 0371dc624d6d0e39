"""The followers of a table's files, and what they prepared for one instant."""

from __future__ import annotations

from dataclasses import dataclass

from ...table.config import TableConfig, has_config, load_config
from ...table.seen_table import SeenTable
from ...table.table import Table, refuse_other_version
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ..following.follower import Follower, Preparation
from ..following.kept_metadata import KeptMetadataTable
from ..following.retired_metadata import RetiredMetadataTable
from ..result import MetadataWritten
from .outcome import Outcome

FOLLOWERS: tuple[Follower, ...] = (KeptMetadataTable(), RetiredMetadataTable())


def changed_properties(table: Table, config: TableConfig | None = None) -> dict[str, str | None]:
    """Return the properties that the followers of a table want to change, None to remove one.

    A table that its first write has not made yet has no properties, and nothing to change. Without ``config`` it reads
    the properties anew. Raises `CommitConflictError` if the table has another version by now.
    """
    if config is None:
        if not has_config(table.storage):
            return {}
        config = load_config(table.storage)
    refuse_other_version(table, config)
    changes_by_follower = (follower.properties(table, config) for follower in FOLLOWERS)
    return {key: value for changes in changes_by_follower for key, value in changes.items()}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the followers of a table prepared for an outcome of an instant, in the order of the followers."""

    outcome: Outcome
    followers: tuple[Follower, ...]
    by_follower: tuple[Preparation, ...]

    @property
    def report(self) -> MetadataWritten | None:
        """What the instant writes to the metadata table, for the user; None if no follower reports it."""
        return next((each.report for each in self.by_follower if each.report is not None), None)

    def ready_after(self, timeline: Timeline, config: TableConfig, outcome: Outcome) -> str | None:
        """Return a time after which the instant must complete; None if the followers must prepare anew."""
        if outcome.files != self.outcome.files:
            # Instants that completed meanwhile change what this instant does.
            return None
        times = [each.ready_after(timeline, config) for each in self.by_follower]
        ready_times = [time for time in times if time is not None]
        return max(ready_times, default="") if len(ready_times) == len(times) else None


def followers_of(table: Table) -> tuple[Follower, ...]:
    """Return the followers that prepare steps for a table's instants."""
    return tuple(follower for follower in FOLLOWERS if follower.follows(table))


def bounded_columns(table: Table) -> tuple[str, ...]:
    """Return the columns whose bounds followers need of each new data file of a table, each once."""
    return tuple(dict.fromkeys(name for follower in followers_of(table) for name in follower.bounded_columns(table)))


def prepare(followers: tuple[Follower, ...], seen: SeenTable, instant: Instant, outcome: Outcome) -> Prepared:
    """Let followers prepare the steps before the completed file of an instant."""
    changes = outcome.changes
    return Prepared(outcome, followers, tuple(follower.prepare(seen, instant, changes) for follower in followers))
