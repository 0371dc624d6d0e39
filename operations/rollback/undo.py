"""A write taken back: first its rows become invisible, then its data goes, then its instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...storage.base import split
from ...table.files.marked_files import is_data_file_of
from ...table.table import Table
from ...timeline.instant_files import InstantFiles, InstantPaths
from ...timeline.instants import Instant, State, action_group

if TYPE_CHECKING:
    from ...timeline.metadata.models import RollbackPlan


def hide(files: InstantFiles, paths: InstantPaths, victim: Instant) -> None:
    """Take a completed write back to inflight, so that no reader sees its rows."""
    states = paths.get(victim.identity, {})
    done = states.get(State.COMPLETED, ())
    if not done:
        return
    # Without a pending file the instant would be gone at once, and no process would look for its data.
    for state, make in ((State.REQUESTED, files.request), (State.INFLIGHT, files.start)):
        if state not in states:
            make(_pending(files, states, victim))
    files.storage.delete(*done)


def take_off(files: InstantFiles, paths: InstantPaths, victim: Instant) -> None:
    """Take a hidden write off the timeline, its inflight file first: it never seems further than it is."""
    states = paths.get(victim.identity, {})
    for state in (State.INFLIGHT, State.REQUESTED):
        pending = files.path(victim.at(state))
        files.storage.delete(*{pending, *states.get(state, ())})


def planned_files(table: Table, plan: RollbackPlan, victim: str) -> list[str]:
    """Return the paths of a victim's data files that a rollback's plan names; other writes' files stay."""
    named = table.format.undo.planned(plan)
    return sorted({path for path in named if is_data_file_of(table.format.slices, victim, path)})


def _pending(files: InstantFiles, states: Mapping[State, tuple[str, ...]], victim: Instant) -> Instant:
    """Return a completed write under the action of its requested file: clustering completes as replacecommit."""
    for path in (*states.get(State.INFLIGHT, ()), *states.get(State.REQUESTED, ())):
        found = files.layout.parse(split(path)[1])
        if found is not None and action_group(found.action) == victim.group:
            return found
    return victim.at(State.INFLIGHT)
