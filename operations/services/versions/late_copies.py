"""Copies that a process made, or deleted, after another process had upgraded the table: it takes that back.

A store cannot tie the making of a file to the version of a table. So whoever copies looks at the version after each
round of copies. What it did before the version changed is part of the upgrade; what it did later has to go if the
table has taken the instant off its timeline since, and to come back if the table still has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....errors import CommitConflictError
from ....storage.base import split
from ....table.table import Table, open_table, refuse_other_version
from ....timeline.instants import WRITE_ACTIONS, Instant, State
from ....timeline.metadata.codec import InstantBody
from ....timeline.metadata.models import RestoreMetadata, RollbackMetadata
from ....timeline.pending_undo import on_the_way_out

_UNDOES = frozenset({"rollback", "restore"})


def take_back_late(
    old: Table, copied: frozenset[str], made: Iterable[str], deleted: Mapping[str, bytes] | None = None
) -> None:
    """Raise `CommitConflictError` where the table ``old`` has another version by now, and take back what came too late.

    ``copied`` are the identities of the instants that were copied, ``made`` and ``deleted`` the paths of the instants'
    files that were, the deleted ones with their bytes.
    """
    try:
        refuse_other_version(old)
    except CommitConflictError:
        new = open_table(old.storage)
        left, layout = _left(new, copied), new.instants.layout
        for path in made:
            instant = layout.parse(split(path)[1])
            if instant is not None and (instant.identity in left or _is_double(new, instant)):
                old.storage.delete(path)
        for path, data in (deleted or {}).items():
            instant = layout.parse(split(path)[1])
            if instant is not None and instant.identity not in left and not _is_double(new, instant):
                old.storage.create(path, data)
        raise


def _is_double(new: Table, instant: Instant) -> bool:
    """Return whether a completed instant has a file of another completion time, which the upgrade chose."""
    if instant.state != State.COMPLETED:
        return False
    paths = new.instants.paths().get(instant.identity, {}).get(State.COMPLETED, ())
    return any(path != new.instants.path(instant) for path in paths)


def _left(new: Table, copied: frozenset[str]) -> frozenset[str]:
    """Return the identities of the instants that left a table's timeline since its upgrade.

    Undos that were copied themselves tell of the time before: what they name may have been made again under its time.
    """
    timeline, archived = new.timeline(), new.archive.instants()
    undone = set(on_the_way_out(timeline))
    for instant in timeline.completed:
        if instant.action in _UNDOES and instant.identity not in copied:
            undone.update(timeline.files.read_undone(instant))
    later = [instant for instant in archived if instant.action in _UNDOES and instant.identity not in copied]
    for instant, data in new.archive.bodies(later).items():
        undone.update(_named(new, instant, data))
    gone = {f"{time}.{action}" for time in undone for action in WRITE_ACTIONS}
    return frozenset(gone | {instant.identity for instant in archived})


def _named(new: Table, instant: Instant, data: bytes) -> list[str]:
    body = InstantBody(data, f"the archived {instant.action} {instant.requested_time} of the table {new.path}")
    if instant.action == "restore":
        return new.format.codec.decode(RestoreMetadata, body).instants_to_rollback
    return new.format.codec.decode(RollbackMetadata, body).commits_rollback
