"""Reads of tables that have a metadata table, with and without it, and beside other table formats.

    python benchmarks/metadata.py [--files 40000] [--keys 20000000] [--cases condition s3 ...] [--work FOLDER]

The metadata tables are simulated as Apache Hudi 1.2 would write them (tests/support/made), and files stand for others
by links; so a table of 40,000 file groups is made in seconds, and kept for the next run. Each system plans in a process
of its own, opens the table anew each time, and is warm after the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from figures.tables import Bound, bounds_of, table_of
from many_files import session
from metadata_peers import PEER_VENVS, PEERS, spark_plans
from processes import figures_of_case, processor_seconds

ROOT = Path(__file__).parents[1]
METADATA = "metadata table: "
PHASES = ("first", "then", "processor", "files, %", "requests")
RUNS = 5
PARTITIONS, COLUMNS, BAND = 1_000, 32, 37
FEW_PARTITIONS, FEW_GROUPS = 14, 40
KEY_GROUPS, KEYS_ASKED = 2_000, 1_000
CONDITION, KEY, FEW, KEYS, S3 = "condition, ", "partition and key, ", "14 partitions, ", "1,000 keys, ", "S3, "
WITHOUT = "without metadata table"
TABLE, ALONE = "HudiTable.to_df", "pyhudi.arrow"
Figures = dict[str, dict[str, float]]


class Sizes(argparse.Namespace):
    """How large the tables are, and where they lie."""

    files: int = 40_000
    keys: int = 20_000_000
    work: Path = ROOT / ".bench" / "metadata"

    def folder(self, name: str) -> Path:
        """Return where a table of these sizes lies."""
        return self.work / f"{name}-{self.files}"


def measure(sizes: Sizes | None = None, cases: tuple[str, ...] = ()) -> Figures:
    """Return what was measured, by row and phase; each case works in a process of its own."""
    sizes = sizes or Sizes()
    figures: Figures = {}
    for case in cases or tuple(CASES):
        arguments = ("--files", sizes.files, "--keys", sizes.keys, "--work", sizes.work, "--one", case)
        figures |= figures_of_case(__file__, PEER_VENVS.get(case, ".venv"), arguments, METADATA)
    return figures


def metadata_tables(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of what was measured."""
    return table_of(figures, PHASES, METADATA)


def verdicts(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return what is promised, and what was measured of it."""
    by_row = {row.removeprefix(METADATA): of for row, of in figures.items() if row.startswith(METADATA)}
    return bounds_of(_promises(by_row))


def _promises(by_row: Mapping[str, Mapping[str, float]]) -> list[Bound]:
    promises = []

    def promise(what: str, row: str, phase: str, most: float, *, against: tuple[str, ...] = ()) -> None:
        others = [by_row[other][phase] for other in against if phase in by_row.get(other, {})]
        if phase in by_row.get(row, {}) and (others or not against):
            value = by_row[row][phase] / (min(others) if others else 1.0)
            promises.append(Bound(what, value, most))

    for way in (ALONE, TABLE):
        promise(f"a condition is planned by {way}, s", CONDITION + way, "then", 2.0)
        promise(f"files that it opens by {way}, %", CONDITION + way, "files, %", 2.0)
        promise(f"a partition and a key by {way}, s", KEY + way, "then", 0.5)
    by_spark = (CONDITION + "Delta Lake", CONDITION + "Iceberg")
    promise(
        "the condition, against the better of Delta Lake and Iceberg", CONDITION + TABLE, "then", 1.0, against=by_spark
    )
    promise("the condition, against delta-rs", CONDITION + ALONE, "then", 1.0, against=(CONDITION + "delta-rs",))
    promise("requests to list all on S3", f"{S3}metadata table", "requests", 25.0)
    for what in ("whole", "condition", "key"):
        row, other = f"{FEW}{what}", f"{FEW}{what}, {WITHOUT}"
        # What differs by less is chance.
        promise(f"{what} of 14 partitions, against folders", row, "then", 1.05, against=(other,))
    promise("1,000 keys, against Apache Hudi", KEYS + ALONE, "then", 0.5, against=(KEYS + "Apache Hudi",))
    return promises


def timed_runs(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Do the work several times; return the seconds of the first, the middle of the others, and what it gave.

    ``processor`` has the seconds of all processors, of which others on the machine take nothing.
    """
    seconds, worked = [], []
    for _ in range(1 + RUNS):
        start, before = time.perf_counter(), processor_seconds()
        result = work()
        seconds.append(time.perf_counter() - start)
        worked.append(processor_seconds() - before)
    return {"first": seconds[0], "then": median(seconds[1:]), "processor": median(worked[1:])}, result


def planned(path: str, where: str) -> int:
    """Plan a read without Spark; return how many files it opens."""
    from pyhudi.reader.row_filter import read_where
    from pyhudi.reader.snapshot import open_snapshot

    snapshot = open_snapshot(path)
    predicates = read_where(where, snapshot.schema, path).predicates
    splits = snapshot.plan(snapshot.schema, predicates, 128 << 20)
    return len({part.path for split in splits for part in split.parts})


def measures_of(sizes: Sizes) -> Any:
    """Return the measures of the table of many file groups."""
    from support.made.many_groups import ManyGroups

    return ManyGroups(PARTITIONS, sizes.files // PARTITIONS, COLUMNS)


def table_in(folder: Path, make: Callable[[str], None]) -> str:
    """Return the path of a table, which is made if no earlier run did."""
    path = folder / "t"
    if not (folder / "made").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["rm", "-rf", path], check=True)
        make(str(path))
        (folder / "made").touch()
    return str(path)


def many_groups(sizes: Sizes, *, simulated: bool = True) -> str:
    """Return the path of the table of many file groups, with a metadata table or without."""
    from support.made.many_groups import make
    from support.made.metadata_tables import simulate

    def of(path: str) -> None:
        files, bounds = make(path, measures_of(sizes))
        if simulated:
            simulate(path, files, bounds)

    return table_in(sizes.folder("groups" if simulated else "plain"), of)


def condition(sizes: Sizes) -> Figures:
    """Plan a condition that one file of a hundred fits, without Spark, by the metadata table and by footers."""
    where = measures_of(sizes).condition(BAND)
    figures: Figures = {}
    for row, path in ((ALONE, many_groups(sizes)), (f"{ALONE}, {WITHOUT}", many_groups(sizes, simulated=False))):
        of, count = timed_runs(lambda path=path: planned(path, where))
        figures[CONDITION + row] = {**of, "files, %": 100 * count / sizes.files}
    return figures


def by_spark(sizes: Sizes) -> Figures:
    """Plan the same, and a partition and a key, by `HudiTable.to_df`."""
    from pyhudi import HudiTable

    spark, path, measures = session(), many_groups(sizes), measures_of(sizes)
    asked = {CONDITION: measures.condition(BAND), KEY: f"p = '{measures.middle}' AND id = {measures.key(7)}"}
    figures: Figures = {}
    for row, where in asked.items():
        of, _ = timed_runs(lambda where=where: spark_plans(HudiTable(spark, path).to_df(where=where)))
        figures[row + TABLE] = of
    files = len(HudiTable(spark, path).to_df(where=asked[CONDITION]).inputFiles())
    figures[CONDITION + TABLE]["files, %"] = 100 * files / sizes.files
    return figures


def key(sizes: Sizes) -> Figures:
    """Read the row of a partition and a key without Spark."""
    from pyhudi.arrow import Table

    path, measures = many_groups(sizes), measures_of(sizes)
    where = f"p = '{measures.middle}' AND id = {measures.key(7)}"
    of, rows = timed_runs(lambda: Table(path).read(["n"], where=where))
    if rows.num_rows != 1:
        raise SystemExit(f"{rows.num_rows} rows have one key")
    return {KEY + ALONE: of}


def s3(sizes: Sizes) -> Figures:
    """Count the requests that a listing of all file groups takes on S3, by the metadata table and by folders."""
    from pyhudi.reader.snapshot import open_snapshot
    from support.made.many_groups import make
    from support.made.metadata_tables import simulate
    from support.s3 import S3Server, new_url, put_object

    measures = measures_of(sizes)
    path = table_in(sizes.folder("listed"), lambda made: simulate(made, make(made, measures)[0], []))
    server = S3Server()
    server.start()
    os.environ.update(server.environment)
    figures: Figures = {}
    for row, plain in (("metadata table", False), ("folders", True)):
        url = new_url()
        for file in sorted(Path(path).rglob("*")):
            name = str(file.relative_to(path))
            if file.is_file():
                data = file.read_bytes() if name.startswith(".hoodie") or name.endswith("metadata") else b"PAR1"
                if plain and name.endswith("hoodie.properties"):
                    data = data.replace(b"hoodie.table.metadata.partitions=files", b"")
                put_object(f"{url}/{name}", data)
        with server.watched() as requests:
            start = time.perf_counter()
            count = len(open_snapshot(url).slices())
        took = time.perf_counter() - start
        if count != sizes.files:
            raise SystemExit(f"{count} file slices are listed of {sizes.files}")
        figures[S3 + row] = {"first": took, "requests": float(sum(Counter(requests).values()))}
    server.stop()
    return figures


def few(sizes: Sizes) -> Figures:
    """Read a table of 14 partitions on the disk, with the metadata table and without, in turns."""
    from pyhudi.arrow import Table
    from support.made.many_groups import ManyGroups, make
    from support.made.metadata_tables import simulate

    measures = ManyGroups(FEW_PARTITIONS, FEW_GROUPS, COLUMNS)

    def simulated(path: str) -> None:
        simulate(path, *make(path, measures))

    paths = {
        "": table_in(sizes.work / "few", simulated),
        f", {WITHOUT}": table_in(sizes.work / "few-plain", lambda path: make(path, measures)),
    }
    asked = {
        "whole": None,
        "condition": measures.condition(BAND),
        "key": f"p = '{measures.middle}' AND id = {measures.key(7)}",
    }
    figures: Figures = {}
    for what, where in asked.items():
        seconds: dict[str, list[float]] = {row: [] for row in paths}
        for _ in range(1 + 3 * RUNS):
            for row, path in paths.items():
                start = time.perf_counter()
                Table(path).read(["n"], where=where)
                seconds[row].append(time.perf_counter() - start)
        for row, took in seconds.items():
            figures[f"{FEW}{what}{row}"] = {"first": took[0], "then": median(took[1:])}
    return figures


def keyed(sizes: Sizes) -> str:
    """Return the path of a table whose record index has many keys, and whose bounds are those of its key alone."""
    import numpy as np
    import pyarrow as pa
    from support.made.many_groups import ManyGroups, make
    from support.made.metadata_records import ColumnBounds, Keys
    from support.made.metadata_tables import simulate

    def of(path: str) -> None:
        files, _ = make(path, ManyGroups(1, KEY_GROUPS, 3, buckets=False))
        ids = np.arange(sizes.keys, dtype=np.int64)
        owners = ids // -(-sizes.keys // KEY_GROUPS)
        rows = np.bincount(owners, minlength=KEY_GROUPS).astype(np.int64)
        first = np.cumsum(rows) - rows
        none, ends = np.zeros(KEY_GROUPS, dtype=np.int64), (pa.array(first), pa.array(first + rows - 1))
        # Keys as texts may be in any file, as they would be if they came in no order.
        texts = (pa.array([text] * KEY_GROUPS) for text in ("0", "99999999999"))
        bounds = [ColumnBounds("id", *ends, none), ColumnBounds("_hoodie_record_key", *texts, none)]
        simulate(path, replace(files, rows=rows), bounds, Keys(pa.array(ids).cast(pa.string()), owners))

    return table_in(sizes.work / f"keys-{sizes.keys}", of)


def asked_keys(sizes: Sizes) -> Callable[[], str]:
    """Return what gives a condition on other keys each time."""
    import random

    drawn = random.Random(7)  # noqa: S311 (no secret)

    def where() -> str:
        return f"id IN ({', '.join(map(str, drawn.sample(range(sizes.keys), KEYS_ASKED)))})"

    return where


def keys(sizes: Sizes) -> Figures:
    """Plan a read of a thousand keys by the record index."""
    path, where = keyed(sizes), asked_keys(sizes)
    of, count = timed_runs(lambda: planned(path, where()))
    return {KEYS + ALONE: {**of, "files, %": 100 * count / KEY_GROUPS}}


CASES: dict[str, Callable[[Sizes], Figures]] = {
    "condition": condition,
    "by-spark": by_spark,
    "key": key,
    "s3": s3,
    "few": few,
    "keys": keys,
    **PEERS,
}


def main() -> None:
    """Print tables, or as the process of one case its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=Sizes.files)
    parser.add_argument("--keys", type=int, default=Sizes.keys)
    parser.add_argument("--work", type=Path, default=Sizes.work)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--one", choices=CASES)
    arguments = parser.parse_args(namespace=Sizes())
    if arguments.one is None:
        figures = measure(arguments, tuple(arguments.cases))
        print(metadata_tables(figures), verdicts(figures), sep="\n")
        return
    print(json.dumps(CASES[arguments.one](arguments)))


if __name__ == "__main__":
    sys.exit(main())
