"""Merge-on-read tables for tests of compaction: delta commits made by hand, and what a table holds once merged."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.index.registry import index_for
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.result import ServiceResult
from pyhudi.operations.service_settings import CompactionSettings, LogCompactionSettings
from pyhudi.operations.services.compaction.compact import Means, compact, schedule_compaction
from pyhudi.operations.services.compaction.log_compactor import blocks_of
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.threads import for_each
from pyhudi.table.arrow.spill import local_spills
from pyhudi.table.config import load_config
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.files import read_written
from pyhudi.table.files.base_file import file_schema
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.files.logs.delete_block import Deletes
from pyhudi.table.files.logs.log_file import LogFileWriter
from pyhudi.table.files.lost import open_view
from pyhudi.table.files.names import LogFileName, WriteToken, bucket_of, new_bucket_file_id
from pyhudi.table.files.output import Output
from pyhudi.table.files.partitions import write_partition_metafile
from pyhudi.table.keys.generator import KeyGenerator
from pyhudi.table.latest_schema import latest_schema
from pyhudi.table.schema.columns import avro_schema, with_meta
from pyhudi.table.slices.merged_slice import MergedSlice
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.clock import format_time, next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import CommitMetadata, CompactionOperation, CompactionPlan, WriteStat
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.patience import Patience
from support.drive import write

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
TABLE = TableSettings(
    table_type="MERGE_ON_READ",
    record_key_fields=("id",),
    partition_fields=("p",),
    ordering_fields=("ts",),
    bucket_count=2,
)
ALL = CompactionSettings()
TWO = LogCompactionSettings(blocks=2)
IMPATIENT = Patience(heartbeat_misses=-1, foreign_age_s=-1.0)
Row = tuple[str, str, int, int]


def rows(*some: Row) -> pa.Table:
    """Return rows of (key, partition, ordering value, value)."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in some], schema=SCHEMA)


def new_table(path: Path | str, *some: Row) -> None:
    """Make a table whose rows are in base files."""
    write(path, rows(*some), table=TABLE)


def begin(path: Path | str) -> str:
    """Put a delta commit on the timeline, which `append` completes."""
    time.sleep(0.002)  # or it might take the time that somebody has in mind who is about to ask for it
    storage = open_storage(str(path))
    config = load_config(storage)
    timeline = Table(storage, config).timeline()
    at = next_time(int(time.time() * 1000), timeline.greatest_time(), config.timezone)
    instant = Instant(at, "deltacommit", State.INFLIGHT)
    timeline.files.request(instant)
    timeline.files.start(instant)
    return at


def append(
    path: Path | str,
    *some: Row,
    gone: Sequence[tuple[str, str, int | None]] = (),
    at: str = "",
    misplaced: bool = False,
) -> str:
    """Complete a delta commit whose rows, and deletes by (key, partition, ordering value), are in log files.

    Args:
        path: The table.
        some: The rows.
        gone: The deletes.
        at: What `begin` returned; else it begins now.
        misplaced: Whether they are put into the other bucket of two.
    """
    at = at or begin(path)
    storage = open_storage(str(path))
    config = load_config(storage)
    timeline = Table(storage, config).timeline()
    schema = latest_schema(config, timeline)
    assert schema is not None
    index, keys, view = index_for(config), KeyGenerator(config, schema), open_view(timeline)
    everything = rows(*some, *((key, partition, 0, 0) for key, partition, _ in gone)).combine_chunks().to_batches()[0]
    record_keys, parts = keys.composed(everything)
    buckets = index.buckets(record_keys, parts).tolist()
    by_group: dict[tuple[str, int], list[int]] = {}
    for number, (partition, bucket) in enumerate(zip(everything.column("p").to_pylist(), buckets, strict=True)):
        by_group.setdefault((partition, bucket), []).append(number)
    stats: dict[str, list[WriteStat]] = {}
    for (partition, found_bucket), numbers in by_group.items():
        bucket = 1 - found_bucket if misplaced else found_bucket
        known = [one for one in view.slices(partition) if bucket_of(one) == bucket]
        file_id = known[0] if known else new_bucket_file_id(at, partition, bucket)
        rowed = [number for number in numbers if number < len(some)]
        deleted = [gone[number - len(some)] for number in numbers if number >= len(some)]
        log = LogFileName(file_id, at, 1, WriteToken(0, 0, len(stats)))
        stat = _write_log(
            storage, config, schema, partition, log, everything.take(pa.array(rowed, pa.int64())), deleted
        )
        stats.setdefault(partition, []).append(stat)
    body = CommitMetadata(
        partition_to_write_stats=stats,
        extra_metadata={"schema": avro_schema(schema, config.name)},
        operation_type="UPSERT",
    )
    timeline = Table(storage, config).timeline()
    completion_time = next_time(int(time.time() * 1000), timeline.greatest_time(), config.timezone)
    timeline.complete(Instant(at, "deltacommit", State.COMPLETED, completion_time), timeline.files.codec.encode(body))
    # Whoever takes no part in decisions may complete in the same millisecond as somebody who read the timeline before.
    while format_time(int(time.time() * 1000), config.timezone) <= completion_time:
        time.sleep(0.001)
    return at


def _write_log(
    storage: Storage,
    config: TableConfig,
    schema: pa.Schema,
    partition: str,
    log: LogFileName,
    rows: pa.RecordBatch,
    deleted: Sequence[tuple[str, str, int | None]],
) -> WriteStat:
    name, at = log.format(), log.named_time
    sink = pa.BufferOutputStream()
    avro = avro_schema(schema, config.name, meta=True)
    writer = LogFileWriter(sink, instant_time=at, schema=file_schema(schema), avro_schema=avro)
    if rows.num_rows:
        writer.add_rows(_with_meta(rows, at, log.file_id))
    if deleted:
        writer.add_deletes(_deletes(deleted))
    writer.close()
    body = sink.getvalue().to_pybytes()
    write_partition_metafile(storage, partition, at)
    storage.write(f"{partition}/{name}", body)
    return WriteStat(
        file_id=log.file_id,
        path=f"{partition}/{name}",
        prev_commit=at,
        num_writes=rows.num_rows,
        num_update_writes=rows.num_rows,
        num_deletes=len(deleted),
        file_size_in_bytes=len(body),
        total_write_bytes=len(body),
        partition_path=partition,
        log_files=[name],
        log_version=1,
        log_offset=0,
        base_file="",
    )


def compaction_of(slices: Iterable[FileSlice]) -> CompactionPlan:
    """Return the plan that merges file slices as they are."""
    operations = [
        CompactionOperation(
            base_instant_time=one.base_time,
            delta_file_paths=[log.path.rpartition("/")[2] for log in one.logs],
            data_file_path=None if one.base is None else one.base.name,
            file_id=one.file_id,
            partition_path=one.partition_path,
        )
        for one in slices
    ]
    return CompactionPlan(operations=operations, version=2)


def means(storage: Storage, **changes: Any) -> Means:
    """Return means by which everything happens in one thread, and other processes count as dead at once."""
    given = {"patience": IMPATIENT, "output": Output(row_group_bytes=1 << 20, memory=1 << 24)}
    return Means(**{**given, "executor": partial(for_each, storage), **changes})


def schedule(path: Path | str, settings: CompactionSettings = ALL, patience: Patience = IMPATIENT) -> ServiceResult:
    """Plan a compaction."""
    return schedule_compaction(open_storage(str(path)), settings, patience)


def run(path: Path | str, settings: CompactionSettings = ALL, **changes: Any) -> ServiceResult:
    """Carry out what is pending, and plan and carry out one more."""
    storage = open_storage(str(path))
    return compact(storage, settings, means(storage, **changes))


def plan_join(path: Path | str, settings: LogCompactionSettings = TWO, patience: Patience = IMPATIENT) -> ServiceResult:
    """Plan a log compaction."""
    return schedule_compaction(open_storage(str(path)), settings, patience)


def join(path: Path | str, settings: LogCompactionSettings = TWO, **changes: Any) -> ServiceResult:
    """Carry out the log compactions that are pending, and plan and carry out one more."""
    storage = open_storage(str(path))
    return compact(storage, settings, means(storage, **changes))


def blocks(path: Path | str, file_slice: FileSlice) -> list[str]:
    """Return the instants of the blocks of a slice that count, in the order in which they do."""
    storage = open_storage(str(path))
    return list(dict.fromkeys(one.instant_time for one in blocks_of(storage, file_slice)))


def timeline_of(path: Path | str) -> Timeline:
    """Return the table's timeline."""
    storage = open_storage(str(path))
    return open_table(storage).timeline()


def slices(path: Path | str) -> list[FileSlice]:
    """Return the newest slice of each file group."""
    return open_view(timeline_of(path)).all_slices()


def merged(path: Path | str, *columns: str) -> list[tuple[Any, ...]]:
    """Return the table's rows, base and log files merged, as sorted tuples."""
    storage = open_storage(str(path))
    config = load_config(storage)
    schema = latest_schema(config, Table(storage, config).timeline())
    assert schema is not None
    wanted = with_meta(schema)
    names = columns or ("p", "id", "value")
    merged_rows: list[tuple[Any, ...]] = []
    with_spills = open_storage(f"memory://{uuid.uuid4().hex}")
    for file_slice in slices(path):
        whole = MergedSlice(
            storage, config, file_slice, schema, lambda _: True, memory=1 << 24, open_spill=local_spills(with_spills)
        )
        for batch in whole.batches(wanted):
            merged_rows += zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    return sorted(merged_rows)


def in_bases(path: Path | str) -> list[tuple[Any, ...]]:
    """Return the rows of the newest base files alone."""
    base_rows: list[tuple[Any, ...]] = []
    for file_slice in slices(path):
        if file_slice.base is not None:
            table = pq.read_table(Path(str(path)) / file_slice.base.path, partitioning=None)
            base_rows += zip(*(table.column(name).to_pylist() for name in ("p", "id", "value")), strict=True)
    return sorted(base_rows)


def _with_meta(batch: pa.RecordBatch, at: str, file_id: str) -> pa.RecordBatch:
    schema = file_schema(SCHEMA)
    meta = [
        [at] * batch.num_rows,
        [f"{at}_{file_id}_{number}" for number in range(batch.num_rows)],
        batch.column("id").to_pylist(),
        batch.column("p").to_pylist(),
        [file_id] * batch.num_rows,
    ]
    columns = [*(pa.array(one, pa.string()) for one in meta), *batch.columns]
    return pa.RecordBatch.from_arrays(
        [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def _deletes(some: Sequence[tuple[str, str, int | None]]) -> Deletes:
    return Deletes(
        pa.array([key for key, _, _ in some]),
        pa.array([partition for _, partition, _ in some]),
        (pa.array([value for _, _, value in some], pa.int64()),),
        pa.array([value is None for _, _, value in some]),
    )


def as_another_writer(path: Path, *times: str) -> None:
    """Take from completed writes, of some times or from all, what tells that pyhudi made them."""
    files = timeline_of(path).files
    for instant in timeline_of(path).writes:
        if not times or instant.requested_time in times:
            body = files.read_commit(instant)
            kept = {key: text for key, text in body.extra_metadata.items() if not key.startswith("pyhudi.")}
            files.storage.write(
                files.path(instant), files.codec.encode(body.model_copy(update={"extra_metadata": kept}))
            )
    read_written._WRITTEN.clear()
