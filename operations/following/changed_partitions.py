"""What one instant writes to the partitions of the metadata table, before it is bytes of a log file."""

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
        file_ids: All file groups of the partition, in the order by which hashes of keys name them.
        keys: Of the records to be written, each once.
        records: Yields these records by the schema of the file that they go to, in parts: all keys of one come before
            those of the next.
        deletes: Keys whose records go.
    """

    name: str
    file_ids: tuple[str, ...]
    keys: pa.StringArray
    records: Callable[[str], Iterable[Records]]
    deletes: pa.StringArray = field(default_factory=lambda: _NO_KEYS)


@dataclass(frozen=True, slots=True)
class ChangedRecords:
    """All that an instant writes.

    Attributes:
        drops: Partitions of the metadata table that cannot be kept.
        warnings: Why, and what else goes out of use.
        steps: What precedes the completed file besides: a changed definition of an index.
    """

    partitions: tuple[ChangedPartition, ...]
    drops: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    steps: tuple[ReplaceFile, ...] = ()
