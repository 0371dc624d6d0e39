"""Upserts of lineitem under the indexes that look keys up, of Apache Hudi and of pyhudi."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from figures.tables import table_of
from lineitem import TERMS

if TYPE_CHECKING:
    from stopwatch import Run

# Rows of tables that have such an index; those of all others have buckets.
LOOKUP = "lookup: "
INDEXES = ("SIMPLE", "BLOOM")
PHASES = ("load", "up1", "up2")


def theirs(index: str) -> str:
    """Return the row of Apache Hudi."""
    return f"{LOOKUP}Apache Hudi, {index}"


def by(way: str, index: str) -> str:
    """Return the row of one way to write with pyhudi."""
    return f"{LOOKUP}pyhudi, {way}, {index}"


def terms(options: Mapping[str, str], index: str) -> dict[str, str]:
    """Return a table's options with another index than buckets."""
    return {key: value for key, value in options.items() if "bucket" not in key} | {"hoodie.index.type": index}


def plain(run: Run, index: str, options: Mapping[str, str]) -> list[Any]:
    """Upsert by Spark's own verb; the commit finds the keys."""
    spark, row = run.session(), by("df.write", index)

    def write(rows: str) -> None:
        writer = spark.read.parquet(rows).write.format("pyhudi").options(**terms(options, index))
        writer.option("hoodie.datasource.write.operation", "upsert").mode("append").save(run.table)

    run.writes(row, write)
    return _found(run)


def table(run: Run, index: str) -> list[Any]:
    """Upsert by HudiTable; on one machine it writes as the other does."""
    from pyhudi import HudiTable

    spark, row = run.session(), by("HudiTable.upsert", index)
    of_table = {key: value for key, value in TERMS.items() if key != "buckets"}
    made = HudiTable.create(spark, run.table, spark.read.parquet(str(run.data / "base")), **of_table, index=index)
    run.writes(row, lambda rows: made.upsert(spark.read.parquet(rows)))
    return _found(run)


def _found(run: Run) -> list[Any]:
    from pyhudi import HudiTable

    content = run.reads("untimed", HudiTable(run.session(), run.table).to_df)
    del run.seconds["untimed"]
    return content


def lookups(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds of loads and upserts."""
    return table_of(rows, PHASES, LOOKUP)
