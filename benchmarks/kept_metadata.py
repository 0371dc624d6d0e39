"""What a metadata table costs writes: `python benchmarks/kept_metadata.py [--cases upsert rows ...]`.

Each case works in a process of its own. Writes with and without a metadata table, which is simulated as Apache Hudi 1.2
would write it, take turns on copies of one table. The default sizes are those of pyhudi's promises; smaller sizes only
show whether the cases work.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from figures.tables import Bound, bounds_of, table_of
from lineitem import KEYS, ORDERING, PARTITION, prepare
from processes import figures_of_case, peak_mib

if TYPE_CHECKING:
    import pyarrow as pa

ROOT = Path(__file__).parents[1]
KEPT = "kept metadata table: "
PHASES = ("without", "with", "seconds", "MiB")
UPSERT, TEN, TEN_ON_S3, WIDE = (
    "upsert of 11 %, s",
    "ten rows, ms of a core",
    "ten rows on S3, requests",
    "ten rows, wide",
)
FIRST, LAST, LOAD = "the first 500 batches of a row, s", "the last 500", "first load"
# A write in turns with its twin, and a small write, whose median counts.
TURNS, SMALL = 7, 40
PART = 500
Figures = dict[str, dict[str, float]]


class Sizes(argparse.Namespace):
    """How much is written, and where."""

    scale: float = 1.0
    batches: int = 5_000
    files: int = 40_000
    work: Path = ROOT / ".bench" / "kept"
    data: Path = ROOT / ".bench"

    def folder(self, name: str) -> Path:
        """Return an empty folder."""
        shutil.rmtree(self.work / name, ignore_errors=True)
        (self.work / name).mkdir(parents=True)
        return self.work / name


def measure(sizes: Sizes | None = None, cases: tuple[str, ...] = ()) -> Figures:
    """Return what was measured, by row and phase."""
    sizes = sizes or Sizes()
    figures: Figures = {}
    for case in cases or tuple(CASES):
        arguments = [f"--{name}={getattr(sizes, name)}" for name in ("scale", "batches", "files", "work", "data")]
        figures |= figures_of_case(__file__, ".venv", [*arguments, "--one", case], KEPT)
    return figures


def kept_metadata(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of what was measured."""
    return table_of(figures, PHASES, KEPT)


def verdicts(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return what is promised, and what was measured of it."""
    by_row = {row.removeprefix(KEPT): of for row, of in figures.items() if row.startswith(KEPT)}
    both = {row: of for row, of in by_row.items() if {"without", "with"} <= set(of)}
    bounds = []
    if UPSERT in both:
        bounds.append(Bound("an upsert of 11 %, against without", both[UPSERT]["with"] / both[UPSERT]["without"], 1.05))
    for row, what, most in (
        (TEN, "ten rows, ms of a core more", 60.0),
        (TEN_ON_S3, "ten rows on S3, requests more", 20.0),
        (WIDE, "ten rows beside a million records of bounds, ms of a core more", 100.0),
    ):
        if row in both:
            bounds.append(Bound(what, both[row]["with"] - both[row]["without"], most))
    if {FIRST, LAST} <= set(by_row):
        bounds.append(
            Bound("the last 500 batches, against the first", by_row[LAST]["with"] / by_row[FIRST]["with"], 1.25)
        )
    if LOAD in by_row:
        bounds.append(Bound("memory of a first load, MiB", by_row[LOAD]["MiB"], 1024.0))
    return bounds_of(bounds)


def twins(path: Path) -> dict[str, str]:
    """Return the paths of a table and of its copy, which has a metadata table."""
    from support.made.metadata_tables import simulate

    copy = path.with_name(f"{path.name}-with")
    shutil.copytree(path, copy)
    simulate(str(copy))
    return {"without": str(path), "with": str(copy)}


def in_turns(tables: Mapping[str, str], work: Callable[[str, int], Any], times: int, unit: float = 1.0) -> Any:
    """Return the median of each table's turns, after a first turn: seconds, or parts of a core's."""
    took: dict[str, list[float]] = {name: [] for name in tables}
    # By the processor's time small differences show, on a busy machine, too.
    clock = time.perf_counter if unit == 1.0 else time.process_time
    for turn in range(1 + times):
        for name, path in tables.items():
            begun = clock()
            work(path, turn)
            took[name].append((clock() - begun) * unit)
    return {name: median(each[1:]) for name, each in took.items()}


def upsert(sizes: Sizes) -> Figures:
    """Upsert the same 11 % of lineitem by Spark."""
    from many_files import session
    from pyhudi import HudiTable

    data = sizes.data / f"lineitem-{sizes.scale:g}"
    prepare(data, sizes.scale)
    spark, path = session(), sizes.folder("lineitem") / "t"
    table = HudiTable.create(
        spark,
        str(path),
        schema=spark.read.parquet(str(data / "base")).schema,
        record_key=list(KEYS),
        partition_by=PARTITION,
        order_by=ORDERING,
        buckets=2,
    )
    table.upsert(spark.read.parquet(str(data / "base")))
    rows = spark.read.parquet(str(data / "up1"))
    return {UPSERT: in_turns(twins(path), lambda path, _: HudiTable(spark, path).upsert(rows), TURNS)}


def small(sizes: Sizes) -> Figures:
    """Upsert ten rows of a table of eight file groups without Spark, with its upkeep."""
    path = sizes.folder("small") / "t"
    _table(str(path), _rows(0, 32_000))
    return {TEN: in_turns(twins(path), lambda path, turn: _upsert(path, _rows(turn * 10, 10)), SMALL, 1_000.0)}


def wide(sizes: Sizes) -> Figures:
    """Upsert ten rows of a table whose metadata table has bounds of many files, over a compaction of that."""
    import pyarrow as pa
    from support.made.many_groups import ManyGroups, make
    from support.made.metadata_tables import simulate

    measures = ManyGroups(sizes.files // 40, 40)
    folder, of_upserts = sizes.folder("wide"), {}
    band = measures.bands()[37]
    # The files that stand for others have no right keys, so the rows have a partition of their own.
    rows = band.select(band.column_names[5:]).slice(0, 10)
    rows = rows.set_column(rows.column_names.index("p"), "p", pa.array(["new"] * len(rows)))
    for name in ("without", "with"):
        path = str(folder / name)
        made = make(path, measures)
        if name == "with":
            simulate(path, *made)
        begun = time.process_time()
        for _ in range(2 * SMALL):
            _upsert(path, rows)
        # The mean has the compactions of the metadata table in it, as the median would not.
        of_upserts[name] = (time.process_time() - begun) * 1_000 / (2 * SMALL)
    return {WIDE: of_upserts}


def on_s3(sizes: Sizes) -> Figures:
    """Count the requests of an upsert of ten rows on S3."""
    import os

    from support.s3 import S3Server, new_url, put_object

    path = sizes.folder("s3") / "t"
    _table(str(path), _rows(0, 1_000))
    server = S3Server()
    server.start()
    os.environ.update(server.environment)
    requests_by_way = {}
    for name, source in twins(path).items():
        url = new_url()
        for file in sorted(Path(source).rglob("*")):
            if file.is_file():
                put_object(f"{url}/{file.relative_to(source)}", file.read_bytes())
        _upsert(url, _rows(0, 10))
        with server.watched() as requests:
            _upsert(url, _rows(10, 10))
        requests_by_way[name] = float(sum(requests.values()))
    server.stop()
    return {TEN_ON_S3: requests_by_way}


def batches(sizes: Sizes) -> Figures:
    """Upsert a row a batch, thousands of times, with all upkeep of the table and of its metadata table."""
    from support.made.metadata_tables import simulate

    path = str(sizes.folder("batches") / "t")
    _table(path, _rows(0, 100))
    simulate(path)
    took = []
    for batch in range(sizes.batches):
        begun = time.perf_counter()
        _upsert(path, _rows(batch % 100, 1))
        took.append(time.perf_counter() - begun)
    part = min(PART, sizes.batches // 2)
    return {FIRST: {"with": sum(took[:part])}, LAST: {"with": sum(took[-part:])}}


def load(sizes: Sizes) -> Figures:
    """Load many files at once into a table with a metadata table, and note the memory of the process that commits.

    As with Spark, tasks run in other processes.
    """
    from pyhudi.operations.write.commit import commit_write
    from support.made.metadata_tables import simulate

    path = str(sizes.folder("load") / "t")
    _table(path, _rows(0, 8))
    simulate(path)
    begun = time.perf_counter()
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        plan, result = pool.submit(_task_of_load, path, sizes.files).result()
    commit_write(plan, [result])
    peak = peak_mib()
    return {LOAD: {"seconds": time.perf_counter() - begun, "MiB": peak}}


def _task_of_load(path: str, files: int) -> Any:
    """Plan a load of a row for each of many file groups, and return the plan and the result of its one task."""
    import numpy as np
    import pyarrow as pa
    from pyhudi.operations.write.run import LocalRun
    from support.drive import plan

    partitions = pa.array(np.char.add("d", (np.arange(files) // 8).astype(str)))
    rows = _rows(1_000, files).set_column(1, "p", partitions)
    planned = plan(path, rows.schema)
    return planned, LocalRun(planned).task(rows.to_batches(), 0)


def _rows(first: int, count: int) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    ids = np.arange(first, first + count)
    values = {f"c{number}": ids * number for number in range(29)}
    return pa.table({"id": ids, "p": pa.array(["a"] * count), "ts": np.arange(count), **values})


def _table(path: str, rows: pa.Table) -> None:
    from pyhudi.arrow import Table

    Table(path).write(rows, record_key="id", partition_by="p", order_by="ts", buckets=8)


def _upsert(path: str, rows: pa.Table) -> None:
    from pyhudi.arrow import Table

    Table(path).upsert(rows)


CASES: dict[str, Callable[[Sizes], Figures]] = {
    "upsert": upsert,
    "rows": small,
    "wide": wide,
    "s3": on_s3,
    "batches": batches,
    "load": load,
}


def main() -> None:
    """Print tables, or as the process of one case its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=Sizes.scale, help="of lineitem; 1 is 6 million rows")
    parser.add_argument("--batches", type=int, default=Sizes.batches)
    parser.add_argument("--files", type=int, default=Sizes.files)
    parser.add_argument("--work", type=Path, default=Sizes.work)
    parser.add_argument("--data", type=Path, default=Sizes.data, help="folder of the rows of lineitem")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--one", choices=CASES)
    arguments = parser.parse_args(namespace=Sizes())
    if arguments.one is None:
        figures = measure(arguments, tuple(arguments.cases))
        print(kept_metadata(figures), verdicts(figures), sep="\n")
        return
    print(json.dumps(CASES[arguments.one](arguments)))


if __name__ == "__main__":
    sys.exit(main())
