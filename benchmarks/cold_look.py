"""What the commits of a timeline cost a process that meets it for the first time: `python benchmarks/cold_look.py`.

Milliseconds of processor time to find the file slices of a table, without Spark: the first look reads every commit's
body, the second one none.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import pyarrow as pa
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

COMMITS = (50, 500)
PARTITIONS = 12
BUCKETS = 2
SCHEMA = avro_schema(pa.schema([(f"column_{number}", pa.string()) for number in range(18)]), "t")


def main() -> None:
    """Print a table."""
    print("| commits | first look, ms | second look, ms |\n|---:|---:|---:|")
    for commits in COMMITS:
        with tempfile.TemporaryDirectory() as folder:
            table = f"{folder}/t"
            make_table(open_storage(table), commits)
            first, second = (milliseconds(lambda table=table: open_snapshot(table).slices()) for _ in range(2))
        print(f"| {commits} | {first:.0f} | {second:.0f} |")


def make_table(storage: Storage, commits: int) -> None:
    """Make a table of which each commit wrote every file group; of its base files only the newest are there, empty."""
    create_config(
        storage, TableConfig.new(TableSettings(name="t", record_key_fields=("column_0",), bucket_count=BUCKETS))
    )
    groups = [(f"p{number}", bucket) for number in range(PARTITIONS) for bucket in range(BUCKETS)]
    for number in range(commits):
        instant, completed = f"2026010100{number:04d}000", f"2026010100{number:04d}500"
        stats: dict[str, list[WriteStat]] = {}
        for task, (partition, bucket) in enumerate(groups):
            file_id = new_bucket_file_id("0", partition, bucket)
            path = f"{partition}/{BaseFileName(file_id, WriteToken(task, 1, number), instant).format()}"
            stat = WriteStat(file_id=file_id, path=path, partition_path=partition, prev_commit=instant, num_writes=1)
            stats.setdefault(partition, []).append(stat)
            if number == commits - 1:
                write_partition_metafile(storage, partition, instant)
                storage.write(path, b"")
        extra = {"schema": SCHEMA}
        body = CommitMetadata(partition_to_write_stats=stats, extra_metadata=extra, operation_type="UPSERT")
        storage.write(f".hoodie/timeline/{instant}_{completed}.commit", encode(body))


def milliseconds(act: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    main()
