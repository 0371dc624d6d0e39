"""Measure how much memory tables without Spark take for more rows than fit into it.

    python benchmarks/arrow_memory.py --rows 6000000 --limit-mib 1024 --threads 1 2 4

For each number of threads child processes write that many rows of 18 columns as a stream into a merge-on-read table of
eight buckets, upsert as many again as a stream, half of them new, and read the table as a stream, all columns of it.
`hoodie.write.task.max.size` and `hoodie.memory.merge.max.size` are the limit. Each child's resident memory is watched
from outside through /proc; that of a child that imports the same and does nothing is no part of it. Exits with code 1
if a write or read takes more than the limit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from memory import MIB, batches, watched

PARTS = ("imports", "load", "upsert", "scan")


def work(part: str, path: str, rows: int, limit: int, threads: int) -> None:
    """Do one part in this process, and print what it did."""
    import pyarrow as pa
    from pyhudi.arrow import Table, read, write

    bounds = {"hoodie.write.task.max.size": limit, "hoodie.memory.merge.max.size": limit}
    count = 0
    if part == "imports":
        # What a small write and read import and start counts for nothing.
        few = pa.Table.from_batches(batches(10, ts=1))
        write(f"{path}.few", few, record_key="id", table_type="MERGE_ON_READ", threads=threads)
        count = read(f"{path}.few", where="ts = 1", threads=threads).num_rows
    elif part == "scan":
        count = sum(batch.num_rows for batch in Table(path, options=bounds, threads=threads).scan())
    else:
        given = batches(rows, ts=1 if part == "load" else 2)
        schema = next(batches(1, ts=1)).schema
        commit_result = Table(path, options=bounds, threads=threads).write(
            pa.RecordBatchReader.from_batches(schema, given),
            record_key="id",
            order_by="ts",
            buckets=8,
            table_type="MERGE_ON_READ",
        )
        count = commit_result.inserts + commit_result.updates
    print(json.dumps({"rows": count}))


def main() -> None:
    """Write, upsert and read with each number of threads, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--limit-mib", type=int, default=1024)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--folder", type=Path, help="where to make the tables, instead of the temporary folder")
    parser.add_argument("--child", nargs=2, metavar=("PART", "TABLE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    limit = arguments.limit_mib * MIB
    if arguments.child:
        part, table = arguments.child
        work(part, table, arguments.rows, limit, arguments.threads[0])
        return

    passed = []
    for threads in arguments.threads:
        bounds = ["--rows", str(arguments.rows), "--limit-mib", str(arguments.limit_mib), "--threads", str(threads)]
        with tempfile.TemporaryDirectory(prefix="pyhudi-memory-", dir=arguments.folder) as folder:
            peaks = {}
            for part in PARTS:
                start = time.perf_counter()
                printed, peaks[part] = watched([__file__, *bounds, "--child", part, f"{folder}/t"], folder)
                took = (peaks[part] - peaks["imports"]) / MIB
                seconds = time.perf_counter() - start
                print(f"{threads} threads, {part:<7} {printed}, {seconds:,.1f} s, {took:,.0f} MiB", flush=True)
                passed += [f"{part} with {threads} threads"] if took > arguments.limit_mib else []
        if printed["rows"] != arguments.rows * 3 // 2:
            raise SystemExit(f"the table shows {printed['rows']:,} rows")
    if passed:
        raise SystemExit(f"more than {arguments.limit_mib:,} MiB: {', '.join(passed)}")


if __name__ == "__main__":
    main()
