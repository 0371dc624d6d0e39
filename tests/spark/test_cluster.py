"""Every way in which keys are looked up and rows placed, on a cluster without pandas that loses its executors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import seams
from support.environments import SPARK_HOME, build_wheel, link_packages_without, new_environment, variables_without
from support.sessions import INTERPRETED, WARM

pytestmark = pytest.mark.slow

# One table a line: index, whether the driver takes its keys for few or for many, table type, and how a write changes a
# table that has rows. Every pair of values of two columns is in some line.
CASES = """
BUCKET few COPY_ON_WRITE merge
BUCKET many MERGE_ON_READ upsert
SIMPLE few MERGE_ON_READ upsert
SIMPLE many COPY_ON_WRITE merge
BLOOM few COPY_ON_WRITE upsert
BLOOM many MERGE_ON_READ merge
GLOBAL_SIMPLE few MERGE_ON_READ merge
GLOBAL_SIMPLE many COPY_ON_WRITE upsert
GLOBAL_BLOOM few COPY_ON_WRITE merge
GLOBAL_BLOOM many MERGE_ON_READ upsert
"""
# The tables at which the next executor that runs a task is killed, after the first write.
KILLS = "SIMPLE many", "BLOOM many", "GLOBAL_SIMPLE few"

JOB = """
import json, logging, os, signal, sys, threading, time
from importlib.util import find_spec
from pathlib import Path
import pyhudi
from pyspark.sql import SparkSession
from seams import read_seam, set_seam

warnings = []
class Kept(logging.Handler):
    def emit(self, record):
        warnings.append(record.getMessage())
logging.getLogger("pyhudi").addHandler(Kept())
spark = SparkSession.builder.getOrCreate()
folder, cases, kills = sys.argv[1], sys.argv[2].split("\\n"), sys.argv[3].split(",")
always = {"hoodie.pyhudi.place.rows": "always", "hoodie.compact.inline": "false"}
armed, killed = threading.Event(), []


def executors():
    found = {}
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = one.read_text(errors="replace").split("\\0")
        except OSError:
            continue
        if f"-Dpyhudi.test={folder}" in words and "--executor-id" in words:
            found[words[words.index("--executor-id") + 1]] = int(one.parent.name)
    return found


def kill_one_that_works():
    while True:
        armed.wait()
        alive = spark._jsc.sc().statusStore().executorList(True)
        busy = [alive.apply(n).id() for n in range(alive.size()) if alive.apply(n).activeTasks()]
        processes = executors() if busy else {}
        for name in busy:
            if name in processes:
                os.kill(processes[name], signal.SIGKILL)
                killed.append(name)
                armed.clear()
                break
        time.sleep(0.02)


threading.Thread(target=kill_one_that_works, daemon=True).start()


def rows(numbers, n):
    columns = ("concat('k', id) id", "cast(id % 2 as string) p", f"{n + 1} ts", f"{n} n")
    return spark.range(numbers.start, numbers.stop).selectExpr(*columns).repartition(2)


def is_right(index, keys, kind, way, path, kill):
    settings = {"buckets": 2} if index == "BUCKET" else {}
    named = {"record_key": "id", "partition_by": "p", "order_by": "ts"}
    table = pyhudi.HudiTable.create(spark, path, rows(range(1), 0), **named, index=index, table_type=kind, **settings)
    table.upsert(rows(range(160), 0), **always)
    if kill:
        armed.set()
    table.delete(rows(range(30, 50), 9).select("id", "p"), **always)
    if index == "BUCKET":
        set_seam("bytes of a plan that needs no tasks", -1)
        tasks.extend(table.rescale_buckets(n).partitions for n in ((7, 9) if keys == "few" else (4,)))
    newer = rows(range(40, 200), 1)
    if way == "upsert":
        table.upsert(newer, **always)
    else:
        table.merge(newer).when_matched_update_all().when_not_matched_insert_all().execute(**always)
    expected = {f"k{n}": int(n >= 40) for n in range(200) if n not in range(30, 40)}
    shown = spark.read.format("pyhudi").load(path).select("id", "n").collect()
    sick = [one.code for one in table.validate(deep=True).collect() if one.severity == "error"]
    return sorted(map(tuple, shown)) == sorted(expected.items()) and not sick


wrong, warned, tasks = [], [], []
few_keys = read_seam("few keys for the driver")
for case in cases:
    index, keys, kind, way = case.split()
    set_seam("few keys for the driver", few_keys if keys == "few" else -1)
    warnings.clear()
    right = is_right(index, keys, kind, way, f"{folder}/{index}-{keys}", f"{index} {keys}" in kills)
    wrong += [] if right else [case]
    warned += [case] if any("pandas is installed" in one for one in warnings) else []
pandas = spark.sparkContext.parallelize(range(2), 2).map(lambda _: find_spec("pandas") is not None).collect()
found = {"pandas": any(pandas) or find_spec("pandas") is not None, "wrong": wrong, "warned": warned}
print(json.dumps({**found, "killed": len(killed), "rescaled": tasks}))
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The Python of an environment with pyhudi and what it needs, which has no pandas."""
    python, site = new_environment(tmp_path / "node")
    link_packages_without(site, "pandas")
    shutil.unpack_archive(build_wheel(tmp_path), site, format="zip")
    return python


def run(folder: Path, python: Path) -> dict[str, object]:
    """Run the job on a standalone cluster whose executors are processes, and return what it printed."""
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.executor.extraJavaOptions": f"-Dpyhudi.test={folder}",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.liveUpdate.period": "0",
        **INTERPRETED,
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    program = [str(folder / "job.py"), str(folder), CASES.strip(), ",".join(KILLS)]
    process = subprocess.run(
        [SPARK_HOME / "bin" / "spark-submit", "--master", "local-cluster[2,1,700]", *options, *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={
            **variables_without("PYTHON", "PYSPARK_", "SPARK_"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "PYTHONPATH": os.pathsep.join([str(Path(seams.__file__).parent), str(WARM)]),
        },
        cwd=folder,
    )
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
    return dict(json.loads(process.stdout.splitlines()[-1]))


def test_writes_are_right_without_pandas_while_executors_die(tmp_path: Path, python: Path) -> None:
    """The commit looks up what tasks cannot without pandas, and says so in the log."""
    report = run(tmp_path, python)

    assert (report["pandas"], report["wrong"], report["killed"]) == (False, [], len(KILLS))
    assert report["rescaled"] == [2, 2, 2]
    # Spark reads the keys of base files itself, but not those of log files; global indexes want Python for all.
    by_commit = [case for case in CASES.strip().splitlines() if case.startswith(("GLOBAL", "BLOOM many"))]
    assert report["warned"] == by_commit
