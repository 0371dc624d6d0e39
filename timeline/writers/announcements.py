"""How far an archiving process goes: a note beside the timeline, made before the process removes an instant.

A process that begins a write, saves or undoes an instant looks for the note right after it put its own file on the
timeline; the archiving process reads the timeline again right after it made the note. So one of the two sees the other.
"""

from __future__ import annotations

import re

from ...storage.base import Storage, join, split
from .. import formats
from .owner import ROOT

FOLDER = f"{ROOT}/archiving"
_TIME = re.compile(r"\d{1,17}", re.ASCII)


def announce(storage: Storage, until: str) -> None:
    """Note that an archiving is about to remove the instants until a requested time."""
    storage.create(join(FOLDER, until), b"")


def announced(storage: Storage) -> tuple[str, ...]:
    """Return the noted times, in order."""
    paths = [info.path for info in storage.list(FOLDER, strict=False)]
    formats.refuse_newer_names(storage.path, paths, formats.NAMES)
    names = (split(path)[1] for path in paths)
    return tuple(sorted(name for name in names if _TIME.fullmatch(name)))


def forget_before(storage: Storage, first_write: str) -> None:
    """Remove notes about instants older than the timeline's first write, which no process meets any more."""
    storage.delete(*(join(FOLDER, time) for time in announced(storage) if time < first_write), durable=False)
