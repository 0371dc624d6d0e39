"""Copies that a process made, or deleted, after another process had upgraded the table: it takes that back.

A store cannot tie the making of a file to the version of a table. So a process that copies looks at the version after
each round of copies. What it did before the version changed is part of the upgrade; what it did later has to go if the
table has taken the instant off its timeline since, and to come back if the table still has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....errors import CommitConflictError
from ....storage.base import split
from ....table.left_behind import left_timeline
from ....table.table import Table, open_table, refuse_other_version
from ....timeline.instants import Instant, State


def take_back_late(
    old: Table, copied: frozenset[str], made: Iterable[str], deleted: Mapping[str, bytes] | None = None
) -> None:
    """Raise `CommitConflictError` if the table ``old`` has another version by now, and take back what came too late.

    ``copied`` are the identities of the instants that were copied, ``made`` and ``deleted`` the paths of the instants'
    files that were, the deleted ones with their bytes.
    """
    try:
        refuse_other_version(old)
    except CommitConflictError:
        new = open_table(old.storage)
        # Undos that were copied tell of the time before: what they name may have been made again under its time.
        left, layout = left_timeline(new, copied), new.instants.layout
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
