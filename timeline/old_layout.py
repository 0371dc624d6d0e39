"""The state of a timeline whose instants were copied into another layout."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from ..storage.base import Storage, split
from .instants import State
from .layout import Layout


class OldState(NamedTuple):
    """Two texts that change whenever an instant completes, and when it is archived or undone later.

    ``whole`` also changes as an instant begins or gets further.
    """

    whole: bytes
    completed: bytes


def state_of(storage: Storage, layout: Layout) -> OldState:
    """Return the state of the timeline that lies in a layout's folders, from the names of its files."""
    names = (split(info.path)[1] for info in storage.list(layout.folder, strict=False))
    instants = {name: instant for name in names if (instant := layout.parse(name)) is not None}
    archived = [f"{info.path} {info.size}" for info in storage.list(layout.archive_folder, strict=False)]
    completed = [name for name, instant in instants.items() if instant.state == State.COMPLETED]
    return OldState(_state_text(instants, archived), _state_text(completed, archived))


def _state_text(names: Iterable[str], archived: Iterable[str]) -> bytes:
    """Return a text with the checksum of all names, and the number of those of the timeline's files."""
    names = [*names]
    return f"{zlib.crc32(chr(10).join([*names, *archived]).encode()):08x} of {len(names)}".encode()
