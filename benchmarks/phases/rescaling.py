"""A table's buckets doubled, beside an upsert that touches every file group and what pyarrow alone needs for the split.

Of the 14 file groups of lineitem become 28. The split by a given mask reads each file and writes its rows to two files,
half of them each, with no key looked at.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from figures.tables import table_of
from lineitem import TERMS

from phases.limits import newest_files, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopwatch import Run

# Rows of the rescale; no format is one of them.
RESCALE = "rescale: "
RESCALED = f"{RESCALE}HudiTable.rescale_buckets"
UPSERTED = f"{RESCALE}HudiTable.upsert that touches all file groups"
SPLIT = f"{RESCALE}pyarrow reads, splits by a given mask and writes"
PHASE = "14 to 28"
TIMES = 3


def rescaling(run: Run) -> list[Any]:
    """Measure each in turns, warm, and take the medians."""
    from pyhudi import HudiTable

    spark = run.session()
    table = HudiTable.create(spark, run.table, spark.read.parquet(str(run.data / "base")), **TERMS)
    for part in ("base", "up1"):
        table.upsert(spark.read.parquet(str(run.data / part)))
    before = TERMS["buckets"]

    def split() -> None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(split_file, newest_files(Path(run.table))))
        os.sync()

    ways: dict[str, Callable[[], Any]] = {
        UPSERTED: lambda: table.upsert(spark.read.parquet(str(run.data / "up2"))),
        SPLIT: split,
        RESCALED: lambda: table.rescale_buckets(2 * before),
    }
    seconds: dict[str, list[float]] = {row: [] for row in ways}
    for _ in range(TIMES):
        for row, way in ways.items():
            run.timed(row, PHASE, way)
            seconds[row].append(run.seconds[row][PHASE])
        # Else there would be nothing to do the next time.
        table.rescale_buckets(before)
        table.clean(retain=1)
    for row, took in seconds.items():
        run.seconds[row][PHASE] = median(took)
    content = run.reads("untimed", table.to_df)
    del run.seconds["untimed"]
    return content


def split_file(path: str) -> None:
    """Write every other row of a file to one file beside it and the rest to another, encoded as it is."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    file, settings = opened(path)
    halves = [f"{path}.{number}.split" for number in range(2)]
    writers = [pq.ParquetWriter(half, file.schema_arrow, **settings) for half in halves]
    try:
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number, use_threads=False)
            mask = pa.array(np.arange(rows.num_rows) % 2 == 0)
            for writer, some in zip(writers, (rows.filter(mask), rows.filter(pa.compute.invert(mask))), strict=True):
                writer.write_table(some)
    finally:
        for writer in writers:
            writer.close()
    for half in halves:
        Path(half).unlink()


def rescales(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of what was measured."""
    return table_of(seconds, (PHASE,), RESCALE)
