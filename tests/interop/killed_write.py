"""Run by a test in a process of its own: write a table's rows with pyhudi's engine-free API, but never commit.

    python killed_write.py TABLE ROWS.parquet

The table exists. When the data files are there the instant's requested time is printed; then it waits to be killed.
"""

from __future__ import annotations

import sys
import time

import pyarrow.parquet as pq
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import WriteRequest, WriteSettings
from pyhudi.operations.write.task import run_task
from pyhudi.table.files.names import WriteToken

if __name__ == "__main__":
    table, rows = sys.argv[1:]
    batches = pq.read_table(rows)
    finish_in_task = WriteSettings(colocated=True)
    plan = plan_write(WriteRequest(table, None, False, batches.schema, write=finish_in_task, write_id="killed"))
    done = run_task(plan, iter(batches.to_batches()), WriteToken(0, 0, 0))
    sys.stdout.write(f"{done.instant_time}\n")
    sys.stdout.flush()
    time.sleep(600)
