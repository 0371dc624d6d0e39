"""The partitions of a metadata table: what each holds, and which of its file groups has a key.

Source: ``MetadataPartitionType`` and ``HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..arrow.string_hash import java_string_hash

FILES, COLUMN_STATS, PARTITION_STATS = "files", "column_stats", "partition_stats"
BLOOM_FILTERS, RECORD_INDEX = "bloom_filters", "record_index"
SECONDARY, EXPRESSION = "secondary_index_", "expr_index_"
_LEAST = -(1 << 31)
# The path of a partition of the table in the file ids of a record index by partitions, escaped.
_OF_PARTITION = re.compile(r"record-index-(?P<path>.+)-[0-9]{4,}-0")
_GROUP = re.compile(r".*-([0-9]{4,})-0")


FILE_GROUPS = {FILES: 1, COLUMN_STATS: 2, PARTITION_STATS: 1}
"""How many file groups Apache Hudi gives each partition by default."""

_PREFIXES = {FILES: "files", COLUMN_STATS: "col-stats", PARTITION_STATS: "partition-stats"}


@dataclass(frozen=True, slots=True)
class MetadataKind:
    """One kind of partition.

    Attributes:
        adds_up: Whether several records of one key add up, instead of the newest taking the place of the others.
        by_hash: Whether the hash of a key says which file group has it.
        columns: The fields in which its records say something.
    """

    columns: tuple[str, ...]
    adds_up: bool = False
    by_hash: bool = True


_BOUNDS, _FILTER = "ColumnStatsMetadata", "BloomFilterMetadata"
_KINDS = {
    FILES: MetadataKind(("filesystemMetadata",), adds_up=True),
    COLUMN_STATS: MetadataKind((_BOUNDS,), adds_up=True),
    PARTITION_STATS: MetadataKind((_BOUNDS,), adds_up=True),
    BLOOM_FILTERS: MetadataKind((_FILTER,)),
    RECORD_INDEX: MetadataKind(("recordIndexMetadata",)),
}


def new_file_id(partition: str, group: int) -> str:
    """Return the id of a new file group, which is number ``group`` of a partition of the metadata table."""
    return f"{_PREFIXES[partition]}-{group:04d}-0"


def kind_of(partition: str) -> MetadataKind | None:
    """Return the kind of a partition by its name; None if this release does not know it."""
    if partition.startswith(SECONDARY):
        # From version 9 on the hash is of the column's value alone, before it is of the whole key.
        return MetadataKind(("SecondaryIndexMetadata",), by_hash=False)
    if partition.startswith(EXPRESSION):
        return MetadataKind((_BOUNDS, _FILTER), adds_up=True, by_hash=False)
    return _KINDS.get(partition)


def groups_of(keys: pa.StringArray, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the number of each key's file group, among ``count`` file groups in the order of their file ids."""
    hashes = java_string_hash(keys).astype(np.int64)
    # In Java the absolute value of the least number is that number.
    positive = np.where(hashes == _LEAST, hashes, np.abs(hashes))
    return np.abs(np.fmod(positive, count))


def partition_in(file_id: str) -> str | None:
    """Return the escaped path that a file id of a record index names; None for an index of the whole table."""
    match = _OF_PARTITION.fullmatch(file_id)
    return None if match is None else match["path"]


def group_in(file_id: str) -> int | None:
    """Return the number that a file id gives its file group; None for a file id of another form."""
    match = _GROUP.fullmatch(file_id)
    return None if match is None else int(match[1])


def by_partition(file_ids: Sequence[str]) -> dict[str | None, list[str]]:
    """Return file ids in their order, by the partition that they name."""
    by_partition: dict[str | None, list[str]] = {}
    for file_id in sorted(file_ids):
        by_partition.setdefault(partition_in(file_id), []).append(file_id)
    return by_partition
