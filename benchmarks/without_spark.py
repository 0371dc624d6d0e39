"""Tables without Spark, beside the libraries that need none either: delta-rs, pyarrow's datasets, and hudi-rs.

    python benchmarks/without_spark.py DATA [--scale 1]

DATA is the folder of the benchmark's lineitem. Each library works in a process of its own, one after the other, and all
must find the same rows. Small writes and reads are those of a process that is warm, the median of several; the
processor's seconds are of all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures.tables import Bound, bounds_of, table_of
from lineitem import KEYS, ORDERING, PARTITION, TERMS, prepare
from processes import environment

if TYPE_CHECKING:
    import pyarrow as pa

ROOT = Path(__file__).parents[1]
WITHOUT, SMALL = "without Spark: ", "without Spark, small: "
PHASES = ("load", "up1", "up2", "scan3")
ARROW, LOGS, DELTA = "pyhudi.arrow", "pyhudi.arrow, merge-on-read", "delta-rs"
DATASET, HUDI_RS = "pyarrow.dataset, the same files", "hudi-rs, the same table"
SMALLS = ("ten rows", "ten rows, not durable", "key", "flushes", "import")
COLUMNS = ["l_orderkey", "l_extendedprice", "l_shipdate"]
SAME_KEY = " and ".join(f"t.{column} = s.{column}" for column in (*KEYS, PARTITION))
NEWER = f"s.{ORDERING} >= t.{ORDERING}"
# Reads whose median counts; small calls that warm a process, and those whose median counts.
READS, WARM, TIMES = 3, 5, 15
GROUPS, ROWS, TEN, FLUSHES = 8, 4_000, 10, 20
IMPORTS = {ARROW: "import pyhudi.arrow.table", DELTA: "import deltalake", "pyarrow": ""}


class Watch:
    """Notes what work takes, in seconds of the clock and of the processor."""

    def __init__(self, row: str) -> None:
        self.seconds: dict[str, dict[str, float]] = {}
        self._row = row

    def timed(self, phase: str, work: Callable[[], Any], times: int = 1, warm: int = 0) -> Any:
        """Do the work and note the median of its times, on a disk that has nothing left to write."""
        took: list[tuple[float, float]] = []
        result = None
        for _ in range(warm + times):
            if not warm:
                os.sync()
            start, worked = time.perf_counter(), time.process_time()
            result = work()
            took.append((time.perf_counter() - start, time.process_time() - worked))
        for row, column in ((self._row, 0), (f"{self._row}, processor", 1)):
            middle = statistics.median(each[column] for each in took[warm:])
            self.seconds.setdefault(row, {})[phase] = round(middle, 4)
        return result


def found_in(rows: pa.Table) -> list[Any]:
    """Return what must agree between all libraries."""
    import pyarrow.compute as pc

    return [rows.num_rows, str(pc.sum(rows["l_extendedprice"])), str(pc.max(rows["l_shipdate"]))]


def by_pyhudi(watch: Watch, data: Path, table: str, *, logs: bool = False) -> list[Any]:
    """Load, upsert twice and read three columns."""
    import pyarrow.dataset as ds
    from pyhudi.arrow import Table

    terms = {**TERMS, "table_type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE"}
    watch.timed("load", lambda: Table(table).write(ds.dataset(data / "base"), **terms))
    for part in ("up1", "up2"):
        watch.timed(part, lambda part=part: Table(table).upsert(ds.dataset(data / part)))
    return found_in(watch.timed("scan3", lambda: Table(table).read(COLUMNS), READS))


def by_logs(watch: Watch, data: Path, table: str) -> list[Any]:
    """The same with a merge-on-read table, whose read merges the log files of both upserts."""
    return by_pyhudi(watch, data, table, logs=True)


def by_delta(watch: Watch, data: Path, table: str) -> list[Any]:
    """The same by delta-rs, which looks for no key when it loads."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable, write_deltalake

    def upsert(part: str) -> None:
        rows = ds.dataset(data / part).to_table()
        merger = DeltaTable(table).merge(rows, SAME_KEY, source_alias="s", target_alias="t")
        merger.when_matched_update_all(NEWER).when_not_matched_insert_all().execute()

    rows = data / "base"
    watch.timed("load", lambda: write_deltalake(table, ds.dataset(rows).to_table(), partition_by=[PARTITION]))
    for part in ("up1", "up2"):
        watch.timed(part, lambda part=part: upsert(part))
    return found_in(watch.timed("scan3", lambda: DeltaTable(table).to_pyarrow_dataset().to_table(COLUMNS), READS))


def by_dataset(watch: Watch, data: Path, table: str) -> list[Any]:
    """Read the base files that pyhudi.arrow wrote."""
    import pyarrow.dataset as ds
    from pyhudi.arrow import Table

    files = [f"{table}/{path}" for path in Table(table).files()["base_file"].to_pylist()]
    return found_in(watch.timed("scan3", lambda: ds.dataset(files, format="parquet").to_table(COLUMNS), READS))


def by_hudi_rs(watch: Watch, data: Path, table: str) -> list[Any]:
    """Read the table that pyhudi.arrow wrote."""
    import pyarrow as pa
    from hudi import HudiReadOptions, HudiTableBuilder

    def read() -> pa.Table:
        opened = HudiTableBuilder.from_base_uri(table).build()
        return pa.Table.from_batches(opened.read(HudiReadOptions(projection=COLUMNS)))

    return found_in(watch.timed("scan3", read, READS))


# By row: what does the work, and whose table it reads; the last word of a table's folder.
LARGE = {
    ARROW: (by_pyhudi, "cow"),
    LOGS: (by_logs, "mor"),
    DELTA: (by_delta, "delta"),
    DATASET: (by_dataset, "cow"),
    HUDI_RS: (by_hudi_rs, "cow"),
}


def rows_of(first: int, count: int) -> pa.Table:
    """Return rows of three columns, with keys from a number on."""
    import numpy as np
    import pyarrow as pa

    ids = pa.array(np.arange(first, first + count))
    return pa.table({"id": ids, "ts": ids, "text": ids.cast(pa.string())})


def few_of(rows: pa.Table) -> pa.Table:
    """Return ten rows from all over a table."""
    return rows.take([number * (ROWS // TEN + 1) % ROWS for number in range(TEN)])


def grouped(rows: pa.Table) -> pa.Table:
    """Return rows with a column of as many values as the table of pyhudi has file groups."""
    import pyarrow as pa

    return rows.append_column("part", pa.array([number % GROUPS for number in rows["id"].to_pylist()], pa.int32()))


def small_by_pyhudi(watch: Watch, folder: str) -> None:
    """Upsert ten rows that are in each of eight small file groups, and read the row of one key."""
    import pyarrow.compute as pc
    from pyhudi.arrow import Table, write

    path = f"{folder}/small"
    write(path, rows_of(0, ROWS), record_key="id", order_by="ts", buckets=GROUPS)
    few = few_of(rows_of(0, ROWS))
    table, careless = Table(path), Table(path, options={"hoodie.pyhudi.durable": "false"})
    watch.timed("ten rows", lambda: table.upsert(few), TIMES, WARM)
    watch.timed("ten rows, not durable", lambda: careless.upsert(few), TIMES, WARM)
    rows = watch.timed("key", lambda: table.read(where="id = 123"), TIMES, WARM)
    if rows.num_rows != 1 or pc.sum(rows["id"]).as_py() != 123:
        raise SystemExit(f"the key was found {rows.num_rows} times")


def small_by_delta(watch: Watch, folder: str) -> None:
    """The same merge by delta-rs, which does not wait for the disk."""
    from deltalake import DeltaTable, write_deltalake

    path = f"{folder}/small-delta"
    write_deltalake(path, grouped(rows_of(0, ROWS)), partition_by=["part"])
    few = grouped(few_of(rows_of(0, ROWS)))

    def merge() -> None:
        merger = DeltaTable(path).merge(few, "t.id = s.id and t.part = s.part", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    watch.timed("ten rows, not durable", merge, TIMES, WARM)


def flushes(watch: Watch, folder: str) -> None:
    """Twenty flushes of the disk, each of a small new file."""

    def flush() -> None:
        for number in range(FLUSHES):
            with Path(folder, f"flushed-{number}").open("wb") as file:
                file.write(b"few")
                file.flush()
                os.fsync(file.fileno())

    watch.timed("flushes", flush, TIMES, WARM)


SMALL_WORK = {ARROW: small_by_pyhudi, DELTA: small_by_delta, "the disk": flushes}


def imports() -> dict[str, dict[str, float]]:
    """Return how long a process takes to import each library beyond pyarrow."""
    code = "import time, pyarrow; start = time.process_time(); {}; print(time.process_time() - start)"
    seconds = {}
    for name, statement in IMPORTS.items():
        command = [sys.executable, "-c", code.format(statement or "pass")]
        runs = [float(_output(command)) for _ in range(TIMES)]
        seconds[f"{SMALL}{name}, processor"] = {"import": round(statistics.median(runs), 4)}
    return seconds


def _output(command: list[str]) -> str:
    process = subprocess.run(command, stdout=subprocess.PIPE, env=environment(".venv"), check=True, text=True)
    return process.stdout.splitlines()[-1]


def measure(data: Path, scale: float) -> dict[str, dict[str, float]]:
    """Return the seconds by row and phase, each library in a process of its own."""
    wanted = prepare(data, scale)["final"][:3]
    seconds: dict[str, dict[str, float]] = {}
    # Where benchmarks work, as other tables do: not in the memory that a temporary folder may be.
    folder = tempfile.mkdtemp(prefix="without-spark-", dir=data.parent)
    try:
        for kind, row in [*(("large", row) for row in LARGE), *(("small", row) for row in SMALL_WORK)]:
            command = [sys.executable, __file__, str(data), "--one", kind, row, "--folder", folder]
            try:
                printed = json.loads(_output(command))
            except subprocess.CalledProcessError:
                # The work of the others is not lost for one of them.
                print(f"{row} failed without Spark", flush=True)
                continue
            if printed["found"] not in (None, wanted):
                print(f"{row} found {printed['found']}, expected {wanted}", flush=True)
                continue
            seconds |= printed["seconds"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for row, of_row in imports().items():
        seconds[row] = {**seconds.get(row, {}), **of_row}
    return seconds


def one(kind: str, row: str, data: Path, folder: str) -> dict[str, Any]:
    """Return what one library took, and found."""
    if kind == "small":
        watch = Watch(f"{SMALL}{row}")
        SMALL_WORK[row](watch, folder)
        return {"seconds": watch.seconds, "found": None}
    watch = Watch(f"{WITHOUT}{row}")
    work, table = LARGE[row]
    content = work(watch, data, f"{folder}/{table}")
    return {"seconds": watch.seconds, "found": content}


def without_spark(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return tables of the seconds, and what is promised of them."""
    return "\n".join([whole_tables(seconds), small_writes(seconds), bounds_of(promises(seconds))])


def whole_tables(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds of all of lineitem."""
    return table_of(seconds, PHASES, WITHOUT)


def small_writes(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds of ten rows, and of one key."""
    return table_of(seconds, SMALLS, SMALL, 3)


def promises(seconds: Mapping[str, Mapping[str, float]]) -> list[Bound]:
    """Return what is promised, as far as it was measured."""
    large = {row.removeprefix(WITHOUT): of_row for row, of_row in seconds.items() if row.startswith(WITHOUT)}
    small = {row.removeprefix(SMALL): of_row for row, of_row in seconds.items() if row.startswith(SMALL)}
    bounds: list[Bound] = []
    if {ARROW, LOGS, DELTA, DATASET} <= large.keys():
        ours, logs, delta = large[ARROW], large[LOGS], large[DELTA]
        merges = delta["up1"] + delta["up2"]
        bounds += [
            Bound("load, against delta-rs's write", ours["load"] / delta["load"], 1.5),
            Bound("both upserts, against delta-rs's merges", (ours["up1"] + ours["up2"]) / merges, 1.0),
            Bound("both upserts, merge-on-read, against the same", (logs["up1"] + logs["up2"]) / merges, 0.28),
            Bound("three columns, against pyarrow.dataset", ours["scan3"] / large[DATASET]["scan3"], 1.15),
            Bound("three columns of a merge-on-read table after both upserts, seconds", logs["scan3"], 2.5),
        ]
    if {ARROW, DELTA, "the disk"} <= small.keys():
        ours, theirs = small[ARROW], small[DELTA]["ten rows, not durable"]
        durable = theirs + small["the disk"]["flushes"]
        imported = small[f"{ARROW}, processor"]["import"]
        bounds += [
            Bound("ten rows, not durable, against delta-rs's merge", ours["ten rows, not durable"] / theirs, 1.0),
            Bound("ten rows, against that and 20 flushes", ours["ten rows"] / durable, 1.0),
            Bound("the row of a key, seconds", ours["key"], 0.06, digits=3),
            Bound("import beyond pyarrow, the processor's seconds", imported, 0.25),
        ]
    return bounds


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(*arguments.one, arguments.data, arguments.folder)))
    else:
        print(without_spark(measure(arguments.data, arguments.scale)))


if __name__ == "__main__":
    main()
