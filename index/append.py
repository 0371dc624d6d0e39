"""The index of a table that generates its keys: there is nothing to look up, and every write adds file groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..table.files.names import FileGroupId, new_file_id
from ..table.keys.generator import KeyPart
from .base import Buckets, Positions


@dataclass(frozen=True, slots=True)
class AppendIndex:
    """Sends all rows of a task to one file group of each partition, which that task opens.

    Attributes:
        number: The task's Spark partition.
    """

    number: int = 0

    @property
    def is_global(self) -> bool:
        """False, though generated keys are unique in the table: nobody looks for them."""
        return False

    @property
    def needs_lookup(self) -> bool:
        """False: no key is looked for."""
        return False

    @property
    def can_index_log_files(self) -> bool:
        """False: rows are found by where they were read."""
        return False

    def buckets(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the task's number for every key."""
        return np.full(len(record_keys), self.number, np.int32)

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return no position: every key may be in every file group."""
        return np.zeros(0, np.int64)

    def number_of(self, group: FileGroupId) -> int | None:
        """Return None: nobody looks for a file group."""
        return None

    def place(self, instant_time: str, partition_path: str, number: int) -> FileGroupId:
        """Return the file group that a task opens."""
        return FileGroupId(partition_path, new_file_id(instant_time, partition_path, number))

    def rival_key(self, group: FileGroupId) -> str:
        """Return the file group itself: nobody else opens the same."""
        return f"file group {group.file_id}"
