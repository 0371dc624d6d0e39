"""Every way in which keys are looked up and rows placed, on a cluster without pandas that loses its executors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import seams
from support.environments import SPARK_HOME, build_wheel, link_packages_without, new_environment, variables_without

pytestmark = pytest.mark.slow

JOB = """
import json, logging, sys
from importlib.util import find_spec
import pyhudi
from pyspark.sql import SparkSession
from seams import read_seam, set_seam

warnings = []
class Kept(logging.Handler):
    def emit(self, record):
        warnings.append(record.getMessage())
logging.getLogger("pyhudi").addHandler(Kept())
spark = SparkSession.builder.getOrCreate()
folder, kind = sys.argv[1:]
always = {"hoodie.pyhudi.place.rows": "always", "hoodie.compact.inline": "false"}


def rows(numbers, n):
    columns = ("concat('k', id) id", "cast(id % 3 as string) p", f"{n + 1} ts", f"{n} n")
    return spark.range(numbers.start, numbers.stop).selectExpr(*columns).repartition(4)


def upserted(index, path):
    settings = {"buckets": 2} if index == "BUCKET" else {}
    keys = {"record_key": "id", "partition_by": "p", "order_by": "ts"}
    table = pyhudi.HudiTable.create(spark, path, rows(range(1), 0), **keys, index=index, table_type=kind, **settings)
    expected = {}
    for n, numbers in enumerate([range(200), range(40, 160), range(100, 240)]):
        table.upsert(rows(numbers, n), **always)
        expected |= {f"k{number}": n for number in numbers}
    gone = range(5, 15)
    table.delete(rows(gone, 9).select("id", "p"), **always)
    expected = {key: n for key, n in expected.items() if int(key[1:]) not in gone}
    shown = spark.read.format("pyhudi").load(path).select("id", "n").collect()
    sick = [one.code for one in table.validate(deep=True).collect() if one.severity == "error"]
    return sorted(map(tuple, shown)) == sorted(expected.items()) and not sick


wrong, warned = [], []
for few in (read_seam("few found keys for the driver"), -1):
    for seam in ("few found keys for the driver", "few unique keys for the driver"):
        set_seam(seam, few)
    for index in ("BUCKET", "SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"):
        name = f"{index} {'few' if few > 0 else 'many'}"
        warnings.clear()
        wrong += [] if upserted(index, f"{folder}/{name}".replace(" ", "-")) else [name]
        warned += [name] if any("pandas is installed" in one for one in warnings) else []
pandas = spark.sparkContext.parallelize(range(2), 2).map(lambda _: find_spec("pandas") is not None).collect()
print(json.dumps({"pandas": any(pandas) or find_spec("pandas") is not None, "wrong": wrong, "warned": warned}))
"""
BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
DEATHS = 8


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with pyhudi and what it needs, which has no pandas."""
    folder = tmp_path_factory.mktemp("environment")
    python, site = new_environment(folder / "node")
    link_packages_without(site, "pandas")
    shutil.unpack_archive(build_wheel(folder), site, format="zip")
    return python


@contextmanager
def process(*arguments: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a part of the cluster."""
    with (folder / f"{arguments[0].rpartition('.')[2]}-{arguments[-1].rpartition(':')[2]}.log").open("wb") as log:
        started = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-class", *arguments], stdout=log, stderr=log, env=environment, cwd=folder
        )
        try:
            yield
        finally:
            started.terminate()
            started.wait(60)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Iterator[str]:
    """The address of a standalone cluster of a master and two workers, which start executors anew for ever."""
    folder, port = tmp_path_factory.mktemp("cluster"), free_port()
    environment = {
        **variables_without("PYTHON", "PYSPARK_", "SPARK_"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
        "SPARK_DAEMON_MEMORY": "300m",
    }
    address, deploy = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    on = {"folder": folder, "environment": environment}
    webless = ("--webui-port", "0")
    with process(f"{deploy}.master.Master", "--host", "127.0.0.1", *webless, "--port", str(port), **on):  # type: ignore[arg-type]
        work = ("--cores", "1", "--memory", "800m", *webless, "--work-dir", str(folder / "work"))
        with (
            process(f"{deploy}.worker.Worker", *work, address, **on),  # type: ignore[arg-type]
            process(f"{deploy}.worker.Worker", *work, "--port", str(free_port()), address, **on),  # type: ignore[arg-type]
        ):
            yield address


def executors(application: str) -> list[int]:
    """Return the processes of the executors of an application."""
    found = []
    for process_folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (process_folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if BACKEND in line and application in line:
            found.append(int(process_folder.name))
    return found


def run(folder: Path, python: Path, master: str, *arguments: str) -> dict[str, object]:
    """Run the job, kill executors meanwhile, and return what it printed, with how many were killed."""
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    name = folder.name
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.executor.extraJavaOptions": f"-Dpyhudi.test={name}",
        "spark.sql.shuffle.partitions": "3",
        "spark.task.maxFailures": "20",
        "spark.stage.maxConsecutiveAttempts": "20",
        "spark.ui.enabled": "false",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    program = [str(folder / "job.py"), str(folder), *arguments]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        job = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-submit", "--master", master, *options, *program],
            stdout=out,
            stderr=err,
            env={
                **variables_without("PYTHON", "PYSPARK_", "SPARK_"),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": str(python),
                "PYSPARK_DRIVER_PYTHON": str(python),
                "PYTHONPATH": str(Path(seams.__file__).parent),
            },
            cwd=folder,
        )
        killed, end = 0, time.monotonic() + 1200
        while job.poll() is None:
            assert time.monotonic() < end, (folder / "err").read_text()[-4000:]
            time.sleep(5)
            alive = executors(f"-Dpyhudi.test={name}") if killed < DEATHS else []
            if alive:
                os.kill(alive[0], signal.SIGKILL)
                killed += 1
    assert job.returncode == 0, (folder / "out").read_text()[-2000:] + (folder / "err").read_text()[-4000:]
    return {**json.loads((folder / "out").read_text().splitlines()[-1]), "killed": killed}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_upserts_are_right_without_pandas_while_executors_die(
    tmp_path: Path, python: Path, master: str, kind: str
) -> None:
    """The commit looks up what tasks cannot without pandas, and says so in the log."""
    found = run(tmp_path, python, master, kind)

    assert (found["pandas"], found["wrong"]) == (False, [])
    assert found["killed"] == DEATHS
    by_commit = [f"GLOBAL_{index} {keys}" for keys in ("few", "many") for index in ("SIMPLE", "BLOOM")]
    if kind == "MERGE_ON_READ":  # whose log files Spark does not read
        by_commit += ["SIMPLE many", "BLOOM many"]
    assert sorted(found["warned"]) == sorted(by_commit)  # type: ignore[call-overload]
