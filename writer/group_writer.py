"""One file group's new base file: previous base and incoming rows in, a published Parquet file out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..storage.base import Storage
from ..table.arrow.spill import SpillWriter
from ..table.files.base_file import BaseFileReader, BaseFileWriter, constant, file_schema
from ..table.files.file_group import BaseFile
from ..table.files.names import BaseFileName, FileGroupId, WriteToken
from ..table.merging.meet import Encounter
from ..table.merging.merger import MergeCounts, MergeRules
from ..table.merging.row_spec import RowSpec
from ..table.schema.columns import FILE_NAME, RECORD_KEY, with_meta
from ..timeline.writers.markers import MarkerType
from .buffer import GroupRows
from .foreign import ForeignRows
from .publisher import Publisher
from .sort import RowSorter

ARRIVAL_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How base files of one write look.

    Attributes:
        schema: The table's data columns, canonical types.
        avro_schema: The Avro schema with meta columns, JSON, for the footer.
        compression: Parquet codec.
        row_group_bytes: Arrow bytes of one row group.
        sort_columns: Columns that the rows of a file are sorted by; none for the order in which they come.
    """

    schema: pa.Schema
    avro_schema: str
    compression: str
    row_group_bytes: int
    sort_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupJob:
    """One file group to be written, and its newest base file; None where the group is new."""

    group: FileGroupId
    previous: BaseFile | None

    @property
    def marker(self) -> MarkerType:
        """What the write does to the base file that it makes."""
        return MarkerType.CREATE if self.previous is None else MarkerType.MERGE


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What became of one file group; ``path`` is None where nothing changed and no file was made."""

    group: FileGroupId
    previous: BaseFile | None
    path: str | None = None
    size: int = 0
    rows: int = 0
    counts: MergeCounts = field(default_factory=MergeCounts)


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes the file groups of one task, or of one commit.

    Attributes:
        storage: Rooted at the table.
        instant_time: The instant that these files belong to.
        token: Names this task attempt.
        spec: What incoming rows hold.
        file_format: How files look.
        foreign: Checks the rows of files that pyhudi did not write.
        rules: How incoming rows meet one another and the base.
        memory: Arrow bytes of incoming rows that may be merged at once.
        aside: Folder in which files grow before they are published.
        publisher: Lets finished files through.
        open_spill: Opens a spill for the parts of a group beyond memory, with the storage that reads it back.
    """

    storage: Storage
    instant_time: str
    token: WriteToken
    spec: RowSpec
    file_format: FileFormat
    foreign: ForeignRows
    rules: MergeRules
    memory: int
    aside: str
    publisher: Publisher
    open_spill: Callable[[], tuple[SpillWriter, Storage]]

    def name_of(self, job: GroupJob) -> BaseFileName:
        """Return the name of the file that `write` makes for a group."""
        return BaseFileName(job.group.file_id, self.token, self.instant_time)

    def path_of(self, job: GroupJob) -> str:
        """Return the path of the file that `write` makes for a group, unless nothing changes."""
        return "/".join(part for part in (job.group.partition_path, self.name_of(job).format()) if part)

    def write(self, job: GroupJob, rows: GroupRows, sequence: str) -> GroupOutcome:
        """Merge, write and publish one file group.

        Args:
            job: Which group, and its previous base file.
            rows: The incoming rows; at least one.
            sequence: Middle part of ``_hoodie_commit_seqno``, unique to the group within the instant.

        Raises:
            BucketMisfitError: The previous base file holds keys of another bucket.
            UnsupportedTableError: It spells keys otherwise.
            CorruptFileError: The previous base file cannot be read.
            DuplicateKeyError: A key is there already, and the rules forbid it.
            KeyNotFoundError: A key to be deleted is not there, and the rules forbid it.
            WriteSealedError: The write was committed or given up meanwhile.
        """
        name, path = self.name_of(job).format(), self.path_of(job)
        with ExitStack() as stack:
            base = None if job.previous is None else stack.enter_context(self._open(job.previous))
            staged = self.storage.stage(path, self.aside)
            stack.callback(staged.discard)
            dictionaries = frozenset() if base is None else base.dictionaries
            output = _Output(self, job, name, sequence, staged.stream, dictionaries)
            stack.callback(output.abandon)
            counts = self._merge(job, rows, base, output)
            if not counts.changed:
                return GroupOutcome(job.group, job.previous, counts=counts)
            output.close()
            size = self.publisher.publish(staged, job.group.partition_path, path, job.marker)
        return GroupOutcome(job.group, job.previous, path, size, output.file.rows, counts)

    def _open(self, previous: BaseFile) -> BaseFileReader:
        """Open the previous base file so that columns that nobody looks into pass through as they are encoded."""
        looked_into = {RECORD_KEY, FILE_NAME, *self.spec.ordering_fields, *self.file_format.sort_columns}
        return BaseFileReader(self.storage, previous.path, plain=looked_into)

    def _merge(self, job: GroupJob, rows: GroupRows, file: BaseFileReader | None, output: _Output) -> MergeCounts:
        where = f"partition {job.group.partition_path!r} of the table {self.storage.path}"
        encounter = Encounter(self.spec, self.rules, self.memory, self.open_spill, where)
        with closing(encounter.meet(rows, self._base(job, file))) as all_met:
            for met in all_met:
                if met.arrived:
                    output.arrive(met.rows)
                else:
                    output.keep(met.rows)
        return encounter.counts

    def _base(self, job: GroupJob, file: BaseFileReader | None) -> Iterator[pa.RecordBatch]:
        if file is None:
            return
        kept = pa.schema([one for one in with_meta(self.file_format.schema) if one.name != FILE_NAME])
        for batch in file.batches(kept):
            if not file.stamped and job.previous is not None:
                self.foreign.check(batch, job.group, job.previous)
            yield batch


class _Output:
    """The rows of one new base file, with their meta columns set, sorted where they are to be."""

    def __init__(
        self,
        writer: GroupWriter,
        job: GroupJob,
        name: str,
        sequence: str,
        stream: object,
        dictionaries: frozenset[str],
    ) -> None:
        form = writer.file_format
        self._schema = file_schema(form.schema, dictionaries)
        self._columns = form.schema.names
        self._name = name
        self._partition_path = job.group.partition_path
        self._instant_time = writer.instant_time
        self._sequence = sequence
        self._arrived = 0
        self._sorter = RowSorter(form.sort_columns, writer.memory, writer.open_spill) if form.sort_columns else None
        self.file = BaseFileWriter(
            stream,
            self._schema,
            form.avro_schema,
            compression=form.compression,
            row_group_bytes=form.row_group_bytes,
        )

    def close(self) -> None:
        """Finish the file."""
        if self._sorter is not None:
            for batch in self._sorter.batches():
                self.file.write(batch)
        self.file.close()

    def abandon(self) -> None:
        """Give up what is not finished; the file is no whole one then."""
        if self._sorter is not None:
            self._sorter.discard()
        self.file.abandon()

    def keep(self, batch: pa.RecordBatch) -> None:
        """Copy base rows: all stays as it was, but for the name of the file they are in now."""
        columns = [
            constant(self._name, batch.num_rows) if one.name == FILE_NAME else _as(batch.column(one.name), one.type)
            for one in self._schema
        ]
        self._add(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def arrive(self, rows: pa.RecordBatch) -> None:
        """Add incoming rows as rows of this instant."""
        for start in range(0, rows.num_rows, ARRIVAL_ROWS):
            batch = rows.slice(start, ARRIVAL_ROWS)
            count = batch.num_rows
            numbers = pa.array(np.arange(self._arrived, self._arrived + count)).cast(pa.string())
            self._arrived += count
            meta = [
                constant(self._instant_time, count),
                pc.binary_join_element_wise(f"{self._instant_time}_{self._sequence}", numbers, "_"),
                batch.column(RECORD_KEY),
                constant(self._partition_path, count),
                constant(self._name, count),
            ]
            data = [_as(batch.column(name), self._schema.field(name).type) for name in self._columns]
            self._add(pa.RecordBatch.from_arrays([*meta, *data], schema=self._schema))

    def _add(self, batch: pa.RecordBatch) -> None:
        if self._sorter is None:
            self.file.write(batch)
        else:
            self._sorter.add(batch)


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column as a dictionary where the file is written so."""
    if pa.types.is_dictionary(wanted) and not pa.types.is_dictionary(column.type):
        return column.dictionary_encode()
    return column
