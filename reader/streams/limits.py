"""Where a batch ends: how many commits it takes, and as of which ends a reader can still show the table."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...errors import StorageError
from ...table.config.property_keys import MERGE_ON_READ
from ...table.files.cleaned import earliest_kept
from ...table.table import Table
from ...timeline.instants import Instant
from .settled import SettledWrites
from .terms import NO_LIMITS, BatchLimits

logger = logging.getLogger("pyhudi")


def end_of_batch(table: Table, settled: SettledWrites, after: str, until: str, limits: BatchLimits) -> str | None:
    """Return the completion time at which a batch ends; None if no write completed in the window.

    A batch has at least one commit, and does not end before the first time as of which the table is still readable.
    """
    inside = settled.between(after, until)
    if not inside or until < settled.archived_until:
        return None
    if limits == NO_LIMITS:
        return inside[-1].visible_since
    wanted = _within(table, settled, inside, limits)
    least = _first_readable(settled, wanted)
    if least > wanted:
        wanted = min(least, inside[-1].visible_since)
        logger.warning(
            "table %s: a batch of the stream is larger than its limits, as cleaning and archiving have left no end "
            "before %s readable",
            table.path,
            wanted,
        )
    return next(write.visible_since for write in reversed(inside) if write.visible_since <= wanted)


def _within(table: Table, settled: SettledWrites, inside: Sequence[Instant], limits: BatchLimits) -> str:
    """Return the completion time of the last commit within the limits, at least that of the first."""
    commits = size = 0
    end = ""
    for write in inside:
        if _is_compaction(table, write):
            end = write.visible_since
            continue
        commits += 1
        size += _size(settled, write) if limits.bytes is not None else 0
        beyond = (limits.commits is not None and commits > limits.commits) or (
            limits.bytes is not None and size > limits.bytes
        )
        if beyond and commits > 1 and write.visible_since > end:
            break
        end = write.visible_since
    return end


def _is_compaction(table: Table, write: Instant) -> bool:
    """Return whether the name of a write tells that it is a compaction, which brings no rows."""
    return table.config.table_type == MERGE_ON_READ and write.group == "commit"


def _size(settled: SettledWrites, write: Instant) -> int:
    """Return the bytes of the files that a write names; 0 of an archived write, which no limit cuts off."""
    if settled.timeline.write_at(write.requested_time) is None:
        return 0
    try:
        stats = settled.timeline.files.read_written_files(write).stats
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return 0  # archived since the listing
        raise
    return sum(stat.get("fileSizeInBytes") or 0 for files in stats.values() for stat in files)


def _first_readable(settled: SettledWrites, end: str) -> str:
    """Return the first time from an end on as of which every file is there, as far as the newest clean tells."""
    least = max(end, settled.archived_until)
    timeline = settled.timeline
    cleans = [instant for instant in timeline.instants if instant.action == "clean" and instant.requested_time > end]
    clean = timeline.files.read_clean(cleans[-1]) if cleans else None
    if clean is None:
        return least
    # A clean by file versions keeps the slices that were the newest at its plan.
    earliest = earliest_kept(clean) or cleans[-1].requested_time
    times = (write.visible_since for write in timeline.writes if write.requested_time <= earliest)
    return max([least, *times])
