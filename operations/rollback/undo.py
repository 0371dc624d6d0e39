"""One write taken back, whatever became of it: first nobody reads it any more, then its data goes, then its instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...storage.base import join, split
from ...table.files.marked_files import is_data_file_of
from ...timeline.instant_files import InstantFiles
from ...timeline.instants import Instant, State, action_group

if TYPE_CHECKING:
    from ...timeline.metadata.models import RollbackPlan

InstantPaths = Mapping[str, Mapping[State, tuple[str, ...]]]


def hide(files: InstantFiles, paths: InstantPaths, victim: Instant) -> None:
    """Take a completed write back to inflight: from here on no reader sees its rows.

    Args:
        files: Of the table's instants.
        paths: What `InstantFiles.paths` returned.
        victim: The write; one that is not completed stays as it is.
    """
    states = paths.get(victim.identity, {})
    done = states.get(State.COMPLETED, ())
    if not done:
        return
    # Without a pending file it would be gone at once, and its data would be left with nobody to look for it.
    for state, make in ((State.REQUESTED, files.request), (State.INFLIGHT, files.start)):
        if state not in states:
            make(_pending(files, states, victim))
    files.storage.delete(*done)


def take_off(files: InstantFiles, paths: InstantPaths, victim: Instant) -> None:
    """Take a write that nobody sees off the timeline, its inflight file first: it never seems further than it is."""
    states = paths.get(victim.identity, {})
    for state in (State.INFLIGHT, State.REQUESTED):
        pending = files.path(victim.at(state))
        files.storage.delete(*{pending, *states.get(state, ())})


def planned_files(plan: RollbackPlan, victim: str) -> list[str]:
    """Return the paths of the data files that a rollback's plan names; what is none of its victim's is left alone.

    Args:
        plan: Whoever made it.
        victim: Requested time of the write that it undoes.
    """
    named = (
        join(request.partition_path, split(file)[1])
        for request in plan.rollback_requests
        for file in request.files_to_be_deleted
    )
    return sorted({path for path in named if is_data_file_of(victim, path)})


def _pending(files: InstantFiles, states: Mapping[State, tuple[str, ...]], victim: Instant) -> Instant:
    """Return a completed write under the action by which it was asked for: clustering completes as replacecommit."""
    for path in (*states.get(State.INFLIGHT, ()), *states.get(State.REQUESTED, ())):
        found = files.layout.parse(split(path)[1])
        if found is not None and action_group(found.action) == victim.group:
            return found
    return victim.at(State.INFLIGHT)
