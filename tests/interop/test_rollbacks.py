"""Each side undoes a write of the other's that was killed half-way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop.apache_hudi import ApacheHudi, data_files
from interop.instants import completed, pending, upserted
from interop.readers import Readers
from interop.scenarios import BUCKETS, PARTITIONED, UNPARTITIONED, Model, Row, Scenario
from interop.writer import write_without_spark
from pyhudi.errors import ConcurrentWriteError, from_spark
from pyspark.sql import SparkSession
from support.recorded.fixture_tables import unpack

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("scenario", [UNPARTITIONED, PARTITIONED], ids=lambda scenario: scenario.name),
]

KILLED_WRITE = Path(__file__).with_name("killed_write.py")
EAGER = {"hoodie.clean.failed.writes.policy": "EAGER"}


@pytest.fixture
def table(scenario: Scenario, tmp_path: Path) -> Path:
    """A table of pyhudi with one commit of rows 0..29."""
    rows = scenario.table(scenario.rows(range(30), 1, ts=1))
    write_without_spark(tmp_path / "table", rows, {**scenario.table_options, BUCKETS: "2"})
    return tmp_path / "table"


@pytest.fixture
def model(table: Path, scenario: Scenario) -> Model:
    """What the table holds."""
    model = Model(scenario)
    upserted(table, model, scenario.rows(range(30), 1, ts=1))
    return model


def write(spark: SparkSession, table: Path, rows: pa.Table, options: dict[str, str]) -> None:
    """Run one ``df.write.format("pyhudi")``."""
    pq.write_table(rows, table.with_name("rows.parquet"), store_schema=False)
    frame = spark.read.parquet(str(table.with_name("rows.parquet")))
    frame.write.format("pyhudi").options(**options).mode("append").save(str(table))


def kill_ours(table: Path, rows: pa.Table) -> str:
    """Let pyhudi write data files in another process, kill that, and return the instant that stays behind."""
    pq.write_table(rows, table.with_name("killed.parquet"), store_schema=False)
    process = subprocess.Popen(
        [sys.executable, str(KILLED_WRITE), str(table), str(table.with_name("killed.parquet"))],
        stdout=subprocess.PIPE,
        text=True,
        cwd=table.parent,
    )
    assert process.stdout is not None
    instant = process.stdout.readline().strip()
    process.kill()
    process.wait()
    return instant


def left_behind(table: Path, instant: str) -> list[str]:
    """Return everything of an instant that lies in the table's folder, beside rollbacks that name it."""
    found = [path for path in table.rglob(f"*{instant}*") if "metadata" not in path.relative_to(table).parts]
    return sorted(path.relative_to(table).as_posix() for path in found)


def newer(scenario: Scenario) -> list[Row]:
    return scenario.rows(range(20, 40), 2, ts=2)


def test_apache_hudi_rolls_back_a_killed_write_of_ours(
    table: Path, model: Model, scenario: Scenario, apache: ApacheHudi, readers: Readers
) -> None:
    """The writer left its heartbeat in the table without partitions, and none in the other."""
    files = data_files(table)
    instant = kill_ours(table, scenario.table(scenario.rows(range(25, 60), 9, ts=9)))
    assert pending(table) == {instant}
    assert {file.stem.split("_")[-1] for file in data_files(table) - files} == {instant}
    # A task that was killed before it made what it had announced.
    absent = next(iter(files)).relative_to(table).as_posix().rpartition("_")[0]
    (table / ".hoodie" / ".temp" / instant / "MARKERS99").write_text(f"{absent}_{instant}.parquet.marker.MERGE\n")
    if scenario is PARTITIONED:
        (table / ".hoodie" / ".heartbeat" / instant).unlink(missing_ok=True)
    readers.check(table, model, by_spark=False)

    apache.write(table, scenario.table(newer(scenario)), {**scenario.table_options, BUCKETS: "2"})
    upserted(table, model, newer(scenario))

    assert pending(table) == set()
    assert len(completed(table, "rollback")) == 1
    assert not [file for file in data_files(table) if instant in file.name]
    readers.check(table, model, by_spark=False)


def test_pyhudi_rolls_back_a_killed_write_of_apache_hudi(tmp_path: Path, scenario: Scenario, readers: Readers) -> None:
    """Two upserts, and a third one that was killed when its first base file appeared."""
    table, model = Path(unpack(f"v9_killed_write_{scenario.name}", tmp_path)), Model(scenario)
    first, second = completed(table)
    model.upsert(scenario.rows(range(30), 1, ts=1), first)
    model.upsert(newer(scenario), second)
    (instant,) = pending(table)
    assert any((table / ".hoodie" / ".temp" / instant).iterdir())
    readers.check(table, model, by_spark=False)
    rows = scenario.rows(range(35, 45), 3, ts=3)

    with pytest.raises(Exception, match="PyHudiError") as refused:
        write(readers.spark, table, scenario.table(rows), {BUCKETS: "2"})
    assert isinstance(from_spark(refused.value), ConcurrentWriteError)
    assert instant in str(refused.value)

    write(readers.spark, table, scenario.table(rows), {**EAGER, BUCKETS: "2"})
    upserted(table, model, rows)

    assert pending(table) == set()
    assert len(completed(table, "rollback")) == 1
    assert left_behind(table, instant) == []
    readers.check(table, model)
