"""Decisions that only take steps, for the metadata table's own instants: a compaction, a clean.

Such an instant is not on the timeline of the table. Its decision holds all of its files, so that it is whole or absent,
whichever process carries the decision out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.decisions import Decision, DecisionKind
from ...timeline.writers.first_steps import FirstSteps
from .decide import decide


@dataclass(frozen=True, slots=True)
class MetadataSteps:
    """The steps that make or take back an instant of the metadata table; the last step makes its last file."""

    instant: Instant
    first: FirstSteps


def take_metadata_steps(table: Table, build: Callable[[Timeline], MetadataSteps | None]) -> Instant | None:
    """Decide to take the steps that `build` returns, and take them; return their instant, None if there are none.

    `build` runs again after each lost race, with the timeline of the table. Raises as `decide`.
    """
    made: list[Instant] = []

    def decision(timeline: Timeline) -> Decision | None:
        made.clear()
        steps = build(timeline)
        if steps is None:
            return None
        made.append(steps.instant.at(State.REQUESTED))
        return Decision(DecisionKind.TAKE_STEPS, made[0], first=(steps.first,))

    decide(table, decision)
    if not made:
        return None
    # Only the newest decision is ever carried out, so this decision without effect ends the other for good.
    decide(table, lambda _: Decision(DecisionKind.CLOSE, made[0]))
    return made[0]
