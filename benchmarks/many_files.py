"""A table of 1,000 partitions with 40 file groups each, simulated: what it takes to begin a query or a write of it.

    python benchmarks/many_files.py [--partitions 1000] [--groups 40] [--systems pyhudi delta iceberg]

Every file holds a few rows, so that what is measured is how its systems find their files. Delta's table is made of its
log and of links to one file, Iceberg's of such links that its `add_files` takes in.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from figures.tables import table_of
from processes import environment, peak_mib
from systems import DELTA, ICEBERG

ROOT = Path(__file__).parents[1]
MANY = "many files: "
# Each write is done twice, as the first of a session starts Spark's processes; "asked" is the time until the first row
# was asked for, which is that of its planning.
PHASES = ("made", "counted", "point", "write", "asked", "again", "asked again", "MiB")
VENVS = {
    "pyhudi": ".venv",
    "pyhudi, merge-on-read": ".venv",
    "pyhudi, spark.read": ".venv",
    "delta": ".venv-spark40",
    "iceberg": ".venv-spark40",
}
PLACES, KEY = 10, 7


def measure(partitions: int = 1000, groups: int = 40, systems: tuple[str, ...] = tuple(VENVS)) -> dict[str, Any]:
    """Return the seconds of each system, by row and phase; each works in a process of its own."""
    figures: dict[str, Any] = {}
    for system in systems:
        python = str(ROOT / VENVS[system] / "bin" / "python")
        command = [python, __file__, "--one", system, "--partitions", str(partitions), "--groups", str(groups)]
        process = subprocess.run(
            command, stdout=subprocess.PIPE, env=environment(VENVS[system]), check=False, text=True
        )
        if process.returncode:
            # The work of the others is not lost for one of them.
            print(f"{system} failed on many files", flush=True)
        else:
            figures[MANY + system] = json.loads(process.stdout.splitlines()[-1])
    return figures


def many_files(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds and of the driver's Python memory."""
    return table_of(seconds, PHASES, MANY, digits=1)


def timed(phases: dict[str, float], phase: str, work: Callable[[], Any]) -> Any:
    """Do the work and note how long it took."""
    start = time.perf_counter()
    result = work()
    phases[phase] = round(time.perf_counter() - start, 2)
    return result


def expect(actual: Any, wanted: Any) -> None:
    """Stop if a system finds other rows than it should."""
    if actual != wanted:
        raise SystemExit(f"found {actual}, expected {wanted}")


def session(**settings: str) -> Any:
    """Start Spark, and let it do a job before anything is timed."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    common = {"spark.driver.memory": "4g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for key, value in {**common, **{key.replace("__", "."): value for key, value in settings.items()}}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(100_000).selectExpr("sum(id)").collect()
    return spark


def make_pyhudi(path: str, partitions: int, groups: int, table_type: str = "COPY_ON_WRITE") -> None:
    """Make the table's files and its one commit."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyhudi.index.registry import computed_index_for
    from pyhudi.storage import open_storage
    from pyhudi.table.config import TableConfig, create_config
    from pyhudi.table.config.table_settings import TableSettings
    from pyhudi.table.files.names import BaseFileName, WriteToken, new_bucket_file_id
    from pyhudi.table.files.partitions import write_partition_metafile
    from pyhudi.table.schema.columns import META_COLUMNS, avro_schema
    from pyhudi.timeline.metadata.avro_codec import encode
    from pyhudi.timeline.metadata.models import CommitMetadata, WriteStat

    storage = open_storage(path)
    config = TableConfig.new(
        TableSettings(
            name="t", record_key_fields=["id"], partition_fields=["p"], bucket_count=groups, table_type=table_type
        )
    )
    create_config(storage, config)
    keys = pa.array(map(str, range(groups * 10)))
    places = computed_index_for(config).buckets(keys).tolist()
    instant, completed = "20260101000000000", "20260101000000500"
    stats: dict[str, list[WriteStat]] = {}
    for number in range(partitions):
        partition = f"p{number}"
        write_partition_metafile(storage, partition, instant)
        for bucket in range(groups):
            ids = [key for key, place in enumerate(places) if place == bucket]
            file_id = new_bucket_file_id("0", partition, bucket)
            name = f"{partition}/{BaseFileName(file_id, WriteToken(number, 1, number), instant).format()}"
            meta = {one: pa.array([instant] * len(ids)) for one in META_COLUMNS}
            meta["_hoodie_record_key"], meta["_hoodie_partition_path"] = (
                pa.array(map(str, ids), pa.string()),
                pa.array([partition] * len(ids), pa.string()),
            )
            data = {
                "id": pa.array(ids, pa.int64()),
                "p": pa.array([partition] * len(ids)),
                "n": pa.array(ids, pa.int64()),
            }
            pq.write_table(pa.table({**meta, **data}), f"{path}/{name}", compression="none")
            stat = WriteStat(file_id=file_id, path=name, partition_path=partition, prev_commit="null", num_writes=10)
            stats.setdefault(partition, []).append(stat)
    schema = avro_schema(pa.schema([("id", pa.int64()), ("p", pa.string()), ("n", pa.int64())]), "t")
    body = CommitMetadata(partition_to_write_stats=stats, extra_metadata={"schema": schema}, operation_type="UPSERT")
    action = "deltacommit" if table_type == "MERGE_ON_READ" else "commit"
    storage.write(f".hoodie/timeline/{instant}_{completed}.{action}", encode(body))


def written(
    spark: Any, phases: dict[str, float], path: str, partitions: int, write: Callable[[Any], Any]
) -> dict[str, float]:
    """Write one row to some partitions, twice. A row holds the time at which Spark asked for it, in milliseconds."""
    from pyhudi import HudiTable

    now = "CAST(reflect('java.lang.System', 'currentTimeMillis') AS bigint) AS n"
    rows = spark.range(min(PLACES, partitions)).selectExpr(f"{KEY}L AS id", "concat('p', id) AS p", now)
    for phase, asked in (("write", "asked"), ("again", "asked again")):
        start = time.time()
        timed(phases, phase, lambda: write(rows))
        table = HudiTable(spark, path)
        expect(table.last_commit().updates, min(PLACES, partitions))
        changed = table.to_df(["n"], where=f"id = {KEY} AND p IN ({places(partitions)})")
        phases[asked] = round(min(row.n for row in changed.collect()) / 1000 - start, 2)
    return phases


def pyhudi(folder: str, partitions: int, groups: int, table_type: str = "COPY_ON_WRITE") -> dict[str, float]:
    """Query and write through HudiTable."""
    from pyhudi import HudiTable

    make_pyhudi(f"{folder}/t", partitions, groups, table_type)
    spark, phases = session(), {}
    table = HudiTable(spark, f"{folder}/t")
    df = timed(phases, "made", table.to_df)
    phases["MiB"] = peak_mib()
    expect(timed(phases, "counted", lambda: df.selectExpr("count(id)").first()[0]), partitions * groups * 10)
    where = f"p = 'p{partitions // 2}' AND id = {KEY}"
    expect(timed(phases, "point", lambda: table.to_df(where=where).collect())[0].n, KEY)
    return written(spark, phases, f"{folder}/t", partitions, table.upsert)


def merge_on_read(folder: str, partitions: int, groups: int) -> dict[str, float]:
    """Query and write a merge-on-read table through HudiTable."""
    return pyhudi(folder, partitions, groups, "MERGE_ON_READ")


def pyhudi_format(folder: str, partitions: int, groups: int) -> dict[str, float]:
    """Query through spark.read, with the filters that Spark pushes, and write by df.write."""
    make_pyhudi(f"{folder}/t", partitions, groups)
    spark, phases = session(spark__sql__python__filterPushdown__enabled="true"), {}

    def read() -> Any:
        return spark.read.format("pyhudi").option("hoodie.pyhudi.read.filter.pushdown", "true").load(f"{folder}/t")

    df = timed(phases, "made", read)
    expect(timed(phases, "counted", lambda: df.selectExpr("count(id)").first()[0]), partitions * groups * 10)
    where = f"p = 'p{partitions // 2}' AND id = {KEY}"
    expect(timed(phases, "point", lambda: read().where(where).collect())[0].n, KEY)

    def write(rows: Any) -> None:
        rows.write.format("pyhudi").mode("append").save(f"{folder}/t")

    return written(spark, phases, f"{folder}/t", partitions, write)


def places(partitions: int) -> str:
    """Return the partitions that are written to, as SQL has them."""
    return ", ".join(f"'p{number}'" for number in range(min(PLACES, partitions)))


def make_parquet(path: str, partitions: int, groups: int) -> list[tuple[str, int]]:
    """Make a folder of links to a few files, and return the links' names and sizes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names_and_sizes = []
    for number in range(partitions):
        Path(f"{path}/p=p{number}").mkdir(parents=True)
        for group in range(groups):
            source = f"{path}/{group}.tmp"
            if not number:
                ids = pa.array(range(group * 10, group * 10 + 10), pa.int64())
                pq.write_table(pa.table({"id": ids, "n": ids}), source, compression="none")
            name = f"p=p{number}/part-{group:05d}.parquet"
            os.link(source, f"{path}/{name}")
            names_and_sizes.append((name, Path(source).stat().st_size))
    for group in range(groups):
        Path(f"{path}/{group}.tmp").unlink()
    return names_and_sizes


def merged(spark: Any, target: str, partitions: int) -> None:
    """Write to some partitions by SQL's MERGE."""
    rows = [(KEY, f"p{number}", KEY) for number in range(min(PLACES, partitions))]
    spark.createDataFrame(rows, "id bigint, p string, n bigint").createOrReplaceTempView("s")
    on = f"t.id = s.id AND t.p = s.p AND t.p IN ({places(partitions)})"
    spark.sql(f"MERGE INTO {target} t USING s ON {on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")


def peer(spark: Any, target: str, partitions: int, groups: int) -> dict[str, float]:
    """Query and write a table of SQL."""
    phases: dict[str, float] = {}
    df = timed(phases, "made", lambda: spark.table(target))
    expect(timed(phases, "counted", lambda: df.selectExpr("count(id)").first()[0]), partitions * groups * 10)
    where = f"p = 'p{partitions // 2}' AND id = {KEY}"
    expect(timed(phases, "point", lambda: spark.table(target).where(where).collect())[0].n, KEY)
    for phase in ("write", "again"):
        timed(phases, phase, lambda: merged(spark, target, partitions))
    return phases


def delta(folder: str, partitions: int, groups: int) -> dict[str, float]:
    """Delta Lake, of whose log one commit adds all files."""
    files = make_parquet(f"{folder}/t", partitions, groups)
    fields = [("id", "long"), ("p", "string"), ("n", "long")]
    schema = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields]
    about = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["p"]}
    about |= {"schemaString": json.dumps({"type": "struct", "fields": schema}), "configuration": {}, "createdTime": 0}
    lines: list[dict[str, Any]] = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": about}]
    for number, (name, size) in enumerate(files):
        least = number % groups * 10
        bounds = {"numRecords": 10, "minValues": {"id": least}, "maxValues": {"id": least + 9}, "nullCount": {"id": 0}}
        add = {"path": name, "partitionValues": {"p": name.split("/")[0][2:]}, "size": size, "dataChange": True}
        lines.append({"add": {**add, "modificationTime": 0, "stats": json.dumps(bounds)}})
    Path(f"{folder}/t/_delta_log").mkdir()
    text = "\n".join(map(json.dumps, lines))
    Path(f"{folder}/t/_delta_log/{0:020d}.json").write_text(text, encoding="utf-8")
    spark = session(
        spark__jars__packages=DELTA,
        spark__sql__extensions="io.delta.sql.DeltaSparkSessionExtension",
        spark__sql__catalog__spark_catalog="org.apache.spark.sql.delta.catalog.DeltaCatalog",
    )
    return peer(spark, f"delta.`{folder}/t`", partitions, groups)


def iceberg(folder: str, partitions: int, groups: int) -> dict[str, float]:
    """Iceberg, which takes in files that are there."""
    make_parquet(f"{folder}/files", partitions, groups)
    spark = session(
        spark__jars__packages=ICEBERG,
        spark__sql__extensions="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        spark__sql__catalog__local="org.apache.iceberg.spark.SparkCatalog",
        spark__sql__catalog__local__type="hadoop",
        spark__sql__catalog__local__warehouse=f"{folder}/w",
    )
    spark.sql("CREATE TABLE local.db.t (id bigint, p string, n bigint) USING iceberg PARTITIONED BY (p)")
    spark.sql(f"CALL local.system.add_files(table => 'db.t', source_table => '`parquet`.`{folder}/files`')")
    return peer(spark, "local.db.t", partitions, groups)


SYSTEMS: dict[str, Callable[[str, int, int], dict[str, float]]] = {
    "pyhudi": pyhudi,
    "pyhudi, merge-on-read": merge_on_read,
    "pyhudi, spark.read": pyhudi_format,
    "delta": delta,
    "iceberg": iceberg,
}


def main() -> None:
    """Print a table, or as one system's own process its seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--one", choices=SYSTEMS)
    arguments = parser.parse_args()
    if arguments.one is None:
        print(many_files(measure(arguments.partitions, arguments.groups, tuple(arguments.systems))))
        return
    folder = tempfile.mkdtemp(prefix="many-files-")
    try:
        print(json.dumps(SYSTEMS[arguments.one](folder, arguments.partitions, arguments.groups)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
