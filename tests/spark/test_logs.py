"""What a user sees of a write while it runs: one JSON line a phase on the console, if asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.threads import HANGS_S

SCRIPT = """
import logging, sys
from pyspark.sql import SparkSession
from pyhudi import HudiTable

path = sys.argv[1]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
rows = spark.range(0, 9, numPartitions=2)
rows.write.format("pyhudi").options(recordkey="id", buckets="2").mode("append").save(path + "/quiet")
write = rows.write.format("pyhudi").options(**{"recordkey": "id", "hoodie.pyhudi.log.level": "info"})
write.mode("append").save(path + "/loud")
logging.basicConfig(format="here %(message)s")
logging.getLogger("pyhudi").setLevel("INFO")
HudiTable(spark, path + "/loud").delete("id < 3")
"""


@pytest.mark.slow
def test_phases_reach_the_console_of_the_user_who_asks_for_them(tmp_path: Path) -> None:
    """By option for a plain write; by the level of the user's own logger for a method of `HudiTable`.

    The line about a new table comes to everybody.
    """
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert process.returncode == 0, process.stderr[-2000:]
    lines = [line[line.index("{") :] for line in process.stderr.splitlines() if '{"event": ' in line]
    told = [json.loads(line) for line in lines]
    here = [line for line in process.stderr.splitlines() if line.startswith("here ")]

    new = [line for line in process.stderr.splitlines() if "INFO pyhudi: The new table " in line]
    assert [line.rpartition(" with ")[2] for line in new] == [
        "2 buckets for each table, until a rescale.",
        "8 buckets, the number where none is given, for each table, until a rescale.",
    ]
    assert not [one for one in told if one.get("table", one.get("path")).endswith("quiet")]
    phases = {one["phase"]: one for one in told if one["event"] == "phase"}
    assert phases.keys() == {"begin", "gather", "spill", "seal", "merge", "reconcile", "flush", "complete"}
    assert phases["gather"].keys() >= {"table", "instant", "task", "seconds", "rows"}
    assert sum(one["rows"] for one in told if one.get("phase") == "gather") == 12
    assert [one["operation"] for one in told if one["event"] == "commit"] == ["UPSERT", "DELETE"]
    assert [json.loads(line[5:])["deletes"] for line in here if line.startswith("here {")] == [3]
    assert [line.rpartition(": ")[2] for line in here if "footers leave out" in line] == [
        "footers leave out 5 of 8 file slices"
    ]
