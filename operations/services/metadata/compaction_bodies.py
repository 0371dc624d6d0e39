"""What the plan and the completed file of a compaction of a metadata table say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....storage.base import split
from ....table.files.file_group import FileSlice
from ....table.metadata.group_merge import MergedGroup
from ....table.metadata.kinds import FILES
from ....table.metadata.metadata_table import FOLDER
from ....table.metadata.record_schema import schema_of_commits
from ....timeline.writers.first_steps import Step

if TYPE_CHECKING:
    from ....timeline.metadata.models import CommitMetadata, CompactionPlan, WriteStat

# The version of plans that give files' names without folders.
_BARE_NAMES = 2


@dataclass(frozen=True, slots=True)
class CompactedBase:
    """A new base file of a file group, made from the slice ``merged``."""

    partition: str
    merged: FileSlice
    path: str
    size: int
    group: MergedGroup
    step: Step


def plan_of(merged: Sequence[tuple[str, FileSlice]]) -> CompactionPlan:
    """Return the plan of a compaction, which names what it merges."""
    from ....timeline.metadata.models import CompactionOperation, CompactionPlan  # noqa: PLC0415 (see timeline/instant_files.py)

    operations = [
        CompactionOperation(
            base_instant_time=file_slice.base_time,
            delta_file_paths=[split(log.path)[1] for log in file_slice.logs],
            data_file_path=None if file_slice.base is None else file_slice.base.name,
            file_id=file_slice.file_id,
            partition_path=name,
            metrics=_metrics(file_slice),
        )
        for name, file_slice in merged
    ]
    return CompactionPlan(operations=operations, extra_metadata={}, version=_BARE_NAMES, missing_schedule_partitions=[])


def _metrics(file_slice: FileSlice) -> dict[str, float]:
    """Return what the merge of a slice costs; Apache Hudi fails without some of the entries."""
    return {
        "TOTAL_LOG_FILES": float(len(file_slice.logs)),
        "TOTAL_LOG_FILES_SIZE": float(file_slice.log_bytes),
        "TOTAL_IO_READ_MB": float(file_slice.size >> 20),
        "TOTAL_IO_WRITE_MB": float(file_slice.size >> 20),
        "TOTAL_IO_MB": float(2 * file_slice.size >> 20),
    }


def body_of(bases: Sequence[CompactedBase]) -> CommitMetadata:
    """Return what the completed file of a compaction says."""
    from ....timeline.metadata.models import CommitMetadata  # noqa: PLC0415 (as above)

    stats: dict[str, list[WriteStat]] = {}
    for base in bases:
        stats.setdefault(base.partition, []).append(_write_stat(base))
    of_files = [base for base in bases if base.partition == FILES] or bases
    extra = {"schema": schema_of_commits(of_files[0].group.schema)}
    return CommitMetadata(
        partition_to_write_stats=stats, compacted=True, operation_type="COMPACT", extra_metadata=extra
    )


def _write_stat(base: CompactedBase) -> WriteStat:
    from ....timeline.metadata.models import WriteStat  # noqa: PLC0415 (as above)

    return WriteStat(
        file_id=base.merged.file_id,
        path=base.path.removeprefix(f"{FOLDER}/"),
        prev_commit=base.merged.base_time or "null",
        num_writes=base.group.records,
        num_update_writes=base.group.logged,
        total_write_bytes=base.size,
        partition_path=base.partition,
        file_size_in_bytes=base.size,
        total_log_records=base.group.logged,
        total_log_files=len(base.merged.logs),
        total_log_files_compacted=len(base.merged.logs),
        total_log_size_compacted=base.merged.log_bytes,
        total_log_blocks=len(base.merged.logs),
    )
