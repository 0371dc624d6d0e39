"""What a task of a rescale does: it merges file slices, and writes the rows to the file groups of the new buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from ....errors import BucketMisfitError
from ....index.bucket import BucketIndex
from ....reader.matches.key_values import number_columns
from ....storage.base import Storage, join
from ....table.arrow.spill import SpillFile, SpillReader, SpillWriter, local_spills
from ....table.files.file_group import FileSlice
from ....table.files.names import FileGroupId
from ....table.keys.generator import KeyGenerator
from ....table.schema.columns import FILE_NAME, RECORD_KEY, with_meta
from ....writer.buffer import Gathered, RowBuffers
from ....writer.cut_files import write_cut_files
from ....writer.data_files import DataFiles
from ....writer.foreign import check_spelling
from ....writer.routes import Numbers, Route
from ....writer.rows import cut
from ....writer.slice_reader import SliceReader
from ....writer.written_file import WrittenFile
from ..compaction.slice_worker import is_foreign, unread_columns
from ..unit_execution import FileWorker
from .units import RescaleUnit

BucketRows = Iterator[tuple[int, pa.RecordBatch]]
# The share of a task's memory for rows that wait to be written or spilled; a merge of log files may take the rest.
_SHARE = 2


@dataclass(frozen=True, slots=True)
class RescaleResult:
    """What a unit made: new base files, or a spill."""

    unit: RescaleUnit
    written: Sequence[WrittenFile] = ()
    spill: SpillFile | None = None


@dataclass(frozen=True, slots=True)
class Rescaler(FileWorker):
    """Divides the rows of slices among buckets; another engine may have written log files of the ``foreign`` groups."""

    index: BucketIndex
    foreign: frozenset[FileGroupId]

    def execute(self, unit: RescaleUnit) -> RescaleResult:
        """Write the rows of a unit into their buckets, or spill them by bucket if the unit only divides its rows.

        Units that gather rows read the spills later. Each attempt makes files of its own.
        """
        work = self.work
        with self.attempt() as (output_files, local):
            keys = KeyGenerator(work.config, self.files.schema)
            has_number_keys = bool(number_columns(work.config, self.files.schema))
            task = _Task(self, unit, local, output_files, keys, has_number_keys)
            return RescaleResult(unit, spill=task.divide()) if unit.divides else RescaleResult(unit, task.write())


@dataclass(frozen=True, slots=True)
class _Task:
    """One attempt at a unit.

    Attributes:
        local: Its folder for spills.
        keys: Makes record keys, and what they are made of, from the columns of rows.
        has_number_keys: Whether these columns have a single spelling each, so that no key needs to be parsed.
    """

    rescaler: Rescaler
    unit: RescaleUnit
    local: Storage
    output_files: DataFiles
    keys: KeyGenerator
    has_number_keys: bool

    def write(self) -> list[WrittenFile]:
        """Write the base files of the unit's new buckets."""
        files, path = self.rescaler.files, self.unit.partition_path
        groups = {
            target: self.rescaler.index.place(files.transaction.instant_time, path, target)
            for target in self.unit.targets
        }
        rows_by_bucket = self._rows_from_spills() if self.unit.spills else self._rows_by_bucket()
        if self._writes_in_order:
            rows_by_bucket = self._bucket_by_bucket(rows_by_bucket)
        return write_cut_files(self.output_files, groups, files.form(), rows_by_bucket, in_order=self._writes_in_order)

    def divide(self) -> SpillFile | None:
        """Write the rows of all new buckets to a spill in the table's store; None without rows."""
        work = self.rescaler.work
        name = join(work.spills, f"{self.output_files.token}.spill")
        buffers = self._buffers(lambda: SpillWriter(work.storage, name, work.aside))
        try:
            for number, rows in self._rows_by_bucket():
                buffers.add(Route(self.unit.partition_path, number), rows)
            return buffers.spill_all()
        except BaseException:
            buffers.discard()
            raise

    def _buffers(self, open_spill: Callable[[], SpillWriter]) -> RowBuffers:
        """Return buffers that spill the rows of buckets once they fill this task's share of the memory."""
        limit = self.rescaler.files.output.memory // _SHARE
        return RowBuffers(limit, limit, open_spill)

    def _bucket_by_bucket(self, rows_by_bucket: BucketRows) -> BucketRows:
        """Yield the rows of one bucket after the other; rows that do not fit into memory wait in spills."""
        buffers = self._buffers(partial(SpillWriter, self.local, "buckets.spill", ""))
        try:
            for number, rows in rows_by_bucket:
                buffers.add(Route(self.unit.partition_path, number), rows)
            gathered = Gathered(buffers, self.local)
        except BaseException:
            buffers.discard()
            raise
        for route in gathered.routes():
            for rows in gathered.take(route).batches():
                yield route.number, rows

    def _rows_from_spills(self) -> BucketRows:
        """Yield the rows of the unit's bucket from the spills of other tasks."""
        number = self.unit.targets[0]
        key = tuple(Route(self.unit.partition_path, number))
        for spill in self.unit.spills:
            reader = SpillReader(self.rescaler.work.storage, spill.path)
            for spilled in reader.pieces:
                # A spill has the rows of all new buckets to which its file slice gave rows.
                if spilled.key == key:
                    for rows in reader.batches(spilled):
                        yield number, rows

    def _rows_by_bucket(self) -> BucketRows:
        """Yield the merged rows of the sources, each batch with its new bucket.

        Raise `BucketMisfitError` for a row in a wrong bucket, and refuse keys that another engine spelled otherwise.
        """
        reader = self._reader()
        for source in self.unit.sources:
            foreign = is_foreign(self.rescaler.work.storage, source, self.rescaler.foreign)
            columns = pa.schema([field for field in with_meta(self.rescaler.files.schema) if field.name != FILE_NAME])
            passed_columns = frozenset() if foreign else self._unread_columns(columns)
            with closing(reader.merged(source).batches(columns, dictionaries=passed_columns)) as batches:
                for rows in batches:
                    if foreign:
                        check_spelling(self.keys, rows, source.data_files[-1])
                    numbers = self._new_buckets(source, rows)
                    yield from [(self.unit.targets[0], rows)] if len(self.unit.targets) == 1 else cut(rows, numbers)

    def _unread_columns(self, columns: pa.Schema) -> frozenset[str]:
        """Return the string columns whose values no step reads; none if rows wait in spills."""
        if self.unit.divides or self._writes_in_order:
            return frozenset()
        return unread_columns(columns, self.rescaler.work.config)

    @property
    def _writes_in_order(self) -> bool:
        """Whether buckets are written one after the other, as memory does not suffice for all files at once."""
        output = self.rescaler.files.output
        count = len(self.unit.targets)
        return count > 1 and count * output.row_group_bytes > output.memory // _SHARE

    def _reader(self) -> SliceReader:
        """Return the reader of merged slices for this task."""
        # The slices name complete log files only, so all of their blocks count.
        return self.rescaler.files.slices(self.rescaler.files.counts, local_spills(self.local))

    def _new_buckets(self, source: FileSlice, rows: pa.RecordBatch) -> Numbers:
        """Return the new bucket of each row; raise for rows that a writer with another number put into this file."""
        parts = self.keys.parts(rows) if self.has_number_keys else []
        change = self.unit.change
        buckets = self.rescaler.index.rescaled(rows.column(RECORD_KEY), parts, source.group, change.old, change.new)
        numbers = buckets.astype(np.int64)
        misfits = np.flatnonzero(numbers % change.classes != self.unit.remainder)
        if len(misfits):
            key = rows.column(RECORD_KEY)[int(misfits[0])].as_py()  # one value, for the error
            file = source.data_files[-1]
            raise BucketMisfitError(
                f"The {file.kind} {file.path} holds the record key {key!r}, which does not belong to the "
                f"{source.group.words} if the partition has {change.old} buckets.",
                "A writer with another number of buckets wrote it, which may not know the last rescale: "
                "rewrite the partition with mode overwrite, then rescale.",
            )
        return numbers
