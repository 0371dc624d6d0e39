"""When the seals of finished writes expire: once no task of such a write can be at work any more.

A write's seal is in the folder of the hour in which the write was requested, so that a task finds it by one request,
and expiry lists only folders that are due, whatever the number of writes. Notes of writes that were given up are files
beside these folders, where the previous release kept all seals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...storage.base import Storage, join
from .. import formats
from ..clock import format_time
from .owner import SEALS, seal_of_instant
from .write_notes import WriteNotes

# Only a suspended task can outlive its write for longer, and it finds its instant gone.
KEPT_S = 24 * 3600.0
# The clocks of a writer and of the store may differ, and summer time repeats an hour.
_LENIENCE_S = 2 * 3600.0
# After a long pause many folders are due: no write has to remove all of them.
_MOST_AT_ONCE = 2
_FOLDER = re.compile(rf"([0-9]{{10}})\.v{formats.SEALS}")


def expire(storage: Storage, zone: str) -> None:
    """Remove seals older than `KEPT_S`, at most two folders of them.

    A folder is removed by its name, and by the age of its newest seal: a write that took days is sealed in the folder
    of the hour in which it was requested.
    """
    folder, now = storage.look(SEALS), storage.file_time()
    formats.refuse_newer_names(storage.path, (join(SEALS, name) for name in folder.folders), formats.SEALS)
    # These files are notes of writes that were given up.
    storage.delete(*(info.path for info in folder.files if now - info.modified > KEPT_S), durable=False)
    oldest = format_time(int((now - KEPT_S - _LENIENCE_S) * 1000), zone)
    hours = [match[1] for match in map(_FOLDER.fullmatch, folder.folders) if match is not None]
    # Hours of ten digits are in order as texts.
    due = [hour for hour in hours if hour < oldest[: len(hour)]]
    for hour in due[:_MOST_AT_ONCE]:
        _delete_seals(storage, join(SEALS, f"{hour}.v{formats.SEALS}"), now)


def of_write(times: Iterable[str], notes: WriteNotes, count: int) -> tuple[str, ...]:
    """Return the paths of the seals of a write that ended under these times, and of its first ``count`` notes."""
    return (*map(seal_of_instant, times), *map(notes.path, range(1, count + 1)))


def _delete_seals(storage: Storage, folder: str, now: float) -> None:
    """Delete the seals in a folder, unless one of them is younger than `KEPT_S`."""
    seals = storage.list(folder, strict=False)
    if any(now - info.modified <= KEPT_S for info in seals):
        return
    storage.delete(*(info.path for info in seals), durable=False)
    if not storage.remote:
        # Seals were deleted by name: a seal made since the listing stays, and the folder with it.
        storage.sweep([folder], KEPT_S, empty=True)
