"""What one instant writes to the partitions of the metadata table, before it is encoded as log files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from ...table.metadata.encoding import Records
from ...timeline.writers.first_steps import ReplaceFile

_NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True)
class ChangedPartition:
    """What an instant writes to one partition of the metadata table.

    Attributes:
        file_ids: All file groups of the partition, in the order of the numbers that hashes of keys give.
        keys: Yields the keys of the records to be written, each once, in parts in any order.
        records: Yields these records in parts, by the schema of their file; all keys of a part come before the keys of
            the next.
        deletes: The keys of the records to be deleted.
    """

    name: str
    file_ids: tuple[str, ...]
    keys: Callable[[], Iterable[pa.StringArray]]
    records: Callable[[str], Iterable[Records]]
    deletes: pa.StringArray = field(default_factory=lambda: _NO_KEYS)


@dataclass(frozen=True, slots=True)
class ChangedRecords:
    """All that an instant writes to the metadata table.

    Attributes:
        drops: Partitions of the metadata table that go out of use, because pyhudi cannot keep them.
        warnings: The reasons, and what else goes out of use.
        steps: Further steps before the completed file, such as a changed definition of an index.
    """

    partitions: tuple[ChangedPartition, ...]
    drops: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    steps: tuple[ReplaceFile, ...] = ()
