"""A little space that a write reserves for its own end, so that another process can give it up on a full disk.

A process that gives the write up deletes this file first, which works on a full disk. The writer makes the file before
it puts the instant on the timeline, so a pending instant without the file was given up, even if no other note says so.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from ...storage.base import Storage, join
from . import owner

_NAME = "reserve"
# The notes at a write's end take a few blocks, and so do most completed files.
_SIZE = 64 << 10


@dataclass(frozen=True, slots=True)
class Reserve:
    """The file that holds the space which the write of one instant reserves."""

    storage: Storage
    instant_time: str

    @property
    def path(self) -> str:
        return join(owner.Claim(self.storage, self.instant_time).folder, _NAME)

    def hold(self, need: int = 0) -> None:
        """Reserve space for the write's end, and with ``need`` for a completed file of so many bytes.

        A small file fits into the space that the write has reserved already, and an object store never fills up.
        """
        if self.storage.remote or 0 < need <= _SIZE // 2:
            return
        # A file system that compresses would give zeros no space.
        self.storage.write(self.path, secrets.token_bytes(_SIZE + need), durable=False)

    def release(self) -> None:
        """Give the space up, at a write's end or for another process that gives the write up."""
        if not self.storage.remote:
            self.storage.delete(self.path, durable=False)

    def is_released(self) -> bool:
        """Return whether the space was given up; an object store never holds any."""
        return not self.storage.remote and not self.storage.exists(self.path)
