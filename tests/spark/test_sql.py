"""`HudiTable.create_view` and `HudiTable.sql`: what a name shows, and what a statement may name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyhudi.errors import InvalidOptionError, MissingColumnError, OptionConflictError
from pyspark.sql import SparkSession


def count(spark: SparkSession, view: str) -> int:
    return spark.table(view).where("id >= 0").select("id").count()


def test_a_view_is_pinned_or_follows_and_a_statement_shows_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    first = spark.range(0, 10).selectExpr("id", "id % 2 p", "cast(id as string) t")
    table = HudiTable.create(spark, str(tmp_path / "t"), first, record_key="id", partition_by="p", buckets=1)
    upserted = table.upsert(first)
    table.create_view("pinned")
    table.create_view("following", newest=True)
    table.create_view("thin", newest=True, columns=["t", "id"])
    table.update({"t": "'changed'"}, "id = 3")
    table.delete("id = 4")
    table.upsert(spark.range(100, 103).selectExpr("id", "id % 2 p", "'new' t"))
    table.create_view("past", as_of=upserted.instant)

    assert [count(spark, view) for view in ("pinned", "following", "thin", "past")] == [10, 12, 12, 10]
    assert spark.table("thin").columns == ["t", "id"]
    assert spark.sql("select t from following where id = 3").first() == ("changed",)
    spark.catalog.dropTempView("thin")
    HudiTable(spark, table.path).delete("id >= 100")
    assert [count(spark, view) for view in ("pinned", "following")] == [10, 12]
    table.refresh_views()
    assert [count(spark, view) for view in ("pinned", "following")] == [10, 9]
    table.rollback(table.last_commit().instant)
    assert [count(spark, view) for view in ("pinned", "following")] == [10, 12]
    assert not spark.catalog.tableExists("thin")
    table.create_view("thin", newest=True)
    spark.range(3).createOrReplaceTempView("thin")
    table.delete("id >= 100")
    assert [count(spark, view) for view in ("following", "thin")] == [9, 3], "it is somebody else's by now"

    query = (
        "select count(*) n, max(a.t) t from {table} a left join {other} b on a.id = b.id where a.p = :p and b.id > 0"
    )
    found = table.sql(query, args={"p": 1}, other=spark.range(5))
    assert found.first() == (2, "changed")
    assert table.sql("select count(*) from {table}", as_of=upserted.instant).first() == (10,)
    assert table.sql("select '{{}}' x, count(*) from {table} join {twin} using (id)", twin=table).first() == ("{}", 9)
    for view in ("pinned", "following", "past"):
        spark.catalog.dropTempView(view)


def test_wrong_names_are_named(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), "id int", record_key="id", buckets=1)
    with pytest.raises(InvalidOptionError, match="does not name the table"):
        table.sql("select 1")
    with pytest.raises(InvalidOptionError, match=r"names \{tables\}"):
        table.sql("select * from {table} join {tables}")
    for change, method in {
        "delete from {table} where id = 1": "delete",
        "UPDATE {table} SET id = 1": "update",
        "merge into {table} using {table} s on s.id = 1 when matched then delete": "merge",
        " insert overwrite table {table} select 1": "insert or upsert",
    }.items():
        with pytest.raises(InvalidOptionError, match=rf"Call HudiTable\.{method}\."):
            table.sql(change)
    with pytest.raises(InvalidOptionError, match=r"\{city\} .* a str, .*Write :city for a value.*args=\{'city': "):
        table.sql("select * from {table} where city = {city}", city="Rome")
    with pytest.raises(InvalidOptionError, match="not closed"):
        table.sql("select * from {table")
    with pytest.raises(InvalidOptionError, match=r"'a\.b' is no name"):
        table.create_view("a.b")
    with pytest.raises(MissingColumnError, match="'n'"):
        table.create_view("v", newest=True, columns=["n"])
    with pytest.raises(OptionConflictError, match="newest=True"):
        table.create_view("v", newest=True, as_of="2024-01-01")
