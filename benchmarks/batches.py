"""What a stream's commits cost, and what they leave behind: `python benchmarks/batches.py`.

Spark's calls of each batch are made without Spark: a writer plans, a copy of it writes one row, and a third commits. A
commit's own milliseconds are those from its call to the file that completes it; those of a batch are of all calls, with
the upkeep that follows. Only defaults are set: the upkeep of a stream has to keep both, and the number of files, flat.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, TypeAlias

import pyarrow as pa
from figures.tables import Bound, bounds_of, table_of
from pyhudi import PyHudiDataSource
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructField, StructType

BATCH = "batches: "
TYPES = ("copy-on-write", "merge-on-read")
COMMIT, FIRST, LAST = "own commit, ms", "first 500, ms", "last 500, ms"
FILES_FIRST, FILES_LAST, SEALS, LONGEST = "files after 500", "files at the end", "seals", "longest batch, ms"
COLUMNS = (COMMIT, FIRST, LAST, FILES_FIRST, FILES_LAST, SEALS, LONGEST)
# What is promised: milliseconds of a commit of its own, and how much the last 500 may cost more than the first.
OWN_MS, FLAT = 150, 1.25

Figures: TypeAlias = "Mapping[str, Mapping[str, float]]"

_SCHEMA = StructType([StructField(name, LongType()) for name in ("id", "ts", "value")])
_ROWS = pa.schema([(name, pa.int64()) for name in ("id", "ts", "value")])
_OPTIONS = {"recordkey": "id", "orderby": "ts", "hoodie.bucket.index.num.buckets": "8"}
_SEALS = ".pyhudi/sealed"
_COUNTED = 500
_KEYS = 10_000
# Batches after which Python has imported and compiled what it needs.
_WARM = 20


@dataclass(frozen=True)
class Timed:
    """Milliseconds of a batch: of its commit until the completed file, and of all of its calls."""

    commit: float
    whole: float


class Stream:
    """A stream into one table, whose calls are made in this process."""

    def __init__(self, path: str, table_type: str) -> None:
        self._path = path
        kind = "COPY_ON_WRITE" if table_type == TYPES[0] else "MERGE_ON_READ"
        self._options = {**_OPTIONS, "path": path, "hoodie.datasource.write.table.type": kind}
        self._completes = ".commit" if table_type == TYPES[0] else ".deltacommit"

    def batch(self, number: int) -> Timed:
        """Write one row in a batch."""
        began = time.perf_counter()
        writer = pickle.loads(pickle.dumps(self._source().streamWriter(_SCHEMA, False)))  # noqa: S301
        message = pickle.loads(pickle.dumps(self._write(writer, number)))  # noqa: S301
        committer = pickle.loads(pickle.dumps(self._source())).streamWriter(_SCHEMA, False)  # noqa: S301
        before, called = {entry.name for entry in os.scandir(self._timeline)}, time.time()
        committer.commit([message], number)
        whole = time.perf_counter() - began
        [completed] = [
            entry.stat().st_mtime
            for entry in os.scandir(self._timeline)
            if entry.name.endswith(self._completes) and entry.name not in before
        ]
        return Timed((completed - called) * 1000, whole * 1000)

    def files(self) -> int:
        """Return how many files the table has, but for the seals, which it keeps for 24 hours."""
        return sum(len(names) for folder, _, names in os.walk(self._path) if _SEALS not in folder)

    def seals(self) -> int:
        return sum(len(names) for folder, _, names in os.walk(self._path) if _SEALS in folder)

    @property
    def _timeline(self) -> str:
        return f"{self._path}/.hoodie/timeline"

    def _source(self) -> Any:
        return PyHudiDataSource(self._options)  # type: ignore[arg-type]

    def _write(self, writer: Any, number: int) -> Any:
        context = TaskContext._getOrCreate()
        context._stageId, context._taskAttemptId, context._partitionId = number, number, 0
        context._localProperties = {
            "sql.streaming.queryId": "0b0d95f4-7b4a-4e9e-9d5a-31c1e7c3b2aa",
            "streaming.sql.batchId": str(number),
            "spark.jobGroup.id": "4bab4f65-06c3-49da-8e9c-e610bcdbd061",
        }
        TaskContext._taskContext = context
        try:
            return writer.write(self._rows(number))
        finally:
            TaskContext._taskContext = None

    def _rows(self, number: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[number * 611_953 % _KEYS], [number], [number]], schema=_ROWS)


def measure(batches: int = 5_000) -> dict[str, dict[str, float]]:
    """Return the figures of each table type."""
    return {f"{BATCH}{table_type}": _measured(table_type, batches) for table_type in TYPES}


def _measured(table_type: str, batches: int) -> dict[str, float]:
    counted = min(_COUNTED, batches // 2)
    warm = min(_WARM, counted // 2)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "t/.hoodie/timeline").mkdir(parents=True)
        stream = Stream(f"{folder}/t", table_type)
        timed, files = [], 0
        for number in range(batches):
            timed.append(stream.batch(number))
            if number == counted:
                files = stream.files()
            if number % 500 == 0:
                print(table_type, number, timed[-1], stream.files(), flush=True)
        return {
            COMMIT: round(median(one.commit for one in timed[warm:counted]), 1),
            FIRST: round(mean(one.whole for one in timed[:counted]), 1),
            LAST: round(mean(one.whole for one in timed[-counted:]), 1),
            FILES_FIRST: files,
            FILES_LAST: stream.files(),
            SEALS: stream.seals(),
            LONGEST: round(max(one.whole for one in timed[warm:]), 1),
        }


def batches(rows: Figures) -> str:
    """Return tables of the milliseconds and files, and of what is promised."""
    return "\n".join((costs(rows), verdicts(rows)))


def costs(rows: Figures) -> str:
    return table_of(rows, COLUMNS, BATCH, digits=0)


def verdicts(rows: Figures) -> str:
    promises: list[Bound] = []
    for row, phases in rows.items():
        if row.startswith(BATCH):
            kind, files = row.removeprefix(BATCH), phases[FILES_LAST] / phases[FILES_FIRST]
            promises += (
                Bound(f"{kind}: a commit of one row, ms", phases[COMMIT], OWN_MS, digits=0),
                Bound(f"{kind}: the last 500 batches, against the first", phases[LAST] / phases[FIRST], FLAT),
                Bound(f"{kind}: files at the end, against those after 500", files, FLAT),
            )
    return bounds_of(promises)


def main() -> None:
    """Measure both table types and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=5_000)
    print(batches(measure(parser.parse_args().batches)))


if __name__ == "__main__":
    main()
