"""What users of delta-spark and of Spark type by habit gets an answer: the call here, or the rows."""

from __future__ import annotations

import inspect
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyhudi
import pytest
from pyhudi import HudiTable, PyHudiWarning
from pyhudi.connector.merge.builder import MergeBuilder
from pyhudi.connector.table.base import TABLE_CALLS, TABLE_KEYWORDS
from pyhudi.errors import InvalidOptionError, MissingColumnError, OptionConflictError, UnknownOptionError
from pyhudi.methods.other_keywords import MERGE_KEYWORDS
from pyhudi.methods.other_names import MERGE_CALLS
from pyhudi.options.names import OPTIONS
from pyspark.sql import SparkSession

SCHEMA = "id long, city string, n int, price double, cost decimal(10,2), day date"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    path = str(tmp_path_factory.mktemp("calls") / "t")
    table = HudiTable.create(spark, path, SCHEMA, record_key="id", table_type="MERGE_ON_READ", buckets=1)
    numbers = "int(id) n", "double(id) price", "cast(id AS decimal(10,2)) cost"
    table.upsert(spark.range(6).selectExpr("id", "concat('c', id) city", *numbers, "date'2026-01-01' day"))
    return table


@pytest.mark.parametrize("name", TABLE_CALLS)
def test_a_call_of_delta_spark_names_the_call_of_a_table(table: HudiTable, name: str) -> None:
    for owner in (HudiTable, table):
        with pytest.raises(AttributeError) as raised:
            getattr(owner, name)
        assert f"HudiTable has no attribute {name!r}. Use {TABLE_CALLS[name]}." in str(raised.value)
        assert not hasattr(owner, name)
        assert name not in dir(owner)


@pytest.mark.parametrize("name", MERGE_CALLS)
def test_a_call_of_delta_spark_names_the_call_of_a_merge(table: HudiTable, name: str) -> None:
    merge = table.merge(table.to_df(meta=False))
    with pytest.raises(AttributeError, match="MergeBuilder has no attribute"):
        getattr(merge, name)
    assert name not in dir(merge)
    named = MERGE_CALLS[name].partition("(")[0]
    assert hasattr(merge, named) or MERGE_CALLS[name].startswith("nothing")


KEYWORDS = [
    (kind, method, keyword, call)
    for kind, methods in ((HudiTable, TABLE_KEYWORDS), (MergeBuilder, MERGE_KEYWORDS))
    for method, calls in methods.items()
    for call, keywords in calls.items()
    for keyword in keywords.split()
]


@pytest.mark.parametrize("method", TABLE_KEYWORDS)
def test_a_keyword_of_another_library_names_the_call(table: HudiTable, method: str) -> None:
    for _, _, keyword, call in (entry for entry in KEYWORDS if entry[:2] == (HudiTable, method)):
        with pytest.raises(InvalidOptionError) as raised:
            getattr(table, method)(**{keyword: "1"})
        assert f"{method}() has no argument {keyword!r}. Call {call}." in " ".join(str(raised.value).split())


def test_no_keyword_of_another_library_hides_an_argument_or_an_option() -> None:
    options = {name for option in OPTIONS.values() for name in (option.name, *option.keys)} - {"as_of"}
    for kind, method, keyword, call in KEYWORDS:
        named = re.match(r"(?:HudiTable\.)?(\w+)\(", call)
        assert named is not None
        assert callable(getattr(kind, named[1]))
        parameters = inspect.signature(getattr(kind, method)).parameters
        # No keyword reaches positional arguments.
        assert keyword not in parameters or (method, keyword) == ("delete_partitions", "paths")
        if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            assert keyword.replace("_", "") not in {name.replace("_", "") for name in options}


def test_the_condition_of_delta_lake_is_taken_by_its_name_and_not_beside_ours(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = HudiTable.create(spark, tmp_path / "t", "id long, n int", record_key="id", buckets=1)
    table.upsert(spark.range(6).selectExpr("id", "int(id) n"))
    assert table.update(condition="id = 5", set={"n": 7}).updates == 1
    changes = table.to_df(meta=False, where="id IN (4, 5)")
    merge = table.merge(source=changes, condition="source.id = target.id")
    assert merge.when_matched_update({"n": "source.n + 10"}).execute().updates == 2
    assert table.delete(condition="n = 17").deletes == 1
    assert sorted(map(tuple, table.to_df(["id", "n"], where="id > 3").collect())) == [(4, 14)]

    for call in (
        lambda: table.delete("id = 1", condition="id = 1"),
        lambda: table.update({"n": 1}, "id = 1", condition="id = 1"),
        lambda: table.update(set={"n": 1}, where="id = 1", condition="id = 1"),
        lambda: table.merge(changes, "id", condition="source.id = target.id"),
    ):
        with pytest.raises(InvalidOptionError, match="two names of one argument"):
            call()


def test_keywords_of_a_merge_and_in_camel_case_are_answered(table: HudiTable) -> None:
    merge = table.merge(table.to_df(meta=False))
    with pytest.raises(InvalidOptionError, match=r"when_matched_update\(set, condition\)"):
        merge.when_matched_update(predicate="true", set={})  # type: ignore[call-arg]
    with pytest.raises(InvalidOptionError, match="KEEP_LATEST_BY_HOURS"):
        table.clean(retentionHours=168)
    with pytest.raises(InvalidOptionError, match="as_of"):
        table.to_df(versionAsOf=3)  # type: ignore[call-arg]


def test_a_keyword_that_no_library_has_stays_an_error_of_python_or_of_options(table: HudiTable) -> None:
    with pytest.raises(TypeError, match="nonsense"):
        table.to_df(nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(UnknownOptionError, match="nonsense"):
        table.clean(nonsense=1)


def test_an_unknown_attribute_is_refused_as_python_refuses_it(table: HudiTable) -> None:
    with pytest.raises(AttributeError, match=r"^HudiTable has no attribute 'upserd'$"):
        table.upserd  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("given", [("t",), (Path("t"),), ("t", None)])
def test_a_table_that_is_opened_without_its_session_first_is_told_how(given: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"HudiTable\(spark, 't'\)"):
        HudiTable(*given)


def test_repr_shows_the_path_and_the_type_and_needs_no_table(
    spark: SparkSession, table: HudiTable, tmp_path: Path
) -> None:
    assert repr(table) == f"HudiTable({table.path!r}: MERGE_ON_READ)"
    absent = tmp_path / "absent"
    assert "<tr><td>type</td><td>MERGE_ON_READ</td></tr>" in table._repr_html_()
    assert "<tr>" not in HudiTable(spark, absent)._repr_html_()
    assert repr(HudiTable(spark, absent)) == f"HudiTable({str(absent)!r}: no table yet)"
    (tmp_path / "file").touch()
    assert "not a table" in repr(HudiTable(spark, tmp_path / "file"))


def test_columns_may_be_text(table: HudiTable) -> None:
    assert table.to_df("id").columns == ["id"]
    assert table.to_df("id, city").columns == ["id", "city"]


@pytest.mark.parametrize("column", ["id", "n", "price", "cost"])
@pytest.mark.parametrize("value", [2, 2.0, Decimal(2), True])
def test_a_number_of_any_type_is_compared_with_a_column_of_any(table: HudiTable, column: str, value: Any) -> None:
    if value is True:
        with pytest.raises(InvalidOptionError, match="True is no value"):
            table.to_df("id", where={column: value})
        return
    wanted = [row.id for row in table.to_df().where(f"{column} = 2").collect()]
    assert [row.id for row in table.to_df("id", where={column: value}).collect()] == wanted
    assert len(wanted) == 1


def test_a_day_of_the_first_year_is_compared_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Java reads no year of a single digit, as Python may spell it."""
    table = HudiTable.create(spark, tmp_path / "t", "id int, day date", record_key="id")
    table.upsert(spark.sql("select 1 id, date'0001-01-01' day union all select 2, date'0001-01-03'"))

    assert [row.id for row in table.to_df("id", where={"day": date(1, 1, 1)}).collect()] == [1]
    table.update({"day": date(1, 1, 1)}, "id = 2")
    assert table.to_df().where("day = date'0001-01-01'").count() == 2


def test_a_delete_of_nothing_named_says_what_to_name(table: HudiTable) -> None:
    with pytest.raises(InvalidOptionError, match="condition as its first argument"):
        table.delete()


def test_a_text_that_is_set_without_quotes_is_refused_with_the_quotes(table: HudiTable) -> None:
    with pytest.raises(MissingColumnError, match="\"'Bergen'\""):
        table.update({"city": "Bergen"}, "id = 1")


def test_a_write_returns_what_it_was_asked_for_and_did_not_do(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, tmp_path / "t", "id long, p string", record_key="id", partition_by="p", buckets=1)
    with pytest.warns(PyHudiWarning):
        upserted = table.upsert(
            spark.sql("select 1L id, 'a' p"),
            **{"hoodie.clustering.inline": True, "hoodie.datasource.hive_sync.enable": True},
        )
    assert [re.search(r"hoodie\.\S+=true", text.lower())[0] for text in upserted.warnings] == [  # type: ignore[index]
        "hoodie.clustering.inline=true",
        "hoodie.datasource.hive_sync.enable=true",
    ]
    deleted = table.delete_partitions("a", "nowhere")
    assert deleted.replaced == 1
    assert "no partition 'nowhere'" in deleted.warnings[0]


def test_the_newest_commit_is_never_a_service(table: HudiTable) -> None:
    before = table.last_commit()
    done = table.upsert(table.to_df(where={"id": 1}, meta=False))
    assert table.compact().instant
    assert table.last_commit() == done != before


def test_a_table_is_made_only_where_it_is_absent(spark: SparkSession, tmp_path: Path) -> None:
    def made(schema: str = SCHEMA, **changes: Any) -> HudiTable:
        given: dict[str, Any] = {"record_key": "id", "partition_by": "city", "order_by": "n", "buckets": 2, **changes}
        return HudiTable.create(spark, tmp_path / "t", schema, **given, if_not_exists=True)

    first = made()
    first.insert(spark.sql("select 1L id, 'x' city, 1 n, 1.0D price, 1.00BD cost, date'2026-01-01' day"))
    assert made().to_df().count() == 1
    for changes, text in (
        ({"record_key": "n"}, "recordkey"),
        ({"partition_by": ()}, "partition"),
        ({"order_by": ()}, "ordered by n, and the call asks for nothing"),
        ({"order_by": "price"}, "'price' here and 'n' in the table"),
        ({"table_type": "MERGE_ON_READ"}, "COPY_ON_WRITE"),
        ({"index": "BLOOM", "buckets": None}, "BLOOM"),
        ({"buckets": 3}, "3 here and 2 in the table"),
        ({"schema": SCHEMA + ", more int"}, "'more' with the type none"),
        ({"schema": SCHEMA.replace("n int", "n long")}, "'n' with the type int"),
    ):
        with pytest.raises(OptionConflictError, match=text):
            made(**changes)  # type: ignore[arg-type]


def test_a_view_without_meta_columns_takes_inserted_values(spark: SparkSession, tmp_path: Path) -> None:
    HudiTable.create(spark, tmp_path / "t", "id long, city string", record_key="id")
    spark.sql(f"CREATE TEMPORARY VIEW bare USING pyhudi OPTIONS (path '{tmp_path / 't'}', meta 'false')")
    spark.sql("INSERT INTO bare VALUES (1, 'Rome')")
    assert spark.read.format("pyhudi").option("meta", "false").load(str(tmp_path / "t")).columns == ["id", "city"]
    assert [tuple(row) for row in HudiTable(spark, tmp_path / "t").to_df(meta=False).collect()] == [(1, "Rome")]
    spark.catalog.dropTempView("bare")


def test_activity_is_empty_where_no_process_is_at_work(table: HudiTable) -> None:
    assert table.activity().collect() == []
    assert table.activity().columns[:3] == ["instant", "action", "phase"]


def test_a_merge_shows_its_clauses(table: HudiTable) -> None:
    merge = table.merge(table.to_df(meta=False), "source.id = target.id")
    assert "no clause yet" in repr(merge)
    assert "<pre>merge into" in merge._repr_html_()
    shown = repr(merge.when_matched_update({"n": "source.n + 1"}, "source.n > 1").when_matched_delete())
    assert shown.splitlines() == [
        f"merge into {table.path} on source.id = target.id",
        "  when_matched_update({'n': 'source.n + 1'}, condition='source.n > 1')",
        "  when_matched_delete()",
        "nothing is written until execute()",
    ]


def test_the_package_shows_its_public_names_alone() -> None:
    assert dir(pyhudi) == sorted(pyhudi.__all__)
