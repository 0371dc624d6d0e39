"""Rows that go into new file groups of one task, as many as their bytes ask for: a file ends where it is full."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from ..storage.base import Staged
from ..table.files.names import numbered_file_id
from ..table.merging.meet import Encounter
from ..table.merging.merger import MergeCounts
from .arrivals import Arrivals
from .base_output import BaseOutput, FileFormat
from .buffer import GroupRows
from .group_writer import GroupJob, GroupOutcome, GroupWriter
from .sort import RowSorter

# How many times a file is asked whether it is full: it ends so many parts of its size too early, at most.
_STEPS = 32


@dataclass(frozen=True)
class RollingWriter:
    """Writes new file groups of rows that nobody looks up, beside which nobody else writes.

    Attributes:
        bases: How base files are written.
        largest: Bytes that a file is filled up to.
    """

    bases: GroupWriter
    largest: int

    def write(self, job: GroupJob, rows: GroupRows, sequence: str) -> tuple[GroupOutcome, ...]:
        """Write and publish the base files of new file groups, in the order of the rows or of the sort columns.

        Args:
            job: The first of the file groups, which is new.
            rows: The incoming rows; at least one. Their rules are to add them all.
            sequence: Middle part of ``_hoodie_commit_seqno``, unique to these rows within the instant.

        Raises:
            WriteSealedError: The write was committed or given up meanwhile.
        """
        bases = self.bases
        where = f"partition {job.group.partition_path!r} of the table {bases.storage.path}"
        encounter = Encounter(bases.spec, bases.rules, bases.memory, bases.open_spill, where)
        files = _Files(self, job, Arrivals(bases.instant_time, sequence, job.group.partition_path))
        try:
            with closing(self._ordered(encounter, rows)) as ordered:
                for batch in ordered:
                    files.add(batch)
            return files.finish(encounter.counts)
        except BaseException:
            files.discard()
            raise

    def _ordered(self, encounter: Encounter, rows: GroupRows) -> Generator[pa.RecordBatch]:
        """Yield the rows that arrive, sorted where files are to be: across the files, not only within each."""
        columns = self.bases.file_format.sort_columns
        with closing(encounter.meet(rows, iter(()))) as met:
            if not columns:
                for one in met:
                    yield one.rows
                return
            sorter = RowSorter(columns, self.bases.memory, self.bases.open_spill)
            try:
                for one in met:
                    sorter.add(one.rows)
                yield from sorter.batches()
            except BaseException:
                sorter.discard()
                raise

    @cached_property
    def form(self) -> FileFormat:
        """How the files look; a file has a whole row group before it is full, by which its size is told."""
        form = self.bases.file_format
        return replace(form, row_group_bytes=min(form.row_group_bytes, self.largest), sort_columns=())


@dataclass(frozen=True, slots=True)
class _Open:
    job: GroupJob
    staged: Staged
    output: BaseOutput

    def discard(self) -> None:
        self.output.abandon()
        self.staged.discard()


class _Files:
    """The files of one job, of which the last is open."""

    def __init__(self, writer: RollingWriter, job: GroupJob, arrivals: Arrivals) -> None:
        self._writer = writer
        self._job = job
        self._arrivals = arrivals
        self._open: _Open | None = None
        self._done: list[GroupOutcome] = []

    def add(self, rows: pa.RecordBatch) -> None:
        for piece in _pieces(rows, max(self._writer.largest // _STEPS, 1)):
            if self._open is not None and self._open.output.file.expected(piece.nbytes) > self._writer.largest:
                self._publish(self._open)
            if self._open is None:
                self._open = self._begin()
            self._open.output.arrive(piece)

    def finish(self, counts: MergeCounts) -> tuple[GroupOutcome, ...]:
        """Publish what is left; what became of rows that no file holds is told with the first file."""
        if self._open is not None:
            self._publish(self._open)
        untold = replace(counts, inserts=0)
        if not self._done:
            return (GroupOutcome(self._job.group, None, counts=untold),)
        self._done[0].counts.add(untold)
        return tuple(self._done)

    def discard(self) -> None:
        if self._open is not None:
            self._open.discard()

    def _begin(self) -> _Open:
        bases, group = self._writer.bases, self._job.group
        job = GroupJob(replace(group, file_id=numbered_file_id(group.file_id, len(self._done))), None)
        staged = bases.storage.stage(bases.path_of(job), bases.aside)
        name = bases.name_of(job).format()
        return _Open(
            job, staged, BaseOutput(self._writer.form, name, staged.stream, frozenset(), arrivals=self._arrivals)
        )

    def _publish(self, one: _Open) -> None:
        bases = self._writer.bases
        one.output.close()
        path, rows = bases.path_of(one.job), one.output.file.rows
        size = bases.publisher.publish(one.staged, one.job.group.partition_path, path, one.job.marker)
        self._done.append(GroupOutcome(one.job.group, None, path, size, rows, MergeCounts(inserts=rows)))
        self._open = None


def _pieces(rows: pa.RecordBatch, nbytes: int) -> Iterator[pa.RecordBatch]:
    """Yield rows some at a time, of about so many Arrow bytes at most."""
    step = max(rows.num_rows * nbytes // max(rows.nbytes, 1), 1)
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)
