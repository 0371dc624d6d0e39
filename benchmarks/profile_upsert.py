"""Say where the processor time of a load and of two upserts goes, stage by stage, without Spark.

    python benchmarks/profile_upsert.py --scale 1

The rows are those of the benchmark, given to the engine's tasks directly. Seconds are those that the threads of this
process spent computing, so that a busy machine changes them little; each stage counts without the stages inside it.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from lineitem import KEYS, ORDERING, PARTITION, PARTS, prepare
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import TableSettings, WriteRequest
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.task import run_task
from pyhudi.table.arrow import spill
from pyhudi.table.files import base_file
from pyhudi.table.files.names import WriteToken
from pyhudi.table.keys import generator as keys
from pyhudi.table.merging import key_probe
from pyhudi.table.merging import merger as merge
from pyhudi.writer import group_writer, rows

ROOT = Path(__file__).parents[1]
TASKS = 2


class Stages:
    """Thread time by stage; a stage stops its clock while one inside it runs."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._local = threading.local()
        self._lock = threading.Lock()

    def _switch(self, change: Callable[[list[str]], Any]) -> None:
        stack: list[str] = self._local.__dict__.setdefault("stack", [])
        now = time.thread_time()
        if stack:
            with self._lock:
                self.seconds[stack[-1]] += now - self._local.since
        change(stack)
        self._local.since = now

    def call(self, stage: str, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do the work as part of a stage."""
        self._switch(lambda stack: stack.append(stage))
        try:
            return work(*args, **kwargs)
        finally:
            self._switch(lambda stack: stack.pop())

    def wrap(self, owner: Any, name: str, stage: str, *, lazy: bool = False) -> None:
        """Count a function's time, or that of the steps of a generator, as a stage."""
        real = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            return self.call(stage, real, *args, **kwargs)

        def timed_steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
            steps = real(*args, **kwargs)
            while (step := self.call(stage, next, steps, None)) is not None:
                yield step

        setattr(owner, name, timed_steps if lazy else timed)


def watch(stages: Stages) -> None:
    """Put the stages around the engine's functions."""
    stages.wrap(keys.KeyGenerator, "record_keys", "task: record keys")
    stages.wrap(keys.KeyGenerator, "partition_paths", "task: partition paths")
    stages.wrap(rows.RowReader, "routed", "task: buckets, and cutting by file group", lazy=True)
    stages.wrap(spill.SpillWriter, "append", "task: writing spills")
    stages.wrap(spill.SpillReader, "batches", "commit: reading spills", lazy=True)
    stages.wrap(merge, "fold", "commit: folding rows of one key")
    stages.wrap(key_probe.KeyProbe, "find", "commit: looking base keys up")
    stages.wrap(merge.Merger, "survivors", "commit: leaving replaced rows out", lazy=True)
    stages.wrap(base_file.BaseFileReader, "batches", "commit: decoding base files", lazy=True)
    stages.wrap(base_file.BaseFileWriter, "_flush", "commit: encoding base files")
    stages.wrap(group_writer.GroupWriter, "write", "commit: everything else of a file group")


def write(part: Path, table: Path, settings: TableSettings) -> float:
    """Carry out one write in this process and return its wall seconds; rows are read before the clock starts."""
    incoming = ds.dataset(part).to_table()
    schema = pa.schema([field.with_nullable(True) for field in incoming.schema])
    batches = [_as_sent(batch) for batch in incoming.cast(schema).combine_chunks().to_batches(max_chunksize=10_000)]
    began = time.perf_counter()
    plan = plan_write(WriteRequest(path=str(table), operation=None, overwrite=False, schema=schema, table=settings))
    results = [run_task(plan, iter(batches[task::TASKS]), WriteToken(task, 1, task)) for task in range(TASKS)]
    commit_write(plan, results)
    return time.perf_counter() - began


def _as_sent(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with memory of their own, as Spark sends them: slices of one table would look like all of it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def main() -> None:
    """Profile the three writes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor")
    parser.add_argument("--work", type=Path, default=ROOT / ".bench", help="folder of rows and tables")
    arguments = parser.parse_args()

    data = arguments.work / f"lineitem-{arguments.scale:g}"
    prepare(data, arguments.scale)
    table = arguments.work / "profiled"
    shutil.rmtree(table, ignore_errors=True)
    settings = TableSettings(
        record_key_fields=KEYS, partition_fields=(PARTITION,), ordering_fields=(ORDERING,), bucket_count=2
    )
    stages = Stages()
    watch(stages)
    spent: dict[str, dict[str, float]] = {}
    walls = {}
    for part in PARTS:
        stages.seconds.clear()
        walls[part] = write(data / part, table, settings)
        spent[part] = dict(stages.seconds)
    print(f"TPC-H lineitem at scale {arguments.scale:g}; seconds of processor time, and of the clock at the end\n")
    print(report(spent, walls))


def report(spent: dict[str, dict[str, float]], walls: dict[str, float]) -> str:
    """Return a table of the stages, those that the last write spent most in first."""
    stages = sorted(
        {stage for by_stage in spent.values() for stage in by_stage},
        key=lambda stage: -spent[PARTS[-1]].get(stage, 0.0),
    )
    lines = [f"| stage | {' | '.join(PARTS)} |", f"|---|{'---:|' * len(PARTS)}"]
    rows = [(stage, {part: spent[part].get(stage, 0.0) for part in PARTS}) for stage in stages]
    rows += [("all stages", {part: sum(spent[part].values()) for part in PARTS}), ("clock", walls)]
    lines += [f"| {name} | {' | '.join(f'{row[part]:.2f}' for part in PARTS)} |" for name, row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
