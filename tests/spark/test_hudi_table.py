from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest
from pyhudi import CommitResult, HudiTable, PyHudiWarning, colocate, suggest_buckets
from pyhudi.errors import (
    DuplicateColumnError,
    DuplicateKeyError,
    InvalidOptionError,
    KeyNotFoundError,
    MissingColumnError,
    MissingOptionError,
    NotATableError,
    NullKeyError,
    OptionConflictError,
    TableNotFoundError,
    UnsupportedTypeError,
)
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.readers import rows_by_hudi_rs
from support.recorded.fixture_tables import unpack

POLICY = "hoodie.datasource.insert.dup.policy"


def numbers(spark: SparkSession, start: int, end: int, n: int = 0) -> DataFrame:
    return spark.range(start, end, numPartitions=4).selectExpr("id", f"cast({n} as int) n", "concat('p', id % 3) p")


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HudiTable:
    schema = numbers(spark, 0, 0)
    return HudiTable.create(spark, str(tmp_path / "t"), schema, record_key="id", partition_by="p", buckets=2)


def rows(df: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in df.select(*columns).collect())


@pytest.mark.oldest
def test_a_life_of_a_table(spark: SparkSession, table: HudiTable) -> None:
    first = table.upsert(numbers(spark, 0, 100))
    second = table.upsert(numbers(spark, 90, 110, n=1))
    third = table.delete(numbers(spark, 108, 120))

    assert (first.operation, first.inserts, first.updates, first.files) == ("UPSERT", 100, 0, 6)
    assert (second.inserts, second.updates) == (10, 10)
    assert (third.operation, third.deletes, third.not_found) == ("DELETE", 2, 10)
    assert first.instant < second.instant < third.instant
    expected = [(n, int(n >= 90), f"p{n % 3}") for n in range(108)]
    assert rows(table.to_df(), "id", "n", "p") == expected
    assert rows_by_hudi_rs(Path(table.path), "id", "n", "p") == expected
    assert table.last_commit() == third


@pytest.mark.oldest
def test_every_operation_is_a_method_that_tells_what_it_did(spark: SparkSession, table: HudiTable) -> None:
    table.upsert(numbers(spark, 0, 12))
    inserted = table.insert(numbers(spark, 9, 15, n=1))
    dropped = table.insert(numbers(spark, 9, 18, n=2), **{POLICY: "drop"})
    bulk = table.bulk_insert(numbers(spark, 18, 20, n=3), **{"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    replaced = table.insert_overwrite(numbers(spark, 0, 2, n=4))
    gone = table.delete_partitions("p1", "q*")

    assert [done.operation for done in (inserted, bulk, replaced, gone)] == [
        "INSERT",
        "BULK_INSERT",
        "INSERT_OVERWRITE",
        "DELETE_PARTITION",
    ]
    assert (inserted.inserts, dropped.inserts, dropped.dropped, bulk.inserts) == (6, 3, 6, 2)
    assert (replaced.inserts, replaced.replaced, replaced.files) == (2, 4, 2)
    assert (gone.replaced, gone.files) == (1, 0)
    left = [(2, 0), (5, 0), (8, 0), (11, 0), (11, 1), (14, 1), (17, 2)]
    assert rows(table.to_df(), "id", "n") == [(0, 4), *left]
    assert rows_by_hudi_rs(Path(table.path), "id", "n") == rows(table.to_df(), "id", "n")
    assert table.last_commit() == gone
    assert repr(replaced).startswith(f"<INSERT_OVERWRITE {replaced.instant} of {table.path}: 2 inserted, 4 file groups")

    last = table.overwrite(numbers(spark, 100, 101))
    assert (last.operation, last.inserts) == ("INSERT_OVERWRITE_TABLE", 1)
    assert rows(table.to_df(), "id") == [(100,)]
    assert last.seconds["total"] >= last.seconds["merge"]


def test_rows_are_deleted_by_a_condition(spark: SparkSession, table: HudiTable) -> None:
    table.upsert(numbers(spark, 0, 30))
    by_text = table.delete("p = 'p1' and id < 10")
    by_column = table.delete(sf.col("id").isin(0, 2, 99) | sf.col("_hoodie_partition_path").isNull())
    nothing = table.delete("n = 5")

    assert (by_text.deletes, by_text.not_found, by_text.files) == (3, 0, 2)
    assert (by_column.deletes, nothing.deletes, nothing.files) == (2, 0, 0)
    assert rows(table.to_df(), "id") == [(n,) for n in range(30) if n not in {0, 1, 2, 4, 7}]


def test_rows_that_change_are_those_of_the_newest_snapshot_whatever_query_the_session_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    schema = numbers(session, 0, 0)
    table = HudiTable.create(
        session, str(tmp_path / "t"), schema, record_key="id", buckets=1, table_type="MERGE_ON_READ"
    )
    table.upsert(numbers(session, 0, 3))
    # The log file alone has these values.
    table.upsert(numbers(session, 1, 3, n=5))
    session.conf.set("hoodie.datasource.query.type", "incremental")
    session.conf.set("hoodie.datasource.read.begin.instanttime", "2099-01-01")

    assert (table.delete("n = 5 and id = 1").deletes, table.update({"n": 6}, "n = 5").updates) == (1, 1)
    assert table.to_df().count() == 0, "a read does as the session says"
    session.conf.unset("hoodie.datasource.read.begin.instanttime")
    session.conf.set("hoodie.datasource.query.type", "read_optimized")
    merge = table.merge(numbers(session, 2, 3, n=6), ["id", "n"])
    assert merge.when_matched_delete().execute().deletes == 1


def test_a_delete_may_insist_on_its_keys(spark: SparkSession, table: HudiTable) -> None:
    first = table.upsert(numbers(spark, 0, 6))
    with pytest.raises(KeyNotFoundError, match="'77'"):
        table.delete(numbers(spark, 3, 6).unionAll(numbers(spark, 77, 78)), missing_ok=False)
    with pytest.raises(DuplicateKeyError, match="'5'"):
        table.insert(numbers(spark, 5, 8), **{POLICY: "fail"})

    assert rows(table.to_df(), "id") == [(n,) for n in range(6)]
    assert table.last_commit() == first
    assert table.delete(numbers(spark, 3, 6), missing_ok=False).deletes == 3


def test_partitions_are_deleted_by_name_alone(table: HudiTable) -> None:
    with pytest.raises(InvalidOptionError, match="names no partition"):
        table.delete_partitions()


@pytest.mark.oldest
def test_rows_are_written_without_pandas_too(
    spark: SparkSession, table: HudiTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark 4.0 needs it to place rows whose keys are texts."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    texts = numbers(spark, 0, 100).selectExpr("string(id) key", "n")
    of_texts = HudiTable.create(spark, f"{table.path}-of-texts", texts, record_key="key", buckets=2)

    placed = {"hoodie.pyhudi.place.rows": "always"}
    assert table.upsert(numbers(spark, 0, 100), **placed).inserts == 100
    assert "pandas" not in caplog.text
    assert of_texts.upsert(texts, **placed).inserts == 100
    assert ("only if pandas is installed" in caplog.text) == (not hasattr(DataFrame, "repartitionById"))


def test_a_new_table_is_empty_and_has_its_columns(spark: SparkSession, table: HudiTable) -> None:
    assert table.to_df().collect() == []
    assert table.to_df().columns[5:] == ["id", "n", "p"]
    assert table.last_commit() is None
    assert table.history().collect() == []
    assert spark.read.format("pyhudi").load(table.path).collect() == []
    assert repr(table) == f"HudiTable({table.path!r}: COPY_ON_WRITE)"


@pytest.mark.oldest
@pytest.mark.parametrize("schema", ["id bigint, ts timestamp, p string", None])
def test_the_schema_may_be_text(spark: SparkSession, tmp_path: Path, schema: str | None) -> None:
    struct = spark.createDataFrame([], "id bigint, ts timestamp, p string").schema
    table = HudiTable.create(
        spark, str(tmp_path / "t"), schema or struct, record_key=["id"], partition_by=["p"], order_by="ts"
    )

    assert table.to_df().schema.fields[5:] == struct.fields


def test_a_table_is_not_created_twice_nor_over_something_else(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    HudiTable.create(spark, str(path), "id int", record_key="id")
    before = (path / ".hoodie" / "hoodie.properties").read_bytes()

    with pytest.raises(OptionConflictError, match="already"):
        HudiTable.create(spark, str(path), "id int", record_key="id", buckets=3)
    assert (path / ".hoodie" / "hoodie.properties").read_bytes() == before

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "data.csv").write_text("a,b")
    with pytest.raises(NotATableError):
        HudiTable.create(spark, str(tmp_path / "other"), "id int", record_key="id")


def test_columns_that_an_argument_names_must_exist(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(MissingColumnError, match="'idx'"):
        HudiTable.create(spark, str(tmp_path / "t"), "id int", record_key="idx")
    with pytest.raises(UnsupportedTypeError, match="column v"):
        HudiTable.create(spark, str(tmp_path / "t"), "id int, v variant", record_key="id")
    with pytest.raises(InvalidOptionError, match="The text 'id strng', given as the columns of the table"):
        HudiTable.create(spark, str(tmp_path / "t"), "id strng", record_key="id")
    assert not (tmp_path / "t").exists()


def test_writing_to_no_table_says_how_to_make_one(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        HudiTable(spark, str(tmp_path / "nothing")).upsert(numbers(spark, 0, 1))


def test_both_ways_to_read_give_one_schema_and_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("v9_cow_types", "v9_cow_hive_urlencoded", "v9_cow_evolved"):
        path = unpack(name, tmp_path)
        ours, sparks = spark.read.format("pyhudi").load(path), HudiTable(spark, path).to_df()

        assert sparks.schema == ours.schema
        assert sorted(map(repr, sparks.collect())) == sorted(map(repr, ours.collect()))


def test_a_new_table_can_be_opened_by_apache_hudi(table: HudiTable) -> None:
    """Apache Hudi fails to open a table whose timeline has no folder."""
    left = [str(one.relative_to(table.path)) for one in Path(table.path).rglob("*")]

    assert sorted(left) == [".hoodie", ".hoodie/hoodie.properties", ".hoodie/timeline"]


def test_to_df_takes_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable(spark, unpack("v9_cow_hive_urlencoded", tmp_path))

    df = table.to_df(["s", "id"])

    assert df.columns == ["s", "id"]
    assert sorted(df.collect(), key=repr) == sorted([("x/y", 1), (None, 2), ("é", 4), ("x y", 5)], key=repr)
    with pytest.raises(MissingColumnError):
        table.to_df(["nope"])


@pytest.mark.oldest
def test_to_df_reads_odd_partition_names(spark: SparkSession, tmp_path: Path) -> None:
    odd = ["*", "[a]", "{b,c}", "_hidden", ".dot", "a b", "50%", "x=1", "a?", "é", "__HIVE_DEFAULT_PARTITION__", "#"]
    for hive in ("false", "true"):
        table = HudiTable.create(
            spark,
            str(tmp_path / f"odd {hive}"),
            "id int, p string",
            record_key="id",
            partition_by="p",
            options={"hoodie.datasource.write.hive_style_partitioning": hive},
        )
        source = spark.createDataFrame(list(enumerate(odd)), "id int, p string")
        table.upsert(source)

        assert rows(table.to_df(), "id", "p") == list(enumerate(odd))
        assert rows(spark.read.format("pyhudi").load(table.path), "id", "p") == list(enumerate(odd))


def test_to_df_stays_as_it_was(spark: SparkSession, table: HudiTable) -> None:
    table.upsert(numbers(spark, 0, 3))
    df = table.to_df()

    table.upsert(numbers(spark, 0, 3, n=1))

    assert rows(df, "n") == [(0,)] * 3


def test_history_tells_every_instant(spark: SparkSession, table: HudiTable) -> None:
    table.upsert(numbers(spark, 0, 3))
    table.delete(numbers(spark, 0, 1))

    history = table.history()

    assert history.columns == [
        *("instant", "action", "state", "completed", "operation"),
        *("inserts", "updates", "deletes", "files", "bytes", "log_files", "log_bytes", "failures", "error"),
        "repair",
    ]
    assert [(row.operation, row.inserts, row.deletes) for row in history.collect()] == [
        ("DELETE", 0, 1),
        ("UPSERT", 3, 0),
    ]


@pytest.mark.oldest
def test_an_error_of_a_task_is_raised_as_itself(spark: SparkSession, table: HudiTable) -> None:
    bad = numbers(spark, 0, 10).withColumn("id", sf.when(sf.col("id") != 7, sf.col("id")))

    with pytest.raises(NullKeyError) as caught:
        table.upsert(bad)

    assert isinstance(caught.value.__cause__, PySparkException)
    assert str(caught.value).startswith("PyHudiError[NULL_KEY]: ")
    assert table.last_commit() is None


@pytest.mark.oldest
def test_an_error_that_is_not_ours_stays_what_it_is(spark: SparkSession, table: HudiTable) -> None:
    failing = numbers(spark, 0, 3).withColumn("n", sf.raise_error(sf.lit("boom")).cast("int"))

    with pytest.raises(PySparkException, match="boom"):
        table.upsert(failing)


def test_a_table_of_apache_hudi_needs_its_number_of_buckets_once(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable(spark, unpack("v9_cow_evolved", tmp_path))
    update = spark.createDataFrame([(5, 55, "x"), (6, 66, "y")], "id int, n bigint, extra string")

    with pytest.raises(MissingOptionError, match=r"num\.buckets"):
        table.upsert(update)
    upserted = table.upsert(update, buckets=2)
    again = table.upsert(update)

    assert (upserted.inserts, upserted.updates) == (1, 1)
    assert (again.inserts, again.updates) == (0, 2)
    assert rows(table.to_df(), "id", "n")[-2:] == [(5, 55), (6, 66)]


def test_services_that_are_not_done_warn_the_user(spark: SparkSession, table: HudiTable) -> None:
    with pytest.warns(PyHudiWarning, match="file groups stay as the writes leave them"):
        table.upsert(numbers(spark, 0, 1), **{"hoodie.clustering.inline": True})


def test_an_ordinary_write_warns_of_nothing(spark: SparkSession, table: HudiTable) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PyHudiWarning)
        warnings.simplefilter("error", UserWarning)
        table.upsert(numbers(spark, 0, 1))


def test_options_of_the_table_are_used_by_every_write(spark: SparkSession, table: HudiTable) -> None:
    gzip = HudiTable(spark, table.path, {"hoodie.parquet.compression.codec": "gzip"})
    gzip.upsert(numbers(spark, 0, 1))

    import pyarrow.parquet as pq

    [file] = Path(table.path).rglob("*.parquet")
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "GZIP"


def test_a_write_without_rows_may_leave_nothing(spark: SparkSession, table: HudiTable) -> None:
    done = table.upsert(numbers(spark, 0, 0), **{"hoodie.allow.empty.commit": False})

    assert done == CommitResult(table.path, "", "UPSERT", write_id=done.write_id)
    left = [str(one.relative_to(table.path)) for one in Path(table.path).rglob("*")]
    assert sorted(left) == [".hoodie", ".hoodie/hoodie.properties", ".hoodie/timeline"]


@pytest.mark.oldest
def test_colocate_puts_every_file_group_into_one_partition(spark: SparkSession, table: HudiTable) -> None:
    placed = colocate(numbers(spark, 0, 1_000), table, tasks=5)

    assert placed.rdd.getNumPartitions() == 5
    assert placed.columns == ["id", "n", "p", "_pyhudi_position"]
    placed.write.format("pyhudi").option("hoodie.pyhudi.colocated", "true").mode("append").save(table.path)
    by_file = table.to_df().groupBy("_hoodie_file_name", "p").count()
    assert by_file.count() == 6
    assert table.to_df().count() == 1_000


@pytest.mark.oldest
def test_a_promise_of_colocation_that_is_not_kept_fails_the_write(spark: SparkSession, table: HudiTable) -> None:
    with pytest.raises(PySparkException, match=r"PyHudiError\[PLACEMENT\].*colocate"):
        (
            numbers(spark, 0, 1_000)
            .write.format("pyhudi")
            .option("hoodie.pyhudi.colocated", "true")
            .mode("append")
            .save(table.path)
        )
    assert table.last_commit() is None


def test_colocate_says_what_is_missing_or_twice_there(spark: SparkSession, table: HudiTable, tmp_path: Path) -> None:
    with pytest.raises(MissingColumnError, match="'p'"):
        colocate(spark.range(3), table)
    with pytest.raises(DuplicateColumnError, match="'id' and 'ID'"):
        colocate(numbers(spark, 0, 1).selectExpr("*", "id ID"), table)
    with pytest.raises(InvalidOptionError):
        colocate(numbers(spark, 0, 1), table, tasks=0)
    with pytest.raises(TableNotFoundError):
        colocate(numbers(spark, 0, 1), str(tmp_path / "nothing"))
    with pytest.raises(MissingOptionError):
        colocate(numbers(spark, 0, 1), unpack("v9_cow_evolved", tmp_path))


def test_suggest_buckets_measures_rows_or_takes_bytes(spark: SparkSession) -> None:
    gib = 1 << 30
    random = spark.range(1_000).selectExpr("id", "id % 4 p", "sha2(cast(id as string), 512) text")

    assert suggest_buckets(0) == 1
    assert suggest_buckets(4 * gib, partitions=2) == 4
    assert suggest_buckets(random) == 1
    grown = suggest_buckets(random, growth=1_000_000)
    assert suggest_buckets(random, partition_by="p", growth=1_000_000) in {-(-grown // 4), grown // 4}
    with pytest.raises(InvalidOptionError):
        suggest_buckets(1, partition_by="p")
    with pytest.raises(InvalidOptionError, match=r"cannot be partitioned by q: .*UNRESOLVED_COLUMN"):
        suggest_buckets(random, partition_by="q")
