"""Merge-on-read tables, of Apache Hudi and of pyhudi: appending, reading two upserts deep, and compacting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lineitem import KEYS, PARTITION, TERMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from stopwatch import Run

MERGE_ON_READ = "merge-on-read"
THEIRS = f"Apache Hudi, {MERGE_ON_READ}"
PLAIN, TABLE, TO_DF = (f"pyhudi, {way}, {MERGE_ON_READ}" for way in ("df.write", "HudiTable.upsert", "HudiTable.to_df"))
NAMED = f"pyhudi, spark.read of named columns, {MERGE_ON_READ}"
COMPACTED = "pyhudi, HudiTable.compact after each upsert"


def by_format(run: Run, options: dict[str, str]) -> list[Any]:
    """Upsert by Spark's own verb; the table is read in both ways, with the logs of both upserts."""
    from pyhudi import HudiTable

    spark = run.session()

    def write(rows: str) -> None:
        writer = spark.read.parquet(rows).write.format("pyhudi").options(**options)
        writer.option("hoodie.datasource.write.table.type", "MERGE_ON_READ").mode("append").save(run.table)

    run.writes(PLAIN, write)
    table = HudiTable(spark, run.table)
    by_table = run.reads(TO_DF, table.to_df, named=table.to_df, where=lambda condition: table.to_df(where=condition))
    # The first read by the data source starts its processes, whichever way it reads.
    by_format = run.reads(PLAIN, lambda: spark.read.format("pyhudi").load(run.table))
    by_name = reads_of_names(run, NAMED)
    if not by_table == by_name == by_format:
        raise SystemExit(f"to_df() read {by_table}, the data source {by_format}, and {by_name} of named columns")
    return by_format


def reads_of_names(run: Run, row: str) -> list[Any]:
    """Read by Spark's own verb, naming the columns that each query needs: Spark tells no source in Python of them."""
    spark = run.session()

    def load(columns: list[str]) -> DataFrame:
        return spark.read.format("pyhudi").option("columns", ",".join(columns)).load(run.table)

    of_conditions = [*KEYS, PARTITION, "l_extendedprice"]
    return run.reads(row, lambda: load(of_conditions), whole=False, named=load)


def by_table(run: Run) -> list[Any]:
    """Upsert by `HudiTable`; reads are those of the plain run."""
    spark, table = _create(run)
    run.writes(TABLE, lambda rows: table.upsert(spark.read.parquet(rows)))
    return _found(run, table)


def compacted(run: Run) -> list[Any]:
    """Merge the rows of each upsert into the base files, as the write itself does for copy-on-write."""
    spark, table = _create(run)
    table.upsert(spark.read.parquet(str(run.data / "base")))
    for phase in ("up1", "up2"):
        table.upsert(spark.read.parquet(str(run.data / phase)))
        run.timed(COMPACTED, phase, table.compact)
    return _found(run, table)


def _create(run: Run) -> tuple[Any, Any]:
    from pyhudi import HudiTable

    spark = run.session()
    table = HudiTable.create(
        spark,
        run.table,
        spark.read.parquet(str(run.data / "base")),
        **TERMS,
        table_type="MERGE_ON_READ",
    )
    return spark, table


def _found(run: Run, table: Any) -> list[Any]:
    content = run.reads("untimed", table.to_df)
    del run.seconds["untimed"]
    return content
