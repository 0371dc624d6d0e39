"""Bounds of columns as Arrow has them: of each of many files, and of the partitions that these files are in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask
from ..files.column_bounds import DECIMAL, OCTETS, TEXT, ColumnBounds, encoding_of
from ..files.logs.decimals import decimals
from .bounds import comparable
from .record_keys import hash_of_file, hash_of_partition

Integers = np.ndarray[Any, np.dtype[np.int64]]
# Bounds of so many files are Python objects at a time.
_FILES_AT_ONCE = 1000
_WIDTHS = {"<?": "u1", "<i": "<i4", "<q": "<i8", "<f": "<f4", "<d": "<f8"}


@dataclass(frozen=True, slots=True)
class FileBounds:
    """What a writer, or a footer, says of one data file.

    Attributes:
        name: The last part of its path.
        rows: Of a base file; of a log file those of its data blocks.
        columns: The bounds of its columns; the nulls are unknown of a column that a log file lacks.
        is_partial: Whether its rows leave values of older rows, so that it says nothing of the file slice by itself.
    """

    partition_path: str
    name: str
    rows: int
    columns: Sequence[ColumnBounds]
    is_partial: bool = False


@dataclass(frozen=True)
class NamedFiles:
    """Files that have bounds, a row each."""

    partitions: pa.StringArray
    names: pa.StringArray
    rows: Integers

    @classmethod
    def of(cls, files: Sequence[FileBounds]) -> NamedFiles:
        """Return the names and row counts of files as arrays."""
        return cls(
            pa.array([file.partition_path for file in files], pa.string()),
            pa.array([file.name for file in files], pa.string()),
            np.array([file.rows for file in files], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.names)

    def take(self, at: Integers) -> NamedFiles:
        chosen = pa.array(at, pa.int64())
        return NamedFiles(self.partitions.take(chosen), self.names.take(chosen), self.rows[at])

    @cached_property
    def places(self) -> pa.StringArray:
        """The ends of the keys of the files' bounds, as `places_of` returns them."""
        return places_of(self.partitions, self.names)


def places_of(partitions: pa.StringArray, names: pa.StringArray) -> pa.StringArray:
    """Return the ends of the keys of files' bounds: the hashes of partition and file, which follow the column's."""
    pairs = zip(partitions.to_pylist(), names.to_pylist(), strict=True)  # O(files)
    return pa.array([hash_of_partition(path) + hash_of_file(name) for path, name in pairs], pa.string())


@dataclass(frozen=True)
class BoundsOfColumn:
    """The bounds of one column in each of some files, or partitions.

    Attributes:
        least: In the type of the column; null if there are nulls alone, or no rows.
        nulls: How many rows have no value.
        sizes: Bytes of the column in a base file, 0 for a log file.
        uncompressed: The same before compression.
    """

    column: str
    least: pa.Array
    greatest: pa.Array
    nulls: Integers
    sizes: Integers = field(repr=False)
    uncompressed: Integers = field(repr=False)

    @classmethod
    def of(cls, column: pa.Field, stated: Sequence[ColumnBounds]) -> BoundsOfColumn:
        """Return the bounds of a column of a canonical type; ``stated`` has those that a writer gave for each file."""
        least = _bounds_in_type([bounds.least for bounds in stated], column.type)  # O(files)
        greatest = _bounds_in_type([bounds.greatest for bounds in stated], column.type)
        # What `ColumnBounds` has behind the column and its two bounds.
        nulls, sizes, uncompressed = (
            np.array([bounds[at] for bounds in stated], dtype=np.int64) for at in range(3, len(ColumnBounds._fields))
        )
        return cls(column.name, least, greatest, nulls, sizes, uncompressed)

    def take(self, at: Integers) -> BoundsOfColumn:
        chosen = pa.array(at, pa.int64())
        least, greatest = self.least.take(chosen), self.greatest.take(chosen)
        return BoundsOfColumn(self.column, least, greatest, self.nulls[at], self.sizes[at], self.uncompressed[at])


@dataclass(frozen=True)
class BoundedFiles:
    """The bounds of some columns in many files, as arrays.

    Attributes:
        columns: The bounds of each column, file by file; a file that lacks a column has nulls alone.
        is_partial: As of `FileBounds`.
    """

    files: NamedFiles
    columns: tuple[BoundsOfColumn, ...]
    is_partial: Mask

    @classmethod
    def of(cls, files: Iterable[FileBounds], columns: Sequence[pa.Field]) -> BoundedFiles:
        """Return the bounds of some columns in files, of which a thousand at a time are Python objects."""
        parts = [_bounds_of_chunk(chunk, columns) for chunk in _chunks(iter(files))] or [_bounds_of_chunk([], columns)]
        return cls(
            NamedFiles(
                pa.concat_arrays([part.files.partitions for part in parts]),
                pa.concat_arrays([part.files.names for part in parts]),
                np.concatenate([part.files.rows for part in parts]),
            ),
            tuple(_concatenated(of_column) for of_column in zip(*(part.columns for part in parts), strict=True)),
            np.concatenate([part.is_partial for part in parts]),
        )

    def take(self, at: Integers) -> BoundedFiles:
        return BoundedFiles(self.files.take(at), tuple(each.take(at) for each in self.columns), self.is_partial[at])


def _chunks(files: Iterator[FileBounds]) -> Iterator[list[FileBounds]]:
    while chunk := list(islice(files, _FILES_AT_ONCE)):
        yield chunk


def _bounds_of_chunk(files: Sequence[FileBounds], columns: Sequence[pa.Field]) -> BoundedFiles:
    """Return the bounds of columns in a few files; a column that a file lacks has nulls alone.

    A log file states an unknown number of nulls for a column that it lacks.
    """
    positions = {field.name: position for position, field in enumerate(columns)}
    stated = [[ColumnBounds(field.name, None, None, nulls=file.rows) for file in files] for field in columns]
    for number, file in enumerate(files):
        for bounds in file.columns:
            at = positions.get(bounds.column)
            if at is not None and bounds.nulls is not None:
                stated[at][number] = bounds
    of_columns = tuple(BoundsOfColumn.of(field, bounds) for field, bounds in zip(columns, stated, strict=True))
    return BoundedFiles(NamedFiles.of(files), of_columns, np.array([file.is_partial for file in files], np.bool_))


def _concatenated(parts: Sequence[BoundsOfColumn]) -> BoundsOfColumn:
    """Return the bounds of one column in several chunks of files as one."""
    return BoundsOfColumn(
        parts[0].column,
        pa.concat_arrays([part.least for part in parts]),
        pa.concat_arrays([part.greatest for part in parts]),
        np.concatenate([part.nulls for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.uncompressed for part in parts]),
    )


def by_partition(files: NamedFiles, bounds: BoundsOfColumn) -> tuple[NamedFiles, BoundsOfColumn]:
    """Return the partitions that files are in, with their rows, and the bounds of a column over all files of each."""
    paths = files.partitions.dictionary_encode()
    owners, count = paths.indices.to_numpy(zero_copy_only=False), len(paths.dictionary)
    rows, *counts = (
        np.bincount(owners, each, count).astype(np.int64)
        for each in (files.rows, bounds.nulls, bounds.sizes, bounds.uncompressed)
    )
    least = _extreme(bounds.least, owners, "ascending", count)
    greatest = _extreme(bounds.greatest, owners, "descending", count)
    # A partition has no name beside its path.
    return NamedFiles(paths.dictionary, paths.dictionary, rows), BoundsOfColumn(bounds.column, least, greatest, *counts)


def _extreme(values: pa.Array, owners: Any, direction: str, count: int) -> pa.Array:
    """Return the least value of each partition (``ascending``) or the greatest (``descending``); null if it has none.

    ``owners`` has the number of each value's partition, below ``count``.
    """
    table = pa.table({"owner": owners, "value": comparable(values)})
    order = pc.sort_indices(table, [("owner", "ascending"), ("value", direction)]).to_numpy()
    first_rows = np.full(count, -1, dtype=np.int64)
    starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
    first_rows[owners[order][starts]] = order[starts]
    return values.take(pa.array(first_rows, mask=first_rows < 0))


def _bounds_in_type(stated: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Return bounds, which come as bytes in the encoding of `encoding_of`, as values of a type."""
    encoding = encoding_of(kind)
    if encoding == DECIMAL:
        return decimals(pa.array(stated, pa.binary()), kind)
    if encoding in (TEXT, OCTETS):
        return pa.array(stated, pa.binary()).cast(kind)
    width = np.dtype(_WIDTHS[encoding])
    is_null = np.array([bound is None for bound in stated], dtype=np.bool_)
    numbers = np.zeros(len(stated), width)
    numbers[~is_null] = np.frombuffer(b"".join(bound for bound in stated if bound is not None), width)
    return _numbers_in_type(numbers, is_null, kind)


def _numbers_in_type(values: Any, is_null: Mask, kind: pa.DataType) -> pa.Array:
    """Return numbers, as which dates and times travel, too, in a type."""
    numbers = pa.array(values, mask=is_null)
    if pa.types.is_boolean(kind):
        return numbers.cast(pa.bool_())
    return numbers.cast(kind)
