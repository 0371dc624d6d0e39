"""Spark Connect: no SparkContext, no py4j. In a process of its own, because one process holds one kind of session."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest
from support import seams
from support.environments import SPARK_HOME, build_wheel, link_packages, new_environment, variables_without
from support.sessions import INTERPRETED, WARM

pytestmark = pytest.mark.oldest

pytest.importorskip("grpc_status", reason="needs pyspark[connect]")

# Where the client without a Spark of its own runs too, both ask one server: most of what one costs is its start.
IS_OLDEST = pyspark.__version__.startswith("4.0.")
BESIDE_THE_OTHER = pytest.mark.oldest if IS_OLDEST else pytest.mark.slow

SCRIPT = """
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pyarrow
import pyarrow.parquet as pq
from pyhudi import HudiTable, TableRows, bucket_join, colocate, from_spark, suggest_buckets
from pyhudi.connector.write_job import write
from pyhudi.errors import MissingColumnError, NullKeyError, OptionConflictError
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from seams import read_seam, set_seam

spark = SparkSession.builder.remote(os.environ["REMOTE"]).getOrCreate()
assert "connect" in type(spark).__module__
path = sys.argv[1]
df = spark.range(100).selectExpr("id", "cast(id % 3 as string) p", "0 n")
table = HudiTable.create(spark, path, df, record_key="id", partition_by="p", buckets=2)
assert table.to_df().count() == table.history().count() == table.savepoints().count() == 0
assert table.upsert(df).inserts == 100
assert table.upsert(df.where("id < 10").withColumn("n", sf.lit(1))).updates == 10
assert table.delete(df.where("id >= 90")).deletes == 10
assert table.to_df().count() == spark.read.format("pyhudi").load(path).count() == 90
assert table.to_df().where("n = 1").count() == 10
done = [row.completed for row in table.history().collect()]
assert table.to_df(["id"], since=done[2], until=done[1]).count() == 10
assert table.to_df(as_of=table.history().collect()[2].instant).where("n = 0").count() == 100
assert [row.operation for row in table.history().collect()] == ["DELETE", "UPSERT", "UPSERT"]
assert suggest_buckets(df) == 1
colocate(df, table, tasks=2).write.format("pyhudi").option("hoodie.pyhudi.colocated", "true").mode("append").save(path)
landed, streamed = f"{path}-landed", f"{path}-streamed"
df.write.json(landed)
writer = spark.readStream.schema(df.schema).json(landed).writeStream.format("pyhudi").options(recordkey="id")
writer = writer.option("checkpointLocation", f"{path}-checkpoint").trigger(availableNow=True)
writer.start(streamed).awaitTermination()
assert spark.read.format("pyhudi").load(streamed).count() == 100
assert table.last_commit().updates == 90
assert table.last_commit().inserts == 10

assert HudiTable.exists(spark, path) and not HudiTable.exists(spark, path + "/none")
assert table.schema.simpleString() == "struct<id:bigint,p:string,n:int>"
assert table.detail().first().buckets == 2
assert table.upsert(pyarrow.table({"id": [1], "p": ["1"], "n": pyarrow.array([7], "int32")})).updates == 1
other = HudiTable.create(spark, path + "_merged", df, record_key="id", partition_by="p", buckets=1)
other.upsert(df)
merge = other.merge(df.where("id < 3").withColumn("p", sf.lit("moved")), "id")
merge = merge.when_matched_update_all(sf.col("source.n") == 0)
merged = merge.when_not_matched_by_source_delete("target.id >= 80").execute()
assert (merged.inserts, merged.updates, merged.moved, merged.deletes) == (0, 3, 3, 20)
assert other.update({"target.N": sf.col("n") + 1, "p": sf.lit("target.p")}, sf.col("p") == "moved").moved == 3
query = "select sum(a.n) from {table} a join {b} b using (id) where a.p = :p"
assert other.sql(query, args={"p": "target.p"}, b=df).first() == (3,)
try:
    other.update({"n": "nothing"})
except MissingColumnError as error:
    assert "nothing" in str(error)
else:
    raise AssertionError("an unknown column was read")
for relative in (lambda: HudiTable(spark, "t"), lambda: df.write.format("pyhudi").mode("append").save("t")):
    try:
        relative()
    except Exception as error:
        assert "temporary folder" in str(error), error
    else:
        raise AssertionError("a table in the folder of the session would go with it")
assert HudiTable(spark, "~/none").path == os.path.expanduser("~/none")
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(lambda one: HudiTable(spark, one).to_df().count(), [path, path])) == [100, 100]

nobody = pyarrow.table({"id": [1], "p": ["1"], "n": pyarrow.array([7], "int32")}).slice(1)
assert table.upsert(nobody).updates == table.validate(deep=True).count() == 0

logged = HudiTable.create(spark, path + "-logged", df, record_key="id", buckets=2, table_type="MERGE_ON_READ")
for changed in (df, df.where("id < 10").withColumn("n", sf.lit(2))):
    logged.upsert(changed)
old = logged.to_df()
assert (logged.to_df(read_optimized=True).where("n = 2").count(), old.where("n = 2").count()) == (0, 10)
joined = bucket_join(logged, TableRows(table, ["id", "p"]), "id", "left")
expected = logged.to_df(meta=False).join(table.to_df(["id", "p"]), "id", "left")
assert sorted(joined.collect()) == sorted(expected.collect())
with redirect_stdout(StringIO()) as shown:
    joined.explain()
assert "SortMergeJoin" in shown.getvalue() and "Exchange" not in shown.getvalue(), shown.getvalue()
assert logged.schedule_compaction().file_groups == logged.compact().file_groups == 2
assert logged.to_df(read_optimized=True).where("n = 2").count() == old.where("n = 2").count() == 10

looked = HudiTable.create(spark, path + "-looked", df, record_key="id", partition_by="p", index="SIMPLE")
always = {"hoodie.pyhudi.place.rows": "always"}
assert looked.upsert(df.where("id < 50"), **always).inserts == 50
for few, start in ((read_seam("few keys for the driver"), 0), (-1, 50)):
    set_seam("few keys for the driver", few)
    moved = df.selectExpr(f"id + {start} id", f"cast((id + {start}) % 3 as string) p", "n")
    done = looked.upsert(moved, **always)
    assert (done.inserts, done.updates, "tasks.spill" in done.seconds) == (50, 50, False), done
assert looked.to_df().count() == 150
set_seam("few keys for the driver", 1000)
assert looked.upsert(df.limit(0), **always).updates == 0

plain = sys.argv[2]
df.write.format("pyhudi").options(recordkey="id", partitionby="p").mode("append").save(plain)
df.limit(5).write.format("pyhudi").mode("overwrite").save(plain)
assert spark.read.format("pyhudi").option("columns", "id").load(plain).count() == 5
try:
    df.write.format("pyhudi").option("recordkey", "n").mode("append").save(plain)
except Exception as error:
    assert type(from_spark(error)) is OptionConflictError, error
else:
    raise AssertionError("another record key was accepted")

spark.conf.set("hoodie.metadata.enable", "false")
found = table.explain_options(defaults=False).find("hoodie.metadata.enable")
assert (found.value, found.source) == ("false", "the session's hoodie.metadata.enable")
assert write(spark, df.where("id = 1"), path, "upsert", {}).updates == 1
try:
    table.upsert(df.withColumn("id", sf.when(sf.col("id") != 7, sf.col("id"))))
except NullKeyError as error:
    assert str(error).startswith("PyHudiError[NULL_KEY]: ")
else:
    raise AssertionError("a null key was written")
newest = max(Path(path).rglob("*.parquet"), key=lambda file: file.stem.split("_")[-1])
data, chunk = bytearray(newest.read_bytes()), pq.ParquetFile(newest).metadata.row_group(0).column(0)
data[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 1
newest.write_bytes(data)
try:
    table.to_df().collect()
except Exception as error:
    assert newest.name in str(error), error
else:
    raise AssertionError("a flipped bit was shown")
print("all is well")
"""

CONDITIONS = """
import os
import sys

from pyhudi import HudiTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from seams import set_seam
from support.drawn.conditions import check_random_conditions, make_table

spark = SparkSession.builder.remote(os.environ["REMOTE"]).getOrCreate()
path = sys.argv[1] + "-conditions"
make_table(path)
check_random_conditions(spark, path, examples=1, compared=12)
table = HudiTable(spark, path)
assert table.to_df(["id"], where="p = 'a' AND id IN (7, 45) AND upper(p) = 'A'").collect() == [(7,)]
assert len(table.to_df(where=(sf.col("p") == "a") & (sf.col("id") == 7)).inputFiles()) == 1
# Whatever zone the session has when rows are asked for.
late = table.to_df(where="at = '2024-03-10 09:30:00'")
spark.conf.set("spark.sql.session.timeZone", "UTC")
assert late.count() == table.to_df().where("at = '2024-03-10 09:30:00'").count() > 0
assert not table.to_df(where="at > '2024-03-20'").inputFiles()
# Python has no time two days later.
assert len(table.to_df(where="p = 'a' AND at < TIMESTAMP '9999-12-31'").inputFiles()) == 4
set_seam("most files that Spark looks up", 3)
many = table.to_df()
assert table.delete("p = 'a'").deletes == 40
assert (many.count(), table.to_df().count(), table.to_df(where="p = 'B b'").count()) == (120, 80, 40)
print("all is well")
"""

STREAM = """
import os
import sys
from pathlib import Path

from pyhudi import HudiTable
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(os.environ["REMOTE"]).getOrCreate()
folder, schema = Path(sys.argv[1]).with_name("stream"), "id string, ts long, n long"
table = HudiTable.create(spark, folder / "t", schema, record_key="id", order_by="ts", buckets=2, table_type="mor")
(folder / "in").mkdir()
checkpoint = folder / "checkpoint"


def add(name, *rows):
    lines = [f'{{"id": "{key}", "ts": {ts}, "n": {ts}}}' for key, ts in rows]
    (folder / "in" / f"{name}.json").write_text("\\n".join(lines))


def started(rows):
    # The server gives a Python process ten seconds to connect, which a busy machine may exceed.
    for _ in range(5):
        try:
            return table.stream(rows, checkpoint=checkpoint, availableNow=True, query_name="over connect")
        except Exception as error:
            if "connect back" not in str(error):
                raise
    return table.stream(rows, checkpoint=checkpoint, availableNow=True, query_name="over connect")


def run():
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    query = started(rows)
    assert query.awaitTermination(300)


add("a", ("a", 1), ("b", 1))
run()
add("b", ("b", 2), ("c", 2))
run()
for name in ("1", ".1.crc"):
    (checkpoint / "commits" / name).unlink()
run()
assert {row.id: row.n for row in table.to_df().collect()} == {"a": 1, "b": 2, "c": 2}
assert table.history().where("action = 'deltacommit'").count() == 2, table.history().collect()
print("all is well")
"""


def run(python: Path | str, folder: Path, script: str = SCRIPT, **variables: str) -> None:
    """Run a script in a process of its own, with these variables in the place of Spark's own."""
    here = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    (folder / "script.py").write_text(script, encoding="utf-8")
    shutil.copy(seams.__file__, folder)
    process = subprocess.run(
        [python, "script.py", str(folder / "t"), str(folder / "plain")],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**variables_without("SPARK_"), **here, **variables},
        cwd=folder,
    )
    assert "all is well" in process.stdout, process.stdout[-2000:] + process.stderr[-4000:]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server in a process of its own, whose port no other test has."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = [f"spark.connect.grpc.binding.port={port}", "spark.ui.enabled=false", "spark.sql.shuffle.partitions=3"]
    settings += [f"{key}={value}" for key, value in INTERPRETED.items()]
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [word for one in settings for word in ("--conf", one)]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    here = {"SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(WARM)}
    # Spark gives the process of a stream ten seconds, in which it imports pandas: too few to compile it each time.
    environment = variables_without("SPARK_") | here | {"PYTHONDONTWRITEBYTECODE": ""}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
        try:
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


@BESIDE_THE_OTHER
def test_the_session_api_works_over_spark_connect(tmp_path: Path, server: str) -> None:
    if IS_OLDEST:
        # Elsewhere the other client runs this script, which has less.
        run(sys.executable, tmp_path, REMOTE=server)
    run(sys.executable, tmp_path, CONDITIONS, REMOTE=server, PYTHONPATH=str(Path(__file__).parents[1]))


@pytest.mark.slow
def test_the_batches_of_a_stream_are_written_by_the_server(tmp_path: Path, server: str) -> None:
    run(sys.executable, tmp_path, STREAM, REMOTE=server)


@pytest.mark.slow
def test_a_client_needs_no_spark_of_its_own(tmp_path: Path, server: str) -> None:
    """``pyspark-client`` is pyspark without the JVM's part; Spark's client waits for the server by itself."""
    python, site = new_environment(tmp_path / "client")
    # The two packages are not always published at once; an older client may talk to a newer server.
    client = f"pyspark-client<={version('pyspark')}"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), client]
    subprocess.run(install, check=True)
    assert (site / "pyspark").is_dir()
    assert not (site / "pyspark" / "jars").exists()
    link_packages(site)

    run(python, tmp_path, REMOTE=server, PYTHONPATH=str(build_wheel(tmp_path)))
