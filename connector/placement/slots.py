"""The slot of every row: ``(hash of its partition path + its bucket) mod n``, as Python computes it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...index.registry import computed_index_for
from ...table.config import TableConfig
from ...table.keys.generator import KeyGenerator
from ...table.schema.fields import root_of

Slots = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the rows of a table's file groups go; it travels with every task that places rows.

    Attributes:
        config: The table's properties.
        schema: The table's columns, None where nobody knows them yet.
        tasks: Number of slots.
        exactly: Whether each slot is to have a task of its own; else Spark may put several into one.
    """

    config: TableConfig
    schema: pa.Schema | None
    tasks: int
    exactly: bool = True

    @property
    def columns(self) -> list[str]:
        """The columns that decide."""
        return list(dict.fromkeys(map(root_of, (*self.config.record_key_fields, *self.config.partition_fields))))

    def spelled(self, rows: pa.RecordBatch) -> tuple[pa.StringArray, pa.StringArray]:
        """Return the record key and the partition path of every row.

        Args:
            rows: At least the deciding columns.

        Raises:
            NullKeyError: A record key is null or empty.
            PartitionValueError: A value makes no safe folder.
        """
        keys = KeyGenerator(self.config, self.schema)
        return keys.record_keys(rows), keys.partition_paths(rows).dictionary_decode()

    def slots(self, rows: pa.RecordBatch) -> Slots:
        """Return the slot of every row, n integers from 0 to ``tasks`` - 1.

        Args:
            rows: At least the deciding columns.

        Raises:
            NullKeyError: A record key is null or empty.
        """
        keys = KeyGenerator(self.config, self.schema)
        buckets = computed_index_for(self.config).buckets(*keys.composed(rows))
        paths = keys.partition_paths(rows)
        names = paths.dictionary.to_pylist()  # O(partitions)
        starts = np.array([zlib.crc32(name.encode()) for name in names], np.int64)
        codes = paths.indices.to_numpy(zero_copy_only=False)
        slots: Slots = ((starts[codes] + buckets) % self.tasks).astype(np.int32)
        return slots
