"""Instants that complete while Apache Hudi upgrades their table from version 6.

The upgrade lists the instants, moves them one after another, and changes the version last; it takes no lock. An instant
that completes after the listing stays in the old folder, where no reader of the new version looks.
"""

from __future__ import annotations

import time

from ...table.table import Table, open_table, refuse_other_version
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline

# An instant takes milliseconds to move. After this time the upgrade has broken off, and the next upgrade lists anew.
_PATIENCE_S = 30.0
_POLL_S = 0.1


def refuse_instant_left_by_upgrade(table: Table, timeline: Timeline, completed: Instant) -> None:
    """Raise `CommitConflictError` if an upgrade from version 6 left out an instant that has just completed.

    While an upgrade moves instants, this waits for its end. If the table of the new version lacks the instant, this
    deletes the completed file, and the instant's writer undoes the rest.
    """
    files, start_s = timeline.files, time.monotonic()
    if files.layout.next is None:
        # No upgrade moves instants of this version.
        return
    seen_identities: set[str] = set()
    while files.is_current():
        content = table.storage.look(files.folder)
        moved_identities = files.only_in_next(content)
        # An upgrade may have moved only cleans and rollbacks so far. Without writes among them, they may also be old
        # copies of what left the timeline, which stay the same.
        is_at_work = moved_identities != seen_identities or bool(files.moved(content))
        if not is_at_work or time.monotonic() - start_s > _PATIENCE_S:
            # No upgrade is at work, or it has broken off.
            return
        seen_identities = moved_identities
        time.sleep(_POLL_S)
    if not is_completed_now(table, completed):
        table.storage.delete(files.path(completed))
        # The table has another version now, so this raises.
        refuse_other_version(table)


def is_completed_now(table: Table, instant: Instant) -> bool:
    """Return whether an instant is complete in the table as it is now, whichever version that has."""
    current_table = open_table(table.storage)
    return any(other.identity == instant.identity for other in current_table.timeline().completed) or (
        current_table.archive.holds(instant.requested_time)
    )
