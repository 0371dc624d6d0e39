"""Merge-on-read tables written by Spark: by `HudiTable`, which may place rows, and by a plain ``df.write``."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyhudi.errors import KeyNotFoundError
from pyspark.sql import DataFrame, SparkSession
from support.drive import rows_of
from support.readers import rows_by_hudi_rs

PLACE, NEVER = "hoodie.pyhudi.place.rows", {"hoodie.pyhudi.place.rows": "never"}
TYPE = "hoodie.datasource.write.table.type"


def numbers(spark: SparkSession, start: int, end: int, n: int) -> DataFrame:
    return spark.range(start, end, numPartitions=4).selectExpr("id", f"cast({n} as int) n", "concat('p', id % 2) p")


@pytest.mark.oldest
def test_a_life_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    path, empty = str(tmp_path / "t"), numbers(spark, 0, 0, 0)
    named = {"record_key": "id", "partition_by": "p", "buckets": 2}
    table = HudiTable.create(spark, path, empty, table_type="MERGE_ON_READ", **named)
    first = table.upsert(numbers(spark, 0, 100, 1), **NEVER)
    placed = table.upsert(numbers(spark, 50, 120, 2), **{PLACE: "always"})
    numbers(spark, 90, 130, 3).write.format("pyhudi").mode("append").save(path)
    plain = table.last_commit()
    gone = table.delete(numbers(spark, 0, 10, 0))
    added = table.insert(numbers(spark, 20, 22, 9))

    assert (first.inserts, first.files, first.log_files) == (100, 4, 0)
    assert (placed.inserts, placed.updates, placed.files, placed.log_files) == (0, 70, 0, 4)
    assert plain is not None
    assert (plain.updates, plain.files) == (40, 0)
    assert 4 <= plain.log_files <= 16
    assert (gone.operation, gone.deletes, gone.files) == ("DELETE", 10, 0)
    assert (added.inserts, added.log_files) == (2, 0)
    newest = {n: 1 if n < 50 else 2 if n < 90 else 3 for n in range(10, 130)}
    expected = sorted([*newest.items(), (20, 9), (21, 9)])
    assert rows_of(path, "id", "n") == expected
    assert rows_by_hudi_rs(Path(path), "id", "n") == expected


def test_deletes_that_read_their_rows_hold_against_older_ones(spark: SparkSession, tmp_path: Path) -> None:
    """By a condition, by a merge, and of keys that an index looks up; hudi-rs agrees where deletes have values."""
    rows = spark.range(0, 10, numPartitions=2).selectExpr("id", "id % 2 p", "10L ts", "1 n")
    late = rows.selectExpr("id", "p", "5L ts", "2 n")
    for index, placed in (("BUCKET", "always"), ("BUCKET", "never"), ("GLOBAL_SIMPLE", "always")):
        path = str(tmp_path / f"{index} {placed}")
        named = {"record_key": "id", "partition_by": "p", "order_by": "ts", "index": index}
        table = HudiTable.create(spark, path, rows, table_type="MERGE_ON_READ", **named)
        options = {PLACE: placed, "hoodie.compact.inline": "false"}
        table.upsert(rows, **options)
        assert table.delete("id < 2", **options).deletes == 2
        assert (
            table.merge(rows.where("id in (2, 3)"), ["id", "p"]).when_matched_delete().execute(**options).deletes == 2
        )
        assert table.delete(rows.where("id in (4, 5)").select("id", "p"), **options).deletes == 2
        table.upsert(late.where("id < 6"), **options)

        stays = [(key, 1) for key in range(6, 10)]
        alone = (4, 5) if index == "BUCKET" else ()
        assert rows_of(path, "id", "n") == [*((key, 2) for key in alone), *stays]
        # To hudi-rs, as to Apache Hudi, the base row is there again beside an older row if its delete had no value.
        assert rows_by_hudi_rs(Path(path), "id", "n") == [*((key, 1) for key in alone), *stays]


def test_a_plain_write_makes_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {"recordkey": "id", TYPE: "merge_on_read", "hoodie.logfile.data.block.format": "avro"}
    for n in (1, 2):
        numbers(spark, 0, 20, n).write.format("pyhudi").options(**options).mode("append").save(path)

    assert rows_of(path, "id", "n") == [(key, 2) for key in range(20)]
    assert list(Path(path).glob(".*.log.*"))


def test_rows_leave_columns_to_older_ones(spark: SparkSession, tmp_path: Path) -> None:
    """Partial upserts, placed, looked up and plain; and a copy-on-write table with a mode of its own."""
    rows = spark.range(0, 40, numPartitions=4).selectExpr("id", "id % 2 p", "1L ts", "id n", "'first' name")
    changes = spark.range(0, 40, 2, numPartitions=4).selectExpr("id", "id % 2 p", "2L ts", "-id n")
    later = spark.range(0, 40, 4, numPartitions=4).selectExpr("id", "id % 2 p", "3L ts", "'later' name")
    for index in ("BUCKET", "SIMPLE"):
        path = str(tmp_path / index)
        named = {"record_key": "id", "partition_by": "p", "order_by": "ts", "index": index}
        table = HudiTable.create(spark, path, rows, table_type="MERGE_ON_READ", **named)
        table.upsert(rows)
        upserted = table.upsert(changes, partial=True, **{PLACE: "always"})
        later.write.format("pyhudi").option("hoodie.pyhudi.partial.update", "true").mode("append").save(path)
        with pytest.raises(KeyNotFoundError, match="'41'"):
            table.upsert(spark.range(41, 42).selectExpr("id", "id % 2 p", "2L ts", "id n"), partial=True)

        assert (upserted.inserts, upserted.updates) == (0, 20)
        assert rows_of(path, "id", "n", "name") == [
            (n, -n if n % 2 == 0 else n, "first" if n % 4 else "later") for n in range(40)
        ]
        assert (upserted.log_files > 0, upserted.files) == (True, 0)

    path = str(tmp_path / "mode")
    table = HudiTable.create(spark, path, rows, record_key="id", order_by="ts", partial_update_mode="IGNORE_DEFAULTS")
    table.upsert(rows)
    table.upsert(changes.selectExpr("*", "cast(null as string) name"))
    assert rows_of(path, "id", "n", "name") == [(n, -n if n % 2 == 0 else n, "first") for n in range(40)]
