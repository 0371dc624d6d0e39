"""Few rows that lie in this process already: written without a job, as Spark's tasks would write them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyhudi
import pytest
from pyhudi import HudiTable
from pyhudi.connector.table.local_writes import is_local, local_rows
from pyhudi.errors import PyHudiError
from pyhudi.operations.inspect.activity import activity
from pyhudi.operations.inspect.history import history
from pyhudi.operations.result import CommitResult
from pyhudi.table.table import open_table
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StructField, StructType
from support.drive import rows_of
from support.places import files_below
from support.readers import read_without_spark
from support.rules.health import findings
from support.seams import patch_seam, read_seam
from support.threads import HANGS_S

from .test_types import VALUES, exactly

LOCAL = "hoodie.pyhudi.write.local"
TABLE_TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
SCHEMA = "id string not null, p string, ts bigint, n int"
NUMBERS = re.compile(r"\d{17}|[0-9a-f]{8}-[0-9a-f-]{27,}|_\d+-\d+-\d+|-\d+_\d+-\d+-\d+")


@pytest.fixture(autouse=True)
def rows_by_tasks() -> None:
    """Here `HudiTable` chooses by itself."""


@pytest.fixture(autouse=True)
def one_task(spark: SparkSession) -> Iterator[None]:
    """Through Spark all rows come in one task, so that both ways make the same files."""
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
    yield
    spark.conf.unset("spark.sql.leafNodeDefaultParallelism")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each write so far was carried out in this process."""
    local_flags: list[bool] = []
    write = read_seam("write few rows without tasks")

    def noted(*args: Any) -> CommitResult | None:
        try:
            result: CommitResult | None = write(*args)
        except BaseException:
            local_flags.append(True)
            raise
        local_flags.append(result is not None)
        return result

    patch_seam(monkeypatch, "write few rows without tasks", noted)
    return local_flags


def rows(*keys: object, n: int = 1, ts: int = 1) -> pa.Table:
    names = [None if key is None else f"k{key}" for key in keys]
    columns = {"id": pa.array(names, pa.string()), "p": ["a"] * len(keys)}
    return pa.table(
        {**columns, "ts": pa.array([ts] * len(keys), pa.int64()), "n": pa.array([n] * len(keys), pa.int32())}
    )


def table(spark: SparkSession, path: Path, **more: Any) -> HudiTable:
    terms = {"record_key": "id", "order_by": "ts", "partition_by": "p", "buckets": 2, **more}
    return HudiTable.create(spark, path, SCHEMA, **terms)


def every_type(spark: SparkSession) -> DataFrame:
    """Return three rows with a column of every type, which lie in the driver."""
    columns = [[part.strip() for part in line.split(";")] for line in VALUES.replace(";\n", ";").strip().split("\n")]
    values = ", ".join(f"({n}, 1L, {', '.join(column[n + 1] for column in columns)})" for n in range(3))
    return spark.sql(f"select * from values {values} as t(id, ts_, {', '.join(name for name, *_ in columns)})")  # noqa: S608


def of_tasks(df: DataFrame) -> pa.Table:
    """Return rows as Spark hands them to a task of Python."""

    def captured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = pa.Table.from_batches(list(batches))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, held.schema) as out:
            out.write_table(held)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()])], names=["held"])

    found = df.mapInArrow(captured, StructType([StructField("held", BinaryType())])).collect()
    return pa.ipc.open_stream(found[0].held).read_all()


@pytest.mark.oldest
def test_the_rows_are_those_that_spark_hands_to_a_task(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "most bytes of rows that need no tasks", 64 << 20)
    df = every_type(spark)

    batches = local_rows(df)

    assert batches is not None
    ours, theirs = pa.Table.from_batches(batches), of_tasks(df)
    kinds = [
        kind if not pa.types.is_timestamp(kind) or kind.tz is None else ours.schema.field("ts").type
        for kind in theirs.schema.types
    ]
    assert ours.schema.types == kinds
    assert str(ours.schema.field("ts").type) == "timestamp[us, tz=UTC]"
    assert [field.nullable for field in ours.schema] == [field.nullable for field in theirs.schema]
    for name, column in zip(ours.column_names, theirs.columns, strict=True):
        mine = ours.column(name)
        held = mine.cast(column.type) if pa.types.is_timestamp(column.type) else mine
        assert repr(held.to_pylist()) == repr(column.to_pylist()), name


@pytest.mark.oldest
def test_what_is_not_local_or_much_takes_a_job(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    df = spark.createDataFrame(rows(1, 2))
    plus = sf.udf(lambda n: n + 1, "int")

    assert [batch.num_rows for batch in local_rows(df.where("id > 'k1'").select("id")) or []] == [1]
    assert local_rows(spark.createDataFrame(rows(1).slice(0, 0))) == []
    for other in (
        df.withColumn("n", plus("n")),
        df.union(df),
        df.join(df, "id"),
        df.repartition(2),
        spark.createDataFrame(df.rdd, df.schema),
        spark.range(3),
        df.observe("seen", sf.count("*")),
    ):
        assert not is_local(other) or local_rows(other) is None
    patch_seam(monkeypatch, "most bytes of rows that need no tasks", 100)
    assert local_rows(df) is None


@pytest.mark.oldest
def test_an_error_of_the_query_is_left_to_the_job(spark: SparkSession, tmp_path: Path, here: list[bool]) -> None:
    made = table(spark, tmp_path / "t")
    bad = spark.createDataFrame(rows(1)).selectExpr("id", "p", "ts", "cast(concat(id, 'x') as int) n")

    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        made.upsert(bad)

    assert here == [False]
    assert history(made._storage).num_rows == 0


@pytest.mark.oldest
@pytest.mark.parametrize("kind", TABLE_TYPES)
def test_every_value_comes_back_as_it_was(
    spark: SparkSession, tmp_path: Path, kind: str, here: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_seam(monkeypatch, "most bytes of rows that need no tasks", 64 << 20)
    df = every_type(spark)
    terms = {"record_key": "id", "order_by": "ts_", "buckets": 2, "table_type": kind}
    ours = HudiTable.create(spark, tmp_path / "ours", df, **terms)
    theirs = HudiTable.create(spark, tmp_path / "theirs", df, **terms)

    for _ in range(2):
        ours.upsert(df)
        theirs.upsert(df, **{LOCAL: "never"})

    assert here == [True, False, True, False]
    assert exactly(ours.to_df()) == exactly(theirs.to_df()) == exactly(df.selectExpr(*ours.to_df(meta=False).columns))
    assert ours.to_df().schema == theirs.to_df().schema
    assert _parquet(ours) == _parquet(theirs)


def _parquet(made: HudiTable) -> list[str]:
    files = sorted(path for path in files_below(Path(made.path)) if path.endswith(".parquet") and ".hoodie" not in path)
    schemas = [pq.read_schema(Path(made.path, path)) for path in files]
    return [schema.remove_metadata().to_string() for schema in schemas]


def _told(made: HudiTable) -> list[dict[str, Any]]:
    """Return what the completed instants say, without times, sizes and ids."""
    opened = open_table(made._storage)
    timeline = opened.timeline()
    return [_masked(timeline.files.read_commit(instant).model_dump(), made.path) for instant in timeline.completed]


def _masked(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {
            NUMBERS.sub("*", key): "*"
            if re.search("seconds|size|bytes|time|write.id|lookup", key, re.I)
            else _masked(one, path)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_masked(one, path) for one in value]
    return NUMBERS.sub("*", value).replace(path, "T") if isinstance(value, str) else value


def _result(done: CommitResult, path: str) -> Any:
    told = asdict(done)
    told["seconds"] = sorted(done.seconds)
    return _masked({name: value for name, value in told.items() if name != "write_id"}, path)


CALLS: dict[str, Callable[[HudiTable, dict[str, Any]], CommitResult]] = {
    "upsert": lambda made, given: made.upsert(rows(1, 2, 9, n=2, ts=2), **given),
    "partial upsert": lambda made, given: made.upsert(rows(1, 2).select(["id", "p", "ts"]), partial=True, **given),
    "insert": lambda made, given: made.insert(rows(1, 9), **given),
    "insert without duplicates": lambda made, given: made.insert(
        rows(1, 9), **{"hoodie.datasource.insert.dup.policy": "drop"}, **given
    ),
    "bulk insert": lambda made, given: made.bulk_insert(
        rows(9, 8), **{"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}, **given
    ),
    "delete": lambda made, given: made.delete(rows(1, 7).select(["id", "p", "ts"]), **given),
    "insert overwrite": lambda made, given: made.insert_overwrite(rows(9), **given),
    "overwrite": lambda made, given: made.overwrite(rows(9), **given),
    "rows of a new column": lambda made, given: made.upsert(rows(1).append_column("x", pa.array([1])), **given),
    "no rows": lambda made, given: made.upsert(rows(), **given),
    "no rows, no commit": lambda made, given: made.upsert(rows(), **{"hoodie.allow.empty.commit": "false"}, **given),
    "metadata and notices": lambda made, given: made.upsert(
        rows(1),
        **{"_job": "j", "hoodie.upsert.shuffle.parallelism": "9", "hoodie.write.application.id": "app"},
        **given,
    ),
    "a write that is replayed": lambda made, given: [
        made.upsert(rows(n), **{"hoodie.pyhudi.write.id": "w"}, **given) for n in (1, 2)
    ][1],
}
INDEXES: dict[str, dict[str, Any]] = {
    "buckets": {},
    "log files": {"table_type": "MERGE_ON_READ"},
    "SIMPLE": {"index": "SIMPLE", "buckets": None},
    "BLOOM, log files": {"index": "BLOOM", "buckets": None, "table_type": "MERGE_ON_READ"},
}


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param("buckets", marks=pytest.mark.slow),
        pytest.param("log files", marks=pytest.mark.long),
        pytest.param("SIMPLE", marks=pytest.mark.long),
        pytest.param("BLOOM, log files", marks=pytest.mark.oldest),
    ],
)
def test_both_ways_leave_the_same_table(spark: SparkSession, tmp_path: Path, terms: str, here: list[bool]) -> None:
    """The same rows, instants, files and results, after each operation on a table of its own."""
    for number, (name, call) in enumerate(CALLS.items()):
        made = {way: table(spark, tmp_path / way / f"t{number}", **INDEXES[terms]) for way in ("auto", "never")}
        told = {}
        for way, hudi_table in made.items():
            for keys in ((1, 2, 3), (3, 4)):
                hudi_table.upsert(rows(*keys))
            told[way] = _result(call(hudi_table, {LOCAL: way}), hudi_table.path)
        assert told["auto"] == told["never"], name
        assert _told(made["auto"]) == _told(made["never"]), name
        assert shown(made["auto"]) == shown(made["never"]), name
        assert [findings(one.path, deep=False) for one in made.values()] == [[], []], name
    assert here == [True, True, True, True, True, False] * (len(CALLS) - 1) + [True] * 6 + [False] * 2


def shown(made: HudiTable) -> list[str]:
    """Return what tasks of Spark hand to it of a table, but for what each write invents."""
    invented = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
    return sorted(map(repr, read_without_spark(Path(made.path)).drop_columns(invented).to_pylist()))


WRONG: dict[str, Callable[[HudiTable, dict[str, Any]], CommitResult]] = {
    "a key of null": lambda made, given: made.upsert(rows(1, None), **given),
    "an ordering value of null": lambda made, given: made.upsert(
        rows(1).set_column(2, "ts", pa.nulls(1, pa.int64())), **given
    ),
    "no text for a number": lambda made, given: made.upsert(rows(1).set_column(3, "n", pa.array(["x"])), **given),
    "no key column": lambda made, given: made.upsert(rows(1).drop_columns(["id"]), **given),
    "two columns of one name": lambda made, given: made.upsert(
        rows(1).append_column("N", pa.array([1], pa.int32())), **given
    ),
    "a key that is there": lambda made, given: made.insert(
        rows(1), **{"hoodie.datasource.insert.dup.policy": "fail"}, **given
    ),
    "a key that is not there": lambda made, given: made.delete(rows(7), missing_ok=False, **given),
    "a partial upsert of no row": lambda made, given: made.upsert(rows(7).drop_columns(["n"]), partial=True, **given),
    "options that disagree": lambda made, given: made.upsert(
        rows(1), **{"hoodie.bucket.index.num.buckets": 7}, **given
    ),
}


@pytest.mark.oldest
@pytest.mark.parametrize("wrong", WRONG)
def test_both_ways_fail_alike_and_leave_nothing(
    spark: SparkSession, tmp_path: Path, wrong: str, here: list[bool]
) -> None:
    errors = []
    for way in ("auto", "never"):
        made = table(spark, tmp_path / way)
        made.upsert(rows(1), **{LOCAL: way})
        with pytest.raises(PyHudiError) as raised:
            WRONG[wrong](made, {LOCAL: way})
        errors.append(
            (type(raised.value), raised.value.code, NUMBERS.sub("*", str(raised.value)).replace(made.path, "T"))
        )
        assert activity(made._storage).num_rows == 0
        assert history(made._storage).num_rows == 1
        assert rows_of(made.path, "n") == [(1,)]
    assert errors[0] == errors[1]
    assert here in ([True, True, False, False], [True, False])


@pytest.mark.oldest
def test_what_touches_much_takes_a_job(
    spark: SparkSession, tmp_path: Path, here: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, looked_up = table(spark, tmp_path / "t"), table(spark, tmp_path / "l", index="GLOBAL_SIMPLE", buckets=None)
    for hudi_table in (made, looked_up):
        hudi_table.upsert(rows(*range(9)))
    patch_seam(monkeypatch, "most bytes of files of a write that needs no tasks", 10)
    for hudi_table in (made, looked_up):
        hudi_table.upsert(rows(1))
    made.insert_overwrite(rows(1))
    patch_seam(monkeypatch, "most bytes of files of a write that needs no tasks", 1 << 20)
    patch_seam(monkeypatch, "most file groups of a write that needs no tasks", 0)
    for hudi_table in (made, looked_up):
        hudi_table.upsert(rows(1))

    assert here == [True, True, False, False, True, False, False]


@pytest.mark.oldest
def test_an_option_says_otherwise(spark: SparkSession, tmp_path: Path, here: list[bool]) -> None:
    made = table(spark, tmp_path / "t")
    made.upsert(rows(1), **{LOCAL: "never"})
    made.upsert(rows(1), **{"hoodie.pyhudi.place.rows": "always"})
    made.upsert(colocated(spark, made))
    HudiTable(spark, made.path, {LOCAL: "never"}).upsert(rows(1))
    made.upsert(rows(1).to_pandas())

    assert here == [False, False, False, False, True]


def colocated(spark: SparkSession, made: HudiTable) -> DataFrame:
    return pyhudi.colocate(spark.createDataFrame(rows(1)), made)


@pytest.mark.parametrize("kind", TABLE_TYPES)
def test_eight_threads_write_one_bucket(spark: SparkSession, tmp_path: Path, kind: str, here: list[bool]) -> None:
    made = table(spark, tmp_path / "t", buckets=1, table_type=kind)
    made.upsert(rows("shared"))

    def write(writer: int) -> list[CommitResult]:
        return [made.upsert(rows("shared", f"{writer}-{turn}", n=turn, ts=turn)) for turn in range(2, 6)]

    with ThreadPoolExecutor(8) as pool:
        done = [one for some in pool.map(write, range(8)) for one in some]

    assert len({one.instant for one in done}) == 32
    assert dict(rows_of(made.path, "id", "n")) == {
        "kshared": 5,
        **{f"k{writer}-{turn}": turn for writer in range(8) for turn in range(2, 6)},
    }
    assert all(here)
    assert findings(made.path, deep=False) == []


MOMENTS = [
    "append rows to a spill",
    "table that a commit merges with",
    "write a file group",
    "remove files that no task reported",
    "changes of a commit",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_undoes_the_write(
    spark: SparkSession, tmp_path: Path, moment: str, here: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C in a notebook."""
    made = table(spark, tmp_path / "t")
    made.upsert(rows(1))

    with monkeypatch.context() as patch:
        interrupt_at(patch, moment)
        with pytest.raises(KeyboardInterrupt):
            made.upsert(rows(1, 2, n=2, ts=2))

    assert here == [True, True]
    assert activity(made._storage).num_rows == 0
    assert history(made._storage).num_rows == 1
    assert rows_of(made.path, "n") == [(1,)]
    assert made.upsert(rows(1, 2, n=3, ts=3)).attempts == 1
    assert rows_of(made.path, "n") == [(3,), (3,)]
    assert findings(made.path, deep=False) == []


def test_an_interrupt_after_the_commit_leaves_the_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(spark, tmp_path / "t")

    with monkeypatch.context() as patch:
        interrupt_at(patch, "forget the work of a commit")
        with pytest.raises(KeyboardInterrupt):
            made.upsert(rows(1))

    assert activity(made._storage).num_rows == 0
    assert rows_of(made.path, "n") == [(1,)]


def interrupt_at(patch: pytest.MonkeyPatch, moment: str) -> None:
    act, left = read_seam(moment), [signal.SIGINT]

    def interrupted(*args: Any, **more: Any) -> Any:
        # Several threads may come here, and a user interrupts once.
        while left:
            os.kill(os.getpid(), left.pop())
            # Whichever thread this is, the main thread gets the signal meanwhile.
            time.sleep(0.5)
        return act(*args, **more)

    patch_seam(patch, moment, interrupted)


DYING = """
import os, signal, sys
import pyarrow as pa
from pyspark.sql import SparkSession
from pyhudi import HudiTable
from support.seams import set_seam

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
set_seam("table that a commit merges with", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
HudiTable(spark, sys.argv[1]).upsert(pa.table({"id": ["k1"], "p": ["a"], "ts": [2], "n": pa.array([2], pa.int32())}))
"""


@pytest.mark.slow
def test_the_write_of_a_killed_driver_is_rolled_back(spark: SparkSession, tmp_path: Path) -> None:
    made = table(spark, tmp_path / "t")
    made.upsert(rows(1))

    tests = str(Path(__file__).parents[1])
    process = subprocess.run(
        [sys.executable, "-c", DYING, made.path],
        cwd=tests,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )

    assert process.returncode == -signal.SIGKILL, process.stderr[-2000:]
    assert activity(made._storage).column("phase").to_pylist() == ["committing"]
    made.upsert(rows(2))
    assert activity(made._storage).num_rows == 0
    assert rows_of(made.path, "id", "n") == [("k1", 1), ("k2", 1)]
