"""Measure how much memory one task needs to upsert into one large file group.

    make bench-memory ROWS=20000000
    python benchmarks/memory.py --type MERGE_ON_READ --limit-mib 1536
    python benchmarks/memory.py --rows 2000000 --index SIMPLE --task-mib 128 --limit-mib 1024

A child process loads that many rows of 18 columns into an unpartitioned table of one bucket; another one upserts as
many again, half of them new. The rows are made batch by batch as a task takes them. Under an index that looks keys up
the commit does most of it, in the same process. Each child's resident memory is watched from outside through /proc.
Exits with code 1 when the upsert's peak passes the limit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MIB = 1 << 20
BATCH = 10_000  # what Spark hands over at a time
PRIME = 2_654_435_761


def batches(rows: int, *, ts: int) -> Iterator[pa.RecordBatch]:
    """Yield rows whose keys come in a scattered order: 0, 2, 4, … in the load (ts 1), 0, 1, 2, … in the upsert."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    chance = np.random.default_rng(ts)
    words = pa.array([f"instruction {number:03}" for number in range(500)])
    for start in range(0, rows, BATCH):
        count = min(BATCH, rows - start)
        # A prime that does not divide the number of rows permutes their numbers.
        scattered = np.arange(start, start + count, dtype=np.int64) * PRIME % rows
        columns = {
            "id": pa.array(scattered * 2 if ts == 1 else scattered),
            "ts": pa.array(np.full(count, ts, dtype=np.int64)),
            "comment": pc.binary_join_element_wise(
                pa.array(chance.integers(0, 1 << 60, count)).cast(pa.string()), "carefully", " "
            ),
        }
        columns |= {f"count_{n}": pa.array(chance.integers(0, 1 << 40, count)) for n in range(4)}
        columns |= {f"amount_{n}": pa.array(chance.random(count)) for n in range(4)}
        columns |= {
            f"day_{n}": pa.array(chance.integers(8_000, 11_000, count, dtype=np.int32)).cast(pa.date32())
            for n in range(3)
        }
        columns |= {f"word_{n}": words.take(pa.array(chance.integers(0, len(words), count))) for n in range(4)}
        yield pa.RecordBatch.from_pydict(columns)


def count_flushes() -> Callable[[], int]:
    """Return what tells how often this process gave rows up to a log file or a spill, for want of memory."""
    from pyhudi.operations.write.task import OwnGroups
    from pyhudi.table.arrow.spill import SpillWriter

    count = 0
    to_log, to_spill = OwnGroups.flush, SpillWriter.append

    def flush(self: OwnGroups, route: Any, batches: Any) -> bool:
        nonlocal count
        taken = to_log(self, route, batches)
        count += taken
        return taken

    def append(self: SpillWriter, *some: Any, **more: Any) -> None:
        nonlocal count
        count += 1
        to_spill(self, *some, **more)

    OwnGroups.flush, SpillWriter.append = flush, append  # type: ignore[method-assign]
    return lambda: count


def write(table: str, rows: int, ts: int, table_type: str, index: str, task_mib: int) -> None:
    """Do one whole write as a single task, in this process, and print what it did."""
    from pyhudi.operations.planning.plan import plan_write
    from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
    from pyhudi.operations.write.commit import commit_write
    from pyhudi.operations.write.task import run_task
    from pyhudi.table.files.names import WriteToken
    from pyhudi.table.files.output import Output

    request = WriteRequest(
        path=table,
        operation=None,
        overwrite=False,
        schema=next(batches(1, ts=ts)).schema,
        table=TableSettings(
            name="memory",
            table_type=table_type,
            record_key_fields=("id",),
            ordering_fields=("ts",),
            index_type=index,
            bucket_count=1 if index == "BUCKET" else None,
        ),
        write=WriteSettings(colocated=index == "BUCKET", output=Output(memory=task_mib * MIB)),
    )
    flushes = count_flushes()
    start = time.perf_counter()
    plan = plan_write(request)
    result = commit_write(plan, [run_task(plan, batches(rows, ts=ts), WriteToken(0, 0, 0))])
    seconds = round(time.perf_counter() - start, 1)
    size = result.bytes + result.log_bytes
    counts = {"inserts": result.inserts, "updates": result.updates, "bytes": size, "flushes": flushes()}
    print(json.dumps({"seconds": seconds, **counts}))


def watched(command: Sequence[str], folder: str) -> tuple[dict[str, float], int]:
    """Run a child process; return what it printed last, and the peak of its resident memory in bytes.

    Args:
        command: Begins with a Python file.
        folder: Where it works.
    """
    child = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, cwd=folder)
    peak = 0
    while child.poll() is None:
        status = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
        peak = max([peak, *(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))])
        time.sleep(0.02)
    printed = child.stdout.read() if child.stdout else b""
    if child.returncode:
        raise SystemExit(child.returncode)
    printed_last: dict[str, float] = json.loads(printed.splitlines()[-1])
    return printed_last, peak


def main() -> None:
    """Load, upsert, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--limit-mib", type=int, default=1536)
    parser.add_argument("--folder", type=Path, help="where to make the table, instead of the system's temporary folder")
    parser.add_argument("--type", default="COPY_ON_WRITE", help="of the table")
    parser.add_argument("--index", default="BUCKET", help="of the table")
    parser.add_argument("--task-mib", type=int, default=1024, help="what a task may hold of its rows")
    parser.add_argument("--child", nargs=2, metavar=("TABLE", "TS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        table, ts = arguments.child
        write(table, arguments.rows, int(ts), arguments.type, arguments.index, arguments.task_mib)
        return

    with tempfile.TemporaryDirectory(prefix="pyhudi-memory-", dir=arguments.folder) as table:
        for name, ts in (("load", 1), ("upsert", 2)):
            said = {"rows": arguments.rows, "type": arguments.type, "index": arguments.index}
            options = [part for name, value in said.items() for part in (f"--{name}", str(value))]
            command = [__file__, *options, "--task-mib", str(arguments.task_mib), "--child", table, str(ts)]
            printed, peak = watched(command, table)
            print(
                f"{name:<6} {printed['inserts']:>11,} inserted {printed['updates']:>11,} updated "
                f"in {printed['seconds']:>6} s, "
                f"file of {printed['bytes'] / MIB:,.0f} MiB, peak of {peak / MIB:,.0f} MiB, "
                f"{printed['flushes']} flushes",
                flush=True,
            )
            if printed["inserts"] + printed["updates"] != arguments.rows:
                raise SystemExit(f"{arguments.rows:,} rows went in")
    if peak > arguments.limit_mib * MIB:
        raise SystemExit(f"the upsert's peak passes the limit of {arguments.limit_mib:,} MiB")


if __name__ == "__main__":
    main()
