"""pyhudi on a cluster whose nodes do not have it: sent along as a wheel, or within a packed environment."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.environments import (
    SPARK_HOME,
    build_wheel,
    copy_packages,
    link_packages,
    new_environment,
    variables_without,
)
from support.sessions import BRIEF, INTERPRETED

pytestmark = pytest.mark.slow

JOB = """
import json, sys
import pyhudi
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
path = sys.argv[1]
rows = spark.range(100).selectExpr("id", "cast(id % 3 as string) p", "0 n").repartition(4)
rows.write.format("pyhudi").options(recordkey="id", partitionby="p").mode("append").save(path)
table = pyhudi.HudiTable(spark, path)
done = table.upsert(rows.where("id < 10").selectExpr("id", "p", "1 n"))
found = spark.read.format("pyhudi").load(path)
places = spark.sparkContext.parallelize(range(2), 2).map(lambda _: __import__("pyhudi").__file__).distinct().collect()
print(json.dumps({
    "driver": pyhudi.__file__,
    "executors": places,
    "updates": done.updates,
    "rows": found.count(),
    "new": found.where("n = 1").count(),
}))
"""


def zipped(folder: Path) -> Path:
    """Pack a folder as ``shutil.make_archive`` does, without the time that it takes to compress it."""
    archive = folder.with_name("pyhudi.zip")
    with zipfile.ZipFile(archive, "w") as file:
        for one in sorted(folder.rglob("*")):
            file.write(one, one.relative_to(folder))
    return archive


def submit(folder: Path, arguments: list[str], environment: Mapping[str, str]) -> dict[str, object]:
    """Run the job on two executors with processes and folders of their own, and return what it printed."""
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "800m",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.enabled": "false",
        **INTERPRETED,
        **BRIEF,
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    program = [str(folder / "job.py"), str(folder / "table")]
    process = subprocess.run(
        [SPARK_HOME / "bin" / "spark-submit", "--master", "local-cluster[2,1,800]", *options, *arguments, *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={
            **variables_without("PYTHON", "PYSPARK_", "SPARK_"),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "workers"),
            **environment,
        },
        cwd=folder,
    )
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
    printed: dict[str, object] = json.loads(process.stdout.splitlines()[-1])
    return printed


def test_a_wheel_is_enough_where_its_dependencies_are_installed(tmp_path: Path) -> None:
    """``--py-files`` for the program and the executors, ``PYTHONPATH`` for the look-up beside the JVM."""
    wheel = build_wheel(tmp_path)
    python, site = new_environment(tmp_path / "node")
    link_packages(site)
    without = subprocess.run(
        [python, "-E", "-c", "import pyarrow, pyhudi"], capture_output=True, text=True, check=False
    )
    assert "No module named 'pyhudi'" in without.stderr
    environment = {"PYSPARK_PYTHON": str(python), "PYTHONPATH": str(wheel)}

    report = submit(tmp_path, ["--py-files", str(wheel)], environment)

    assert (report["updates"], report["rows"], report["new"]) == (10, 100, 10)
    places = [report["driver"], *report["executors"]]  # type: ignore[misc]
    assert all(f"{wheel.name}/pyhudi/" in str(place) for place in places), places


def test_a_packed_environment_needs_nothing_on_the_nodes(tmp_path: Path) -> None:
    """The executors unpack it, and the driver's folder has it too, as in the docs."""
    (tmp_path / "wheel").mkdir()
    packed = tmp_path / "environment"
    python, site = new_environment(packed)
    copy_packages(build_wheel(tmp_path / "wheel"), site)
    archive = zipped(packed)
    environment = {"PYSPARK_DRIVER_PYTHON": str(python), "PYSPARK_PYTHON": "./environment/bin/python"}

    report = submit(tmp_path, ["--archives", f"{archive}#environment"], environment)

    assert (report["updates"], report["rows"], report["new"]) == (10, 100, 10)
    places = [str(place) for place in report["executors"]]  # type: ignore[attr-defined]
    assert str(packed) in str(report["driver"])
    assert all("/environment/" in place and str(packed) not in place for place in places), places
