"""Compare pyhudi with its peers and plain Parquet on one machine: load, two upserts of 11 % of the rows, reads.

Every system works in a process of its own, one after the other, on the same rows; all must find the same content at
the end. Seconds differ from machine to machine: compare only within one run.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from backlog import BACKLOG, backlogs
from backlog import measure as measure_backlog
from batches import BATCH, batches
from batches import measure as measure_batches
from figures.promises import verdicts
from figures.tables import table_of
from index_state import STATE, states
from index_state import measure as measure_states
from indexes import INDEX, filters, groups, tagging
from indexes import measure as measure_indexes
from joins import JOIN, joins
from joins import measure as measure_joins
from kept_metadata import KEPT, kept_metadata
from kept_metadata import Sizes as KeptSizes
from kept_metadata import measure as measure_kept
from kept_metadata import verdicts as kept_verdicts
from lineitem import prepare
from long_life import LIFE, lives, measure
from many_files import MANY, many_files
from many_files import measure as measure_many
from metadata import METADATA, metadata_tables
from metadata import measure as measure_metadata
from metadata import verdicts as metadata_verdicts
from newest import NEWEST, newest
from newest import measure as measure_newest
from phases.conditions import HOLDS, ROWS, conditions, expect
from phases.few_merges import FEW, few_merges
from phases.few_merges import verdicts as few_verdicts
from phases.loads import TURNS
from phases.lookups import LOOKUP, lookups
from phases.rescaling import RESCALE, rescales
from phases.sizes import SIZE, sizes
from phases.sorting import ROWS as SORTED
from phases.sorting import sorting
from processes import environment
from restart import RESTART, restarts
from restart import measure as measure_restarts
from streams import STREAM, streams
from streams import measure as measure_streams
from systems import BUNDLE, DELTA, ICEBERG, SYSTEMS
from without_spark import SMALL, WITHOUT, without_spark
from without_spark import measure as measure_without_spark
from writers import WRITERS, writers
from writers import measure as measure_writers

ROOT = Path(__file__).parents[1]
# How long a stream of each kind of batches runs, and writers of each kind. Their own scripts run them for minutes.
STREAM_S, WRITERS_S = 45.0, 30.0
PHASES = ("load", "up1", "up2", "scan3", "scan_all", "point", "partition")
Seconds = Mapping[str, Mapping[str, float]]

# What is measured after the systems, by its own script, each with the arguments of the run.
PARTS: dict[str, Callable[[argparse.Namespace], Seconds]] = {
    "without-spark": lambda run: measure_without_spark(_rows_of(run), run.scale),
    "joins": lambda run: measure_joins(run.scale),
    "metadata": lambda run: measure_metadata(),
    "kept-metadata": lambda run: measure_kept(KeptSizes(scale=run.scale, data=run.work)),
    "indexes": lambda run: measure_indexes(),
    "newest": lambda run: measure_newest(),
    "many-files": lambda run: measure_many(),
    "streams": lambda run: measure_streams(STREAM_S, STREAM_S),
    "writers": lambda run: measure_writers(WRITERS_S, WRITERS_S),
    "restart": lambda run: measure_restarts(),
    "backlog": lambda run: measure_backlog(),
    "index-state": lambda run: measure_states(),
    "long-life": lambda run: measure(),
    "batches": lambda run: measure_batches(),
}


class WrongSystemError(Exception):
    """A system failed, or holds other rows than it should."""


def drive(
    system: str, data: Path, work: Path, arguments: argparse.Namespace, expected: Mapping[str, list[Any]]
) -> dict[str, dict[str, float]]:
    """Run one system and return its seconds by row and phase; its log stays beside its table.

    Raises:
        WrongSystemError: It failed, or found other content than expected.
    """
    python = ROOT / SYSTEMS[system].venv / "bin" / "python"
    command = [python, ROOT / "benchmarks" / "drive.py", system, data, work / system]
    with (work / f"{system}.log").open("wb") as log:
        process = subprocess.run(
            [*map(str, command), str(arguments.scale), arguments.memory],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=work,
            env=environment(SYSTEMS[system].venv),
            check=False,
        )
    if process.returncode or not process.stdout:
        raise WrongSystemError(f"{system} failed, see {log.name}")
    result = json.loads(process.stdout.splitlines()[-1])
    holds = SYSTEMS[system].holds
    wanted = expect(data, arguments.scale) if holds == HOLDS else expected[holds]
    if result["found"] != wanted:
        raise WrongSystemError(f"{system} found {result['found']}, expected {wanted}")
    seconds: dict[str, dict[str, float]] = result["seconds"]
    return seconds


def table(seconds: Seconds, base: Mapping[str, float] | None = None) -> str:
    """Return a table of seconds, or of their ratio to those of `base`."""
    if base is None:
        return table_of(seconds, PHASES)
    ratios = {
        row: {phase: value / base[phase] for phase, value in of_row.items() if phase in base}
        for row, of_row in seconds.items()
    }
    return table_of(ratios, PHASES)


def of(kind: str, seconds: Seconds) -> dict[str, Mapping[str, float]]:
    """Return the rows of one kind, by how their names begin."""
    return {row: of_row for row, of_row in seconds.items() if row.startswith(kind)}


def machine() -> dict[str, Any]:
    """Say what the numbers were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "python": platform.python_version(),
        "apache_hudi": BUNDLE,
        "delta": DELTA,
        "iceberg": ICEBERG,
        **{package: importlib.metadata.version(package) for package in ("pyhudi", "pyspark", "pyarrow", "deltalake")},
    }


def report(scale: float, seconds: Seconds) -> None:
    """Print all tables of what was measured."""
    print(f"\nTPC-H lineitem at scale {scale:g}; every system below found what DuckDB expects.\n")
    others = (SIZE, LIFE, TURNS, INDEX, LOOKUP, NEWEST, MANY, ROWS, SORTED, WRITERS, STREAM, BATCH, BACKLOG, STATE)
    others = (*others, RESCALE, JOIN, RESTART, FEW, WITHOUT, SMALL, METADATA, KEPT)
    systems = {row: of_row for row, of_row in seconds.items() if not row.startswith(others)}
    print("### Seconds", table(systems), sep="\n\n")
    for base in ("Apache Hudi", "Parquet"):
        if base in systems:
            print(f"### As a multiple of {base} (below 1 is faster)", table(systems, systems[base]), sep="\n\n")
    print("### Loads in turns", table(of(TURNS, seconds)), sep="\n\n")
    print("### With conditions", conditions(seconds), sep="\n\n")
    print("### A thousand rows merged", few_merges(seconds), few_verdicts(seconds), sep="\n\n")
    print("### Sorted", sorting(seconds), sep="\n\n")
    print("### By size", sizes(seconds), sep="\n\n")
    print("### Buckets doubled", rescales(seconds), sep="\n\n")
    print("### After a long life", lives(seconds), sep="\n\n")
    shown = (lookups(seconds), tagging(seconds), groups(seconds), newest(seconds), filters(seconds))
    print("### Indexes", *shown, sep="\n\n")
    print("### Many files", many_files(seconds), sep="\n\n")
    print("### Metadata tables", metadata_tables(seconds), metadata_verdicts(seconds), sep="\n\n")
    print("### Metadata tables, kept", kept_metadata(seconds), kept_verdicts(seconds), sep="\n\n")
    print("### Joins", joins(seconds), sep="\n\n")
    print("### Writers side by side", writers(seconds), sep="\n\n")
    print("### Streams", streams(seconds), batches(seconds), backlogs(seconds), states(seconds), sep="\n\n")
    print("### Restarts", restarts(seconds), sep="\n\n")
    print("### Without Spark", without_spark(seconds), sep="\n\n")
    print(verdicts(seconds))


def main() -> None:
    """Prepare the rows, run the systems, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor; 1 is 6 million rows")
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, default=list(PARTS), help="what to measure after the systems"
    )
    parser.add_argument("--memory", default="8g", help="memory of Spark's driver")
    parser.add_argument("--work", type=Path, default=ROOT / ".bench", help="folder of rows, tables, logs and results")
    arguments = parser.parse_args()

    data = _rows_of(arguments)
    expected = prepare(data, arguments.scale)
    work = arguments.work / "tables"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    seconds: dict[str, Mapping[str, float]] = {}
    wrong: list[str] = []
    for system in arguments.systems:
        print(time.strftime("%H:%M:%S"), f"{system} …", flush=True)
        try:
            seconds |= drive(system, data, work, arguments, expected)
        except WrongSystemError as error:
            # The work of the others is not lost for one of them.
            wrong.append(str(error))
            print(error, flush=True)
        _save(arguments, seconds, wrong)

    for part in arguments.parts:
        print(time.strftime("%H:%M:%S"), f"{part} …", flush=True)
        try:
            seconds |= PARTS[part](arguments)
        except (SystemExit, subprocess.SubprocessError, OSError) as error:
            wrong.append(f"{part}: {error}")
            print(error, flush=True)
        _save(arguments, seconds, wrong)
    report(arguments.scale, seconds)
    if wrong:
        raise SystemExit("\n".join(wrong))


def _rows_of(arguments: argparse.Namespace) -> Path:
    """Return the folder of the rows of lineitem."""
    return Path(arguments.work, f"lineitem-{arguments.scale:g}")


def _save(arguments: argparse.Namespace, seconds: Seconds, wrong: Sequence[str]) -> None:
    """Write what was measured so far, so that a run that is broken off leaves the figures of its whole parts."""
    results = {"scale": arguments.scale, "driver_memory": arguments.memory, "machine": machine(), "seconds": seconds}
    results |= {"wrong": wrong} if wrong else {}
    (arguments.work / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
