"""Changes of single instants without a decision: an instant is begun, taken back, undone or archived.

Each change runs under the table's lock, and several processes may take each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...storage.base import split
from ...table.table import Table
from ...timeline.instant_files import InstantFiles, InstantPaths
from ...timeline.instants import Instant, State, action_group
from .locks import HeldLock, hold

# Files deleted at once from a local store.
_AT_ONCE = 64


def start(table: Table, instant: Instant) -> bool:
    """Make an instant's inflight file; False if it exists already."""
    with hold(table):
        return table.instants.start(instant)


def remove_file(table: Table, instant: Instant) -> None:
    """Delete the file of one state of an instant."""
    with hold(table):
        table.storage.delete(table.instants.path(instant))


def remove_pending(table: Table, instant: Instant) -> None:
    """Delete the requested and the inflight file of an instant."""
    with hold(table):
        table.instants.remove_pending(instant)


def remove_savepoint(table: Table, savepoint: Instant) -> None:
    """Take a savepoint off the timeline, its completed file first, so that it protects no files from then on."""
    with hold(table):
        for path in _completed_paths(table.instants.paths(), savepoint):
            table.storage.delete(path)
        table.instants.remove_pending(savepoint)


def remove_rollbacks(table: Table, rollbacks: Iterable[Instant]) -> None:
    """Take completed rollbacks off the timeline, pending files first, so that they never seem unfinished."""
    with hold(table):
        paths = table.instants.paths()
        for instant in rollbacks:
            table.instants.remove_pending(instant)
            table.storage.delete(*_completed_paths(paths, instant))


def remove_archived(held_lock: HeldLock, archived: Sequence[Mapping[State, tuple[str, ...]]]) -> None:
    """Delete the files of instants that the archive holds.

    ``archived`` has the paths of each instant by state, the oldest instant first.
    """
    storage = held_lock.table.storage
    # An instant without its completed file looks pending, so delete that file last.
    pending = (states[state] for states in archived for state in states if state != State.COMPLETED)
    storage.delete(*(path for paths in pending for path in paths))
    completed = [path for states in archived for path in states.get(State.COMPLETED, ())]
    # In ascending order: a reader that sees an older instant but misses a younger takes the younger for uncommitted. A
    # disk deletes the files of a call in their order, but an object store may not.
    files_at_once = 1 if storage.remote else _AT_ONCE
    for start in range(0, len(completed), files_at_once):
        storage.delete(*completed[start : start + files_at_once])


def hide(table: Table, paths: InstantPaths, victim: Instant) -> None:
    """Make a completed write inflight again, so that no reader sees its rows.

    ``paths`` are the files of all instants on the timeline, by instant and state.
    """
    states = paths.get(victim.identity, {})
    completed = _completed_paths(paths, victim)
    if not completed:
        # It is inflight, or gone.
        return
    files = table.instants
    with hold(table):
        # Without a pending file the instant would vanish at once, and no process would look for its data files.
        for state, make in ((State.REQUESTED, files.request), (State.INFLIGHT, files.start)):
            if state not in states:
                make(_with_pending_action(files, states, victim))
        table.storage.delete(*completed)


def take_off(table: Table, paths: InstantPaths, victim: Instant) -> None:
    """Take a hidden write off the timeline, its inflight file first, so that it never seems further than it is."""
    states = paths.get(victim.identity, {})
    with hold(table):
        for state in (State.INFLIGHT, State.REQUESTED):
            # `hide` may have made this file since the listing; a clustering's pending files have another action.
            pending = table.instants.path(victim.at(state))
            table.storage.delete(*{pending, *states.get(state, ())})


def _completed_paths(paths: InstantPaths, instant: Instant) -> tuple[str, ...]:
    """Return the paths of an instant's completed files; empty if it is pending or gone."""
    return paths.get(instant.identity, {}).get(State.COMPLETED, ())


def _with_pending_action(files: InstantFiles, states: Mapping[State, tuple[str, ...]], victim: Instant) -> Instant:
    """Return a completed write under the action of its pending files: a clustering completes as a replacecommit."""
    for path in (*states.get(State.INFLIGHT, ()), *states.get(State.REQUESTED, ())):
        instant = files.layout.parse(split(path)[1])
        if instant is not None and action_group(instant.action) == victim.group:
            return instant
    return victim.at(State.INFLIGHT)
