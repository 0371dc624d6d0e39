"""`HudiTable.merge` with the conditions of the others' MERGE, beside an upsert of the same rows and the join alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lineitem import KEYS, ORDERING, PARTITION, TERMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from stopwatch import Run

MERGED, APART = "pyhudi, HudiTable.merge", "pyhudi, upsert and the join alone"
# As the others have it, in the words of HudiTable.merge.
SAME_KEY = " and ".join(f"source.{column} = target.{column}" for column in (*KEYS, PARTITION))
NEWER = f"source.{ORDERING} >= target.{ORDERING}"


def merging(run: Run) -> list[Any]:
    """Merge into one table, and upsert into another one after a join that Spark drops the rows of."""
    from pyhudi import HudiTable

    spark = run.session()
    rows = spark.read.parquet(str(run.data / "base"))
    merged, upserted = (
        HudiTable.create(spark, f"{run.table}/{name}", rows, **TERMS) for name in ("merged", "upserted")
    )

    def apart(part: str) -> None:
        given = spark.read.parquet(part)
        _joined(given, upserted.to_df()).write.format("noop").mode("overwrite").save()
        upserted.upsert(given)

    def merge(part: str) -> None:
        clauses = merged.merge(spark.read.parquet(part), SAME_KEY).when_matched_update_all(NEWER)
        clauses.when_not_matched_insert_all().execute()

    run.writes(APART, apart, lambda part: upserted.upsert(spark.read.parquet(part)))
    run.writes(MERGED, merge, lambda part: merged.upsert(spark.read.parquet(part)))
    return run.reads(MERGED, merged.to_df)


def _joined(given: DataFrame, table: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sf

    return given.alias("source").join(table.alias("target"), sf.expr(SAME_KEY), "left")
