"""The systems that are compared: how each loads, upserts and reads the benchmark's rows.

A new system is a function here and an entry of `SYSTEMS`; it imports its packages inside the function, because they
exist in its own environment only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lineitem import KEYS, ORDERING, PARTITION, TERMS, point_key
from phases import conditions, few_merges, sorting
from phases.limits import FLUSHED, PLAIN, UNFLUSHED, limits
from phases.loads import SYNCED, loads
from phases.lookups import INDEXES, plain, table, terms, theirs
from phases.merge_on_read import THEIRS, compacted, reads_of_names
from phases.merge_on_read import by_format as logs_by_format
from phases.merge_on_read import by_table as logs_by_table
from phases.merging import merging
from phases.rescaling import rescaling
from phases.sizes import by_format, by_sink, by_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from stopwatch import Run

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
OPTIONS = {
    "hoodie.table.name": "lineitem",
    "hoodie.datasource.write.recordkey.field": ",".join(KEYS),
    "hoodie.datasource.write.partitionpath.field": PARTITION,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}
PARALLELISM = {"hoodie.upsert.shuffle.parallelism": "8", "hoodie.bulkinsert.shuffle.parallelism": "8"}
NAMED = "pyhudi, spark.read of named columns"
DELTA = "io.delta:delta-spark_2.13:4.0.1"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1"
# Of the table's row and the incoming one, as MERGE sees them.
SAME_KEY = " and ".join(f"t.{column} = s.{column}" for column in (*KEYS, PARTITION))
NEWER = f"s.{ORDERING} >= t.{ORDERING}"


def hudi_session(run: Run) -> SparkSession:
    """Return a session with Apache Hudi."""
    return run.session(
        spark__jars__packages=BUNDLE,
        spark__serializer="org.apache.spark.serializer.KryoSerializer",
        spark__kryo__registrator="org.apache.spark.HoodieSparkKryoRegistrar",
        spark__sql__extensions="org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        spark__sql__catalog__spark_catalog="org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    )


def apache_hudi(
    run: Run, row: str = "Apache Hudi", table_type: str = "COPY_ON_WRITE", options: dict[str, str] = OPTIONS
) -> list[Any]:
    """Apache Hudi itself: bucket index unless the options name another, all else by default."""
    spark = hudi_session(run)

    def write(rows: str) -> None:
        writer = spark.read.parquet(rows).write.format("hudi").options(**options, **PARALLELISM)
        writer = writer.option("hoodie.datasource.write.table.type", table_type)
        writer.option("hoodie.datasource.write.operation", "upsert").mode("append").save(run.table)

    run.writes(row, write)
    return run.reads(row, lambda: spark.read.format("hudi").load(run.table))


def hudi_clustered(run: Run) -> list[Any]:
    """Apache Hudi's clustering along a Z-order, which goes with an index that looks keys up."""
    spark, size, columns = hudi_session(run), sorting.file_bytes(run), ",".join(sorting.COLUMNS)
    options = {key: text for key, text in OPTIONS.items() if "bucket" not in key} | {"hoodie.index.type": "SIMPLE"}
    writer = spark.read.parquet(str(run.data / "base")).write.format("hudi").options(**options)
    writer.option("hoodie.datasource.write.operation", "bulk_insert").mode("append").save(run.table)
    sizes = {
        "hoodie.clustering.plan.strategy.target.file.max.bytes": size,
        "hoodie.clustering.plan.strategy.small.file.limit": 1 << 40,
        "hoodie.clustering.plan.strategy.max.num.groups": 1000,
        "hoodie.metadata.enable": "false",
    }
    told = ",".join(f"{key}={value}" for key, value in sizes.items())

    def sort() -> None:
        spark.sql(
            f"call run_clustering(path => '{run.table}', op => 'scheduleAndExecute', order => '{columns}', "
            f"order_strategy => 'z-order', options => '{told}')"
        ).collect()

    row = f"{sorting.ROWS}Apache Hudi, clustering"
    return sorting.measured(run, spark, row, sort, lambda: spark.read.format("hudi").load(run.table))


def pyhudi_plain(run: Run) -> list[Any]:
    """pyhudi through Spark's own verbs; its table is read in both ways."""
    from pyhudi import HudiTable

    spark = run.session()

    def write(rows: str) -> None:
        spark.read.parquet(rows).write.format("pyhudi").options(**OPTIONS).mode("append").save(run.table)

    run.writes("pyhudi, df.write", write)
    by_table = run.reads("pyhudi, HudiTable.to_df", lambda: HudiTable(spark, run.table).to_df())
    # The first read by the data source starts its processes, whichever way it reads.
    by_format = run.reads("pyhudi, df.write", lambda: spark.read.format("pyhudi").load(run.table))
    by_name = reads_of_names(run, NAMED)
    if not by_table == by_name == by_format:
        raise SystemExit(f"to_df() read {by_table}, the data source {by_format}, and {by_name} of named columns")
    return by_format


def flushing(run: Run) -> list[Any]:
    """What it costs that a write waits for the disk: the same writes with and without, in a session that is warm."""
    spark = run.session()

    def write(rows: str, table: str, *, durable: bool) -> None:
        writer = spark.read.parquet(rows).write.format("pyhudi").options(**OPTIONS)
        writer.option("hoodie.pyhudi.durable", durable).mode("append").save(f"{run.table}/{table}")

    write(str(run.data / "base"), "warm", durable=False)
    for durable, row in ((True, FLUSHED), (False, UNFLUSHED)):
        run.writes(row, lambda rows, durable=durable: write(rows, str(durable), durable=durable))
    content = run.reads("untimed", lambda: spark.read.format("pyhudi").load(f"{run.table}/{True}"))
    del run.seconds["untimed"]
    return content


def pyhudi_table(run: Run) -> list[Any]:
    """pyhudi through HudiTable; reads are those of the plain run."""
    from pyhudi import HudiTable

    spark = run.session()
    table = HudiTable.create(
        spark,
        run.table,
        spark.read.parquet(str(run.data / "base")),
        **TERMS,
    )
    run.writes("pyhudi, HudiTable.upsert", lambda rows: table.upsert(spark.read.parquet(rows)))
    content = run.reads("untimed", table.to_df)
    del run.seconds["untimed"]
    return content


def parquet(run: Run) -> list[Any]:
    """Plain Parquet, which cannot upsert: the load and the reads of what was loaded."""
    spark = run.session()

    def write() -> None:
        rows = spark.read.parquet(str(run.data / "base"))
        rows.repartition(8, PARTITION).write.partitionBy(PARTITION).parquet(run.table)

    run.timed("Parquet", "load", write)
    run.synced(SYNCED, "load", "Parquet")
    return run.reads("Parquet", lambda: spark.read.parquet(run.table))


def merge(spark: SparkSession, target: str) -> Callable[[str], Any]:
    """Return what upserts a part by SQL's MERGE, keeping the greater ordering value."""

    def upsert(rows: str) -> None:
        spark.read.parquet(rows).createOrReplaceTempView("s")
        spark.sql(
            f"merge into {target} t using s on {SAME_KEY} "
            f"when matched and {NEWER} then update set * when not matched then insert *"
        )

    return upsert


def delta_session(run: Run, *, deletion_vectors: bool) -> tuple[SparkSession, Callable[[str], None]]:
    """Return Spark with Delta Lake, and what loads the table."""
    spark = run.session(
        spark__jars__packages=DELTA,
        spark__sql__extensions="io.delta.sql.DeltaSparkSessionExtension",
        spark__sql__catalog__spark_catalog="org.apache.spark.sql.delta.catalog.DeltaCatalog",
        spark__databricks__delta__properties__defaults__enableDeletionVectors=str(deletion_vectors).lower(),
    )

    def load(rows: str) -> None:
        spark.read.parquet(rows).write.format("delta").partitionBy(PARTITION).save(run.table)

    return spark, load


def delta(run: Run, row: str = "Delta Lake, MERGE", *, deletion_vectors: bool = False) -> list[Any]:
    """Delta Lake, whose MERGE rewrites files or marks the rows that are gone."""
    spark, load = delta_session(run, deletion_vectors=deletion_vectors)
    run.writes(row, merge(spark, f"delta.`{run.table}`"), load)
    # Reading all of a table with deletion vectors into the sink that drops rows is refused ("non-pinned snapshot").
    return run.reads(row, lambda: spark.read.format("delta").load(run.table), whole=not deletion_vectors)


def delta_by_conditions(run: Run, *, deletion_vectors: bool) -> list[Any]:
    """Delta Lake's MERGE with conditions."""
    spark, load = delta_session(run, deletion_vectors=deletion_vectors)
    row = f"{conditions.ROWS}Delta Lake{', deletion vectors' if deletion_vectors else ''}"
    run.writes(row, conditions.by_sql(spark, f"delta.`{run.table}`"), load)
    return conditions.found(run, spark.read.format("delta").load(run.table))


def delta_sorted(run: Run) -> list[Any]:
    """Delta Lake's OPTIMIZE with a Z-order."""
    spark, load = delta_session(run, deletion_vectors=False)
    load(str(run.data / "base"))
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(sorting.file_bytes(run)))

    def sort() -> None:
        spark.sql(f"optimize delta.`{run.table}` zorder by ({', '.join(sorting.COLUMNS)})").collect()

    row = f"{sorting.ROWS}Delta Lake, OPTIMIZE ZORDER"
    return sorting.measured(run, spark, row, sort, lambda: spark.read.format("delta").load(run.table))


def delta_vectors(run: Run) -> list[Any]:
    """Delta Lake with deletion vectors."""
    return delta(run, "Delta Lake, MERGE, deletion vectors", deletion_vectors=True)


def iceberg_session(run: Run, mode: str) -> tuple[SparkSession, Callable[[str], None]]:
    """Return Spark with Iceberg, and what loads the table."""
    spark = run.session(
        spark__jars__packages=ICEBERG,
        spark__sql__extensions="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        spark__sql__catalog__local="org.apache.iceberg.spark.SparkCatalog",
        spark__sql__catalog__local__type="hadoop",
        spark__sql__catalog__local__warehouse=run.table,
    )

    def load(rows: str) -> None:
        table = spark.read.parquet(rows).writeTo("local.db.t").tableProperty("format-version", "2")
        table.tableProperty("write.merge.mode", mode).partitionedBy(PARTITION).create()

    return spark, load


def iceberg(run: Run, mode: str) -> list[Any]:
    """Iceberg in one of its two modes of MERGE."""
    row = f"Iceberg, MERGE {mode}"
    spark, load = iceberg_session(run, mode)
    run.writes(row, merge(spark, "local.db.t"), load)
    return run.reads(row, lambda: spark.table("local.db.t"))


def iceberg_by_conditions(run: Run, mode: str) -> list[Any]:
    """Iceberg's MERGE with conditions."""
    spark, load = iceberg_session(run, mode)
    run.writes(f"{conditions.ROWS}Iceberg, {mode}", conditions.by_sql(spark, "local.db.t"), load)
    return conditions.found(run, spark.table("local.db.t"))


def iceberg_sorted(run: Run) -> list[Any]:
    """Iceberg's rewrite of data files with a Z-order."""
    spark, load = iceberg_session(run, "copy-on-write")
    load(str(run.data / "base"))

    def sort() -> None:
        spark.sql(
            "call local.system.rewrite_data_files(table => 'db.t', strategy => 'sort', "
            f"sort_order => 'zorder({','.join(sorting.COLUMNS)})', options => map('rewrite-all', 'true', "
            f"'target-file-size-bytes', '{sorting.file_bytes(run)}'))"
        ).collect()

    row = f"{sorting.ROWS}Iceberg, rewrite_data_files"
    return sorting.measured(run, spark, row, sort, lambda: spark.table("local.db.t"))


def iceberg_copy(run: Run) -> list[Any]:
    """Iceberg whose MERGE rewrites files."""
    return iceberg(run, "copy-on-write")


def iceberg_deltas(run: Run) -> list[Any]:
    """Iceberg whose MERGE leaves position deletes."""
    return iceberg(run, "merge-on-read")


def delta_rs(run: Run) -> list[Any]:
    """delta-rs, which needs no Spark and all of its rows in one process."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from deltalake import DeltaTable, write_deltalake

    row = "delta-rs, merge"

    def load(rows: str) -> None:
        write_deltalake(run.table, ds.dataset(rows).to_table(), partition_by=[PARTITION])

    def upsert(rows: str) -> None:
        merger = DeltaTable(run.table).merge(ds.dataset(rows).to_table(), SAME_KEY, source_alias="s", target_alias="t")
        merger.when_matched_update_all(NEWER).when_not_matched_insert_all().execute()

    run.writes(row, upsert, load)
    columns = ["l_orderkey", "l_extendedprice", "l_shipdate"]
    dataset = DeltaTable(run.table).to_pyarrow_dataset
    read = run.read(row, "scan3", lambda: dataset().to_table(columns=columns))
    run.read(row, "scan_all", lambda: dataset().to_table())
    at_point = (ds.field(KEYS[0]) == point_key(run.scale)) & (ds.field(KEYS[1]) == 1)
    at_key = run.read(row, "point", lambda: dataset().count_rows(at_point))
    year = ds.field(PARTITION) == "1995"
    run.read(row, "partition", lambda: pc.sum(dataset().to_table(["l_extendedprice"], year)["l_extendedprice"]))
    return [read.num_rows, str(pc.sum(read["l_extendedprice"])), str(pc.max(read["l_shipdate"])), at_key]


@dataclass(frozen=True)
class System:
    """How a system is run.

    Attributes:
        drive: Does the work and returns what was found at the end.
        venv: The virtual environment it needs.
        holds: The state its table ends in: "final", or "base" if it cannot upsert.
    """

    drive: Callable[[Run], list[Any]]
    venv: str = ".venv"
    holds: str = "final"


SYSTEMS = {
    "hudi-cow-bucket": System(apache_hudi, venv=".venv-hudi"),
    "hudi-mor-bucket": System(partial(apache_hudi, row=THEIRS, table_type="MERGE_ON_READ"), venv=".venv-hudi"),
    PLAIN: System(pyhudi_plain),
    "limits": System(limits),
    "flushing": System(flushing),
    "loads": System(loads, holds="base"),
    "pyhudi-table": System(pyhudi_table),
    "pyhudi-merge": System(merging),
    "few-merges": System(few_merges.by_table),
    "few-merges-mor": System(partial(few_merges.by_table, logs=True)),
    "pyhudi-rescale": System(rescaling),
    "pyhudi-mor": System(partial(logs_by_format, options=OPTIONS)),
    "pyhudi-mor-table": System(logs_by_table),
    "pyhudi-mor-compact": System(compacted),
    **{
        f"hudi-cow-{index.lower()}": System(
            partial(apache_hudi, row=theirs(index), options=terms(OPTIONS, index)), venv=".venv-hudi"
        )
        for index in INDEXES
    },
    **{f"pyhudi-{index.lower()}": System(partial(plain, index=index, options=OPTIONS)) for index in INDEXES},
    **{f"pyhudi-table-{index.lower()}": System(partial(table, index=index)) for index in INDEXES},
    "sizes-plain": System(by_format),
    "sizes-table": System(by_table),
    "sizes-plain-mor": System(partial(by_format, logs=True)),
    "sizes-table-mor": System(partial(by_table, logs=True)),
    "sizes-sink": System(by_sink, holds="base"),
    "delta": System(delta, venv=".venv-spark40"),
    "delta-vectors": System(delta_vectors, venv=".venv-spark40"),
    "iceberg-cow": System(iceberg_copy, venv=".venv-spark40"),
    "iceberg-mor": System(iceberg_deltas, venv=".venv-spark40"),
    "conditions-pyhudi": System(conditions.by_table, holds=conditions.HOLDS),
    "conditions-pyhudi-mor": System(partial(conditions.by_table, logs=True), holds=conditions.HOLDS),
    **{
        f"conditions-delta{'-vectors' * vectors}": System(
            partial(delta_by_conditions, deletion_vectors=vectors), venv=".venv-spark40", holds=conditions.HOLDS
        )
        for vectors in (False, True)
    },
    **{
        f"conditions-iceberg-{name}": System(
            partial(iceberg_by_conditions, mode=mode), venv=".venv-spark40", holds=conditions.HOLDS
        )
        for name, mode in (("cow", "copy-on-write"), ("mor", "merge-on-read"))
    },
    "sorting-pyhudi": System(sorting.by_table, holds="base"),
    "sorting-pyhudi-mor": System(partial(sorting.by_table, logs=True), holds="base"),
    "sorting-hudi": System(hudi_clustered, venv=".venv-hudi", holds="base"),
    "sorting-delta": System(delta_sorted, venv=".venv-spark40", holds="base"),
    "sorting-iceberg": System(iceberg_sorted, venv=".venv-spark40", holds="base"),
    "delta-rs": System(delta_rs),
    "parquet": System(parquet, holds="base"),
}
