"""What a write costs a table with many active instants, beside few: `python benchmarks/many_instants.py`.

Milliseconds of processor time of an upsert of one row, with the services that follow it. Without Spark: a process that
writes for the first time, its imports included, and its second write. With Spark: a write in a session that has made
some. A savepoint of the first write keeps every instant active, as an hour-long write beside a stream does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyhudi.operations.planning.request import TableSettings, WriteRequest
from pyhudi.operations.write.run import write
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.names import BaseFileName, LogFileName, WriteToken
from pyhudi.table.schema.columns import avro_schema
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.codec import WRITE_ID
from pyhudi.timeline.metadata.models import CommitMetadata, SavepointMetadata, WriteStat

INSTANTS = (30, 5_000)
TYPES = {"COPY_ON_WRITE": "copy-on-write", "MERGE_ON_READ": "merge-on-read"}
# What pyhudi promises of the two.
MOST = 2.0
ROWS = ("a process that writes", "its second write", "a write through Spark")
TIMELINE = ".hoodie/timeline"

_SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("value", pa.int64())])
# Of Spark's session: writes before those that are measured, and these.
_WARM, _WRITES = 20, 15
_PARTITIONS = 3
_BUCKETS = 4
_RUNS = 5
_FIRST = "20260101000000000"
# Every tenth instant of a merge-on-read table is a compaction.
_COMPACTED = 10


def main() -> None:
    """Print a table; with a path, write two rows, and print the processor time until the first, and of the second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?")
    parser.add_argument("--spark", action="store_true", help="write through a session of Spark")
    asked = parser.parse_args()
    path = asked.path
    if asked.spark:
        print(*(write_through_spark(path)))
        return
    if path:
        upsert(path, "k0")
        first = time.process_time()
        upsert(path, "k1")
        print(first, time.process_time() - first)
        return
    few, many = (f"{count:,} instants" for count in INSTANTS)
    print(f"| processor time, ms | {few} | {many} | ratio | at most |\n|---|---:|---:|---:|---:|")
    for kind, named in TYPES.items():
        seconds = [measure(kind, count) for count in INSTANTS]
        for row, (low, high) in zip(ROWS, zip(*seconds, strict=True), strict=True):
            mark = "" if high / low <= MOST else ", missed"
            print(f"| {named}, {row} | {low * 1000:.0f} | {high * 1000:.0f} | {high / low:.2f}{mark} | {MOST:.2f} |")


def measure(kind: str, instants: int) -> tuple[float, float, float]:
    """Return the seconds of a process with its first write, of its second write, and of one of Spark's; medians."""
    with tempfile.TemporaryDirectory() as folder:
        make_table(f"{folder}/t", kind, instants)
        # The first process meets the table without a note of what its commits say, and leaves one.
        runs = [_run(f"{folder}/t") for _ in range(_RUNS)]
        by_spark = _run(f"{folder}/t", "--spark")
    return median(first for first, _ in runs), median(second for _, second in runs), median(by_spark)


def _run(path: str, *more: str) -> list[float]:
    command = [sys.executable, __file__, path, *more]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    return [*map(float, process.stdout.split()[-_WRITES if more else -2 :])]


def write_through_spark(path: str) -> list[float]:
    """Return the processor seconds of upserts of one row, of Spark and all of its processes."""
    from processes import processor_seconds
    from pyhudi import HudiTable
    from stopwatch import Run

    spark = Run(Path(path), path, 1.0, "2g").session()
    table = HudiTable(spark, path)

    def worked(number: int) -> float:
        before = processor_seconds()
        table.upsert(spark.range(1).selectExpr("'k0' as id", "'p0' as p", f"{number}L as value"))
        return processor_seconds() - before

    return [worked(number) for number in range(_WARM + _WRITES)][_WARM:]


def make_table(path: str, kind: str, instants: int) -> None:
    """Make a table whose instants each wrote a file group; of their files the newest are there.

    Two writes make the files that are there. The others, made by hand, are older, and cleans took their files.
    """
    keys = [f"k{number}" for number in range(40)]
    upsert(path, *keys, kind=kind)
    storage = open_storage(path)
    view = SeenTable.now(open_table(storage)).view
    groups = [(one, file_id) for one in view.partitions() for file_id in sorted(view.slices(one))]
    schema = avro_schema(_SCHEMA, "t")
    base = _FIRST
    for number in range(instants - 1):
        time_of = f"20260101{number:06d}000"
        compacts = kind == "MERGE_ON_READ" and number % _COMPACTED == 0
        written = groups if compacts else groups[number % len(groups) :][:1]
        base = time_of if compacts else base
        stats: dict[str, list[WriteStat]] = {}
        for partition, file_id in written:
            token = WriteToken(0, 1, number)
            name = (
                BaseFileName(file_id, token, time_of).format()
                if compacts or kind == "COPY_ON_WRITE"
                else LogFileName(file_id, time_of, 1, token).format()
            )
            stat = WriteStat(
                file_id=file_id, path=f"{partition}/{name}", partition_path=partition, prev_commit=base, num_writes=1
            )
            stats.setdefault(partition, []).append(stat)
        body = CommitMetadata(
            partition_to_write_stats=stats,
            extra_metadata={"schema": schema, WRITE_ID: f"batch {number}"},
            operation_type="UPSERT",
            compacted=compacts,
        )
        action = "commit" if compacts or kind == "COPY_ON_WRITE" else "deltacommit"
        _write_instant(storage, time_of, action, encode(body))
    saved = SavepointMetadata(savepointed_by="", savepointed_at=0, comments="", partition_metadata={})
    storage.write(f"{TIMELINE}/{_FIRST}_{_FIRST[:-3]}900.savepoint", encode(saved), durable=False)


def _write_instant(storage: Storage, time_of: str, action: str, body: bytes) -> None:
    asked = "compaction" if action == "commit" and body.find(b"deltacommit") > 0 else action
    for name in (f"{asked}.requested", "inflight" if action == "commit" else f"{action}.inflight"):
        storage.write(f"{TIMELINE}/{time_of}.{name}", b"", durable=False)
    storage.write(f"{TIMELINE}/{time_of}_{time_of[:-3]}500.{action}", body, durable=False)


def upsert(path: str, *keys: str, kind: str | None = None) -> None:
    """Upsert a row of each key; ``kind`` is the type of a table that is made."""
    table = TableSettings()
    if kind:
        table = TableSettings(
            name="t", record_key_fields=("id",), partition_fields=("p",), bucket_count=_BUCKETS, table_type=kind
        )
    rows = pa.table([keys, [f"p{int(key[1:]) % _PARTITIONS}" for key in keys], [1] * len(keys)], schema=_SCHEMA)
    request = WriteRequest(
        path=path, operation="upsert", overwrite=False, schema=_SCHEMA, table=table, write_id=uuid.uuid4().hex
    )
    write(request, [rows.to_batches()])


if __name__ == "__main__":
    main()
