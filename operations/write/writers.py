"""The writers of base files and of log files for one task, or for the commit."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...table.arrow.arrays import Mask
from ...table.files.names import WriteToken
from ...table.keys.generator import KeyGenerator
from ...table.schema.columns import RECORD_KEY
from ...timeline.writers.markers import MarkerType
from ...writer.buffer import MERGE_RESERVE, GroupRows
from ...writer.data_files import DataFiles, FileFormat
from ...writer.foreign import ForeignRows
from ...writer.group_writer import FileGroupWrite, GroupWriter
from ...writer.known_keys import CopiesMetError, CountedKeys, KnownKeys, StoredOrder, WholeRows
from ...writer.log_handle import LogHandle, LogWriter, Versions
from ...writer.rolling_writer import RollingWriter
from ...writer.slice_reader import SliceReader
from ...writer.written_file import FileKind, WrittenFile, marker_of
from ..planning.plan import WritePlan
from ..transaction.file_work import FileWork

if TYPE_CHECKING:
    from ...table.merging.laying import PartialMerge


logger = logging.getLogger("pyhudi")

# The most log files of a task for one file group; their versions stay below those of the next Spark partition.
_FILES_OF_A_TASK = 64
_MOST_TASKS = 1 << 24


@dataclass(frozen=True, slots=True)
class Writers:
    """Writes file groups, each as its job requires.

    Attributes:
        logs: Writes log files; None if the write rewrites existing file groups.
        counted: Counts the stored rows with the keys of appended rows; None if these are not made of stored rows.
    """

    bases: GroupWriter
    logs: LogWriter | None
    rolling: RollingWriter
    counted: CountedKeys | None = None

    def appends(self, job: FileGroupWrite) -> bool:
        """Return whether the rows of a job go to log files."""
        return self.logs is not None and not job.rewrites and (job.file_slice is not None or job.logs_only)

    def first_file(self, job: FileGroupWrite) -> tuple[str, MarkerType]:
        """Return the path of the first file of a job, and the type of its marker."""
        if self.logs is not None and self.appends(job):
            return self.logs.path_of(job.group), marker_of(FileKind.LOG, job.file_slice)
        return self.bases.files.base_path(job.group), marker_of(FileKind.BASE, job.file_slice)

    def open(self, job: FileGroupWrite, sequence: str) -> LogHandle:
        """Open the log files of a file group to which the job appends."""
        if self.logs is None:
            raise ValueError(f"the write of {job.group} appends nothing")
        return LogHandle(self.logs, job.group, job.file_slice, sequence)

    def write(self, job: FileGroupWrite, rows: GroupRows, sequence: str) -> tuple[WrittenFile, ...]:
        """Write the rows of one file group, publish its files, and return the results.

        A job that rolls makes several file groups. ``sequence`` is the part of the rows' sequence numbers that tells
        this file group from others of the write. Rows that may not be appended, because the group holds a key several
        times, are merged into a base file.
        """
        if job.rolls:
            return self.rolling.write(job, rows, sequence)
        if self.logs is not None and self.appends(job):
            try:
                if self.counted is not None and job.file_slice is not None:
                    self.counted.refuse_copies(job.file_slice, rows, self.bases.files.where(job.group))
                return self.logs.write(job.group, job.file_slice, rows, sequence)
            except CopiesMetError:
                logger.debug("the %s holds keys several times, and is written anew", job.group.words)
        return (self.bases.write(job, rows, sequence),)


def writers(plan: WritePlan, work: FileWork, files: DataFiles, slices: SliceReader, versions: Versions) -> Writers:
    """Return the writers of one task or commit.

    Args:
        plan: The write.
        work: The instant's data files: their folders, their format, and the columns of the table after the write.
        files: Makes the data files under the names of the task or commit.
        slices: Reads the stored rows of the table at the moment of the plan.
        versions: The numbers that log files get, which differ from those of other tasks.
    """
    partial_merge = _partial_merge(plan)
    # Generated keys are made of no columns, so there is no spelling to compare.
    keys = None if plan.config.generates_keys else KeyGenerator(plan.config, work.schema)
    bases = GroupWriter(
        files=files,
        spec=plan.spec,
        file_format=work.form(),
        foreign=ForeignRows(plan.index, keys),
        rules=plan.writing_rules,
        slices=slices,
        laying=partial_merge,
    )
    logs = None
    if plan.appends:
        logs = LogWriter(
            files=files,
            spec=plan.spec,
            file_format=_entry_format(plan, work),
            log_format=work.log_format(partial=plan.partial_blocks),
            versions=versions,
            memory=slices.memory,
            open_spill=slices.open_spill,
            laying=partial_merge,
            known_keys=_lookup_of_stored_rows(plan, slices),
            stored=_lookup_of_stored_order(plan, slices),
            # For rows that say that they are new it reads the deletes of log files.
            slices=slices if plan.arriving else None,
        )
    counted = CountedKeys(slices) if plan.counts_copies and plan.writing_rules.of_stored else None
    return Writers(bases, logs, RollingWriter(bases, plan.settings.lookup.sizes.largest), counted)


def file_work(plan: WritePlan) -> FileWork:
    """Return the settings of the files of a write; merges get a part of its memory."""
    settings = plan.settings
    memory = int(settings.output.memory * MERGE_RESERVE) // (settings.tasks.threads or 1)
    output = replace(settings.output, memory=memory)
    return FileWork(plan.transaction, plan.schema, output, settings.logs, plan.order)


def versions_of_task(plan: WritePlan, token: WriteToken) -> Versions:
    """Return the versions of a task's log files: greater in a later Spark partition, whose rows came later."""
    if plan.settings.colocated:
        return Versions()
    return Versions(1 + token.partition * _FILES_OF_A_TASK, _FILES_OF_A_TASK)


def versions_of_commit(plan: WritePlan) -> Versions:
    """Return the versions of log files of the commit, which are greater than those of all tasks."""
    return Versions(1 + appending_tasks(plan) * _FILES_OF_A_TASK)


def appending_tasks(plan: WritePlan) -> int:
    """Return how many tasks append to existing file groups: those of the first Spark partitions."""
    return min(plan.settings.logs.per_group, _MOST_TASKS)


def _entry_format(plan: WritePlan, work: FileWork) -> FileFormat:
    """Return the format of rows in log files, with the columns of a partial update or all.

    As in Apache Hudi, partial blocks leave out the record key, because no update changes it.
    """
    if plan.partial_columns is None or not plan.partial_blocks:
        return work.form()
    names = set(plan.partial_columns) - set(plan.config.record_key_fields)
    return work.form(pa.schema([column for column in work.schema if column.name in names]))


def _lookup_of_stored_rows(plan: WritePlan, slices: SliceReader) -> KnownKeys | WholeRows | None:
    """Return the lookup of stored rows for a partial update; None if rows are whole.

    Partial blocks need only the check that keys are stored; otherwise stored rows complete the new rows.
    """
    if plan.partial_columns is None:
        return None
    if plan.partial_blocks:
        return KnownKeys(slices)
    names = set(plan.partial_columns) - set(plan.config.record_key_fields)
    return WholeRows(slices, frozenset(names), plan.spec.ordering_fields)


def _lookup_of_stored_order(plan: WritePlan, slices: SliceReader) -> StoredOrder | None:
    """Return the lookup of ordering values of stored rows, which deletes get; None if deletes keep their own."""
    names = plan.looked_up_order
    fields = [plan.schema.field(name).with_nullable(True) for name in names]
    return StoredOrder(slices, pa.schema(fields)) if names else None


def _partial_merge(plan: WritePlan) -> PartialMerge | None:
    """Return how rows with one key are put together column by column; None if one row wins as a whole."""
    if not plan.lays_rows:
        return None
    from ...table.merging.laying import PartialMerge  # noqa: PLC0415 (few writes put rows together)
    from ...table.slices.partial_updates import PartialUpdates  # noqa: PLC0415 (as above)

    by_mode = PartialUpdates.of(plan.config, ())
    columns = (RECORD_KEY, *plan.schema.names)
    known_only = plan.partial_columns is not None
    return PartialMerge(plan.spec, _all_values_given if by_mode is None else by_mode.given, columns, known_only)


def _all_values_given(rows: pa.RecordBatch | None, name: str, values: pa.Array) -> Mask | None:
    """Return None instead of a mask of the rows that give a value of the column, because all rows do."""
    return None
