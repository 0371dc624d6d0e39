"""An index of another package, installed where Spark runs: the one that docs/indexes.md shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.environments import variables_without
from support.sessions import INTERPRETED, WARM

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "indexes.md"
# Spark's own number of partitions, 200, has two hundred tasks ask the index for a hundred rows.
OPTIONS = {**INTERPRETED, "spark.sql.shuffle.partitions": "3"}
JOB = """
import json, os, sys
from pyhudi import HudiTable
from pyspark.sql import SparkSession

path, database, options = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config(map=json.loads(options)).getOrCreate()
own = {"hoodie.pyhudi.index.path": database}
rows = spark.range(100).selectExpr("cast(id as string) id", "cast(id % 3 as string) p", "0 n").repartition(4)
table = HudiTable.create(spark, path, rows, record_key="id", partition_by="p", index="sqlite", options=own)
first = table.upsert(rows)
changed = rows.where("id < 10").selectExpr("id", "p", "1 n")
changed.write.format("pyhudi").options(**own).mode("append").save(path)
newer = spark.range(90, 110).selectExpr("cast(id as string) id", "cast(id % 3 as string) p", "2 n")
placed = {**own, "hoodie.pyhudi.place.rows": "always"}
last = HudiTable(spark, path).upsert(newer, **placed)
found = table.to_df()
asked = HudiTable.create(
    spark, path + "2", rows, record_key="id", partition_by="p", index="shared", options=own, table_type="MERGE_ON_READ"
)
asked.upsert(rows, **own)
by_tasks = asked.upsert(newer, **placed)
# Keys that are in two file groups each, of which log files delete both.
some = rows.where("id < 3")
asked.insert(some, **own, **{"hoodie.parquet.small.file.limit": 0})
copied = [asked.upsert(some, **placed), asked.to_df().count(), asked.delete(some, **placed).deletes]
again = [asked.upsert(some, **placed), asked.to_df().count()]
# Tasks ask no index that has not been told of the table.
os.remove(database)
told = asked.upsert(rows.where("id > 95"), **placed)
print(json.dumps({
    "index": table.detail().first()["index"],
    "first": [first.inserts, first.updates],
    "last": [last.inserts, last.updates],
    "rows": found.count(),
    "keys": found.select("id").distinct().count(),
    "old": found.where("n = 0").count(),
    "handed over": ["tasks.spill" in one.seconds for one in (last, by_tasks, copied[0], again[0], told)],
    "asked": [by_tasks.inserts, by_tasks.updates],
    "copied": [copied[0].updates, *copied[1:]],
    "again": [again[0].inserts, again[1]],
    "told": [told.inserts, told.updates],
}))
"""
# All tasks of this test run where its database is.
SHARED = """

class SharedIndex(SqliteIndex):
    asked_by_tasks = True


def open_shared(table, settings):
    return SharedIndex(settings.own.get("path"))
"""


def test_an_installed_index_is_found_by_every_process_of_spark(tmp_path: Path) -> None:
    (block,) = re.findall(
        r'^```python\n("""sqlite_index.py.*?)^```$', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    installed = tmp_path / "site"
    facts = installed / "sqlite_index-1.0.dist-info"
    facts.mkdir(parents=True)
    (installed / "sqlite_index.py").write_text(block + SHARED, encoding="utf-8")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: sqlite-index\nVersion: 1.0\n", encoding="utf-8")
    offers = "SQLITE = sqlite_index:open_index\nSHARED = sqlite_index:open_shared\n"
    (facts / "entry_points.txt").write_text(f"[pyhudi.indexes]\n{offers}", encoding="utf-8")
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")

    process = subprocess.run(
        [sys.executable, tmp_path / "job.py", tmp_path / "t", tmp_path / "keys.db", json.dumps(OPTIONS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={
            **variables_without("PYTHON", "PYSPARK_", "SPARK_"),
            # Its processes are warm, but for the index, which is none of what they take along.
            "PYTHONPATH": os.pathsep.join([str(installed), str(WARM)]),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=tmp_path,
    )

    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
    assert json.loads(process.stdout.splitlines()[-1]) == {
        "index": "SQLITE",
        "first": [100, 0],
        "last": [10, 10],
        "rows": 110,
        "keys": 110,
        "old": 80,
        "handed over": [True, False, True, False, False],
        "asked": [10, 10],
        "copied": [6, 113, 6],
        "again": [3, 110],
        "told": [0, 4],
    }
