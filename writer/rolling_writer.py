"""Rows for new file groups of one task: a file ends when it is full, and the next group begins."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from ..table.files.names import numbered_file_id
from ..table.merging.meet import Encounter
from ..table.merging.merger import MergeCounts
from .arrivals import Arrivals
from .buffer import GroupRows
from .data_files import BaseOutput, FileFormat
from .group_writer import FileGroupWrite, GroupWriter
from .written_file import FileKind, WrittenFile

if TYPE_CHECKING:
    pass

# Number of checks per file whether it is full: a file ends at most one such part of its size too early.
_STEPS = 32


@dataclass(frozen=True)
class RollingWriter:
    """Writes new file groups of rows without a lookup, each up to `largest` bytes; no other task writes to them."""

    bases: GroupWriter
    largest: int

    def write(self, job: FileGroupWrite, rows: GroupRows, sequence: str) -> tuple[WrittenFile, ...]:
        """Write and publish new file groups from `job` on, in the order of the rows or of the sort columns."""
        bases, where = self.bases, self.bases.files.where(job.group)
        encounter = Encounter(bases.spec, bases.rules, bases.slices.memory, bases.slices.open_spill, where)
        files = _RolledFiles(self, job, bases.files.arrivals(job.group, sequence))
        try:
            with closing(self._ordered(encounter, rows)) as ordered:
                for batch in ordered:
                    files.add(batch)
            return files.finish(encounter.counts)
        except BaseException:
            files.discard()
            raise

    def _ordered(self, encounter: Encounter, rows: GroupRows) -> Generator[pa.RecordBatch]:
        """Yield the arriving rows, sorted across all files, not only within each, if the table sorts rows."""
        sorter = self.bases.file_format.sorter()
        with closing(encounter.meet(rows, iter(()))) as met_parts:
            if sorter is None:
                for part in met_parts:
                    yield part.rows
                return
            try:
                for part in met_parts:
                    sorter.add(part.rows)
                yield from sorter.batches()
            except BaseException:
                sorter.discard()
                raise

    @cached_property
    def form(self) -> FileFormat:
        """The format of the files, with row groups small enough to know the size of a file before it is full."""
        form = self.bases.file_format
        size = self.largest // (form.row_groups(self.largest) if form.keeps_order else 1)
        output = replace(form.output, row_group_bytes=min(form.output.row_group_bytes, max(size, 1)))
        return replace(form, output=output, come_sorted=True)


class _RolledFiles:
    """The new files of a rolling writer: the next file begins when a file is full."""

    def __init__(self, writer: RollingWriter, job: FileGroupWrite, arrivals: Arrivals) -> None:
        self._writer = writer
        self._job = job
        self._arrivals = arrivals
        self._open: BaseOutput | None = None
        self._published: list[WrittenFile] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows to the open file, in small parts; a file that a part would make too large is published before."""
        for part in _small_parts(rows, max(self._writer.largest // _STEPS, 1)):
            if self._open is not None and self._open.expected(part.nbytes) > self._writer.largest:
                self._publish(self._open)
            if self._open is None:
                self._open = self._begin()
            self._open.arrive(part)

    def finish(self, counts: MergeCounts) -> tuple[WrittenFile, ...]:
        """Publish the open file; the first file also gets the counts of rows that no file holds."""
        if self._open is not None:
            self._publish(self._open)
        # Each file counts its own inserts.
        counts_without_file = replace(counts, inserts=0)
        if not self._published:
            return (WrittenFile(self._job.group, FileKind.BASE, None, counts=counts_without_file),)
        self._published[0].counts.add(counts_without_file)
        return tuple(self._published)

    def discard(self) -> None:
        if self._open is not None:
            self._open.discard()

    def _begin(self) -> BaseOutput:
        """Open the next file, whose file group has the next number."""
        group = replace(self._job.group, file_id=numbered_file_id(self._job.group.file_id, len(self._published)))
        return BaseOutput(self._writer.bases.files, group, self._writer.form, arrivals=self._arrivals)

    def _publish(self, output: BaseOutput) -> None:
        """Publish a file that is full, or the last."""
        self._published.append(output.publish(None))
        self._open = None


def _small_parts(rows: pa.RecordBatch, nbytes: int) -> Iterator[pa.RecordBatch]:
    """Yield rows in parts of about some bytes, at least one row each."""
    step = max(rows.num_rows * nbytes // max(rows.nbytes, 1), 1)
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)
