"""Base and log files in the making: written to a working folder by one attempt at an instant, and published when whole.

No other package writes data files: writes, compactions and log compactions give their rows to these classes.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol, TypeVar

import pyarrow as pa

from ..storage.base import Staged, Storage, join, split
from ..table.config.sort_order import SortOrder
from ..table.files.base_file import SORTED_BY, BaseFileReader, BaseFileWriter, constant, file_schema
from ..table.files.bloom_filter import BloomSettings
from ..table.files.file_group import FileSlice
from ..table.files.logs.delete_block import Deletes, joined
from ..table.files.logs.log_blocks import BlockType
from ..table.files.logs.log_file import LogFileWriter
from ..table.files.names import BaseFileName, FileGroupId, LogFileName, WriteToken
from ..table.files.output import Output
from ..table.files.packed_bounds import PackedBounds
from ..table.merging.merger import MergeCounts
from ..table.schema.columns import FILE_NAME, with_meta
from ..timeline.writers.markers import MarkerType
from .arrivals import Arrivals, encoded_as
from .sort import RowSorter
from .written_file import FileKind, WrittenFile, marker_of

Self = TypeVar("Self", bound="NewFile")

# Row groups of a sorted file. Along a curve through two columns, a narrow range of either column is in a sixteenth of
# them or two. Smaller row groups would compress badly, and have fewer bytes than the footer.
_ROW_GROUPS = 256
_LEAST_OF_A_COLUMN = 12 << 10


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The format of base files and of rows in log files.

    Attributes:
        order: In which order the rows of a base file lie; None for the order in which they come.
        stamped: Whether a base file says that its rows fit the table's index.
        come_sorted: Whether the rows of a base file come in the order already.
        sorters: How many base files sort their rows at once, and share the memory.
    """

    schema: pa.Schema
    avro_schema: str
    output: Output
    order: SortOrder | None = None
    bloom: BloomSettings | None = None
    stamped: bool = True
    come_sorted: bool = False
    sorters: int = 1

    def sorter(self) -> RowSorter | None:
        """Return what sorts the rows of a base file; None if they stay in the order in which they come."""
        return None if self.order is None else RowSorter(self.order, self.output.memory // self.sorters)

    @property
    def keeps_order(self) -> bool:
        """Whether base files have the order of their table."""
        return self.order is not None and self.order.of_table

    def row_groups(self, nbytes: int) -> int:
        """Return how many row groups a file of ``nbytes`` Arrow bytes has if its rows are in the order of the table.

        The number is a power of two, because a space-filling curve halves the cube that the sort columns span again and
        again: each of so many equal parts of the rows then has a narrow range of each column.
        """
        # As many as let readers skip well, if each column has enough bytes in each, and as many as the output asks for.
        worthwhile = min(nbytes // (_LEAST_OF_A_COLUMN * len(with_meta(self.schema))), _ROW_GROUPS)
        needed = -(-nbytes // self.output.row_group_bytes)
        return max(1 << max(worthwhile, 1).bit_length() - 1, 1 << max(needed - 1, 0).bit_length())

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The columns of the table's order; empty if files do not have that order."""
        return () if self.order is None or not self.keeps_order else self.order.columns

    @property
    def notes(self) -> Mapping[str, str]:
        """What the footer of a base file notes of its order, by name."""
        return {SORTED_BY: str(self.order)} if self.keeps_order else {}


@dataclass(frozen=True, slots=True)
class LogFormat:
    """The format of log files beyond what they share with base files.

    Attributes:
        block_bytes: Arrow bytes of rows after which a block ends.
        partial: Whether columns that data blocks lack keep their values.
    """

    data_format: BlockType
    block_bytes: int
    file_bytes: int = sys.maxsize
    partial: bool = False


class Publisher(Protocol):
    """Writes the markers of data files, and publishes the files only while their write is open."""

    def announce(self, files: Iterable[tuple[str, MarkerType]]) -> None:
        """Write the markers of files in one request."""
        ...

    def publish(self, staged: Staged, partition_path: str, path: str, kind: MarkerType) -> int:
        """Write marker and partition metafile, publish the file, and return its bytes, unless the write is over."""
        ...


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The data files that one attempt makes for an instant.

    They grow in the folder `aside`, which no reader lists, and the publisher moves them into the table.
    """

    storage: Storage
    instant_time: str
    token: WriteToken
    aside: str
    publisher: Publisher

    def base_path(self, group: FileGroupId) -> str:
        return join(group.partition_path, BaseFileName(group.file_id, self.token, self.instant_time).format())

    def log_path(self, group: FileGroupId, version: int) -> str:
        name = LogFileName(group.file_id, self.instant_time, version, self.token)
        return join(group.partition_path, name.format())

    def arrivals(self, group: FileGroupId, sequence: str) -> Arrivals:
        """Return what gives incoming rows of a file group their meta columns; ``sequence`` is as in `Arrivals`."""
        return Arrivals(self.instant_time, sequence, group.partition_path)

    def where(self, group: FileGroupId) -> str:
        """Return the words for a file group's partition and table, for errors."""
        return f"partition {group.partition_path!r} of the table {self.storage.path}"


class NewFile(ABC):
    """A data file in the making, in a folder that no reader lists.

    `publish` makes it visible; leaving the context before discards it.
    """

    kind: ClassVar[FileKind]
    version = 0
    statistics: PackedBounds | None = None

    def __init__(self, files: DataFiles, group: FileGroupId, path: str) -> None:
        self.group = group
        self.path = path
        self._publisher = files.publisher
        self._staged = files.storage.stage(path, files.aside)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    @property
    @abstractmethod
    def rows(self) -> int: ...

    def publish(self, previous: FileSlice | None, counts: MergeCounts | None = None) -> WrittenFile:
        """Publish the file; ``previous`` is the slice that its group had before.

        ``counts`` say what became of the rows that came; None if all of them are in the file.
        """
        self._close()
        marker = marker_of(self.kind, previous)
        size = self._publisher.publish(self._staged, self.group.partition_path, self.path, marker)
        counts = self._counts(previous) if counts is None else counts
        fields = self.path, size, self.rows, counts, self.version
        return WrittenFile(self.group, self.kind, previous, *fields, statistics=self.statistics)

    def discard(self) -> None:
        """Give the file up; a published file stays."""
        self._abandon()
        self._staged.discard()

    @abstractmethod
    def _counts(self, previous: FileSlice | None) -> MergeCounts:
        """Return what the rows of the file count as if the caller of `publish` does not say."""

    @abstractmethod
    def _close(self) -> None:
        """Write the waiting rows, end the file, and set ``statistics``."""

    @abstractmethod
    def _abandon(self) -> None:
        """Free the memory and temporary files of the unfinished file."""


class BaseOutput(NewFile):
    """The rows of one new base file, with their meta columns set; `previous` is the open file whose rows it keeps.

    `dictionaries` names the columns that are written dictionary-encoded; None takes those of the first kept rows.
    """

    kind = FileKind.BASE

    def __init__(
        self,
        files: DataFiles,
        group: FileGroupId,
        form: FileFormat,
        dictionaries: frozenset[str] | None = frozenset(),
        *,
        arrivals: Arrivals | None = None,
        previous: BaseFileReader | None = None,
    ) -> None:
        super().__init__(files, group, files.base_path(group))
        self._form = form
        self._dictionaries = dictionaries
        self._arrivals = arrivals
        # All rows of a base file pass here, so no writer of base files loses the table's order.
        self._sorter = None if form.come_sorted else form.sorter()
        self._previous = previous

    @property
    def rows(self) -> int:
        return self._file.rows

    def expected(self, more_rows: int) -> int:
        """Return the file's expected bytes if it gets so many more rows."""
        return self._file.expected(more_rows)

    def keep(self, batch: pa.RecordBatch) -> None:
        """Copy base rows unchanged, but for the name of their file."""
        if self._dictionaries is None:
            # These are the first rows: their encoding holds for the file.
            self._dictionaries = frozenset(
                column.name for column in batch.schema if pa.types.is_dictionary(column.type)
            )
        columns = [
            constant(self._name, batch.num_rows)
            if column.name == FILE_NAME
            else encoded_as(batch.column(column.name), column.type)
            for column in self._schema
        ]
        self._add(pa.RecordBatch.from_arrays(columns, schema=self._schema), from_previous=True)

    def arrive(self, rows: pa.RecordBatch) -> None:
        """Add incoming rows with new meta columns; ValueError for a file without an instant for them."""
        arrivals = self._arrivals
        if arrivals is None:
            raise ValueError("this file takes no incoming rows: it has no instant for them")
        for batch in arrivals.stamped(rows, self._schema, self._name):
            self._add(batch, from_previous=False)

    @cached_property
    def _name(self) -> str:
        return split(self.path)[1]

    @cached_property
    def _schema(self) -> pa.Schema:
        """The columns of the file.

        Fixed once the first rows have come, as these tell the dictionary-encoded columns.
        """
        return file_schema(self._form.schema, self._dictionaries or frozenset())

    @cached_property
    def _file(self) -> BaseFileWriter:
        """The Parquet writer, made with the first rows."""
        return BaseFileWriter(
            self._staged.stream,
            self._schema,
            self._form.avro_schema,
            self._form.output,
            bloom=self._form.bloom,
            stamped=self._form.stamped,
            notes=self._form.notes,
            sorted_by=self._form.sorted_by,
            # After sorting, kept rows cannot be distinguished from incoming rows.
            previous=None if self._sorter is not None else self._previous,
        )

    def _counts(self, previous: FileSlice | None) -> MergeCounts:
        return MergeCounts(inserts=self.rows)

    def _add(self, batch: pa.RecordBatch, *, from_previous: bool) -> None:
        """Write rows, or give them to the sorter until the file is closed."""
        if self._sorter is None:
            self._file.write(batch, from_previous=from_previous)
        else:
            self._sorter.add(batch)

    def _close(self) -> None:
        """Write the rows that the sorter holds, end the file, and keep its bounds, None if it has none."""
        if self._sorter is not None:
            self._write_sorted(self._sorter)
        self._file.close()
        bounds = self._file.statistics()
        self.statistics = None if bounds is None else PackedBounds.of(bounds)

    def _write_sorted(self, sorter: RowSorter) -> None:
        """Write the rows in order; in the order of the table, row groups end where the sorter's parts end."""
        if not self._form.keeps_order:
            for batch in sorter.batches():
                self._file.write(batch)
            return
        count = self._form.row_groups(sorter.nbytes)
        # Row groups end by their rows alone.
        self._form = replace(self._form, output=replace(self._form.output, row_group_bytes=sys.maxsize))
        self._file.bound(sorter.bounded)
        for part in sorter.parts(count):
            for batch in part:
                self._file.write(batch)
            self._file.end_row_group()

    def _abandon(self) -> None:
        """Delete the sorter's runs, and end the Parquet writer if there is one."""
        if self._sorter is not None:
            self._sorter.discard()
        if "_file" in self.__dict__:
            self._file.abandon()


class LogOutput(NewFile):
    """The blocks of one new log file; `replaces` names the instants whose blocks a log compaction merged."""

    kind = FileKind.LOG

    def __init__(
        self,
        files: DataFiles,
        group: FileGroupId,
        version: int,
        form: FileFormat,
        log_format: LogFormat,
        replaces: Sequence[str] = (),
    ) -> None:
        super().__init__(files, group, files.log_path(group, version))
        self.version = version
        self._rows = 0
        self._deletes = 0
        self._format = log_format
        self._schema = file_schema(form.schema)
        self._blocks = LogFileWriter(
            self._staged.stream,
            instant_time=files.instant_time,
            schema=self._schema,
            avro_schema=form.avro_schema,
            data_format=log_format.data_format,
            block_bytes=log_format.block_bytes,
            output=form.output,
            partial=log_format.partial,
            replaces=replaces,
        )

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def full(self) -> bool:
        return self._blocks.size >= self._format.file_bytes

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Add rows, with their meta columns set, to the open block."""
        columns = [encoded_as(batch.column(column.name), column.type) for column in self._schema]
        self._blocks.add_rows(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._rows += batch.num_rows

    def rows_added(self, entries: Iterable[tuple[pa.RecordBatch, Deletes]]) -> Iterator[Deletes]:
        """Add the rows of each entry, and yield its deletes, which the caller adds later: they end the open block."""
        for rows, deletes in entries:
            self.add_rows(rows)
            yield deletes

    def add_deletes(self, deletes: Deletes) -> None:
        """Write a block of deletes; it ends the open block of rows."""
        self._blocks.add_deletes(deletes)
        self._deletes += len(deletes)

    def end_block(self) -> None:
        self._blocks.close()

    def _counts(self, previous: FileSlice | None) -> MergeCounts:
        """Count the rows as updates of an existing file group, else as inserts."""
        rows = MergeCounts(inserts=self._rows) if previous is None else MergeCounts(updates=self._rows)
        return replace(rows, deletes=self._deletes)

    def _close(self) -> None:
        """End the last block, and set the bounds of the columns."""
        self._blocks.close()
        bounds = self._blocks.statistics()
        self.statistics = None if bounds is None else PackedBounds.of(bounds)

    def _abandon(self) -> None:
        self._blocks.abandon()


def write_base_file(
    files: DataFiles, previous: FileSlice, form: FileFormat, merged: Generator[pa.RecordBatch]
) -> WrittenFile:
    """Write and publish the base file that a service makes of ``merged``, the rows of the slice ``previous``."""
    with BaseOutput(files, previous.group, form, None) as output, closing(merged):
        for batch in merged:
            output.keep(batch)
        return output.publish(previous)


def write_log_file(
    files: DataFiles,
    previous: FileSlice,
    form: FileFormat,
    log_format: LogFormat,
    resets: Iterable[Deletes],
    entries: Generator[tuple[pa.RecordBatch, Deletes]],
    replaces: Sequence[str],
) -> WrittenFile:
    """Write and publish the only log file of an instant in a file group: rows as they come, deletes behind them.

    The deletes of ``resets`` come first, because they hide base rows from the rows behind them.
    """
    with LogOutput(files, previous.group, 1, form, log_format, replaces) as output, closing(entries):
        for deletes in by_blocks(resets, log_format.block_bytes):
            output.add_deletes(deletes)
        for deletes in by_blocks(output.rows_added(entries), log_format.block_bytes):
            output.add_deletes(deletes)
        return output.publish(previous)


def by_blocks(all_deletes: Iterable[Deletes], block_bytes: int) -> Iterator[Deletes]:
    """Yield deletes joined into as many blocks as their bytes need; empty deletes are left out."""
    deletes_of_block: list[Deletes] = []
    for deletes in all_deletes:
        if len(deletes):
            deletes_of_block.append(deletes)
        if sum(each.nbytes for each in deletes_of_block) > block_bytes:
            yield joined(deletes_of_block)
            deletes_of_block = []
    if deletes_of_block:
        yield joined(deletes_of_block)
