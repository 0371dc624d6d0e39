"""The file groups that a record index names for some record keys.

Source: ``HoodieMetadataPayload.createRecordIndexUpdate``.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
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
    index: MetadataPartition, keys: pa.StringArray, partitions: Collection[str], most_groups: int
) -> RecordPlaces | None:
    """Return where some keys are in some partitions of the table, as the record index has it.

    The result is None where more than ``most_groups`` file groups of the index would have to be read.
    """
    by_path = by_partition(list(index.slices))
    if None in by_path or not by_path:
        if min(len(keys), len(index.slices)) > most_groups:
            return None
        return RecordPlaces(_places(index, index.find(keys)))
    paths = {unescape(path): path for path in by_path if path is not None}
    asked = [name for name in partitions if name in paths]
    if sum(min(len(keys), len(by_path[paths[name]])) for name in asked) > most_groups:
        return None
    found = _places(index, index.find(keys, [paths[name] for name in asked]))
    return RecordPlaces(found, frozenset(asked))


def keys_of(index: MetadataPartition, partition: str | None) -> int | None:
    """Return how many keys a record index has, of one partition if it is an index by partitions.

    The result is None where its log files are too large to be read for that.
    """
    paths = {unescape(path): path for path in by_partition(list(index.slices)) if path is not None}
    return index.count(None if partition is None else paths.get(partition, partition))


def _places(index: MetadataPartition, records: Iterable[pa.StructArray]) -> frozenset[FileGroupId]:
    found: set[FileGroupId] = set()
    for part in records:
        place = part.field(_PLACE)
        columns = pa.table({name: place.field(name) for name in _FIELDS})
        for each in columns.group_by(list(_FIELDS)).aggregate([]).to_pylist():  # O(file groups)
            found.add(_file_group(index, each))
    return frozenset(found)


def _file_group(index: MetadataPartition, place: dict[str, Any]) -> FileGroupId:
    partition, encoding = place["partitionName"], place["fileIdEncoding"]
    high, low, number = (place[name] for name in ("fileIdHighBits", "fileIdLowBits", "fileIndex"))
    if encoding == _AS_UUID and None not in (partition, high, low, number):
        bits = uuid.UUID(int=(high & _UNSIGNED) << 64 | (low & _UNSIGNED))
        return FileGroupId(partition, f"{bits}-{number}" if number >= 0 else str(bits))
    if encoding == _AS_TEXT and partition is not None and place["fileId"]:
        return FileGroupId(partition, place["fileId"])
    raise CorruptFileError(
        f"The record index of the table {index.table.storage.path} names no file group for a key, but {place}.", ""
    )
