"""What lets a finished data file become part of a write, base and log files alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ..storage.base import Staged
from ..timeline.writers.markers import MarkerType


class Publisher(Protocol):
    """Names data files before they are there, and lets them through only while their write is open."""

    def announce(self, files: Iterable[tuple[str, MarkerType]]) -> None:
        """Name files, all that are known in one request.

        Args:
            files: The path of each, and what the write does to it.
        """
        ...

    def publish(self, staged: Staged, partition_path: str, path: str, kind: MarkerType) -> int:
        """Make a whole file visible, having named it and made its partition known.

        Args:
            staged: The file, written aside.
            partition_path: Its partition.
            path: Its final path.
            kind: What the write does to it.

        Returns:
            The file's size in bytes.

        Raises:
            WriteSealedError: The write was committed or given up meanwhile; the file is gone again.
        """
        ...
