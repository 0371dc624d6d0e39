"""A little space that a write keeps for its own end, so that it can be given up on a full disk.

A process that gives the write up deletes this file first, which always works. The file is made before the instant is
put on the timeline, so that a pending instant without it was given up, even where no other note of that was written.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from ...storage.base import Storage, join
from . import owner

_NAME = "reserve"
# What is written at a write's end takes a few blocks, and the completed file of most.
_SIZE = 64 << 10


@dataclass(frozen=True, slots=True)
class Reserve:
    """The reserve of one write.

    Attributes:
        storage: Rooted at the table.
        instant_time: Requested time of the write.
    """

    storage: Storage
    instant_time: str

    @property
    def path(self) -> str:
        """Where it is."""
        return join(owner.folder(self.instant_time), _NAME)

    def hold(self, need: int = 0) -> None:
        """Take space for a file of so many bytes, of which small ones fit anyway; a store of objects has no end."""
        if self.storage.remote or 0 < need <= _SIZE // 2:
            return
        # Zeros would take no space where the file system packs its files.
        self.storage.write(self.path, secrets.token_bytes(_SIZE + need), durable=False)

    def release(self) -> None:
        """Give the space back, for what must be written now or because the write is given up."""
        if not self.storage.remote:
            self.storage.delete(self.path, durable=False)

    def is_released(self) -> bool:
        """Return whether a pending write of pyhudi was given up."""
        return not self.storage.remote and not self.storage.exists(self.path)
