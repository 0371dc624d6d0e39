"""The state of a timeline whose instants were copied into another layout."""

from __future__ import annotations

import zlib

from ..storage.base import Storage, split
from .instants import State
from .layout import Layout


def state_of(storage: Storage, layout: Layout, *, completed: bool = False) -> bytes:
    """Return a text that changes whenever an instant of a layout begins, gets further, is archived or is undone.

    With ``completed`` only as it completes and after that.
    """
    names = (split(info.path)[1] for info in storage.list(layout.folder, strict=False))
    instants = ((name, layout.parse(name)) for name in names)
    spelled = [
        name
        for name, instant in instants
        if instant is not None and (not completed or instant.state == State.COMPLETED)
    ]
    archived = (f"{info.path} {info.size}" for info in storage.list(layout.archive_folder, strict=False))
    return f"{zlib.crc32(chr(10).join([*spelled, *archived]).encode()):08x} of {len(spelled)}".encode()
