"""The file groups that a record index names for some record keys.

Source: ``HoodieMetadataPayload.createRecordIndexUpdate``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import CorruptFileError
from ..files.names import FileGroupId
from ..keys.partition_paths import unescape
from .kinds import by_partition
from .metadata_table import MetadataPartition

_PLACE = "recordIndexMetadata"
_AS_UUID, _AS_TEXT = 0, 1
_FIELDS = ("partitionName", "fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")
_UNSIGNED = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class RecordPlaces:
    """The file groups that have some keys; ``partitions`` names those of the index, None for all of the table."""

    groups: frozenset[FileGroupId]
    partitions: frozenset[str] | None = None

    def covers(self, partition_path: str) -> bool:
        """Return whether the index says of a partition where its keys are."""
        return self.partitions is None or partition_path in self.partitions


def record_places(
    index: MetadataPartition, keys: pa.StringArray, rows: Mapping[str, int], *, is_whole: bool, most_groups: int
) -> RecordPlaces | None:
    """Return where some keys are, as the record index has it; None if it does not prove to have all rows.

    Of several rows with one key the index names one, and Apache Hudi shows no other by it. So this function answers
    only if the index has as many keys as there are rows. To count them it opens all file groups, up to ``most_groups``.

    Args:
        rows: How many rows each partition has.
        is_whole: Whether these are all partitions of the table.
    """
    by_path = by_partition(list(index.slices))
    # An index of the whole table, whose file ids name no partition.
    if None in by_path or not by_path:
        if not is_whole or not has_all_keys(index, sum(rows.values()), most_groups):
            return None
        return RecordPlaces(_file_groups_in(index, index.find(keys)))
    paths = {unescape(path): path for path in by_path if path is not None}
    groups = {partition: by_path[paths[partition]] for partition in rows if partition in paths}
    file_ids_to_count = [file_id for file_ids in groups.values() for file_id in file_ids]
    counts = index.counts(file_ids_to_count) if len(file_ids_to_count) <= most_groups else None
    if counts is None:
        return None
    complete_partitions = [
        partition for partition, ids in groups.items() if sum(map(counts.__getitem__, ids)) == rows[partition]
    ]
    if not complete_partitions:
        return None
    return RecordPlaces(
        _file_groups_in(index, index.find(keys, {paths[name] for name in complete_partitions})),
        frozenset(complete_partitions),
    )


def has_all_keys(index: MetadataPartition, rows: int, most_groups: int) -> bool:
    """Return whether an index of the whole table has as many keys as the table has rows."""
    counts = index.counts(list(index.slices)) if len(index.slices) <= most_groups else None
    return counts is not None and sum(counts.values()) == rows


def _file_groups_in(index: MetadataPartition, records: Iterable[pa.StructArray]) -> frozenset[FileGroupId]:
    """Return the file groups that entries of a record index name; raise `CorruptFileError` if an entry names none."""
    groups: set[FileGroupId] = set()
    for part in records:
        place = part.field(_PLACE)
        columns = pa.table({name: place.field(name) for name in _FIELDS})
        for each in columns.group_by(list(_FIELDS)).aggregate([]).to_pylist():  # O(file groups)
            groups.add(_file_group(index, each))
    return frozenset(groups)


def _file_group(index: MetadataPartition, place: dict[str, Any]) -> FileGroupId:
    """Return the file group that an entry names; raise `CorruptFileError` if it names none."""
    group = file_group_in(place)
    if group is None:
        raise CorruptFileError(
            f"The record index of the table {index.table.storage.path} names no file group for a key, but {place}.", ""
        )
    return group


def file_group_in(place: Mapping[str, Any]) -> FileGroupId | None:
    """Return the file group that an entry of a record index names; None if it names none."""
    partition, encoding = place["partitionName"], place["fileIdEncoding"]
    high, low, number = (place[name] for name in ("fileIdHighBits", "fileIdLowBits", "fileIndex"))
    if encoding == _AS_UUID and None not in (partition, high, low, number):
        bits = uuid.UUID(int=(high & _UNSIGNED) << 64 | (low & _UNSIGNED))
        return FileGroupId(partition, f"{bits}-{number}" if number >= 0 else str(bits))
    if encoding == _AS_TEXT and partition is not None and place["fileId"]:
        return FileGroupId(partition, place["fileId"])
    return None
