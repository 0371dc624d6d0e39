"""The other systems of `metadata.py`: Delta Lake, delta-rs and Iceberg plan a condition, Apache Hudi looks keys up.

Their tables have as many files with the same numbers in them, made of links to a hundred; Delta's log has bounds of all
columns in a checkpoint, and Iceberg's manifests have what it takes from footers.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from many_files import session
from systems import BUNDLE, DELTA, ICEBERG

if TYPE_CHECKING:
    from metadata import Figures, Sizes

PEER_VENVS = {"delta": ".venv-spark40", "iceberg": ".venv-spark40", "hudi": ".venv-hudi"}
_SQL_TYPES = {
    "int64": ("long", "bigint"),
    "string": ("string", "string"),
    "double": ("double", "double"),
    "date32[day]": ("date", "date"),
    "timestamp[us, tz=UTC]": ("timestamp", "timestamp"),
}


def spark_plans(df: Any) -> int:
    """Plan all of a query up to its tasks; return how many there are."""
    return int(df._jdf.queryExecution().toRdd().getNumPartitions())


def _linked(folder: Path, sizes: Sizes) -> list[tuple[str, int]]:
    """Make the files of a peer; return their names and which band each has."""
    import pyarrow.parquet as pq
    from metadata import measures_of

    measures, names, bands = measures_of(sizes), [], _bands(sizes)
    folder.mkdir(parents=True)
    for number, band in enumerate(bands):
        pq.write_table(band, folder / f"{number}.tmp", compression="none")
    for partition in range(measures.partitions):
        (folder / f"p=p{partition}").mkdir()
        for group in range(measures.groups):
            band = len(names) % len(bands)
            names.append((f"p=p{partition}/part-{group:05d}.parquet", band))
            os.link(folder / f"{band}.tmp", folder / names[-1][0])
    return names


def _bands(sizes: Sizes) -> list[Any]:
    """Return the rows of each band, without the partition and the columns that Apache Hudi adds."""
    from metadata import measures_of

    bands = measures_of(sizes).bands()
    names = [name for name in bands[0].column_names if name != "p" and not name.startswith("_hoodie")]
    return [band.select(names) for band in bands]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return value.isoformat() if isinstance(value, datetime.date) else value


def delta_table(sizes: Sizes) -> str:
    """Return the path of Delta's table: one commit adds all files, and a checkpoint has it."""
    from metadata import table_in

    return table_in(sizes.folder("delta"), lambda path: _make_delta(Path(path), sizes))


def _make_delta(folder: Path, sizes: Sizes) -> None:
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    files, bands = _linked(folder, sizes), _bands(sizes)
    extremes = [{name: pc.min_max(band[name]).as_py() for name in band.column_names} for band in bands]
    stats = [
        json.dumps(
            {
                "numRecords": band.num_rows,
                "minValues": {name: _plain(found["min"]) for name, found in of.items()},
                "maxValues": {name: _plain(found["max"]) for name, found in of.items()},
                "nullCount": dict.fromkeys(of, 0),
            }
        )
        for band, of in zip(bands, extremes, strict=True)
    ]
    kinds = [(field.name, _SQL_TYPES[str(field.type)][0]) for field in bands[0].schema]
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in [*kinds, ("p", "string")]
    ]
    about = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["p"]}
    about |= {"schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {}, "createdTime": 0}
    lines: list[dict[str, Any]] = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": about}]
    bytes_of = [(folder / f"{number}.tmp").stat().st_size for number in range(len(bands))]
    for name, band in files:
        add = {"path": name, "partitionValues": {"p": name.split("/")[0][2:]}, "size": bytes_of[band]}
        lines.append({"add": {**add, "dataChange": True, "modificationTime": 0, "stats": stats[band]}})
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020d}.json").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    DeltaTable(str(folder)).create_checkpoint()


def delta_rs(sizes: Sizes) -> Figures:
    """Plan the condition by delta-rs and DataFusion."""
    from deltalake import DeltaTable, QueryBuilder
    from metadata import BAND, CONDITION, measures_of, timed_runs

    path, where = delta_table(sizes), measures_of(sizes).condition(BAND)

    def plan() -> Any:
        return QueryBuilder().register("t", DeltaTable(path)).execute(f"EXPLAIN SELECT id FROM t WHERE {where}")

    of, _ = timed_runs(plan)
    return {f"{CONDITION}delta-rs": of}


def delta(sizes: Sizes) -> Figures:
    """Plan the condition by Delta Lake; its session keeps the table's log in memory after the first time."""
    from metadata import BAND, CONDITION, measures_of, timed_runs

    path, where = delta_table(sizes), measures_of(sizes).condition(BAND)
    spark = session(
        spark__jars__packages=DELTA,
        spark__sql__extensions="io.delta.sql.DeltaSparkSessionExtension",
        spark__sql__catalog__spark_catalog="org.apache.spark.sql.delta.catalog.DeltaCatalog",
    )
    of, _ = timed_runs(lambda: spark_plans(spark.read.format("delta").load(path).where(where)))
    files = len(spark.read.format("delta").load(path).where(where).inputFiles())
    return {f"{CONDITION}Delta Lake": {**of, "files, %": 100 * files / sizes.files}}


def iceberg(sizes: Sizes) -> Figures:
    """Plan the condition by Iceberg."""
    from metadata import BAND, CONDITION, measures_of, table_in, timed_runs

    where = measures_of(sizes).condition(BAND)
    folder = sizes.folder("iceberg")
    spark = session(
        spark__jars__packages=ICEBERG,
        spark__sql__extensions="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        spark__sql__catalog__local="org.apache.iceberg.spark.SparkCatalog",
        spark__sql__catalog__local__type="hadoop",
        spark__sql__catalog__local__warehouse=f"{folder}/t/w",
    )

    def make(path: str) -> None:
        _linked(Path(f"{path}/files"), sizes)
        subprocess.run(["find", f"{path}/files", "-name", "*.tmp", "-delete"], check=True)
        columns = [f"{field.name} {_SQL_TYPES[str(field.type)][1]}" for field in _bands(sizes)[0].schema]
        spark.sql(f"CREATE TABLE local.db.t ({', '.join(columns)}, p string) USING iceberg PARTITIONED BY (p)")
        spark.sql(f"CALL local.system.add_files(table => 'db.t', source_table => '`parquet`.`{path}/files`')")

    table_in(folder, make)
    of, _ = timed_runs(lambda: spark_plans(spark.table("local.db.t").where(where)))
    # Its scan does not name its files beforehand.
    files = spark.table("local.db.t").where(where).selectExpr("input_file_name()").distinct().count()
    return {f"{CONDITION}Iceberg": {**of, "files, %": 100 * files / sizes.files}}


def hudi(sizes: Sizes) -> Figures:
    """Plan a read of a thousand keys by Apache Hudi's record index, which takes no set in place of the keys."""
    from metadata import KEYS, asked_keys, timed_runs

    path, where = str(sizes.work / f"keys-{sizes.keys}" / "t"), asked_keys(sizes)
    spark = session(
        spark__jars__packages=BUNDLE,
        spark__serializer="org.apache.spark.serializer.KryoSerializer",
        spark__kryo__registrator="org.apache.spark.HoodieSparkKryoRegistrar",
        spark__sql__extensions="org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        spark__sql__catalog__spark_catalog="org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        spark__sql__optimizer__inSetConversionThreshold="1000000",
        spark__driver__extraJavaOptions="-Xss256m",
    )
    of, _ = timed_runs(
        lambda: spark_plans(
            spark.read.format("hudi").option("hoodie.metadata.enable", "true").load(path).where(where())
        )
    )
    return {f"{KEYS}Apache Hudi": of}


PEERS: dict[str, Callable[[Sizes], Figures]] = {
    "delta-rs": delta_rs,
    "delta": delta,
    "iceberg": iceberg,
    "hudi": hudi,
}
