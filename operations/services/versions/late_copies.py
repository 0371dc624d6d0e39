"""Takes back copies that a process made or deleted after another process had upgraded the table.

A store cannot make a file on the condition that the table has a version. So a process that copies looks at the version
after each round of copies. Copies from before the change of version are part of the upgrade. A later copy is deleted if
the table has taken its instant off the timeline since. A copy that was deleted later is made again if the table still
has the instant.
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

    Args:
        copied: The identities of the copied instants.
        made: The paths of the files that were made.
        deleted: The bytes of the files that were deleted, by path.
    """
    try:
        refuse_other_version(old)
    except CommitConflictError:
        new = open_table(old.storage)
        # Copied rollbacks and restores are older than the upgrade: a later instant may have the time that they name.
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
    """Return whether a completed instant also has a file with another completion time, chosen by the upgrade."""
    if instant.state != State.COMPLETED:
        return False
    paths = new.instants.paths().get(instant.identity, {}).get(State.COMPLETED, ())
    return any(path != new.instants.path(instant) for path in paths)
