"""The completed file of a write or table service: statistics of each new file, the schema, and further entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...table.schema.columns import avro_schema
from ...timeline import formats
from ...writer.written_file import WrittenFile
from ..meeting.transaction import Transaction

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata, WriteStat


def commit_metadata(
    work: Transaction,
    schema: pa.Schema,
    written: Iterable[WrittenFile],
    operation: str,
    notes: Mapping[str, str],
    *,
    user_entries: Mapping[str, str] | None = None,
    replaced: Mapping[str, list[str]] | None = None,
    compacts: bool = False,
) -> CommitMetadata:
    """Return the metadata of an instant that completes.

    Args:
        work: The instant in the making.
        schema: The columns of the table from then on.
        written: The result for each file group that the instant met, also if it made no file.
        operation: Apache Hudi's name of what the instant does, such as upsert.
        notes: Further entries of extraMetadata.
        user_entries: Entries of the user; all other entries win over them.
        replaced: The replaced file ids by partition path.
        compacts: Whether the instant is a compaction.
    """
    from ...timeline.metadata.models import CommitMetadata, ReplaceCommitMetadata  # noqa: PLC0415 (see instant_files.py)

    stats: dict[str, list[WriteStat]] = {}
    for file in sorted((file for file in written if file.path), key=lambda file: (file.group, file.version)):
        stats.setdefault(file.group.partition_path, []).append(_write_stat(file, work.instant_time))
    columns = {"schema": avro_schema(schema, work.config.name), formats.KEY: str(formats.COMMIT_KEYS)}
    fields: dict[str, Any] = {
        "partition_to_write_stats": stats,
        "compacted": compacts,
        "extra_metadata": {**(user_entries or {}), **columns, **notes},
        "operation_type": operation,
    }
    if work.inflight.replaces:
        return ReplaceCommitMetadata(**fields, partition_to_replace_file_ids=dict(replaced or {}))
    return CommitMetadata(**fields)


def _write_stat(file: WrittenFile, instant_time: str) -> WriteStat:
    """Return the statistics of a new file under Apache Hudi's names; `instant_time` is that of its instant."""
    from ...timeline.metadata.models import WriteStat  # noqa: PLC0415 (as above)

    counts, base = file.counts, None if file.previous is None else file.previous.base
    fields: dict[str, Any] = {
        "file_id": file.group.file_id,
        "path": file.path,
        # Apache Hudi's word for a new file group is "null".
        "prev_commit": "null" if file.previous is None else file.previous.base_time,
        "prev_base_file": None if file.is_log or base is None else base.name,
        "num_writes": file.rows,
        "num_deletes": counts.deletes,
        "num_update_writes": counts.updates,
        "num_inserts": counts.inserts,
        "total_write_bytes": file.size,
        "partition_path": file.group.partition_path,
        "file_size_in_bytes": file.size,
    }
    if file.is_log:
        # From table version 8 on, a log file has one writer, so no earlier instant wrote to it.
        fields |= {"prev_commit": instant_time} if file.logs is None else {}
        fields |= {"base_file": "", "log_files": [file.path.rpartition("/")[2]]}
        fields |= {"log_version": file.version, "log_offset": 0}
    return WriteStat(**fields | _of_compaction(file))


def _of_compaction(file: WrittenFile) -> dict[str, Any]:
    """Return the fields that a compaction, a log compaction or a sort adds to a file's statistics; none for a write."""
    from ...timeline.metadata.models import RuntimeStats  # noqa: PLC0415 (as above)

    logs, counts = file.logs, file.counts
    if logs is None:
        return {}
    millis = int(logs.seconds * 1000)
    return {
        # Deletes of keys that the base file lacks count, too.
        "num_deletes": counts.deletes + counts.not_found,
        "total_log_records": logs.records,
        "total_log_blocks": logs.blocks,
        "total_corrupt_log_block": logs.corrupt,
        "total_updated_records_compacted": file.rows + counts.deletes if file.is_log else counts.keys,
        "total_log_files_compacted": 0 if file.previous is None else len(file.previous.logs),
        "total_log_size_compacted": logs.data_bytes,
        "runtime_stats": RuntimeStats(total_scan_time=0, total_create_time=0, total_upsert_time=millis),
    }
