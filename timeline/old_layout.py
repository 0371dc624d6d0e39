"""The state of a timeline whose instants were copied into another layout."""

from __future__ import annotations

import zlib

from ..storage.base import Storage, split
from .layout import Layout


def state_of(storage: Storage, layout: Layout) -> bytes:
    """Return a text that changes whenever an instant of a layout begins, gets further, is archived or is undone."""
    names = (split(info.path)[1] for info in storage.list(layout.folder, strict=False))
    spelled = [name for name in names if layout.parse(name) is not None]
    archived = (f"{info.path} {info.size}" for info in storage.list(layout.archive_folder, strict=False))
    return f"{zlib.crc32(chr(10).join([*spelled, *archived]).encode()):08x} of {len(spelled)}".encode()
