"""What a write and a read cost a table that has lived long, beside a young one: `python benchmarks/long_life.py`.

Milliseconds of processor time, without Spark; each write cleans and archives by Apache Hudi's numbers. The
instants of a long life are made by hand, as thousands of writes take too long; those that are measured are writes.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from statistics import median

import pyarrow as pa
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import WriteRequest
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.task import run_task
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import TableConfig, create_config
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.names import BaseFileName, WriteToken, new_bucket_file_id
from pyhudi.table.files.partitions import write_partition_metafile
from pyhudi.table.schema.columns import avro_schema
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata, WriteStat

# Rows of what time does to a table; no format is one of them.
LIFE = "life: "
WRITE, READ = f"{LIFE}a write of 10 rows, with its upkeep", f"{LIFE}finding the file slices"
COMMITS = (50, 10_000)
# What pyhudi promises of the two.
MOST = 1.2

_SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("value", pa.int64())])
_GROUPS = 8
_PORTION = 100
# Several rounds of archiving are among them, each of some ten instants.
_WRITES = 60
_READS = 15


def measure() -> dict[str, dict[str, float]]:
    """Return the milliseconds of each row by the number of commits before."""
    figures: dict[str, dict[str, float]] = {WRITE: {}, READ: {}}
    for commits in COMMITS:
        with tempfile.TemporaryDirectory() as folder:
            table = f"{folder}/t"
            grow(open_storage(table), commits)
            write(table)
            writes = [_milliseconds(write, table) for _ in range(_WRITES)]
            reads = [_milliseconds(read, table) for _ in range(_READS)]
        figures[WRITE][f"{commits:,}"] = sum(writes) / len(writes)
        figures[READ][f"{commits:,}"] = median(reads)
    return figures


def lives(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of what was measured."""
    titles = [f"after {commits:,} commits" for commits in COMMITS]
    lines = [f"| processor time, ms | {' | '.join(titles)} | ratio | at most |", "|---|---:|---:|---:|---:|"]
    for row in (WRITE, READ):
        young, old = (rows.get(row, {}).get(f"{commits:,}") for commits in COMMITS)
        if young and old:
            mark = "" if old / young <= MOST else ", missed"
            lines.append(
                f"| {row.removeprefix(LIFE)} | {young:.1f} | {old:.1f} | {old / young:.2f}{mark} | {MOST:.2f} |"
            )
    return "\n".join([*lines, ""])


def grow(storage: Storage, commits: int) -> None:
    """Make a table whose commits each wrote every file group of one partition; of their files the newest are there."""
    create_config(
        storage,
        TableConfig.new(
            TableSettings(name="t", record_key_fields=("id",), partition_fields=("p",), bucket_count=_GROUPS)
        ),
    )
    write_partition_metafile(storage, "old", "20260101000000000")
    extra = {"schema": avro_schema(_SCHEMA, "t")}
    for number in range(commits):
        instant, completed = (f"20260101{number:06d}{part}" for part in ("000", "500"))
        stats = [_stat(bucket, instant) for bucket in range(_GROUPS)]
        body = CommitMetadata(partition_to_write_stats={"old": stats}, extra_metadata=extra, operation_type="UPSERT")
        storage.write(f".hoodie/timeline/{instant}.commit.requested", b"", durable=False)
        storage.write(f".hoodie/timeline/{instant}.inflight", b"", durable=False)
        storage.write(f".hoodie/timeline/{instant}_{completed}.commit", encode(body), durable=False)
        if number % _PORTION == _PORTION - 1:
            archive(storage, ArchiveSettings())
    for stat in stats:
        storage.write(str(stat.path), b"", durable=False)


def write(table: str) -> None:
    """Write ten rows, and clean and archive if it is time to."""
    request = WriteRequest(path=table, operation="upsert", overwrite=False, schema=_SCHEMA)
    rows = pa.table([[uuid.uuid4().hex for _ in range(10)], ["new"] * 10, [1] * 10], schema=_SCHEMA)
    plan = plan_write(request)
    commit_write(plan, [run_task(plan, iter(rows.to_batches()), WriteToken(0, 1, 1))])


def read(table: str) -> None:
    """Find out which files a reader opens."""
    open_snapshot(table).slices()


def _stat(bucket: int, instant: str) -> WriteStat:
    file_id = new_bucket_file_id("0", "old", bucket)
    path = f"old/{BaseFileName(file_id, WriteToken(bucket, 1, 1), instant).format()}"
    return WriteStat(file_id=file_id, path=path, partition_path="old", prev_commit=instant, num_writes=1)


def _milliseconds(act: Callable[[str], object], table: str) -> float:
    start = time.process_time()
    act(table)
    return (time.process_time() - start) * 1000


def main() -> None:
    """Print the table."""
    print(lives(measure()))


if __name__ == "__main__":
    main()
