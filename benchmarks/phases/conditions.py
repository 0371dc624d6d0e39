"""A MERGE whose clauses have conditions of their own: it deletes some rows, sets two columns of others, inserts some.

Every system takes the same clauses on the same parts. Beside `HudiTable.merge` stands what it cannot do without: a join
of the same rows, of which nothing is kept, and an upsert of the rows that change, which were made before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures.tables import table_of
from lineitem import KEYS, ORDERING, PARTITION, PARTS, TERMS, point_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from stopwatch import Run

ROWS = "with conditions: "
MERGED, APART = f"{ROWS}HudiTable.merge", f"{ROWS}upsert and the join alone"
MERGED_LOGS, APART_LOGS = f"{MERGED}, merge-on-read", f"{APART}, merge-on-read"
PHASES = ("load", "up1", "up2")
# The name of what tables hold then, in the words of lineitem.py.
HOLDS = "conditions"
FLAG = "_hoodie_is_deleted"

SAME_KEY = " and ".join(f"source.{column} = target.{column}" for column in (*KEYS, PARTITION))
GOES = "source.l_quantity < 5 and target.l_discount < 0.08"
CHANGES = f"source.{ORDERING} >= target.{ORDERING} and source.l_quantity > target.l_discount * 200"
COMES = "source.l_quantity >= 10"
SET = {"l_extendedprice": "source.l_extendedprice", ORDERING: f"source.{ORDERING}"}
CLAUSES = (
    f"when matched and {GOES} then delete "
    f"when matched and {CHANGES} then update set {', '.join(f'{name} = {value}' for name, value in SET.items())} "
    f"when not matched and {COMES} then insert *"
)


def by_sql(spark: SparkSession, target: str) -> Callable[[str], Any]:
    """Return what merges a part by SQL's MERGE."""

    def merge(rows: str) -> None:
        spark.read.parquet(rows).createOrReplaceTempView("source")
        spark.sql(f"merge into {target} target using source on {SAME_KEY} {CLAUSES}")

    return merge


def by_table(run: Run, *, logs: bool = False) -> list[Any]:
    """Merge into one table; of another one, join, and upsert what changes. Both must hold the same at the end."""
    from pyhudi import HudiTable

    spark = run.session()
    base = spark.read.parquet(str(run.data / "base"))
    terms = {**TERMS, "table_type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE"}
    merged, upserted = (HudiTable.create(spark, f"{run.table}/{name}", base, **terms) for name in ("merged", "apart"))
    made, with_merge = (APART_LOGS, MERGED_LOGS) if logs else (APART, MERGED)

    def merge(part: str) -> None:
        clauses = merged.merge(spark.read.parquet(part), SAME_KEY).when_matched_delete(GOES)
        clauses.when_matched_update(SET, CHANGES).when_not_matched_insert_all(COMES).execute()

    run.timed(made, "load", lambda: upserted.upsert(base))
    for part in PARTS[1:]:
        given = spark.read.parquet(str(run.data / part))
        changed = f"{run.table}/{part}"
        _changed(given, upserted.to_df()).write.parquet(changed)

        def apart(given: DataFrame = given, changed: str = changed) -> None:
            joined = given.alias("source").join(upserted.to_df().alias("target"), _condition(), "left")
            joined.write.format("noop").mode("overwrite").save()
            upserted.upsert(spark.read.parquet(changed))

        run.timed(made, part, apart)
    run.writes(with_merge, merge, lambda part: merged.upsert(spark.read.parquet(part)))
    ours, other = found(run, merged.to_df()), found(run, upserted.to_df())
    if ours != other:
        raise SystemExit(f"the merge left {ours}, the upsert {other}")
    return ours


def found(run: Run, rows: DataFrame) -> list[Any]:
    """Return what must agree between all systems."""
    at_point = f"count_if(l_orderkey = {point_key(run.scale)} and l_linenumber = 1)"
    totals = ["count(*)", "sum(l_extendedprice)", "max(l_shipdate)", at_point, f"sum({ORDERING})", "sum(l_quantity)"]
    [row] = rows.selectExpr(*totals).collect()
    return [row[0], str(row[1]), str(row[2]), row[3], row[4], str(row[5])]


def _changed(given: DataFrame, table: DataFrame) -> DataFrame:
    """Return the rows that a merge writes: new ones, changed ones, and those that go with a flag that says so."""
    from pyspark.sql import functions as sf

    names = given.columns
    joined = given.alias("source").join(table.alias("target"), _condition(), "left")
    is_new = sf.col(f"target.{KEYS[0]}").isNull()
    goes, changes, comes = map(sf.expr, (GOES, CHANGES, COMES))
    wanted = sf.when(is_new, comes).otherwise(goes | changes)

    def value(name: str) -> Any:
        changed = sf.expr(SET[name]) if name in SET else sf.col(f"target.{name}")
        return sf.when(is_new, sf.col(f"source.{name}")).otherwise(changed).alias(name)

    flag = (~is_new & goes).alias(FLAG)
    return joined.where(wanted).select(*map(value, names), flag)


def _condition() -> Any:
    from pyspark.sql import functions as sf

    return sf.expr(SAME_KEY)


def expect(folder: Path, scale: float) -> list[Any]:
    """Return what every table must hold at the end, computed by DuckDB from the parts alone."""
    import duckdb

    base = duckdb.connect()
    base.sql(f"create table t as select * from '{folder}/base/*.parquet'")
    for part in PARTS[1:]:
        base.sql(f"create or replace view source as select * from '{folder}/{part}/*.parquet'")
        new = f"select source.* from source left join t target on {SAME_KEY} where target.{KEYS[0]} is null and {COMES}"
        values = ", ".join(
            f"case when {CHANGES} then {value} else target.{name} end as {name}" for name, value in SET.items()
        )
        remaining = f"from t target left join source on {SAME_KEY} where ({GOES}) is not true"
        changed = f"select target.* replace ({values}) {remaining}"
        base.sql(f"create table merged as {changed} union all {new}")
        base.sql("drop table t")
        base.sql("alter table merged rename to t")
    at_point = f"count(*) filter (l_orderkey = {point_key(scale)} and l_linenumber = 1)"
    [row] = base.sql(
        f"select count(*), sum(l_extendedprice), max(l_shipdate), {at_point}, sum({ORDERING})::bigint, sum(l_quantity) "
        "from t"
    ).fetchall()
    return [row[0], str(row[1]), str(row[2]), row[3], row[4], str(row[5])]


def conditions(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds."""
    return table_of(seconds, PHASES, ROWS)
