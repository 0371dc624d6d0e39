"""Records of a metadata table in Avro's encoding, whole columns at a time: as many as a table of 40,000 files has."""

from __future__ import annotations

import tarfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.table.files.logs.avro_bytes import Encoded, beside, fixed, numbers, same, spread, texts, within
from pyhudi.table.files.logs.decimals import shortest, unscaled
from pyhudi.table.files.names import BaseFileName, LogFileName
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.hfile.reader import HFile
from pyhudi.table.metadata.record_keys import (
    PARTITIONS,
    hash_of_column,
    hash_of_file,
    hash_of_partition,
    key_of_partition,
)

Integers = np.ndarray[Any, np.dtype[np.int64]]
# Tables by Apache Hudi with their metadata tables.
_ARCHIVE = Path(__file__).parents[2] / "fixtures" / "metadata" / "tables.tar.xz"
_BY_1_2 = "/live_9_by_1_2/.hoodie/metadata/files/files-"
# The types of records, and the branches of the union of bounds.
_ALL_PARTITIONS, _PARTITION, _OF_FILE, _OF_KEY, _OF_PARTITION = 1, 2, 3, 5, 6
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING = range(1, 8)
_DECIMAL = 10
# Meta columns and the key are empty in each record.
_HEAD = b"\x00" * 6
_IS, _NONE, _FALSE, _TRUE = b"\x02", b"\x00", b"\x00", b"\x01"


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

    @cached_property
    def hashes(self) -> pa.StringArray:
        """What the keys of a column's bounds end with."""
        pairs = zip(self.partitions.to_pylist(), self.names.to_pylist(), strict=True)
        return pa.array([hash_of_partition(path) + hash_of_file(name) for path, name in pairs], pa.string())


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


@dataclass(frozen=True)
class Records:
    """Records in any order: each with its key."""

    keys: pa.StringArray
    values: pa.BinaryArray

    def sorted(self) -> Entries:
        keys = self.keys.cast(pa.binary())
        order = pc.sort_indices(keys)
        return Entries(keys.take(order), self.values.take(order))

    def take(self, at: Integers) -> Records:
        chosen = pa.array(at)
        return Records(self.keys.take(chosen), self.values.take(chosen))


def joined(parts: Sequence[Records]) -> Records:
    return Records(pa.concat_arrays([part.keys for part in parts]), pa.concat_arrays([part.values for part in parts]))


def records_of_files(files: Files) -> Records:
    """Return the records of ``files``: the partitions, and of each its files."""
    names = files.partitions.dictionary_encode()
    order = np.argsort(names.indices.to_numpy(), kind="stable")
    counts = np.bincount(names.indices.to_numpy(), minlength=len(names.dictionary)).astype(np.int64)
    entries = _entries(files.names.take(pa.array(order)), files.sizes[order])
    each = beside([numbers(counts), within(entries, counts), same(_NONE, len(counts))])
    paths = pa.array([key_of_partition(path) for path in names.dictionary.to_pylist()], pa.string())
    every = _entries(paths, np.zeros(len(paths), dtype=np.int64)).data.tobytes()
    every = _number(len(paths)) + every + _NONE if len(paths) else _NONE
    begins = {kind: _HEAD + _number(kind) + _IS for kind in (_ALL_PARTITIONS, _PARTITION)}
    values = beside([same(begins[_PARTITION], len(counts)), each, same(_NONE * 4, len(counts))])
    first = Records(pa.array([PARTITIONS]), pa.array([begins[_ALL_PARTITIONS] + every + _NONE * 4], pa.binary()))
    return joined([first, Records(paths, _binary(values))])


def _entries(names: pa.StringArray, sizes: Integers) -> Encoded:
    return beside([texts(names), numbers(sizes), same(_FALSE, len(names))])


def records_of_bounds(files: Files, bounds: ColumnBounds, *, typed: bool = True) -> Records:
    """Return the records of one column in ``column_stats``; of version 9 on they say the type of values."""
    if bounds.stated is not None:
        at = np.flatnonzero(bounds.stated)
        files, bounds = files.take(at), ColumnBounds(bounds.column, *_taken(bounds, at))
    keys = pc.binary_join_element_wise(hash_of_column(bounds.column), files.hashes, "")
    return Records(keys, _bounds(_OF_FILE, files.names, bounds, files.rows, files.sizes, typed))


def _taken(bounds: ColumnBounds, at: Integers) -> tuple[pa.Array, pa.Array, Integers]:
    part = bounds.take(at)
    return part.least, part.greatest, part.nulls


def records_of_partition_bounds(files: Files, bounds: ColumnBounds, *, typed: bool = True) -> Records:
    """Return the records of one column in ``partition_stats``: the bounds of all files of a partition, exact."""
    stated = np.ones(len(files), dtype=np.bool_) if bounds.stated is None else bounds.stated
    at = np.flatnonzero(stated)
    paths = files.partitions.take(pa.array(at)).dictionary_encode()
    owners = paths.indices.to_numpy()
    count = len(paths.dictionary)
    sums = [np.bincount(owners, each[at], count).astype(np.int64) for each in (files.rows, bounds.nulls, files.sizes)]
    least = _extreme(bounds.least.take(pa.array(at)), owners, "ascending", count)
    greatest = _extreme(bounds.greatest.take(pa.array(at)), owners, "descending", count)
    names = pa.array([key_of_partition(path) for path in paths.dictionary.to_pylist()], pa.string())
    tight = ColumnBounds(bounds.column, least, greatest, sums[1])
    values = _bounds(_OF_PARTITION, names, tight, sums[0], sums[2], typed)
    hashes = pa.array([hash_of_partition(path) for path in paths.dictionary.to_pylist()], pa.string())
    return Records(pc.binary_join_element_wise(hash_of_column(bounds.column), hashes, ""), values)


def _extreme(values: pa.Array, owners: Any, direction: str, count: int) -> pa.Array:
    """Return the first value of each owner in some direction; null where it has none."""
    table = pa.table({"owner": owners, "value": values})
    order = pc.sort_indices(table, [("owner", "ascending"), ("value", direction)]).to_numpy()
    first = np.full(count, -1, dtype=np.int64)
    begins = np.flatnonzero(np.diff(owners[order], prepend=-1))
    first[owners[order][begins]] = order[begins]
    return values.take(pa.array(first, mask=first < 0))


def _bounds(
    kind: int, names: pa.StringArray, bounds: ColumnBounds, rows: Integers, sizes: Integers, typed: bool
) -> pa.BinaryArray:
    count = len(names)
    column = bounds.column.encode()
    branch, ordinal, more = _kind_of(bounds.least.type)
    is_tight = _TRUE if kind == _OF_PARTITION else _FALSE
    says = _NONE if more is None else _IS + _number(len(more)) + more.encode()
    value_type = (_IS, _number(ordinal), says) if typed else (_NONE,)
    ends = (_FALSE, is_tight, *value_type, _NONE, _NONE)
    numbered = [part for each in (rows, bounds.nulls, sizes, sizes) for part in (same(_IS, count), numbers(each))]
    return _binary(
        beside(
            [
                same(_HEAD + _number(kind) + _NONE + _NONE + _IS + _IS, count),
                texts(names),
                same(_IS + _number(len(column)) + column, count),
                _wrapped(bounds.least, branch),
                _wrapped(bounds.greatest, branch),
                *numbered,
                same(b"".join(ends), count),
            ]
        )
    )


def _kind_of(kind: pa.DataType) -> tuple[int, int, str | None]:
    """Return the branch of bounds of a type, its number in Apache Hudi's ``ValueType``, and what else it says."""
    if pa.types.is_decimal(kind):
        return _BYTES, _DECIMAL, f"{kind.precision},{kind.scale}"
    if pa.types.is_timestamp(kind):
        return _LONG, (16 if kind.tz else 19), None
    found = _BRANCHES.get(kind)
    if found is None:
        raise NotImplementedError(f"bounds of {kind}")
    return *found, None


_BRANCHES: Mapping[pa.DataType, tuple[int, int]] = {
    pa.bool_(): (_BOOLEAN, 2),
    pa.int32(): (_INT, 3),
    pa.int64(): (_LONG, 4),
    pa.float32(): (_FLOAT, 5),
    pa.float64(): (_DOUBLE, 6),
    pa.string(): (_STRING, 7),
    pa.binary(): (_BYTES, 8),
    pa.date32(): (_INT, 12),
}


def _wrapped(values: pa.Array, branch: int) -> Encoded:
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    some = values.drop_null()
    if isinstance(some, pa.ChunkedArray):
        some = some.combine_chunks()
    given = beside([same(_number(branch), len(some)), _values(some)])
    return beside([spread(given, valid), spread(same(_NONE, int((~valid).sum())), ~valid)])


def _values(values: pa.Array) -> Encoded:
    kind = values.type
    if pa.types.is_decimal(kind):
        made = shortest(unscaled(values))
        return beside([numbers(made.lengths), made])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return texts(values)
    if pa.types.is_boolean(kind):
        return fixed(values.cast(pa.uint8()).to_numpy().reshape(-1, 1))
    if pa.types.is_floating(kind):
        octets = np.ascontiguousarray(values.to_numpy()).view(np.uint8)
        return fixed(octets.reshape(len(values), -1))
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return numbers(values.cast(width).to_numpy())


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
    encoding = (np.array([len(text) for text in other]) > 0).astype(np.int64)
    written = {time: _milliseconds(time) for time in set(files.times)}
    made_at = np.array([written[time] for time in files.times], dtype=np.int64)
    names = pa.array(other, pa.string())

    def records(keys: Keys) -> Records:
        at, count = keys.files, len(keys.keys)
        chosen = pa.array(at)
        values = beside(
            [
                same(_HEAD + _number(_OF_KEY) + _NONE * 3 + _IS + _IS, count),
                texts(files.partitions.take(chosen)),
                same(_IS, count),
                numbers(high[at]),
                same(_IS, count),
                numbers(low[at]),
                same(_IS, count),
                numbers(number[at]),
                same(_IS, count),
                texts(names.take(chosen)),
                same(_IS, count),
                numbers(made_at[at]),
                numbers(encoding[at]),
                same(_NONE * 2, count),
            ]
        )
        return Records(keys.keys, _binary(values))

    return records


def _milliseconds(time: str) -> int:
    moment = datetime.strptime(time[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * 1000 + int(time[14:17] or 0)


def _number(value: int) -> bytes:
    return numbers(np.array([value], dtype=np.int64)).data.tobytes()


def _binary(values: Encoded) -> pa.BinaryArray:
    ends = np.concatenate(([0], np.cumsum(values.lengths))).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(values.lengths), [None, pa.py_buffer(ends), pa.py_buffer(values.data)]
    )
