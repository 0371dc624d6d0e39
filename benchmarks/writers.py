"""What writers of one table do a second, as threads of one driver: `python benchmarks/writers.py`.

Each write has ten rows, which every system gets as a DataFrame of an Arrow table: they lie in the driver's process, and
Spark knows them without a job. Each system works in a process of its own, with tables of its own; a write that another
write of the same table makes fail is a refusal, and its rows are written again. What is promised of it is at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from figures.tables import Bound, bounds_of, table_of
from processes import processor_seconds, run_in
from stopwatch import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRITERS = "writers: "
ALONE, APART, TOGETHER, APPENDS = "one alone", "eight, a partition each", "eight, one bucket", "eight that append"
REFUSED, WORK = ": refused", ": processor seconds a write"
# Whom a table type of pyhudi is held against.
RIVALS = {
    "pyhudi, copy-on-write": ("Delta Lake", "Iceberg, copy-on-write"),
    "pyhudi, merge-on-read": ("Delta Lake, deletion vectors", "Iceberg, merge-on-read"),
}
WARM_S = 10.0
ROOT = Path(__file__).parents[1]

Figures: TypeAlias = "Mapping[str, Mapping[str, float]]"

_COUNT = 8
_ROWS = 10
_KEYS = 10_000
_COLUMNS = "id bigint, p string, ts bigint, n bigint, note string"
# What the systems call a write that met another: ours by its code, Delta's and Iceberg's by their exceptions.
_CONFLICT = re.compile(r"COMMIT_CONFLICT|Concurrent\w*Exception|ValidationException|CommitFailedException")
_counting = threading.Lock()


@dataclass(frozen=True)
class Peer:
    """One system: how its tables are made and written.

    Attributes:
        upsert: Upserts rows, all of one partition, by a session of the thread's own, as Iceberg demands it.
        append: Appends rows to a table without keys.
        count: Returns the rows of a table: of that with keys, and of that without.
    """

    upsert: Callable[[DataFrame, str], Any]
    append: Callable[[DataFrame], Any]
    count: Callable[[], tuple[int, int]]


def pyhudi(run: Run, table_type: str) -> tuple[SparkSession, Peer]:
    from pyhudi import HudiTable

    spark = run.session()
    terms: dict[str, Any] = {"partition_by": "p", "table_type": table_type}
    keyed = HudiTable.create(spark, f"{run.table}/keyed", _COLUMNS, record_key="id", order_by="ts", buckets=1, **terms)
    added = HudiTable.create(spark, f"{run.table}/added", _COLUMNS, record_key=(), **terms)
    keyed.upsert(_all_rows(spark))

    def append(rows: DataFrame) -> None:
        HudiTable(rows.sparkSession, added.path).insert(rows)

    def upsert(rows: DataFrame, partition: str) -> None:
        HudiTable(rows.sparkSession, keyed.path).upsert(rows)

    return spark, Peer(upsert, append, lambda: (keyed.to_df().count(), added.to_df().count()))


def delta(run: Run, *, vectors: bool) -> tuple[SparkSession, Peer]:
    from systems import delta_session

    spark, _ = delta_session(run, deletion_vectors=vectors)
    keyed, added = f"{run.table}/keyed", f"{run.table}/added"
    rows = _all_rows(spark)
    rows.write.format("delta").partitionBy("p").save(keyed)
    rows.limit(0).write.format("delta").partitionBy("p").save(added)

    def append(rows: DataFrame) -> None:
        rows.write.format("delta").mode("append").save(added)

    def count() -> tuple[int, int]:
        return spark.read.format("delta").load(keyed).count(), spark.read.format("delta").load(added).count()

    return spark, Peer(partial(_merge, f"delta.`{keyed}`"), append, count)


def iceberg(run: Run, *, mode: str) -> tuple[SparkSession, Peer]:
    from systems import iceberg_session

    spark, _ = iceberg_session(run, mode)
    rows = _all_rows(spark)
    for name, held in (("keyed", rows), ("added", rows.limit(0))):
        writer = held.writeTo(f"local.db.{name}")
        writer = writer.tableProperty("format-version", "2").tableProperty("write.merge.mode", mode)
        # Else a commit that meets seven others gives up.
        writer.tableProperty("commit.retry.num-retries", "20").partitionedBy("p").create()

    def append(rows: DataFrame) -> None:
        rows.writeTo("local.db.added").append()

    def count() -> tuple[int, int]:
        return spark.table("local.db.keyed").count(), spark.table("local.db.added").count()

    return spark, Peer(partial(_merge, "local.db.keyed"), append, count)


def _merge(target: str, rows: DataFrame, partition: str) -> None:
    rows.createOrReplaceTempView("s")
    # The others find writes of other partitions apart from a merge only if it names its own.
    rows.sparkSession.sql(
        f"merge into {target} t using s on t.p = '{partition}' and t.id = s.id "
        "when matched and s.ts >= t.ts then update set * when not matched then insert *"
    )


def _all_rows(spark: SparkSession) -> Any:
    return spark.range(_COUNT * _KEYS).selectExpr(
        "id", f"concat('p', id div {_KEYS}) as p", "0L as ts", "id as n", "cast(hash(id) as string) as note"
    )


SYSTEMS: dict[str, tuple[str, Callable[[Run], tuple[SparkSession, Peer]]]] = {
    "pyhudi, copy-on-write": (".venv", partial(pyhudi, table_type="cow")),
    "pyhudi, merge-on-read": (".venv", partial(pyhudi, table_type="mor")),
    "Delta Lake": (".venv-spark40", partial(delta, vectors=False)),
    "Delta Lake, deletion vectors": (".venv-spark40", partial(delta, vectors=True)),
    "Iceberg, copy-on-write": (".venv-spark40", partial(iceberg, mode="copy-on-write")),
    "Iceberg, merge-on-read": (".venv-spark40", partial(iceberg, mode="merge-on-read")),
}


class Writers:
    """The threads that write tables of one system."""

    def __init__(self, spark: SparkSession, peer: Peer) -> None:
        self._sessions = [spark.newSession() for _ in range(_COUNT)]
        self._peer = peer
        self._turns = [0] * _COUNT
        self._appended = 0

    def figures(self, lasts: float, together: float) -> dict[str, float]:
        """Return the writes a second of each phase, and what else is to be known of it; rows must be as written.

        A phase of 0 seconds does not run.
        """
        phases: dict[str, tuple[int, Callable[[int], None], float]] = {
            ALONE: (1, partial(self._upsert, partition=0), min(lasts, together)),
            APART: (_COUNT, self._upsert, lasts),
            TOGETHER: (_COUNT, partial(self._upsert, partition=0), together),
            APPENDS: (_COUNT, self._append, lasts),
        }
        figures: dict[str, float] = {}
        for phase, (writers, write, seconds) in phases.items():
            if not seconds:
                continue
            self._side_by_side(writers, write, WARM_S)
            worked, began = processor_seconds(), time.perf_counter()
            written, refused = self._side_by_side(writers, write, seconds)
            took, worked = time.perf_counter() - began, processor_seconds() - worked
            figures[phase] = round(written / took, 3)
            figures[f"{phase}{REFUSED}"] = refused
            figures[f"{phase}{WORK}"] = round(worked / max(written, 1), 3)
        held = self._peer.count()
        if held != (_COUNT * _KEYS, self._appended * _ROWS):
            raise SystemExit(f"the tables hold {held} rows, not {_COUNT * _KEYS, self._appended * _ROWS}")
        return figures

    def _upsert(self, writer: int, partition: int | None = None) -> None:
        partition = writer if partition is None else partition
        self._peer.upsert(self._rows(writer, partition), f"p{partition}")

    def _append(self, writer: int) -> None:
        self._peer.append(self._rows(writer, writer))
        with _counting:
            self._appended += 1

    def _rows(self, writer: int, partition: int) -> DataFrame:
        """Return rows of one partition, with other keys each time."""
        self._turns[writer] += 1
        turn = self._turns[writer]
        first = (turn * _ROWS * _COUNT + writer * _ROWS) % _KEYS
        ids = [partition * _KEYS + (first + number) % _KEYS for number in range(_ROWS)]
        columns = {"id": ids, "p": f"p{partition}", "ts": turn, "n": turn, "note": f"{writer}.{turn}"}
        rows = {name: held if name == "id" else [held] * _ROWS for name, held in columns.items()}
        return self._sessions[writer].createDataFrame(pa.table(rows))

    def _side_by_side(self, writers: int, write: Callable[[int], None], seconds: float) -> tuple[int, int]:
        """Return how many writes ended, and how many attempts at them others refused."""
        until = time.monotonic() + seconds

        def keep_writing(writer: int) -> tuple[int, int]:
            written = refused = 0
            while time.monotonic() < until:
                try:
                    write(writer)
                    written += 1
                except Exception as error:
                    if not _CONFLICT.search(str(error)):
                        raise
                    refused += 1
            return written, refused

        with ThreadPoolExecutor(writers) as pool:
            counts = list(pool.map(keep_writing, range(writers)))
        return sum(done for done, _ in counts), sum(refused for _, refused in counts)


def measure(lasts: float = 60.0, together: float = 600.0, memory: str = "4g") -> dict[str, dict[str, float]]:
    """Return the figures of each system, which works in a process and an environment of its own."""
    by_row = {}
    for system, (venv, _) in SYSTEMS.items():
        with tempfile.TemporaryDirectory() as folder:
            # Nothing is compared of the others' one writer and one bucket.
            of_this = together if system in RIVALS else 0.0
            command = [ROOT / venv / "bin" / "python", __file__, system, folder, lasts, of_this, memory]
            log = Path(folder, "log")
            printed = run_in(command, venv, log)
            if printed is None:
                raise SystemExit(f"{system} failed:\n{log.read_text(errors='replace')[-5_000:]}")
        by_row[WRITERS + system] = json.loads(printed)
        print(system, by_row[WRITERS + system], flush=True)
    return by_row


def writers(rows: Figures) -> str:
    """Return tables of the writes a second, of what others refused, and of what is promised."""
    return "\n".join((rates(rows), refusals(rows), verdicts(rows)))


def rates(rows: Figures) -> str:
    return table_of(rows, (ALONE, APART, TOGETHER, APPENDS), WRITERS)


def refusals(rows: Figures) -> str:
    phases = (APART, TOGETHER, APPENDS)
    counts = {
        row: {phase: of_row[f"{phase}{REFUSED}"] for phase in phases if phase in of_row}
        for row, of_row in rows.items()
        if row.startswith(WRITERS)
    }
    return table_of(counts, phases, WRITERS, digits=0)


def verdicts(rows: Figures) -> str:
    promises: list[Bound] = []
    for kind, rivals in RIVALS.items():
        ours = rows.get(WRITERS + kind)
        if ours is None:
            continue
        held = [(f"upserts, against {rival}", 3.0, APART, rows.get(WRITERS + rival)) for rival in rivals]
        held += [(f"appends, against {rival}", 1.0, APPENDS, rows.get(WRITERS + rival)) for rival in rivals]
        figures = [(what, least, ours[phase] / of[phase]) for what, least, phase, of in held if of]
        whole = (os.cpu_count() or 1) / ours[f"{ALONE}{WORK}"]
        figures.append((f"{APART}, against what the cores give one writer", 0.8, ours[APART] / whole))
        figures.append((f"{TOGETHER}, against one writer", 0.8, ours[TOGETHER] / ours[ALONE]))
        promises += (Bound(f"{kind}: {what}", ratio, least=least) for what, least, ratio in figures)
        refused = sum(int(ours[f"{phase}{REFUSED}"]) for phase in (ALONE, APART, TOGETHER, APPENDS))
        promises.append(Bound(f"{kind}: writes that others refuse", refused, 0, digits=0))
    return bounds_of(promises)


def main() -> None:
    """Measure all systems and print the tables; with a system, drive that one and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", nargs="?")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("lasts", nargs="?", type=float, default=60.0, help="seconds of a phase")
    parser.add_argument("together", nargs="?", type=float, default=600.0, help="seconds of the writers of one bucket")
    parser.add_argument("memory", nargs="?", default="4g")
    asked = parser.parse_args()
    if asked.system is None:
        print(writers(measure()))
        return
    run = Run(Path(asked.folder), f"{asked.folder}/tables", 1.0, asked.memory)
    spark, peer = SYSTEMS[asked.system][1](run)
    print(json.dumps(Writers(spark, peer).figures(asked.lasts, asked.together)))


if __name__ == "__main__":
    main()
