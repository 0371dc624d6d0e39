"""Records of a metadata table in Avro's encoding, whole columns at a time: as many as a table of 40,000 files has."""

from __future__ import annotations

import tarfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyhudi.table.files.logs.avro_bytes import numbers, texts
from pyhudi.table.files.names import BaseFileName, LogFileName
from pyhudi.table.hfile.reader import HFile
from pyhudi.table.metadata import bounds_records, encoding
from pyhudi.table.metadata.bounds_of_files import BoundsOfColumn, NamedFiles
from pyhudi.table.metadata.encoding import EncodedField, Records, encoded, joined

Integers = np.ndarray[Any, np.dtype[np.int64]]
# Tables by Apache Hudi with their metadata tables.
_ARCHIVE = Path(__file__).parents[2] / "fixtures" / "metadata" / "tables.tar.xz"
_BY_1_2 = "/live_9_by_1_2/.hoodie/metadata/files/files-"
_OF_KEY = 5


@lru_cache
def schema_of_1_2() -> str:
    """Return the Avro schema of the records as Apache Hudi 1.2 writes it."""
    with tarfile.open(_ARCHIVE) as archive:
        for member in archive:
            if _BY_1_2 in f"/{member.name}" and member.name.endswith(".hfile"):
                packed = archive.extractfile(member)
                assert packed is not None
                return HFile(pa.BufferReader(packed.read()), member.name).schema
    raise AssertionError(f"{_ARCHIVE} has no {_BY_1_2}")


@dataclass(frozen=True)
class Files:
    """Files of a table, a row each; ``newest`` has those of newest file slices, where these are known."""

    partitions: pa.StringArray
    names: pa.StringArray
    sizes: Integers
    rows: Integers
    newest: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def take(self, at: Integers) -> Files:
        chosen = pa.array(at)
        newest = None if self.newest is None else self.newest[at]
        return Files(self.partitions.take(chosen), self.names.take(chosen), self.sizes[at], self.rows[at], newest)

    @cached_property
    def paths(self) -> list[str]:
        pairs = zip(self.partitions.to_pylist(), self.names.to_pylist(), strict=True)
        return [f"{folder}/{name}".removeprefix("/") for folder, name in pairs]

    @cached_property
    def times(self) -> list[str]:
        """The instant that wrote each file."""
        parsed = [BaseFileName.parse(name) or LogFileName.parse(name) for name in self.names.to_pylist()]
        return [one.instant_time if isinstance(one, BaseFileName) else one.named_time for one in parsed if one]

    @cached_property
    def file_ids(self) -> list[str]:
        parsed = [BaseFileName.parse(name) or LogFileName.parse(name) for name in self.names.to_pylist()]
        return [one.file_id for one in parsed if one]


@dataclass(frozen=True)
class ColumnBounds:
    """The bounds of one column in each of some files; ``least`` is null where a file has nulls alone.

    ``stated`` has the files of which the metadata table says anything; None for all.
    """

    column: str
    least: pa.Array
    greatest: pa.Array
    nulls: Integers
    stated: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    def take(self, at: Integers) -> ColumnBounds:
        chosen = pa.array(at)
        stated = None if self.stated is None else self.stated[at]
        return ColumnBounds(self.column, self.least.take(chosen), self.greatest.take(chosen), self.nulls[at], stated)


@dataclass(frozen=True)
class Keys:
    """Keys of records, and which of the files each is in."""

    keys: pa.StringArray
    files: Integers

    def take(self, at: Integers) -> Keys:
        return Keys(self.keys.take(pa.array(at)), self.files[at])


def records_of_files(files: Files) -> Records:
    """Return the records of ``files``: the partitions, and of each its files."""
    paths, schema = files.partitions.unique(), schema_of_1_2()
    every = encoding.record_of_partitions(paths, np.zeros(len(paths), dtype=np.bool_), schema)
    if not len(files):
        return every
    alive = np.zeros(len(files), dtype=np.bool_)
    return joined([every, encoding.records_of_files(files.partitions, files.names, files.sizes, alive, schema)])


def records_of_bounds(files: Files, bounds: ColumnBounds, *, typed: bool = True) -> Records:
    """Return the records of one column in ``column_stats``; of version 9 on they say the type of values."""
    named, of_column = _stated(files, bounds)
    return bounds_records.records_of_bounds(named, [of_column], schema_of_1_2(), typed=typed)


def records_of_partition_bounds(files: Files, bounds: ColumnBounds, *, typed: bool = True) -> Records:
    """Return the records of one column in ``partition_stats``: the bounds of all files of a partition, exact."""
    named, of_column = _stated(files, bounds)
    return bounds_records.records_of_partition_bounds(named, [of_column], schema_of_1_2(), typed=typed, tight=True)


def _stated(files: Files, bounds: ColumnBounds) -> tuple[NamedFiles, BoundsOfColumn]:
    """Return the files of which the metadata table says anything, and what."""
    at = np.arange(len(files)) if bounds.stated is None else np.flatnonzero(bounds.stated)
    some, of_column = files.take(at), bounds.take(at)
    least, greatest = (_whole(bound) for bound in (of_column.least, of_column.greatest))
    found = BoundsOfColumn(bounds.column, least, greatest, of_column.nulls, some.sizes, some.sizes)
    return NamedFiles(some.partitions, some.names, some.rows), found


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def record_places(files: Files) -> Callable[[Keys], Records]:
    """Return what makes the records of a record index, given keys."""
    high, low, number = (np.full(len(files), -1, dtype=np.int64) for _ in range(3))
    other = [""] * len(files)
    for at, file_id in enumerate(files.file_ids):
        text, dash, last = file_id[:36], file_id[36:37], file_id[37:]
        if dash == "-" and last.isdigit():
            words = np.frombuffer(uuid.UUID(text).bytes, dtype=">i8")
            high[at], low[at], number[at] = words[0], words[1], int(last)
        else:
            other[at] = file_id
    encodings = (np.array([len(text) for text in other]) > 0).astype(np.int64)
    written = {time: _milliseconds(time) for time in set(files.times)}
    made_at = np.array([written[time] for time in files.times], dtype=np.int64)
    names = pa.array(other, pa.string())

    def records(keys: Keys) -> Records:
        at = keys.files
        given = {
            "partitionName": EncodedField(texts(files.partitions.take(pa.array(at)))),
            "fileIdHighBits": EncodedField(numbers(high[at])),
            "fileIdLowBits": EncodedField(numbers(low[at])),
            "fileIndex": EncodedField(numbers(number[at])),
            "fileId": EncodedField(texts(names.take(pa.array(at)))),
            "instantTime": EncodedField(numbers(made_at[at])),
            "fileIdEncoding": EncodedField(numbers(encodings[at])),
        }
        values = encoded(schema_of_1_2(), _OF_KEY, {"recordIndexMetadata": given}, len(at))
        return Records(keys.keys, values)

    return records


def _milliseconds(time: str) -> int:
    moment = datetime.strptime(time[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * 1000 + int(time[14:17] or 0)
