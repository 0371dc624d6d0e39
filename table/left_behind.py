"""Writes that a table has in the layout of the version from which it was upgraded, and not in its own.

Apache Hudi moves instants one by one, logs those that it cannot read, and upgrades the table without them. A writer of
an old release that does not look at the version again adds others. No reader sees what they wrote.

Instants of all other actions hide no rows. The table may lack some that it had: deleted savepoints, and rollbacks that
a restore has deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import OptionConflictError, UnsupportedTableError
from ..storage.base import join
from ..timeline.instant_files import identities_of_writes
from ..timeline.instants import WRITE_ACTIONS, Instant, State
from ..timeline.pending_undo import on_the_way_out
from .table import Table


def instants_left_by_upgrade(table: Table) -> tuple[str, ...]:
    """Return the files of writes and services that lie in the folder of the previous layout, and nowhere else."""
    # A write that is not complete hides no rows: it meets the other version, and its writer takes its files back.
    return tuple(
        path
        for path, instant in _instants_lacking(table, _old_instants(table)).items()
        if instant.state == State.COMPLETED or instant.action not in WRITE_ACTIONS
    )


def remove_old_instants(table: Table) -> None:
    """Delete the files of instants in the folder of the previous layout, but for writes and services only it has.

    A writer that lives has its pending files there.
    """
    old_instants = _old_instants(table) if table.config.left_old_layout else {}
    if old_instants:
        table.storage.delete(*sorted(old_instants.keys() - _instants_lacking(table, old_instants).keys()))


def _instants_lacking(table: Table, old_instants: Mapping[str, Instant]) -> dict[str, Instant]:
    """Return the writes and services among old instants, by the paths of their files, that a table has nowhere else."""
    waiting = {path: instant for path, instant in sorted(old_instants.items()) if instant.is_write}
    if not waiting:
        return {}
    timeline, gone = table.timeline(), archived_or_undone(table)
    pending = gone | {instant.identity for instant in timeline.instants}
    completed = gone | {instant.identity for instant in timeline.completed}
    return {
        path: instant
        for path, instant in waiting.items()
        if instant.identity not in (completed if instant.state == State.COMPLETED else pending)
    }


def _old_instants(table: Table) -> dict[str, Instant]:
    """Return the states of instants in the folder of the previous layout, by the paths of their files."""
    layout = table.instants.layout.previous
    if layout is None:
        return {}
    instants = {join(layout.folder, name): layout.parse(name) for name in table.storage.look(layout.folder).names}
    return {path: instant for path, instant in instants.items() if instant is not None}


def refuse_instants_left_by_upgrade(table: Table) -> None:
    """Raise `UnsupportedTableError` if an upgrade left instants behind: a write could delete what they wrote."""
    files = instants_left_by_upgrade(table) if table.config.left_old_layout else ()
    if files:
        raise UnsupportedTableError(
            f"The table {table.path} was upgraded without {files[0]}"
            + (f" and {len(files) - 1} more files of instants" if len(files) > 1 else "")
            + ": readers do not see what they wrote, and a write could delete it.",
            "validate() names each file, and says what can be done.",
        )


def refuse_other_creation(table: Table) -> None:
    """Raise `OptionConflictError` for a new table if a write broke off that was to make it in another layout.

    The table would not have that write's instant, and readers would take files of the write for committed ones.
    """
    other_layout = table.instants.layout.next or table.instants.layout.previous
    if other_layout is None:
        return
    begun_names = [
        name for name in table.storage.look(other_layout.folder).names if other_layout.parse(name) is not None
    ]
    if begun_names:
        raise OptionConflictError(
            f"There is no table at {table.path} yet, but a write began to make one of another version than "
            f"{table.config.version}: its instant is {join(other_layout.folder, min(begun_names))}.",
            "Wait until that write is done. If it died, run it again with its hoodie.write.table.version, or delete "
            "the folder.",
        )


def archived_or_undone(table: Table, besides: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the identities of the instants that left a table's timeline: they were archived or undone.

    Of the undos, only those count whose identities are not among ``besides``.
    """
    timeline, archived = table.timeline(), table.archive.instants()
    undone = set(on_the_way_out(timeline))
    for instant in timeline.completed:
        if instant.is_undo and instant.identity not in besides:
            undone.update(timeline.files.read_undone(instant))
    undone_before = timeline.files.undone_by_archived(each for each in archived if each.identity not in besides)
    return frozenset(identities_of_writes(undone) | undone_before | {instant.identity for instant in archived})
