"""How far somebody is archiving: a note beside the timeline, made before anything of it goes.

Who begins a write, saves or undoes an instant looks for it right after its own file stands on the timeline; who
archives reads the timeline again right after the note stands. So one of the two sees the other.
"""

from __future__ import annotations

import re

from ...storage.base import Storage, join, split
from .. import formats
from .owner import ROOT

FOLDER = f"{ROOT}/archiving"
_TIME = re.compile(r"\d{1,17}", re.ASCII)


def announce(storage: Storage, until: str) -> None:
    """Say that the instants up to a requested time are about to leave the timeline."""
    storage.create(join(FOLDER, until), b"")


def announced(storage: Storage) -> tuple[str, ...]:
    """Return the requested times up to which somebody archives, or was about to, in order.

    Raises:
        UnsupportedTableError: A newer release announces in a format that this one does not know.
    """
    paths = [info.path for info in storage.list(FOLDER, strict=False)]
    formats.refuse_newer_names(storage.path, paths, formats.NAMES)
    names = (split(path)[1] for path in paths)
    return tuple(sorted(name for name in names if _TIME.fullmatch(name)))


def forget_before(storage: Storage, first_write: str) -> None:
    """Remove what was said of instants that are older than the timeline's first write: nobody meets them any more."""
    storage.delete(*(join(FOLDER, time) for time in announced(storage) if time < first_write), durable=False)
