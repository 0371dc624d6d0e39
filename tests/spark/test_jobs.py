"""Jobs: one write each, with a result on stdout and an exit code for schedulers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyhudi import HudiTable, errors
from pyhudi.connector.jobs import command, exit_code, main
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
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


LONG_NAMES = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "n",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.pyhudi.commit.merge.max.bytes": "1",
}


@pytest.mark.parametrize(
    "rows",
    [
        "sql:select id, n, id % 3 p from range(20) cross join (values (1), (2)) v(n)",
        "sql:select 'k' || id id, n, id % 3 p from range(20) cross join (values (1), (2)) v(n)",
    ],
    ids=["numbers", "texts"],
)
def test_a_first_load_is_merged_by_the_executors_whatever_its_size(
    spark: SparkSession, tmp_path: Path, rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a new table too, whose properties nobody has written yet."""
    path, options = str(tmp_path / "t"), [f"--option={name}={value}" for name, value in LONG_NAMES.items()]

    assert main(["upsert", "--path", path, "--source", rows, *options]) == 0
    assert json.loads(capsys.readouterr().out)["inserts"] == 20
    config = load_config(open_storage(path))
    assert (config.record_key_fields, config.partition_fields, config.bucket_count) == (("id",), ("p",), 2)
    assert {row.n for row in HudiTable(spark, path).to_df().collect()} == {2}


def test_a_first_load_takes_the_options_of_the_defaults_file(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hudi-defaults.conf").write_text("hoodie.datasource.write.recordkey.field id\n")
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))

    assert main(["upsert", "--path", str(tmp_path / "t"), "--source", source]) == 0
    assert load_config(open_storage(str(tmp_path / "t"))).record_key_fields == ("id",)


def test_an_insert_without_a_record_key_makes_a_table_of_generated_keys(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "t")

    for _ in range(2):
        assert main(["insert", "--path", path, "--source", source]) == 0
        assert json.loads(capsys.readouterr().out)["inserts"] == 10
    assert load_config(open_storage(path)).generates_keys


def test_a_first_load_that_is_refused_leaves_no_table(tmp_path: Path) -> None:
    """It can be run again with another record key."""
    job = ["upsert", "--path", str(tmp_path / "t"), "--source", "sql:select cast(null as long) id, 1 n"]

    assert main([*job, "--option", "recordkey=id"]) == 3
    assert main([*job, "--option", "recordkey=n"]) == 0


def test_a_first_load_without_rows_may_leave_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--option", "recordkey=id", "--option", "hoodie.allow.empty.commit=false"]

    assert main(["upsert", "--path", str(tmp_path / "t"), "--source", "sql:select 1 id limit 0", *options]) == 0
    assert json.loads(capsys.readouterr().out)["instant"] == ""
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


def test_a_job_deletes_partitions_by_name(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, named = str(tmp_path / "t"), "hoodie.datasource.write.partitions.to.delete"
    delete = ["delete_partition", "--path", path]
    assert main([*delete, "--option", f"{named}=a"]) == 5
    rows = "sql:select id, concat('p', id) p from range(4)"
    assert main(["upsert", "--path", path, "--source", rows, "--option", "recordkey=id", "--option=partitionby=p"]) == 0
    capsys.readouterr()

    assert main(delete) == 2
    assert main([*delete, "--option", f"{named}= , "]) == 2
    assert named in capsys.readouterr().err
    assert main([*delete, "--option", f"{named}=p0,*2"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["operation"], done["replaced"]) == ("DELETE_PARTITION", 2)
    assert sorted(row.id for row in HudiTable(spark, path).to_df().collect()) == [1, 3]


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["upsert", "--pth", "x"],
        ["upsert", "--path", "x"],
        ["delete_partition", "--path", "x", "--source", "sql:select 1"],
    ],
    ids=["unknown", "no source", "a source too many"],
)
def test_a_wrong_argument_is_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2


@pytest.mark.slow
def test_spark_submit_hands_the_exit_code_on(tmp_path: Path) -> None:
    """In a process of its own; a job that fails does not end as if nothing had been."""
    import pyspark

    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable}
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    common = ["--master", "local[1]", "--conf", "spark.ui.enabled=false", "examples/submit_job.py"]

    rows = "sql:select cast(null as long) id"
    job = ["upsert", "--path", str(tmp_path / "t"), "--source", rows, "--option", "recordkey=id"]

    process = subprocess.run(
        [submit, *common, *job],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=environment,
        cwd=ROOT,
    )

    assert process.returncode == 3, process.stderr[-3000:]
    assert "PyHudiError[NULL_KEY]" in process.stderr


def test_the_command_makes_a_table_of_ddl(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run makes nothing, and a second call needs the arguments to agree."""
    path = tmp_path / "t"
    line = ["create", str(path), "--schema", "id string, p string, ts long", "--record-key", "id", "--yes"]
    line += ["--partition-by", "p", "--order-by", "ts", "--buckets", "2"]

    assert command([*line, "--dry-run"]) == 0
    assert not path.exists()
    assert command([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"path": str(path), "created": True, "dry": False}
    config = load_config(open_storage(str(path)))
    assert (config.record_key_fields, config.partition_fields, config.bucket_count) == (("id",), ("p",), 2)
    assert command(line) == 2
    assert command([*line, "--if-not-exists"]) == 0
    assert command([*line[:3], "id nonsense", *line[4:]]) != 0
    table = HudiTable(spark, str(path))
    assert [table.files().count(), table.sizes().count(), table.partitions().count(), table.timeline().count()] == [
        0
    ] * 4
    assert table.upsert(spark.sql("select 'a' id, 'x' p, 1L ts")).inserts == 1
    assert table.timeline(1).collect()[0].state == "COMPLETED"
    (file,) = table.files().collect()
    assert (file.partition, file.rows, file.log_files) == ("x", 1, [])
    assert table.files(as_of=file.instant).collect() == [file]
    assert table.sizes().collect()[0].live_bytes == file.bytes
    assert table.partitions().collect()[0].rows == 1
