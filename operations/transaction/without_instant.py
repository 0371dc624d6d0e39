"""Decisions that make no instant of the table: changed properties, and steps of the metadata table's own instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...table.config import TableConfig, load_stamped
from ...table.table import Table, refuse_other_version
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.decisions import Decision, DecisionKind
from ...timeline.writers.first_steps import FirstSteps
from .commit_path import time_after
from .decide import decide
from .followers import changed_properties


@dataclass(frozen=True, slots=True)
class MetadataSteps:
    """The steps that make or take back an instant of the metadata table; the last step makes its last file."""

    instant: Instant
    first: FirstSteps


def take_metadata_steps(table: Table, build: Callable[[Timeline], MetadataSteps | None]) -> Instant | None:
    """Decide to take the steps that `build` returns, and take them; return their instant, None if there are none.

    `build` runs again after each lost race, with the timeline of the table. Raises as `decide`.
    """
    made_instants: list[Instant] = []

    def decision(timeline: Timeline) -> Decision | None:
        """Return the decision to take the steps that `build` returns for a timeline; None if it returns none."""
        made_instants.clear()
        steps = build(timeline)
        if steps is None:
            return None
        made_instants.append(steps.instant.at(State.REQUESTED))
        return Decision(DecisionKind.TAKE_STEPS, made_instants[0], first=(steps.first,))

    decide(table, decision)
    if not made_instants:
        return None
    # Only the newest decision is ever carried out, so this decision without effect ends the other for good.
    decide(table, lambda _: Decision(DecisionKind.CLOSE, made_instants[0]))
    return made_instants[0]


def set_properties(
    table: Table,
    action: str,
    find_changes: Callable[[Timeline, TableConfig], Mapping[str, str | None] | None],
    only_at: bytes = b"",
    *,
    follows: bool = True,
) -> None:
    """Set the properties that `find_changes` returns, and with ``follows`` those of followers. Raises as `decide`.

    `find_changes` runs again after each lost race, with the timeline and the stored properties. It returns None if
    nothing has to change, and raises if the properties must not change. Nothing is set if other software changes the
    properties at the same moment. Nor is it if ``only_at`` is no longer the state of the timeline (`state_of`) on which
    the change depends. So the caller must check. ``action`` names the change in messages.
    """
    made_decisions: list[Decision] = []

    def build(timeline: Timeline) -> Decision | None:
        """Return the decision to set properties on a timeline; None if nothing has to change."""
        made_decisions.clear()
        stored = load_stamped(table.storage)
        refuse_other_version(table, stored.config)
        wanted_changes = find_changes(timeline, stored.config)
        if wanted_changes is None:
            return None
        instant = Instant(time_after(table, timeline), action, State.REQUESTED)
        changes = {**(changed_properties(table, stored.config) if follows else {}), **wanted_changes}
        made_decisions.append(
            Decision(DecisionKind.SET_PROPERTIES, instant, only_at, changes=changes, replaces=stored.checksum)
        )
        return made_decisions[0]

    decide(table, build)
    if made_decisions:
        # Only the newest decision is ever carried out, so this decision without effect ends the other for good, even if
        # the replaced file itself is put back.
        decide(table, lambda _: Decision(DecisionKind.CLOSE, made_decisions[0].instant))
