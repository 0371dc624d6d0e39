"""Records of `files`, `column_stats` and `partition_stats` as the folders and data files of a table state them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ....errors import PyHudiError
from ....storage.base import Storage, join, split
from ....storage.threads import for_each
from ....table.files.column_bounds import ColumnBounds, encoding_of, united
from ....table.files.file_group import base_file, data_file
from ....table.files.logs.avro_bytes import Integers
from ....table.files.partitions import walk_partitions
from ....table.files.view import FileView
from ....table.files.written import Written
from ....table.metadata.bounds_of_files import FileBounds
from ....table.metadata.bounds_records import bounds_records, partition_bounds_records
from ....table.metadata.encoding import Records, joined, record_of_partitions, records_of_files
from ....table.metadata.read_bounds import bounds_of_base_file, bounds_of_log_file
from ....table.metadata.record_schema import record_schema
from ....table.seen_table import SeenTable
from ...following.indexed_columns import IndexedColumns
from ..means import Means
from ..service import NoTasksError


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """The data files of all instants that were complete at a moment, one row each; also those of replaced groups."""

    partitions: pa.StringArray
    names: pa.StringArray
    sizes: Integers

    def __len__(self) -> int:
        return len(self.names)


def committed_files(seen: SeenTable) -> CommittedFiles:
    """List the data files of all partitions."""
    view = FileView(seen.timeline, Written())
    rows = [
        (partition, split(info.path)[1], info.size)
        for partition, listed in sorted(walk_partitions(seen.storage).items())
        for info in listed
        if (file := data_file(info.path, info.size)) is not None and view.shows(file)
    ]
    partitions, names, sizes = ([row[at] for row in rows] for at in range(3))
    return CommittedFiles(
        pa.array(partitions, pa.string()), pa.array(names, pa.string()), np.array(sizes, dtype=np.int64)
    )


def files_records(files: CommittedFiles, schema: str) -> Records:
    """Return the record that lists all partitions, and one record of each partition with its files."""
    partitions = files.partitions.unique()
    # No partition and no file counts as deleted.
    partition_list = record_of_partitions(partitions, np.zeros(len(partitions), dtype=np.bool_), schema)
    if not len(files):
        return partition_list
    deleted = np.zeros(len(files), dtype=np.bool_)
    return joined([partition_list, records_of_files(files.partitions, files.names, files.sizes, deleted, schema)])


_FILES_OF_A_UNIT = 500
# This process reads so few files sooner than a job of the engine would begin.
_FEW_FILES = 1000


@dataclass(frozen=True, slots=True)
class UnitBounds:
    """The records of ``column_stats`` of a unit's files, and bounds of each partition over its files that count."""

    files: Records | None
    partitions: tuple[FileBounds, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """Some files: the partition and the name of each, and whether it is of a newest slice, which readers see."""

    files: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the bounds of units; an engine gets it with every task.

    Attributes:
        typed: Whether records say the types of their values.
        mixes: Whether log files may leave values of older rows, whatever their columns are, as in partial updates.
    """

    storage: Storage
    columns: tuple[pa.Field, ...]
    typed: bool
    mixes: bool

    def read(self, unit: _Unit) -> UnitBounds:
        """Return the records of a unit's files, and the bounds of partitions over those files that readers see."""
        bounds_of_files = [
            (bounds, is_newest)
            for partition, name, is_newest in unit.files
            if (bounds := self._bounds_of_file(partition, name)) is not None
        ]
        # Partial bounds say nothing of a slice by themselves. A partition's bounds cover the slice's other files, too.
        complete_bounds = [bounds for bounds, _ in bounds_of_files if not bounds.is_partial]
        records = (
            bounds_records(complete_bounds, self.columns, record_schema(), typed=self.typed)
            if complete_bounds
            else None
        )
        return UnitBounds(
            records, self._bounds_of_partitions([bounds for bounds, is_newest in bounds_of_files if is_newest])
        )

    def _bounds_of_file(self, partition: str, name: str) -> FileBounds | None:
        """Return the bounds of one file; None if a clean has deleted the file meanwhile."""
        path = join(partition, name)
        try:
            if base_file(path) is not None:
                return FileBounds(partition, name, *bounds_of_base_file(self.storage, path, self.columns))
            rows, columns, lacks_columns = bounds_of_log_file(self.storage, path, self.columns)
            # If a block lacks a column, its rows may keep values of older rows, which the log file's bounds lack.
            return FileBounds(partition, name, rows, columns, self.mixes or lacks_columns)
        except (PyHudiError, FileNotFoundError):
            if self.storage.exists(path):
                raise
            # A clean has deleted the file, and deletes its records as it completes.
            return None

    def _bounds_of_partitions(self, files: Sequence[FileBounds]) -> tuple[FileBounds, ...]:
        """Return the bounds of each partition over all of its given files."""
        by_partition: dict[str, list[FileBounds]] = {}
        for file in files:
            by_partition.setdefault(file.partition_path, []).append(file)
        return tuple(self._joined_bounds(path, found) for path, found in by_partition.items())

    def _joined_bounds(self, partition: str, files: Sequence[FileBounds]) -> FileBounds:
        """Return the bounds of one partition over some files; a file without a column counts as nulls."""
        rows = [file.rows for file in files]
        bounds_by_file = [{bounds.column: bounds for bounds in file.columns} for file in files]
        columns = [
            united(
                [
                    _bounds_or_nulls(by_column.get(field.name), field.name, file.rows)
                    for by_column, file in zip(bounds_by_file, files, strict=True)
                ],
                rows,
                encoding_of(field.type),
            )
            for field in self.columns
        ]
        return FileBounds(partition, "", sum(rows), columns)


def _bounds_or_nulls(bounds: ColumnBounds | None, name: str, rows: int) -> ColumnBounds:
    """Return the bounds of a column in a file; those of nulls alone if the file lacks the column."""
    # The nulls are unknown of a column that a log file lacks.
    return ColumnBounds(name, None, None, rows) if bounds is None or bounds.nulls is None else bounds


@dataclass(frozen=True)
class BoundsOfTable:
    """The bounds of columns in the data files of a table, read once for both partitions of the metadata table.

    Attributes:
        for_partitions: Whether the bounds are for ``partition_stats``, too, in which only files of newest slices count.
    """

    seen: SeenTable
    files: CommittedFiles
    indexed: IndexedColumns
    means: Means
    for_partitions: bool

    @cached_property
    def units(self) -> Sequence[UnitBounds]:
        """The bounds of all files, read once: `_FILES_OF_A_UNIT` files are a unit of work."""
        config = self.seen.table.config
        mixes = config.partial_update_mode is not None
        reader = _Reader(self.seen.storage, self.indexed.fields, self.indexed.typed, mixes)
        newest_paths = self._newest_paths() if self.for_partitions else frozenset()
        names = zip(self.files.partitions.to_pylist(), self.files.names.to_pylist(), strict=True)  # O(files)
        file_rows = [(partition, name, join(partition, name) in newest_paths) for partition, name in names]
        units = [
            _Unit(tuple(file_rows[at : at + _FILES_OF_A_UNIT])) for at in range(0, len(file_rows), _FILES_OF_A_UNIT)
        ]
        return self._read(reader.read, units, len(file_rows))

    def file_records(self) -> list[Records]:
        """Return the records of ``column_stats``."""
        return [unit.files for unit in self.units if unit.files is not None]

    def partition_records(self) -> list[Records]:
        """Return the records of ``partition_stats``; none for a table without files."""
        partition_bounds = [part for unit in self.units for part in unit.partitions]
        if not partition_bounds:
            return []
        # Tight: readers see the newest slices alone, and writes that complete later widen these bounds.
        typed = self.indexed.typed
        return [
            partition_bounds_records(partition_bounds, self.indexed.fields, record_schema(), typed=typed, tight=True)
        ]

    def _newest_paths(self) -> Collection[str]:
        """Return the paths of the files in newest slices."""
        return frozenset([file.path for found in self.seen.view.all_slices() for file in found.data_files])

    def _read(self, read: Callable[[_Unit], UnitBounds], units: Sequence[_Unit], count: int) -> list[UnitBounds]:
        """Return the bounds of units, read in the engine's tasks, or in this process if the `count` of files is small.

        If the engine runs no tasks, this process reads them, too. Raises `NoTasksError` if this process may not do that
        work.
        """
        if self.means.executor is not None and count > _FEW_FILES:
            try:
                return self.means.executor(read, units)
            except NoTasksError:
                if self.means.without_tasks is None:
                    raise
        return for_each(self.seen.storage, read, units, computes=True)
