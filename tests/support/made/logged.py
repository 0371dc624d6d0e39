"""Merge-on-read tables made by hand, append by append: the test says who completes when, and what stays undone."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyhudi.index.registry import index_for
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage, join
from pyhudi.table.config import TableConfig, load_config
from pyhudi.table.files.base_file import BaseFileReader, BaseFileWriter, file_schema
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_contents import BlockContent
from pyhudi.table.files.logs.log_file import LogFileWriter, read_blocks
from pyhudi.table.files.names import BaseFileName, FileGroupId, LogFileName, WriteToken
from pyhudi.table.files.output import Output
from pyhudi.table.files.read_written import read_written
from pyhudi.table.files.view import FileView
from pyhudi.table.schema.columns import META_COLUMNS, avro_schema, with_meta
from pyhudi.table.table import Table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import CommitMetadata, CompactionOperation, CompactionPlan, WriteStat
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.markers import Marker, Markers, MarkerType
from support.attempts import PARTED
from support.drive import write

MERGED = replace(PARTED, table_type="MERGE_ON_READ")
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("value", pa.int64()), ("p", pa.string())])
Rows = list[tuple[str, str, int]]


@dataclass
class Working:
    """A delta commit or a compaction that is at work.

    Attributes:
        instant: Its requested time.
        files: What it has written, as its markers name them.
    """

    instant: str
    action: str
    files: list[str] = field(default_factory=list)
    stats: dict[str, list[WriteStat]] = field(default_factory=lambda: defaultdict(list))
    slices: list[FileSlice] = field(default_factory=list)


@dataclass(frozen=True)
class Logged:
    """A merge-on-read table with two buckets a partition, whose columns are ``id``, ``ts``, ``value`` and ``p``.

    Attributes:
        path: Where it is.
    """

    path: Path

    @property
    def storage(self) -> Storage:
        return open_storage(str(self.path))

    @property
    def config(self) -> TableConfig:
        return load_config(self.storage)

    @property
    def timeline(self) -> Timeline:
        return Table(self.storage, self.config).timeline()

    def made(self, *keys: int, partition: str = "a", value: int = 0) -> Logged:
        """Make the table, with base files in its first delta commit."""
        ids = [f"k{key}" for key in keys]
        n = len(ids)
        rows = pa.table([ids, [1] * n, [value] * n, [partition] * n], schema=SCHEMA)
        write(self.path, rows, table=MERGED)
        return self

    def append(self, *keys: int, value: int, partition: str = "a") -> str:
        """Write rows into log files, completely, and return the delta commit's requested time."""
        work = self.begin(*keys, value=value, partition=partition)
        self.finish(work)
        return work.instant

    def begin(self, *keys: int, value: int, partition: str = "a") -> Working:
        """Write rows into log files of a delta commit that stays inflight."""
        work = self._begin("deltacommit")
        index = index_for(self.config)
        ids = pa.array([f"k{key}" for key in keys])
        buckets = index.buckets(ids, [("id", ids)]).tolist()
        groups_by_bucket = {index.number_of(one.group): one.group for one in self.slices(partition)}
        self._open(partition, work.instant)
        for bucket in sorted(set(buckets)):
            group = groups_by_bucket.get(bucket) or index.place(work.instant, partition, bucket)
            chosen = ids.filter(pa.array([one == bucket for one in buckets]))
            name = LogFileName(group.file_id, work.instant, 1, WriteToken(0, 0, 0)).format()
            n = len(chosen)
            columns = [chosen, pa.array([1] * n), pa.array([value] * n), pa.array([partition] * n)]
            sink = pa.BufferOutputStream()
            log = LogFileWriter(
                sink,
                instant_time=work.instant,
                schema=file_schema(SCHEMA),
                avro_schema=avro_schema(SCHEMA, "t", meta=True),
            )
            log.add_rows(_with_meta(columns, work.instant, group, group.file_id))
            log.close()
            counts = {"num_writes": n, "num_update_writes": n}
            self._put(work, group, name, sink, log_files=[name], log_version=1, log_offset=0, **counts)
        return work

    def plan_compaction(self) -> Working:
        """Ask for a compaction of every slice with log files."""
        slices = [one for partition in self.partitions() for one in self.slices(partition) if one.logs]
        work = self._begin("compaction", CompactionPlan(operations=[_operation(one) for one in slices], version=2))
        work.slices = slices
        return work

    def execute(self, work: Working) -> Working:
        """Write the base files of a compaction."""
        self.timeline.files.start(Instant(work.instant, "compaction", State.INFLIGHT))
        for file_slice in work.slices:
            rows = pa.Table.from_pylist([*_merged(self.storage, file_slice).values()], with_meta(SCHEMA))
            name = BaseFileName(file_slice.file_id, WriteToken(0, 0, 0), work.instant).format()
            rows = rows.set_column(4, "_hoodie_file_name", [pa.array([name] * len(rows))])
            sink, schema = pa.BufferOutputStream(), file_schema(SCHEMA)
            base = BaseFileWriter(
                sink, schema, avro_schema(SCHEMA, "t", meta=True), output=Output(row_group_bytes=1 << 20)
            )
            for batch in rows.cast(schema).to_batches():
                base.write(batch)
            base.close()
            previous = "null" if file_slice.base is None else file_slice.base_time
            self._put(work, file_slice.group, name, sink, prev_commit=previous, num_writes=len(rows))
        return work

    def compact(self) -> str:
        """Compact everything, and return the compaction's requested time."""
        work = self.execute(self.plan_compaction())
        self.finish(work)
        return work.instant

    def finish(self, work: Working) -> None:
        """Complete a delta commit or a compaction."""
        timeline, compacted = self.timeline, work.action == "compaction"
        body = CommitMetadata(
            partition_to_write_stats=dict(work.stats),
            compacted=compacted,
            extra_metadata={"schema": avro_schema(SCHEMA, "t")},
            operation_type="COMPACT" if compacted else "UPSERT",
        )
        group = Instant(work.instant, work.action, State.INFLIGHT).group
        done = Instant(work.instant, group, State.COMPLETED, self.next_time())
        assert timeline.complete(done, timeline.files.codec.encode(body))
        Markers(self.storage, work.instant).delete()

    def next_time(self) -> str:
        return next_time(int(time.time() * 1000), self.timeline.greatest_time(), "UTC")

    def partitions(self) -> list[str]:
        return FileView(self.timeline, read_written(self.timeline)).partitions()

    def slices(self, partition: str, as_of: Callable[[Timeline], Timeline] = lambda one: one) -> list[FileSlice]:
        """Return the newest slices of one partition, as of a moment."""
        timeline = as_of(self.timeline)
        view = FileView(timeline, read_written(timeline))
        return [*view.slices(partition).values()]

    def content(self, as_of: Callable[[Timeline], Timeline] = lambda one: one) -> Rows:
        """Return the table's rows as of a moment, by the file view and a merge in a dict."""
        table_rows: Rows = []
        for partition in self.partitions():
            for file_slice in self.slices(partition, as_of):
                rows = _merged(self.storage, file_slice).values()
                table_rows += [(partition, row["id"], row["value"]) for row in rows]
        return sorted(table_rows)

    def files(self) -> set[str]:
        """Return the paths of all data files."""
        found = (info.path for partition in self.partitions() for info in self.storage.list(partition))
        return {path for path in found if ".hoodie_partition" not in path}

    def _begin(self, action: str, plan: CompactionPlan | None = None) -> Working:
        files, at = self.timeline.files, self.next_time()
        files.request(Instant(at, action, State.REQUESTED), b"" if plan is None else files.codec.encode(plan))
        if plan is None:
            files.start(Instant(at, action, State.INFLIGHT))
        return Working(at, action)

    def _open(self, partition: str, instant: str) -> None:
        text = f"commitTime={instant}\npartitionDepth={len(partition.split('/'))}\n"
        self.storage.create(join(partition, ".hoodie_partition_metadata"), text.encode())

    def _put(self, work: Working, group: FileGroupId, name: str, sink: pa.BufferOutputStream, **said: object) -> None:
        path, data = join(group.partition_path, name), bytes(sink.getvalue())
        work.files.append(path)
        Markers(self.storage, work.instant).begin()
        Markers(self.storage, work.instant).write(0, [Marker(one, MarkerType.CREATE) for one in work.files])
        self.storage.write(path, data)
        stat = WriteStat(
            file_id=group.file_id,
            path=path,
            partition_path=group.partition_path,
            file_size_in_bytes=len(data),
            total_write_bytes=len(data),
            prev_commit=work.instant,
        )
        work.stats[group.partition_path].append(stat.model_copy(update=said))


def _with_meta(columns: list[pa.Array], instant: str, group: FileGroupId, file: str) -> pa.RecordBatch:
    schema, n = file_schema(SCHEMA), len(columns[0])
    numbers = [f"{instant}_0_{group.file_id}_{row}" for row in range(n)]
    meta = [[instant] * n, numbers, columns[0].to_pylist(), [group.partition_path] * n, [file] * n]
    kinds = [schema.field(name).type for name in META_COLUMNS]
    return pa.RecordBatch.from_arrays(
        [*(pa.array(one).cast(kind) for one, kind in zip(meta, kinds, strict=True)), *columns], schema=schema
    )


def _operation(file_slice: FileSlice) -> CompactionOperation:
    return CompactionOperation(
        base_instant_time=file_slice.base_time,
        delta_file_paths=[one.path.rpartition("/")[2] for one in file_slice.logs],
        data_file_path=None if file_slice.base is None else file_slice.base.name,
        file_id=file_slice.file_id,
        partition_path=file_slice.partition_path,
        metrics={"TOTAL_LOG_FILES_SIZE": float(file_slice.log_bytes)},
    )


def _merged(storage: Storage, file_slice: FileSlice) -> dict[str, dict[str, object]]:
    """Return the rows of a slice by key: the later one counts, as all have one ordering value."""
    schema, rows_by_key = with_meta(SCHEMA), dict[str, dict[str, object]]()
    if file_slice.base is not None:
        with BaseFileReader(storage, file_slice.base.path, plain=None) as reader:
            rows_by_key |= {
                row["_hoodie_record_key"]: row for batch in reader.batches(schema) for row in batch.to_pylist()
            }
    for log in file_slice.logs:
        for block in read_blocks(storage, log.path):
            if block.type == BlockType.DELETE:
                for key in BlockContent(storage, block).deletes().keys.to_pylist():
                    rows_by_key.pop(key, None)
                continue
            rows = (row for batch in BlockContent(storage, block).rows(schema) for row in batch.to_pylist())
            rows_by_key |= {row["_hoodie_record_key"]: row for row in rows}
    return rows_by_key
