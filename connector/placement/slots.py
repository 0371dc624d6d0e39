"""The slot of each row, ``(hash of its partition path + its bucket) mod n``, computed in Python.

A partition's own number of buckets makes the bucket.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ...index.base import ComputedIndex
from ...index.registry import computed_index_for
from ...table.buckets.numbers import BucketNumbers
from ...table.config import TableConfig
from ...table.keys.generator import KeyGenerator
from ...table.schema.fields import root_of

Slots = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Placement:
    """The placement of a table's rows; every task that places rows gets a copy.

    Attributes:
        schema: The table's columns; None if unknown.
        tasks: The number of slots.
        exactly: Whether each slot has its own task; otherwise Spark may join slots.
        numbers: The numbers of buckets at the moment of the placement; None if all partitions have the same.
    """

    config: TableConfig
    schema: pa.Schema | None
    tasks: int
    exactly: bool = True
    numbers: BucketNumbers | None = None

    @cached_property
    def _index(self) -> ComputedIndex:
        """One for all rows of a task, as it may look into the table's files."""
        return computed_index_for(self.config, self.numbers)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(map(root_of, (*self.config.record_key_fields, *self.config.partition_fields))))

    def spelled(self, rows: pa.RecordBatch) -> tuple[pa.StringArray, pa.StringArray]:
        """Return the record key and the partition path of each row, which needs only the columns `columns`.

        Raises `NullKeyError` for a null or empty key, and `PartitionValueError` for a value that makes no safe folder.
        """
        keys = KeyGenerator(self.config, self.schema)
        return keys.record_keys(rows), keys.partition_paths(rows).dictionary_decode()

    def slots(self, rows: pa.RecordBatch) -> Slots:
        """Return the slot of each row, integers from 0 to ``tasks`` - 1."""
        keys = KeyGenerator(self.config, self.schema)
        record_keys, parts = keys.composed(rows)
        paths = keys.partition_paths(rows)
        buckets = self._index.buckets_in(paths, record_keys, parts)
        names = paths.dictionary.to_pylist()  # O(partitions)
        starts = np.array([zlib.crc32(name.encode()) for name in names], np.int64)
        codes = paths.indices.to_numpy(zero_copy_only=False)
        slots: Slots = ((starts[codes] + buckets) % self.tasks).astype(np.int32)
        return slots
