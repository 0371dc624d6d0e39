"""The writers of base and of log files that a task or the commit uses for one write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...index.bloom import filters_for
from ...index.registry import index_for
from ...storage.base import Storage
from ...table.arrow.arrays import Mask
from ...table.arrow.spill import SpillWriter
from ...table.files.logs.block_format import safe_format
from ...table.files.names import WriteToken
from ...table.keys.generator import KeyGenerator
from ...table.schema.columns import RECORD_KEY, avro_schema
from ...timeline.timeline import Timeline
from ...timeline.writers.markers import MarkerType
from ...writer.buffer import MERGE_RESERVE, GroupRows
from ...writer.data_files import DataFiles, FileFormat, LogFormat
from ...writer.foreign import ForeignRows
from ...writer.group_writer import GroupJob, GroupOutcome, GroupWriter
from ...writer.known_keys import KnownKeys, WholeRows
from ...writer.log_handle import LogHandle, LogOutcome, LogWriter, Versions
from ...writer.rolling_writer import RollingWriter
from ...writer.slice_reader import SliceReader
from ..planning.plan import WritePlan
from ..transaction.fence import Fence

if TYPE_CHECKING:
    from ...table.merging.laying import Laying

Outcome = GroupOutcome | LogOutcome
# How many log files one task may append to one file group; their numbers stay below those of the next Spark partition.
_FILES_OF_A_TASK = 64
_MOST_TASKS = 1 << 24


@dataclass(frozen=True, slots=True)
class Writers:
    """Writes file groups, each as its job asks for.

    Attributes:
        bases: Writes base files.
        logs: Appends log files; None where the write rewrites file groups that are there.
        rolling: Writes base files that end where they are full.
    """

    bases: GroupWriter
    logs: LogWriter | None
    rolling: RollingWriter

    def appends(self, job: GroupJob) -> bool:
        """Return whether the rows of a job go to log files."""
        return self.logs is not None and not job.rewrites and (job.piece is not None or job.logs_only)

    def first_file(self, job: GroupJob) -> tuple[str, MarkerType]:
        """Return the path of the first file that a job makes, if it makes any, and what the write does to it."""
        if self.logs is not None and self.appends(job):
            return self.logs.path_of(job.group), MarkerType.CREATE
        return self.bases.files.base_path(job.group), job.marker

    def open(self, job: GroupJob, sequence: str) -> LogHandle:
        """Open the log files of a file group whose job asks for them."""
        if self.logs is None:
            raise ValueError(f"the write of {job.group} appends nothing")
        return LogHandle(self.logs, job.group, job.piece, sequence)

    def write(self, job: GroupJob, rows: GroupRows, sequence: str) -> tuple[Outcome, ...]:
        """Write one file group.

        Raises:
            PyHudiError: See `GroupWriter.write`, `RollingWriter.write` and `LogWriter.write`.
        """
        if job.rolls:
            return self.rolling.write(job, rows, sequence)
        if self.logs is not None and self.appends(job):
            return self.logs.write(job.group, job.piece, rows, sequence)
        return (self.bases.write(job, rows, sequence),)


def writers(
    plan: WritePlan,
    token: WriteToken,
    fence: Fence,
    open_spill: Callable[[], tuple[SpillWriter, Storage]],
    timeline: Timeline,
    versions: Versions,
) -> Writers:
    """Return the writers of one task or commit.

    Args:
        plan: The write.
        token: Names the task attempt.
        fence: Lets finished files through.
        open_spill: Opens a spill, with the storage that reads it back.
        timeline: As of the write's watermark.
        versions: The numbers of log files.
    """
    memory = int(plan.settings.output.memory * MERGE_RESERVE)
    files = DataFiles(plan.storage, plan.instant_time, token, plan.transaction.aside, fence)
    file_format = _file_format(plan)
    laying = _laying(plan)
    keys = None if plan.config.generates_keys else KeyGenerator(plan.config, plan.schema)
    slices = SliceReader(plan.storage, plan.config, plan.schema, timeline.is_committed, memory, open_spill)
    bases = GroupWriter(
        files=files,
        spec=plan.spec,
        file_format=file_format,
        foreign=ForeignRows(index_for(plan.config), keys),
        rules=plan.rules,
        slices=slices,
        laying=laying,
    )
    logs = LogWriter(
        files=files,
        spec=plan.spec,
        file_format=_entry_format(plan, file_format),
        log_format=_log_format(plan),
        versions=versions,
        memory=memory,
        open_spill=open_spill,
        laying=laying,
        known=_known(plan, slices),
    )
    rolling = RollingWriter(bases, plan.settings.lookup.sizes.largest)
    return Writers(bases, logs if plan.appends else None, rolling)


def versions_of_task(plan: WritePlan, token: WriteToken) -> Versions:
    """Return the numbers of a task's log files: greater in a later Spark partition, whose rows came later."""
    if plan.settings.colocated:
        return Versions()
    return Versions(1 + token.partition * _FILES_OF_A_TASK, _FILES_OF_A_TASK)


def versions_of_commit(plan: WritePlan) -> Versions:
    """Return the numbers of the log files that the commit appends, of tasks later than all that append."""
    return Versions(1 + appending_tasks(plan) * _FILES_OF_A_TASK)


def appending_tasks(plan: WritePlan) -> int:
    """Return of how many Spark partitions, the first ones, the tasks append to file groups that are there."""
    return min(plan.settings.logs.per_group, _MOST_TASKS)


def _file_format(plan: WritePlan) -> FileFormat:
    return FileFormat(
        schema=plan.schema,
        avro_schema=avro_schema(plan.schema, plan.config.name, meta=True),
        output=plan.settings.output,
        sort_columns=plan.sort_columns,
        bloom=filters_for(plan.config, plan.settings.output),
    )


def _log_format(plan: WritePlan) -> LogFormat:
    logs = plan.settings.logs
    data_format = safe_format(logs.data_format, plan.config, plan.schema)
    return LogFormat(data_format, logs.block_bytes, logs.file_bytes, plan.partial_blocks)


def _entry_format(plan: WritePlan, whole: FileFormat) -> FileFormat:
    """Return how rows look in log files: in their own columns, where these are not all.

    As in Apache Hudi, without those of the record key, which no update changes.
    """
    if plan.partial_columns is None or not plan.partial_blocks:
        return whole
    names = set(plan.partial_columns) - set(plan.config.record_key_fields)
    schema = pa.schema([one for one in plan.schema if one.name in names])
    return replace(whole, schema=schema, avro_schema=avro_schema(schema, plan.config.name, meta=True))


def _known(plan: WritePlan, slices: SliceReader) -> KnownKeys | WholeRows | None:
    """Return what looks up the stored rows of a partial update; None where rows are whole."""
    if plan.partial_columns is None:
        return None
    if plan.partial_blocks:
        return KnownKeys(slices)
    names = set(plan.partial_columns) - set(plan.config.record_key_fields)
    return WholeRows(slices, frozenset(names), plan.spec.ordering_fields)


def _laying(plan: WritePlan) -> Laying | None:
    if not plan.lays_rows:
        return None
    from ...table.merging.laying import Laying  # noqa: PLC0415 (few writes put rows together)
    from ...table.slices.partial_updates import PartialUpdates  # noqa: PLC0415 (as above)

    by_mode = PartialUpdates.of(plan.config, ())
    columns = (RECORD_KEY, *plan.schema.names)
    known_only = plan.partial_columns is not None
    return Laying(plan.spec, _all_given if by_mode is None else by_mode.given, columns, known_only)


def _all_given(rows: pa.RecordBatch | None, name: str, values: pa.Array) -> Mask | None:
    return None
