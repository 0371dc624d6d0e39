"""Jobs: one write each, with a result on stdout and an exit code for schedulers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyhudi import HudiTable, errors
from pyhudi.connector.jobs import exit_code, main
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> str:
    spark.range(10).selectExpr("id", "1 n").coalesce(1).write.parquet(str(tmp_path / "rows"))
    return f"parquet:{tmp_path / 'rows'}"


def test_a_job_prints_what_it_did(
    spark: SparkSession, tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "t")

    assert main(["upsert", "--path", path, "--source", source, "--option", "recordkey=id"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["path"], made["operation"], made["inserts"]) == (path, "UPSERT", 10)

    assert main(["upsert", "--path", path, "--source", "sql:select 3L id, 2 n"]) == 0
    assert json.loads(capsys.readouterr().out)["updates"] == 1

    assert main(["delete", "--path", path, "--source", "sql:select 4L id"]) == 0
    assert json.loads(capsys.readouterr().out)["deletes"] == 1
    assert HudiTable(spark, path).to_df().count() == 9


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--source", "{source}"], 2),  # a new table needs a record key
        (["--source", "{source}", "--option", "recordkey=id", "--option", "nonsense=1"], 2),
        (["--source", "nowhere"], 2),
        (["--source", "{source}", "--option", "recordkey"], 2),
        (["--source", "sql:select cast(null as long) id", "--option", "recordkey=id"], 3),
        (["--source", "{source}", "--option", "recordkey=id", "--path", "{other}"], 5),
    ],
)
def test_the_exit_code_says_what_the_caller_can_do(
    tmp_path: Path, source: str, arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    filled = [one.format(source=source, other=other) for one in arguments]

    assert main(["upsert", "--path", str(tmp_path / "t"), *filled]) == code

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("PyHudiError[")


def test_every_kind_of_error_has_its_code() -> None:
    codes = {name: exit_code(getattr(errors, name)("", "")) for name in errors.__all__ if name.endswith("Error")}

    assert set(codes.values()) == {1, 2, 3, 4, 5}
    assert [name for name, code in codes.items() if code == 1] == ["PyHudiError"]
    assert (codes["NullKeyError"], codes["CommitConflictError"], codes["StorageError"]) == (3, 4, 4)


def test_an_unknown_argument_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["upsert", "--pth", "x"])

    assert caught.value.code == 2


def test_spark_submit_hands_the_exit_code_on(tmp_path: Path) -> None:
    """In a process of its own; a job that fails does not end as if nothing had been."""
    import pyspark

    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable}
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    common = ["--master", "local[1]", "--conf", "spark.ui.enabled=false", "examples/submit_job.py"]

    rows = "sql:select cast(null as long) id"
    job = ["upsert", "--path", str(tmp_path / "t"), "--source", rows, "--option", "recordkey=id"]

    done = subprocess.run(
        [submit, *common, *job],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=environment,
        cwd=ROOT,
    )

    assert done.returncode == 3, done.stderr[-3000:]
    assert "PyHudiError[NULL_KEY]" in done.stderr
