"""The test's end of the pipe to Apache Hudi (`hudi_server.py`)."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from interop.strict import strict_schema

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("hudi_server.py")
PYTHON = Path(os.environ.get("PYHUDI_HUDI_PYTHON") or ROOT / ".venv-hudi" / "bin" / "python")

# Lets Spark 3 read days before 1582.
PROLEPTIC = {"org.apache.spark.version": "4.0.0"}
# Bounds of every column in the metadata table cost a write as much as all the rest of it: whoever is about them asks.
NO_BOUNDS = {"hoodie.metadata.index.column.stats.enable": "false"}
# A look-up has a hundred tasks by default, for tables of some ten files.
FEW_TASKS = {f"hoodie.{index}.index.parallelism": "2" for index in ("simple", "global.simple", "bloom")} | {
    "hoodie.global.index.reconcile.parallelism": "2"
}
# A Bloom filter has room for 60,000 keys by default, in each file of ten rows; who reads filters asks for less still.
SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "100"}
START_S = 900  # the first start on a machine fetches the bundle
ANSWER_S = 300


class ApacheHudiError(Exception):
    """Apache Hudi refused or failed; the text is its stack trace."""


class ApacheHudi:
    """One Spark session with Apache Hudi in a process of its own.

    Args:
        folder: Where the process keeps its log and where rows are handed over.
        master: Spark's master; the number of cores decides how many files are written at once.
        release: Which Apache Hudi.
    """

    # A task is tried again, as on every cluster: Apache Hudi keeps bucket rules in a HashMap that tasks fill unlocked
    # (PartitionBucketIndexCalculator), and one of eighteen writes lost a task to it on a busy machine.
    def __init__(self, folder: Path, master: str = "local[2,4]", release: str = "1.2.0") -> None:
        if not PYTHON.exists():
            raise ApacheHudiError(f"there is no Apache Hudi at {PYTHON}: run `make test-interop`")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._names = itertools.count()
        self._log = (folder / "log.txt").open("wb")
        # Spark 4 leaves its own home and Python in the environment of the process it runs in.
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
        self._process = subprocess.Popen(
            [str(PYTHON), str(SERVER), str(folder), master, release],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=folder,
            env=clean,
            start_new_session=True,
        )
        self.call("ping", timeout_s=START_S)

    def send(self, command: str, **arguments: Any) -> None:
        """Send a command without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()

    def call(self, command: str, *, timeout_s: float = ANSWER_S, **arguments: Any) -> Any:
        """Send a command and return its result.

        Raises:
            ApacheHudiError: With Apache Hudi's own words, or the end of the log when the process is gone.
        """
        self.send(command, **arguments)
        assert self._process.stdout is not None
        timer = threading.Timer(timeout_s, self.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            log = (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace")
            raise ApacheHudiError(f"{command} got no answer within {timeout_s} s\n{log[-4000:]}")
        answer = json.loads(line)
        if not answer["ok"]:
            raise ApacheHudiError(answer["error"])
        return answer["result"]

    def put_rows(self, rows: pa.Table) -> Path:
        """Write rows where the process can read them, all in one row group."""
        path = self.folder / f"rows-{next(self._names)}.parquet"
        with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
            writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
            writer.add_key_value_metadata(PROLEPTIC)
        return path

    def write(self, table: Path, rows: pa.Table, options: Mapping[str, str], mode: str = "append") -> None:
        """Run one ``df.write.format("hudi")``, whose files have little beside their rows, by few tasks.

        Options may say otherwise.
        """
        path, schema = self.put_rows(rows), strict_schema(rows.schema)
        told = {**NO_BOUNDS, **SMALL_FILTERS, **FEW_TASKS, **options}
        self.call("write", table=str(table), rows=str(path), options=told, mode=mode, schema=schema)

    def read(self, table: Path, options: Mapping[str, str] | None = None) -> pa.Table:
        """Run one ``spark.read.format("hudi")`` and return all its rows, meta columns first."""
        out = self.folder / f"read-{next(self._names)}"
        self.call("read", table=str(table), options=dict(options or {}), out=str(out))
        return pq.read_table(out, partitioning=None)

    def write_stream(self, table: Path, rows: Path, schema: str, checkpoint: Path, options: Mapping[str, str]) -> None:
        """Run one ``writeStream.format("hudi")`` over files of JSON until nothing is left."""
        told = {**NO_BOUNDS, **SMALL_FILTERS, **FEW_TASKS, **options}
        places = {"table": str(table), "rows": str(rows), "checkpoint": str(checkpoint)}
        self.call("write_stream", **places, schema=schema, options=told)

    def read_stream(self, table: Path, checkpoint: Path, options: Mapping[str, str] | None = None) -> pa.Table:
        """Run one ``spark.readStream.format("hudi")`` until nothing is left, and return the rows that it read."""
        out = self.folder / f"stream-{next(self._names)}"
        out.mkdir()
        told = {"table": str(table), "checkpoint": str(checkpoint), "out": str(out), "options": dict(options or {})}
        self.call("read_stream", **told)
        return pa.concat_tables([pq.read_table(file) for file in sorted(out.glob("*.parquet"))])

    def types(self, table: Path) -> dict[str, str]:
        """Return the Spark types of a table's columns, as ``spark.read.format("hudi")`` declares them."""
        found: dict[str, str] = self.call("types", table=str(table))
        return found

    def archived(self, table: Path) -> dict[str, str | None]:
        """Return what the table's archive says of each completed instant, by ``time.action``."""
        found: dict[str, str | None] = self.call("archived", table=str(table))
        return found

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Run one SQL statement and return its rows."""
        rows: list[dict[str, Any]] = self.call("sql", text=text)
        return rows

    def kill(self) -> None:
        """Kill Python and Java at once; neither gets to tidy up."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the process; its log stays."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()


def data_files(table: Path) -> set[Path]:
    """Return every base file that lies in the table's folder, committed or not."""
    return {path for path in table.rglob("*.parquet") if ".hoodie" not in path.relative_to(table).parts}
