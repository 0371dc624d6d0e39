"""What an index is to the rest of pyhudi: the answer to which file group of a partition holds a record key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..table.files.names import FileGroupId
from ..table.keys.generator import KeyPart

Buckets = np.ndarray[Any, np.dtype[np.int32]]
Positions = np.ndarray[Any, np.dtype[np.int64]]


class Index(Protocol):
    """Tells which file group of its partition each record key belongs to, on whole arrays of keys.

    An index that has to read the table before it can answer (`needs_lookup`) is not done yet; the three properties
    are what a writer has to know of any index before it asks where keys belong.
    """

    @property
    def is_global(self) -> bool:
        """Whether a record key is unique in the whole table, not only within its partition."""
        ...

    @property
    def needs_lookup(self) -> bool:
        """Whether the table has to be read to tell where a key is; otherwise the key alone decides."""
        ...

    @property
    def can_index_log_files(self) -> bool:
        """Whether keys are found that stand in log files only, so that inserts may go to log files."""
        ...

    def buckets(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the number of the file group, within its partition, that each key belongs to.

        Args:
            record_keys: n record keys, none null.
            parts: What composite keys were made of, where the caller knows: with it they need not be taken apart.
        """
        ...

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return the positions of the keys that do not belong to a file group which holds them.

        Args:
            record_keys: n record keys of one file group, none null.
            group: The file group.
        """
        ...

    def number_of(self, group: FileGroupId) -> int | None:
        """Return the number of a file group within its partition, None where none can be told of it."""
        ...

    def place(self, instant_time: str, partition_path: str, number: int) -> FileGroupId:
        """Return the file group that an instant opens for a number: the same one for every task and attempt.

        Args:
            instant_time: Requested time of the instant.
            partition_path: The partition.
            number: As `buckets` gives it, of which the partition has no file group yet.
        """
        ...

    def rival_key(self, group: FileGroupId) -> str:
        """Return what two writers may not both write to in one partition, as people call it.

        It is more than the file group where the index gives a place of the partition to one file group: each of two
        writers may have opened one there.
        """
        ...
