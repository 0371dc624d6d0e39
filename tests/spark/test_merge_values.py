"""What merges and updates give to columns: of other types, to fields of structs, and what no column can hold."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from pyhudi import HudiTable
from pyhudi.errors import DuplicateColumnError, InvalidOptionError, MissingColumnError, SchemaMismatchError
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from support.merge_tables import counts, frame, made, rows


def test_values_take_the_types_of_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    columns = "id bigint, day date, price decimal(6,2), s struct<a:int,b:string>, l array<int>, m map<string,double>"
    table = HudiTable.create(spark, str(tmp_path / "t"), columns, record_key="id", partition_by="day", buckets=1)
    first = (
        "select 1L id, date'2024-01-01' day, 1.5BD price, named_struct('a', 1, 'b', 'x') s, array(1) l, map('k', 1D) m"
    )
    table.upsert(
        spark.sql(first).select(
            *(sf.col(name) for name in ("id", "day")), sf.col("price").cast("decimal(6,2)"), "s", "l", "m"
        )
    )
    given = spark.sql("select '1' id, '2024-01-01' as day, 2 price, array(7L) l")
    merge_result = (
        table.merge(given, "source.id = target.id and source.day = target.day")
        .when_matched_update(
            {"price": "source.price", "l": "source.l", "s": sf.col("target.s").withField("a", sf.lit(9)), "m": None}
        )
        .execute()
    )
    assert counts(merge_result) == (0, 1, 0, 0)
    assert str(table.to_df(["price", "s", "l", "m"]).first().asDict(recursive=True)) == (
        "{'price': Decimal('2.00'), 's': {'a': 9, 'b': 'x'}, 'l': [7], 'm': None}"
    )
    with pytest.raises(SchemaMismatchError, match="the column 's'"):
        table.update({"s": "named_struct('b', 1, 'a', 'x')"})


def test_a_value_of_python_reaches_spark_or_is_refused_by_its_column(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, tmp_path / "t", "id int, amount decimal(38,0), s struct<t:string>", record_key="id")
    table.upsert(spark.sql("select 1 id, 1BD amount, named_struct('t', 'a') s"))

    assert table.update({"amount": 10**20}, {"amount": 1}).updates == 1
    assert [row.amount for row in table.to_df(where={"amount": [10**20, 10**400]}).collect()] == [10**20]
    for name, value, type_name in (("s.t", uuid4(), "UUID"), ("amount", Decimal("NaN"), "Decimal")):
        field = name.rpartition(".")[2]
        with pytest.raises(InvalidOptionError, match=f"The value of '{field}' in update is of .*type {type_name},"):
            table.update({name: value})


def test_what_a_clause_leaves_alone_is_not_made_another_type_by_what_others_give(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = "id int, n bigint, price decimal(30,10), t string"
    table = HudiTable.create(spark, str(tmp_path / "t"), columns, record_key="id", buckets=1)
    exact = (2**53 + 1, Decimal("12345678901234567890.0123456789"), "7")
    table.upsert(frame(spark, [(1, *exact), (2, *exact)], columns))
    given = frame(spark, [(1,), (2,)], "id int")
    merge = table.merge(given, "id").when_matched_update({"n": 1.0, "price": "2.5D", "t": "target.id"}, "source.id = 1")
    merge.when_matched_update({"t": 0.5}).execute()

    found = sorted(map(tuple, table.to_df(["id", "n", "price", "t"]).collect()))
    assert found == [(1, 1, Decimal("2.5"), "1"), (2, *exact[:2], "0.5")]


def test_fields_of_structs_are_set_by_themselves(spark: SparkSession, tmp_path: Path) -> None:
    """Beside them the struct stays; of one that is null the others are null."""
    columns = "id int, s struct<a:int,In:struct<b:string,c:int>>"
    table = HudiTable.create(spark, str(tmp_path / "t"), columns, record_key="id", buckets=1)
    table.upsert(frame(spark, [(1, (1, ("x", 2))), (2, None), (3, (3, None))], columns))
    table.update({"target.s.in.B": "concat(coalesce(s.in.b, ''), '!')", "s.a": sf.col("s.a") + 1}, "id < 3")

    assert sorted(str(row.asDict(True)) for row in table.to_df(["id", "s"]).collect()) == [
        "{'id': 1, 's': {'a': 2, 'In': {'b': 'x!', 'c': 2}}}",
        "{'id': 2, 's': {'a': None, 'In': {'b': '!', 'c': None}}}",
        "{'id': 3, 's': {'a': 3, 'In': None}}",
    ]
    for twice in ({"s": None, "s.a": 1}, {"s.in": None, "S.In.b": "'x'"}):
        with pytest.raises(DuplicateColumnError, match="twice"):
            table.update(twice)
    with pytest.raises(MissingColumnError, match=r"when_not_matched_insert names 's\.a'.*Give the whole column"):
        table.merge(frame(spark, [(9,)], "id int")).when_not_matched_insert({"id": 9, "s.a": 1}).execute()


def test_a_value_that_its_column_cannot_hold_is_refused_whatever_the_session_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = made(spark, tmp_path / "t")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for value in ("3000000000L", "'1 x'", "' 7 '", "'07'", "7.5D", "1e30", "1e30BD"):
            with pytest.raises(SchemaMismatchError, match=r"update gives the column 'n' .* of the type int, the value"):
                table.update({"n": value}, "id = 1")
        table.update({"n": "if(id = 1, '7', null)"}, "id < 3")
        table.update({"n": "if(id = 3, double('nan'), -0e0)"}, "id > 2")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")

    assert [row[3] for row in rows(table)] == [7, None, None, 0]


def test_floats_inside_of_nested_values_are_whole_numbers_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    columns = "id int, b bigint, s struct<a:int,t:string>, l array<int>, m map<string,int>"
    table = HudiTable.create(spark, str(tmp_path / "t"), columns, record_key="id", buckets=1)
    table.upsert(frame(spark, [(1, 1, (1, "x"), [1], {"k": 1})], columns))
    given = "select 1 id, {0} b, named_struct('a', {0}, 't', 'y') s, array({0}, null) l, map('k', {0}) m"
    merge = table.merge(spark.sql(given.format("7e0")), "source.id = target.id").when_matched_update_all()
    merge.execute()
    # The keys of a map get the column's type like its values.
    other = "select 1 id, named_struct('a', double('nan'), 't', 'z') s, map(2, 9e0) m"
    changes = {"s": "source.s", "m": "source.m"}
    table.merge(spark.sql(other), "source.id = target.id").when_matched_update(changes).execute()

    assert str(table.to_df(["b", "s", "l", "m"]).first().asDict(recursive=True)) == (
        "{'b': 7, 's': {'a': None, 't': 'z'}, 'l': [7, None], 'm': {'2': 9}}"
    )
    for name, value in [
        ("b", "7.5D"),
        ("b", "9007199254740992D"),
        ("b", "float(16777216)"),
        ("s", "2e10"),
        ("l", "0.5D"),
        ("m", "1e0/0.3"),
    ]:
        rows_of = spark.sql(given.format(value))
        clause = table.merge(rows_of, "source.id = target.id").when_matched_update({name: f"source.{name}"})
        with pytest.raises(SchemaMismatchError, match=f"the column '{name}'.*cannot hold"):
            clause.execute()
