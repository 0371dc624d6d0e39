"""A little space that a write keeps for its own end, so that it can be given up on a full disk.

Who gives the write up deletes this file first, which always works. As it is made before the instant is put on the
timeline, a pending instant without it was given up, even where no other note of that could be written.
"""

from __future__ import annotations

import secrets

from ...storage.base import Storage, join
from . import owner

_NAME = "reserve"
# What is written at a write's end takes a few blocks, and the completed file of most.
_SIZE = 64 << 10


def path_of(instant_time: str) -> str:
    """Return where a write's reserve is."""
    return join(owner.folder(instant_time), _NAME)


def hold(storage: Storage, instant_time: str, need: int = 0) -> None:
    """Take space; a store of objects has no end, and keeps none.

    Args:
        storage: Rooted at the table.
        instant_time: Requested time of the write.
        need: Bytes of a file that will have to be written; small ones fit into what is held anyway.
    """
    if storage.remote or 0 < need <= _SIZE // 2:
        return
    # Zeros would take no space where the file system packs its files.
    storage.write(path_of(instant_time), secrets.token_bytes(_SIZE + need), durable=False)


def release(storage: Storage, instant_time: str) -> None:
    """Give the space back, for what must be written now or because the write is given up."""
    if not storage.remote:
        storage.delete(path_of(instant_time), durable=False)


def is_released(storage: Storage, instant_time: str) -> bool:
    """Return whether a pending write of pyhudi was given up."""
    return not storage.remote and not storage.exists(path_of(instant_time))
