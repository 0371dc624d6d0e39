"""The new base file of a file group: previous base and incoming rows in, a published Parquet file out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ..table.files.base_file import BaseFileReader, open_base
from ..table.files.file_group import BaseFile, FileSlice
from ..table.files.footers import batch_rows
from ..table.files.names import FileGroupId
from ..table.merging.meet import Encounter
from ..table.merging.merger import MergeRules, RowMeeting
from ..table.merging.row_spec import RowSpec
from ..table.schema.columns import FILE_NAME, RECORD_KEY, with_meta
from .buffer import GroupRows
from .data_files import BaseOutput, DataFiles, FileFormat
from .foreign import ForeignRows
from .slice_reader import SliceReader
from .written_file import FileKind, WrittenFile

if TYPE_CHECKING:
    from ..table.merging.laying import PartialMerge


@dataclass(frozen=True, slots=True)
class FileGroupWrite:
    """One file group to be written.

    Attributes:
        file_slice: Its newest slice; None if the group is new.
        logs_only: Whether a new group begins with log files.
        rewrites: Whether the group gets a base file even if other groups get log files: it gets new keys, which an
            index that reads base files would not find in log files.
        rolls: Whether rows that exceed one file of a new group continue in further new groups.
    """

    group: FileGroupId
    file_slice: FileSlice | None
    logs_only: bool = False
    rewrites: bool = False
    rolls: bool = False

    @property
    def previous(self) -> BaseFile | None:
        return None if self.file_slice is None else self.file_slice.base

    @property
    def size(self) -> int:
        return 0 if self.file_slice is None else sum(file.size for file in self.file_slice.data_files)


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes the file groups of one task, or of one commit.

    `laying` joins partial rows of one key; it is None if the winner replaces the other row.
    """

    files: DataFiles
    spec: RowSpec
    file_format: FileFormat
    foreign: ForeignRows
    rules: MergeRules
    slices: SliceReader
    laying: PartialMerge | None = None

    def write(self, job: FileGroupWrite, rows: GroupRows, sequence: str) -> WrittenFile:
        """Merge, write and publish one file group, for at least one row; `sequence` is as in `Arrivals`.

        The result has no path if the rows change nothing.
        """
        with ExitStack() as stack:
            has_no_logs = job.file_slice is not None and not job.file_slice.logs
            base = stack.enter_context(self._open(job.previous)) if has_no_logs and job.previous is not None else None
            if base is not None:
                base.refuse_newer()
            output = stack.enter_context(self._output(job, sequence, base))
            encounter = self._encounter(job)
            with closing(encounter.meet(rows, self._base_rows(job, base))) as all_met:
                for met in all_met:
                    (output.arrive if met.arrived else output.keep)(met.rows)
            counts = encounter.counts
            if not counts.changed:
                # The stored rows stay as they are, so the new file is given up.
                return WrittenFile(job.group, FileKind.BASE, job.file_slice, counts=counts)
            return output.publish(job.file_slice, counts)

    def _encounter(self, job: FileGroupWrite) -> Encounter:
        """Return what merges the incoming rows of a file group with its stored rows.

        Partial rows of one key are joined (``join``) as they come, and laid over the stored row (``lay``).
        """
        laying = self.laying
        return Encounter(
            self.spec,
            self.rules,
            self.slices.memory,
            self.slices.open_spill,
            self.files.where(job.group),
            join=None if laying is None else laying.together,
            # If no two rows are merged, no row is laid over a stored row.
            lay=None if laying is None or self.rules.meeting is not RowMeeting.MERGE else laying.over,
        )

    def _output(self, job: FileGroupWrite, sequence: str, base: BaseFileReader | None) -> BaseOutput:
        """Return the new base file.

        ``base`` is the open file whose rows it keeps, None if it keeps merged rows or has none.
        """
        return BaseOutput(
            self.files,
            job.group,
            self.file_format,
            frozenset() if base is None else base.dictionaries,
            arrivals=self.files.arrivals(job.group, sequence),
            previous=base,
        )

    def _open(self, previous: BaseFile) -> BaseFileReader:
        """Open the previous base file, decoding only the columns that decide which row of a key wins."""
        # All other columns pass through encoded.
        looked_into = {RECORD_KEY, FILE_NAME, *self.spec.ordering_fields}
        if self.laying is not None:
            looked_into |= {*self.laying.columns}
        return open_base(self.files.storage, previous, plain=looked_into)

    def _base_rows(self, job: FileGroupWrite, file: BaseFileReader | None) -> Iterator[pa.RecordBatch]:
        """Yield the stored rows of a file group, none of a new group.

        Log files are merged in. Rows of a file that another engine wrote are checked, as its keys may be spelt
        otherwise.
        """
        if job.file_slice is None:
            return
        wanted = pa.schema([column for column in with_meta(self.file_format.schema) if column.name != FILE_NAME])
        if file is None:
            batches = self.slices.merged(job.file_slice).batches(wanted)
        else:
            batches = file.batches(wanted, batch_rows=batch_rows(file.parquet, wanted))
        if file is not None and file.stamped:
            yield from batches
        else:
            yield from self.foreign.checked(batches, job.file_slice)
