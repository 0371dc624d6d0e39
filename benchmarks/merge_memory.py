"""Measure how much memory one task needs to read a file slice whose log files hold more than it may take.

    python benchmarks/merge_memory.py --rows 5000000 --limit-mib 1024

Child processes load that many rows of 18 columns into an unpartitioned merge-on-read table of one bucket, upsert as
many again into log files, half of them new, and read the table as one task does, all columns of it. The reader's
resident memory is watched from outside through /proc. Exits with code 1 when it passes 1.2 times the limit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from memory import MIB, batches, watched

MOST = 1.2


def write(table: str, rows: int, ts: int) -> None:
    """Do one whole write as a single task."""
    from pyhudi.operations.planning.plan import plan_write
    from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
    from pyhudi.operations.write.commit import commit_write
    from pyhudi.operations.write.task import run_task
    from pyhudi.table.files.names import WriteToken

    settings = TableSettings(
        name="memory",
        table_type="MERGE_ON_READ",
        record_key_fields=("id",),
        ordering_fields=("ts",),
        bucket_count=1,
    )
    request = WriteRequest(
        path=table,
        operation=None,
        overwrite=False,
        schema=next(batches(1, ts=ts)).schema,
        table=settings,
        write=WriteSettings(colocated=True),
    )
    plan = plan_write(request)
    result = commit_write(plan, [run_task(plan, batches(rows, ts=ts), WriteToken(0, 0, 0))])
    print(json.dumps({"rows": result.inserts + result.updates}))


def read(table: str, limit: int) -> None:
    """Read the table in one task."""
    from pyhudi.reader.scan import MergeTerms, RowReader
    from pyhudi.reader.snapshot import open_snapshot

    snapshot = open_snapshot(table)
    [split] = snapshot.plan(snapshot.schema, (), 1 << 40)
    terms = MergeTerms(snapshot.config, limit)
    batches = RowReader(snapshot.storage, snapshot.schema, snapshot.schema, terms=terms).read(split)
    logged = sum(one.size for one in split.parts[0].merged.logs) if split.parts[0].merged else 0
    print(json.dumps({"rows": sum(batch.num_rows for batch in batches), "logged": logged}))


def main() -> None:
    """Load, upsert, read, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--limit-mib", type=int, default=1024)
    parser.add_argument("--folder", type=Path, help="where to make the table, instead of the system's temporary folder")
    parser.add_argument("--child", nargs=2, metavar=("PART", "TABLE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    limit = arguments.limit_mib * MIB
    if arguments.child:
        part, table = arguments.child
        if part == "read":
            read(table, limit)
        else:
            write(table, arguments.rows, int(part))
        return

    bounds = ["--rows", str(arguments.rows), "--limit-mib", str(arguments.limit_mib)]
    with tempfile.TemporaryDirectory(prefix="pyhudi-memory-", dir=arguments.folder) as table:
        for part in ("1", "2", "read"):
            start = time.perf_counter()
            printed, peak = watched([__file__, *bounds, "--child", part, table], table)
            seconds = time.perf_counter() - start
            print(f"{part:<5} {printed}, {seconds:,.1f} s, peak of {peak / MIB:,.0f} MiB", flush=True)
    if printed["rows"] != arguments.rows * 3 // 2 or not printed["logged"]:
        raise SystemExit("some rows are missing, or none were in log files")
    if peak > MOST * limit:
        raise SystemExit(f"the peak passes {MOST} times the limit of {arguments.limit_mib:,} MiB")


if __name__ == "__main__":
    main()
