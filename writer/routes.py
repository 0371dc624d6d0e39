"""Where incoming rows belong: their record keys, their partitions, and the file group of each within its partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ..errors import CommitConflictError, NullKeyError
from ..index.append import AppendIndex
from ..index.base import ComputedIndex
from ..table.arrow.arrays import plain
from ..table.files.names import BaseFileName
from ..table.keys.generated import GeneratedKeys
from ..table.keys.generator import KeyGenerator
from ..table.schema.columns import FILE_NAME, PARTITION_PATH, RECORD_KEY

LOCATION = (RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The meta columns that say where a row was read."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Route(NamedTuple):
    """The way of a row to its file group, before anybody has looked which one that is.

    Attributes:
        partition_path: The partition.
        number: Stands for one file group of the partition: the bucket; or, where keys are generated, the task that
            opens the group, or the group's place among those that the partition has.
    """

    partition_path: str
    number: int


@dataclass(frozen=True, slots=True)
class Routes:
    """Where n rows belong.

    Attributes:
        record_keys: n keys.
        paths: n partition paths.
        groups: n numbers, each that of a file group of the row's partition.
    """

    record_keys: pa.StringArray
    paths: pa.DictionaryArray
    groups: Numbers


class Router(Protocol):
    """Says where rows belong; it may count them, so that each row is asked for once and in order."""

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return where the rows belong.

        Raises:
            DataError: A row has no key, no partition, or none that it may have.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeyRouter:
    """Sends rows to the file groups that their keys have.

    Attributes:
        keys: Makes keys and paths of columns.
        index: Says which file group holds a key.
    """

    keys: KeyGenerator
    index: ComputedIndex

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return where the rows belong by their keys."""
        record_keys, parts = self.keys.composed(rows)
        groups = self.index.buckets(record_keys, parts).astype(np.int64)
        return Routes(record_keys, self.keys.partition_paths(rows), groups)


class AppendRouter:
    """Gives rows keys, and sends them to file groups that nobody else writes to.

    Args:
        keys: Makes paths of columns.
        instant_time: The write's instant.
        partition: The task's Spark partition.
    """

    def __init__(self, keys: KeyGenerator, instant_time: str, partition: int) -> None:
        self._keys = keys
        self._generated = GeneratedKeys(instant_time, partition)
        self._index = AppendIndex(partition)

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return where the rows belong by the task that writes them."""
        record_keys = self._generated.take(rows.num_rows)
        groups = self._index.buckets(record_keys).astype(np.int64)
        return Routes(record_keys, self._keys.partition_paths(rows), groups)


@dataclass(frozen=True, slots=True)
class LocationRouter:
    """Sends rows back to where they were read, as their meta columns say.

    Attributes:
        file_ids: Returns the file ids of a partition, sorted; a file group's number is its place among them.
        table: For messages.
    """

    file_ids: Callable[[str], Sequence[str]]
    table: str

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return where the rows belong by where they were read.

        Raises:
            NullKeyError: A row does not say.
            CommitConflictError: A file group is gone since.
        """
        record_keys, paths, names = (plain(rows.column(name)).cast(pa.string()) for name in LOCATION)
        for name, column in zip(LOCATION, (record_keys, paths, names), strict=True):
            if column.null_count:
                raise NullKeyError(
                    f"{column.null_count} of {len(column)} rows to be deleted from the table {self.table} have no "
                    f"{name}, which says where they are.",
                    "Delete rows as they were read from the table, with their meta columns.",
                )
        paths, files = paths.dictionary_encode(), names.dictionary_encode()
        known = paths.dictionary.to_pylist()  # O(partitions)
        ids = [_file_id(name) for name in files.dictionary.to_pylist()]  # O(files)
        both = paths.indices.to_numpy().astype(np.int64) * len(ids) + files.indices.to_numpy()
        pairs, codes = np.unique(both, return_inverse=True)
        numbers = [self._number(known[pair // len(ids)], ids[pair % len(ids)]) for pair in pairs.tolist()]
        return Routes(record_keys, paths, np.array(numbers, np.int64)[codes])

    def _number(self, path: str, file_id: str) -> int:
        places = {one: place for place, one in enumerate(self.file_ids(path))}
        if file_id not in places:
            raise CommitConflictError(
                f"Rows to be deleted from the table {self.table} were read from the file group {file_id} of partition "
                f"{path!r}, which the table has no longer.",
                "Read the rows anew and delete those.",
            )
        return places[file_id]


def _file_id(name: str) -> str:
    parsed = BaseFileName.parse(name)
    return name if parsed is None else parsed.file_id
