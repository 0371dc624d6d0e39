"""Where incoming rows belong: their record keys, their partitions, and their file group in the partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ..errors import NullKeyError, PlacementError
from ..index.base import ComputedIndex
from ..table.arrow.arrays import plain
from ..table.arrow.string_hash import hash64
from ..table.keys.generator import GeneratedKeys, KeyGenerator
from ..table.keys.partition_paths import check_safe_path
from ..table.schema.columns import FILE_GROUP, LOCATION, NEW_GROUP

# 4 bins: the keys of a bin mostly fit into memory, and the rows of many partitions stay in few pieces.
_BIN_BITS = 2

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Route(NamedTuple):
    """The destination of a row before a lookup of its key.

    `number` is a file group of the partition: the bucket, the task that opens the group if keys are generated, or
    the group's position among those of the partition. Before a lookup it is a share of the partition's keys.
    """

    partition_path: str
    number: int


@dataclass(frozen=True, slots=True)
class Routes:
    """Where n rows belong: the key, the partition path and the number (see `Route`) of each."""

    record_keys: pa.StringArray
    paths: pa.DictionaryArray
    groups: Numbers


class Router(Protocol):
    """Returns where rows belong.

    Unless rows come in ``any_order`` and from any thread, it may count rows: callers pass each row once and in order.
    """

    any_order: ClassVar[bool]

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return where the rows belong; raise `DataError` if a row has no key or no valid partition."""
        ...


@dataclass(frozen=True, slots=True)
class KeyRouter:
    """Sends rows to the file groups that the index computes from their keys."""

    any_order: ClassVar[bool] = True
    keys: KeyGenerator
    index: ComputedIndex

    def route(self, rows: pa.RecordBatch) -> Routes:
        record_keys, parts = self.keys.composed(rows)
        paths = self.keys.partition_paths(rows)
        groups = self.index.buckets_in(paths, record_keys, parts).astype(np.int64)
        return Routes(record_keys, paths, groups)


@dataclass(frozen=True, slots=True)
class OwnRouter:
    """Sends rows to file groups that no other task writes to; `partition` is the task's Spark partition."""

    any_order: ClassVar[bool] = False
    keys: KeyGenerator
    partition: int
    generated: GeneratedKeys | None

    def route(self, rows: pa.RecordBatch) -> Routes:
        record_keys = self.keys.record_keys(rows) if self.generated is None else self.generated.take(rows.num_rows)
        groups = np.full(rows.num_rows, self.partition, np.int64)
        return Routes(record_keys, self.keys.partition_paths(rows), groups)


@dataclass(frozen=True, slots=True)
class BinRouter:
    """Divides the rows of each partition by their keys, so that lookups can take some bins at a time."""

    any_order: ClassVar[bool] = True
    keys: KeyGenerator

    def route(self, rows: pa.RecordBatch) -> Routes:
        record_keys = self.keys.record_keys(rows)
        bins = (hash64(record_keys) >> np.uint64(64 - _BIN_BITS)).astype(np.int64)
        return Routes(record_keys, self.keys.partition_paths(rows), bins)


@dataclass(frozen=True, slots=True)
class PlacedRouter:
    """Sends rows to the file groups, maybe of another partition, that the column `FILE_GROUP` of the rows names."""

    any_order: ClassVar[bool] = False
    keys: KeyGenerator
    number_of: Callable[[str, str], int]
    table: str

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return the key, partition and file group of each row; PlacementError if a row names no usable file group."""
        named_groups = plain(rows.column(FILE_GROUP)).cast(pa.string())
        if named_groups.null_count:
            raise PlacementError(
                f"{named_groups.null_count} of {len(named_groups)} rows for the table {self.table} have no "
                f"{FILE_GROUP}, which says to which file group they were brought.",
                "Write rows as pyhudi placed them, or leave hoodie.pyhudi.colocated out.",
            )
        paths, names = _places_of(self.keys.partition_paths(rows), named_groups.dictionary_encode(), self.table)
        return Routes(self.keys.record_keys(rows), paths, _numbers(paths, names, self.number_of))


@dataclass(frozen=True, slots=True)
class LocationRouter:
    """Sends rows back to where they were read, by their meta columns."""

    any_order: ClassVar[bool] = False
    number_of: Callable[[str, str], int]
    table: str

    def route(self, rows: pa.RecordBatch) -> Routes:
        """Return the key, partition and file group of each row as its meta columns have them; NullKeyError for a null.

        The third of these columns has the name of the file that held the row.
        """
        record_keys, paths, names = (plain(rows.column(name)).cast(pa.string()) for name in LOCATION)
        for name, column in zip(LOCATION, (record_keys, paths, names), strict=True):
            if column.null_count:
                raise NullKeyError(
                    f"{column.null_count} of {len(column)} rows to be deleted from the table {self.table} have no "
                    f"{name}, which says where they are.",
                    "Delete rows as they were read from the table, with their meta columns.",
                )
        paths = paths.dictionary_encode()
        return Routes(record_keys, paths, _numbers(paths, names.dictionary_encode(), self.number_of))


def _numbers(paths: pa.DictionaryArray, names: pa.DictionaryArray, number_of: Callable[[str, str], int]) -> Numbers:
    """Return the `Route.number` of each of n rows, calling `number_of` once for each pair of path and name."""
    partitions = paths.dictionary.to_pylist()  # O(partitions)
    group_names = names.dictionary.to_pylist()  # O(file groups)
    combined = paths.indices.to_numpy().astype(np.int64) * len(group_names) + names.indices.to_numpy()
    pairs, codes = np.unique(combined, return_inverse=True)
    numbers = [
        number_of(partitions[pair // len(group_names)], group_names[pair % len(group_names)]) for pair in pairs.tolist()
    ]
    return np.array(numbers, np.int64)[codes]


def _places_of(
    paths: pa.DictionaryArray, named_groups: pa.DictionaryArray, table: str
) -> tuple[pa.DictionaryArray, pa.DictionaryArray]:
    """Return the partition and the file group's name of each row; ``paths`` are the partitions of the rows' columns.

    ``named_groups`` are the texts of the column `FILE_GROUP`, and ``table`` is the table's path, for errors.
    A row names ``file id`` alone, in the partition of its own columns, or ``partition/file id``. Raises
    `PlacementError` if it opens a file group of another partition.
    """
    split = [text.rpartition("/") for text in named_groups.dictionary.to_pylist()]  # O(file groups)
    names = pa.DictionaryArray.from_arrays(named_groups.indices, pa.array([name for _, _, name in split], pa.string()))
    if not any(slash for _, slash, _ in split):
        return paths, names
    for path, slash, name in split:
        if slash and name.removeprefix(NEW_GROUP).isdigit():
            raise PlacementError(
                f"Rows for the table {table} say in {FILE_GROUP} that they open a file group of partition {path!r}, "
                "which is not their own.",
                "Write rows as pyhudi placed them, or leave hoodie.pyhudi.colocated out.",
            )
        check_safe_path(path, table)
    own_paths = paths.dictionary.to_pylist()  # O(partitions)
    other_paths = dict.fromkeys(path for path, slash, _ in split if slash)
    numbers = {path: len(own_paths) + number for number, path in enumerate(other_paths)}
    # -1 stands for a name without a partition.
    of_name = np.array([numbers[path] if slash else -1 for path, slash, _ in split], np.int64)
    code_by_name = of_name[named_groups.indices.to_numpy()]
    codes = np.where(code_by_name < 0, paths.indices.to_numpy(), code_by_name).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([*own_paths, *other_paths], pa.string())), names
