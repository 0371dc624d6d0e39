"""What a copy-on-write table of version 6 costs, beside one of version 9: `python benchmarks/old_version.py`.

Milliseconds of processor time, without Spark, by turns; and what an upgrade takes beside copies of the timeline.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import pyarrow as pa
from pyhudi.arrow import Table
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table

VERSIONS = (6, 9)
ROWS, CHANGED, COMMITS = 600_000, 66_000, 500
# What pyhudi promises of version 6 beside 9, of its archive, and of an upgrade beside a copy.
MOST, MOST_OF_ARCHIVE, MOST_OF_UPGRADE = 1.1, 2.0, 2.0
_RUNS, _SMALL_RUNS = 5, 15
_QUIET = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}


def rows(first: int, count: int, ts: int) -> pa.Table:
    """Return rows of neighbouring keys in eight partitions."""
    keys = np.arange(first, first + count)
    return pa.table(
        {
            "id": keys,
            "p": pa.array((keys % 8).astype(str)),
            "price": keys * 1.25,
            "name": pa.array(np.char.add("part number ", (keys * 7 % 1000).astype(str))),
            "ts": np.full(count, ts),
        }
    )


def made(folder: str, version: int) -> Table:
    table = Table(f"{folder}/of-version-{version}")
    options = {"hoodie.write.table.version": version, **_QUIET}
    table.write(rows(0, ROWS, 0), record_key="id", partition_by="p", order_by="ts", buckets=2, **options)
    return table


def seconds_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def in_turns(work: dict[int, Iterator[Callable[[], object]]], runs: int) -> dict[int, float]:
    """Return the median seconds of each version's work, of which each run does one piece after the other."""
    taken: dict[int, list[float]] = {version: [] for version in work}
    for _ in range(runs):
        for version, pieces in work.items():
            taken[version].append(seconds_of(next(pieces)))
    return {version: median(seconds) for version, seconds in taken.items()}


def upserts(table: Table) -> Iterator[Callable[[], object]]:
    for number in range(_RUNS):
        yield lambda number=number: table.upsert(rows(number * CHANGED, CHANGED, number + 1), **_QUIET)


def grow(table: Table) -> None:
    """Add commits of one row, nine in ten of which leave for the archive."""
    for number in range(COMMITS):
        table.upsert(rows(number, 1, 100 + number), **_QUIET)
        if number % 10 == 9:
            table.archive(keep=COMMITS // 10)


def window(table: Table) -> Callable[[], object]:
    """Return a query of what was written since the tenth youngest archived commit."""
    begin = open_table(open_storage(table.path)).archive.instants()[-10]
    return lambda: table.read(since=begin.visible_since)


def of_upgrade(table: Table, folder: str) -> tuple[float, float]:
    """Return the seconds of an upgrade, and of a copy of the timeline, by the clock."""
    copied = Table(shutil.copytree(table.path, f"{folder}/upgraded"))
    began = time.perf_counter()
    copied.upgrade()
    upgraded = time.perf_counter() - began
    began = time.perf_counter()
    shutil.copytree(f"{table.path}/.hoodie", f"{folder}/timeline")
    return upgraded, time.perf_counter() - began


def main() -> None:
    print("| processor time, ms | version 6 | version 9 | ratio | at most |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        tables = {version: made(folder, version) for version in VERSIONS}
        _row("an upsert of 11%", in_turns({version: upserts(table) for version, table in tables.items()}, _RUNS), MOST)
        scans = {version: _again(table.read) for version, table in tables.items()}
        _row("a scan", in_turns(scans, _RUNS), MOST)
        for table in tables.values():
            grow(table)
        listings = {
            version: _again(lambda path=table.path: open_snapshot(path).slices()) for version, table in tables.items()
        }
        _row(f"a listing after {COMMITS} commits", in_turns(listings, _SMALL_RUNS), MOST)
        windows = {version: _again(window(table)) for version, table in tables.items()}
        _row("a window that begins in the archive", in_turns(windows, _SMALL_RUNS), MOST_OF_ARCHIVE)
        upgraded, copy = of_upgrade(tables[VERSIONS[0]], folder)
    mark = "" if upgraded / copy <= MOST_OF_UPGRADE else ", missed"
    print(f"\nAn upgrade takes {upgraded:.2f} s, a copy of .hoodie {copy:.2f} s: {upgraded / copy:.2f}{mark}.")


def _again(work: Callable[[], object]) -> Iterator[Callable[[], object]]:
    while True:
        yield work


def _row(name: str, seconds: dict[int, float], most: float) -> None:
    old, new = (seconds[version] for version in VERSIONS)
    mark = "" if old / new <= most else ", missed"
    print(f"| {name} | {old * 1000:.0f} | {new * 1000:.0f} | {old / new:.2f}{mark} | {most:.2f} |", flush=True)


if __name__ == "__main__":
    main()
