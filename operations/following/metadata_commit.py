"""The delta commit of the metadata table that belongs to an instant of the table: its files and their order.

Readers count its records once the instant of the table is complete. Source: ``HoodieBackedTableMetadataWriter`` and
delta commits that Apache Hudi wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ...storage.base import join
from ...storage.threads import for_each
from ...table.metadata.group_schemas import schema_of_group
from ...table.metadata.kinds import FILES, groups_of
from ...table.metadata.metadata_table import FOLDER, MetadataTable
from ...table.metadata.new_files import GrowingHFile, log_name, log_of
from ...table.metadata.record_schema import record_schema, schema_of_commits
from ...timeline.instant_files import InstantFiles
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.first_steps import MakeFile, PublishFile, ReplaceFile, Step
from ..result import MetadataWritten
from .before_completion import file_step
from .changed_partitions import ChangedPartition, ChangedRecords
from .damage import damage_of

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata, WriteStat

ACTION = "deltacommit"
WARNINGS = "pyhudi.metadata.warnings"
"""The entry of a completed delta commit with its warnings, as JSON, because another process may report them."""


@dataclass(frozen=True, slots=True)
class NewLog:
    """One log file of the delta commit; ``records`` is the number of its records and deletes, written by ``schema``."""

    partition: str
    file_id: str
    path: str
    size: int
    records: int
    schema: str
    step: Step


@dataclass(frozen=True, slots=True)
class MetadataCommit:
    """A delta commit of the metadata table, made but not published.

    Attributes:
        drops: Partitions that go out of use, because pyhudi cannot keep them.
        warnings: The reasons, and the call that builds each partition again.
        body: The content of its completed file.
        definitions: The steps that change definitions of indexes.
    """

    instant_time: str
    logs: tuple[NewLog, ...]
    body: bytes
    drops: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    definitions: tuple[ReplaceFile, ...] = ()

    @property
    def sets_aside(self) -> bool:
        return any(isinstance(log.step, PublishFile) for log in self.logs)

    def report(self, seconds: float) -> MetadataWritten:
        """Return the figures and warnings of the commit for the user, with the seconds that it took."""
        return MetadataWritten(
            tuple(sorted({log.partition for log in self.logs})),
            sum(log.records for log in self.logs),
            sum(log.size for log in self.logs),
            seconds,
            self.warnings,
        )

    def is_outdated(self, seen: Timeline, current_timeline: Timeline) -> bool:
        """Return whether instants of the metadata table that completed since change the content of this commit."""
        completed_since = set(current_timeline.completed).difference(seen.completed)
        # A compaction may have given a file group another schema; delta commits of other engines may hold exact bounds.
        return any(
            instant.action != ACTION or instant.requested_time > self.instant_time for instant in completed_since
        )

    def steps(self, files: InstantFiles, completed: Instant) -> tuple[Step, ...]:
        """Return the steps that publish the delta commit before an instant of the table completes."""
        pending = Instant(self.instant_time, ACTION, State.REQUESTED)
        completed_before = files.layout.completed(pending, right_before(str(completed.completion_time)))
        return (
            MakeFile(files.path(pending), b""),
            MakeFile(files.path(pending.at(State.INFLIGHT)), b""),
            *(log.step for log in self.logs),
            *self.definitions,
            MakeFile(files.path(completed_before), self.body),
        )


def make_metadata_commit(
    metadata: MetadataTable, instant: Instant, changed: ChangedRecords, building: Collection[str] = ()
) -> MetadataCommit:
    """Return the delta commit that belongs to an instant; its large log files wait in the instant's working folder.

    ``building`` names the partitions that an indexing builds, whose base files have pyhudi's own schema. Raises
    `DamagedPartitionError` if files of the metadata table cannot be read.
    """
    changed_groups = [(each, group) for each in changed.partitions for group in _touched_groups(each)]
    schemas = for_each(metadata.storage, lambda place: _schema_of(metadata, building, *place), changed_groups)
    logs: list[NewLog] = []
    hfiles_by_group: dict[int, GrowingHFile] = {}
    encoded_for: tuple[str, str] | None = None
    for (changed_partition, group), schema in zip(changed_groups, schemas, strict=True):
        # The file groups of a partition mostly share a schema, so encode its records once.
        if encoded_for != (changed_partition.name, schema):
            hfiles_by_group, encoded_for = _hfiles(changed_partition, schema), (changed_partition.name, schema)
        step_of = partial(file_step, metadata.storage, instant.requested_time, other_files=len(changed_groups) - 1)
        hfile = hfiles_by_group.pop(group, None)
        logs.append(_make_log(instant.requested_time, changed_partition, group, hfile, schema, step_of))
    body = metadata.timeline.files.codec.encode(_commit_content(logs, changed.warnings))
    return MetadataCommit(instant.requested_time, tuple(logs), body, changed.drops, changed.warnings, changed.steps)


def _touched_groups(changed: ChangedPartition) -> list[int]:
    """Return the numbers of the file groups to which the keys of a partition's changes belong."""
    count = len(changed.file_ids)
    touched = np.zeros(count, np.bool_)
    for keys in chain([changed.deletes], changed.keys()):
        touched[groups_of(keys, count)] = True
    return [int(group) for group in np.flatnonzero(touched)]


def _schema_of(metadata: MetadataTable, building: Collection[str], changed: ChangedPartition, group: int) -> str:
    """Return the schema of the records in a file group; raise `DamagedPartitionError` if it cannot be read."""
    with damage_of(changed.name):
        # An earlier partition of that name may have left files with another schema in the folder.
        is_built = changed.name in building
        return record_schema() if is_built else schema_of_group(metadata, changed.name, changed.file_ids[group])


def _hfiles(changed: ChangedPartition, schema: str) -> dict[int, GrowingHFile]:
    """Return the encoded records of each file group that gets some, by the number of the file group."""
    hfiles: dict[int, GrowingHFile] = {}
    with damage_of(changed.name):
        # Encoding fails for a schema that is not of the metadata table's records.
        for part in changed.records(schema):
            for group, entries in part.by_group(len(changed.file_ids)).items():
                hfiles.setdefault(group, GrowingHFile(schema)).add(entries)
    return hfiles


def _make_log(
    time: str,
    changed: ChangedPartition,
    group: int,
    hfile: GrowingHFile | None,
    schema: str,
    step_of: Callable[[str, bytes], Step],
) -> NewLog:
    """Return the log file of one file group, with its records and deletes, and the step that makes it.

    ``group`` is the number of the file group, ``hfile`` its records, None for deletes alone; ``step_of`` returns the
    step that makes a file of a path and a content.
    """
    file_id, count = changed.file_ids[group], len(changed.file_ids)
    deletes = changed.deletes.filter(pa.array(groups_of(changed.deletes, count) == group)).cast(pa.binary())
    content = log_of(time, changed.name, deletes, b"" if hfile is None else hfile.content(), schema)
    path = join(FOLDER, changed.name, log_name(file_id, time))
    records = len(deletes) + (0 if hfile is None else hfile.count)
    return NewLog(changed.name, file_id, path, len(content), records, schema, step_of(path, content))


def _commit_content(logs: Sequence[NewLog], warnings: Sequence[str]) -> CommitMetadata:
    """Return the content of the delta commit's completed file."""
    from ...timeline.metadata.models import CommitMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

    stats: dict[str, list[WriteStat]] = {}
    for log in logs:
        stats.setdefault(log.partition, []).append(_write_stat(log))
    # hudi-rs reads the list of files alone, and by one schema.
    schemas = [log.schema for log in logs if log.partition == FILES] or [log.schema for log in logs]
    extra = {"schema": schema_of_commits(schemas[0])} if schemas else {}
    if warnings:
        extra[WARNINGS] = json.dumps(warnings)
    return CommitMetadata(partition_to_write_stats=stats, operation_type="UPSERT_PREPPED", extra_metadata=extra)


def _write_stat(log: NewLog) -> WriteStat:
    """Return the statistics of a log file under Apache Hudi's names."""
    from ...timeline.metadata.models import WriteStat  # noqa: PLC0415 (as above)

    return WriteStat(
        file_id=log.file_id,
        path=log.path.removeprefix(f"{FOLDER}/"),
        prev_commit="null",
        num_writes=log.records,
        num_update_writes=log.records,
        total_write_bytes=log.size,
        partition_path=log.partition,
        file_size_in_bytes=log.size,
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=[log.path.rpartition("/")[2]],
    )


def right_before(time: str) -> str:
    """Return the millisecond before a time that a decision chose; such a time is odd, so its last digit is not 0."""
    return f"{time[:-1]}{int(time[-1]) - 1}"
