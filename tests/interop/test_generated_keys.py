"""Tables that generate their keys, carried on by pyhudi and Apache Hudi in turn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop.apache_hudi import ApacheHudi, data_files
from interop.instants import pending, properties
from interop.readers import read_hudi_rs, read_pyhudi
from interop.writer import write_without_spark
from pyhudi import HudiTable
from pyspark.sql import SparkSession
from support.readers import read_without_spark

pytestmark = pytest.mark.interop

OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"
INSERT = {OPERATION: "insert"}
OPTIONS = {"hoodie.table.name": "generated", "hoodie.datasource.write.partitionpath.field": "p"}
PLAIN = {"hoodie.metadata.enable": "false"}
KEY = "_hoodie_record_key"


def rows(*numbers: int) -> pa.Table:
    columns = [list(numbers), [f"p{n % 2}" for n in numbers], [n * 10 for n in numbers]]
    return pa.table(columns, schema=pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())]))


class Both:
    """Both writers and all readers of one table."""

    def __init__(self, spark: SparkSession, apache: ApacheHudi, folder: Path) -> None:
        self.spark, self.apache, self.table = spark, apache, folder / "a table"
        self._folder = folder
        self.ids: list[int] = []

    def write(
        self, operation: str, numbers: list[int], left: list[int], *, by_apache: bool = True, **options: str
    ) -> None:
        """Write with pyhudi, in one task without Spark.

        Args:
            operation: Hudi's name of it.
            numbers: The rows.
            left: The rows of the table that the operation leaves there.
            by_apache: Whether Apache Hudi reads too; not where the next write leaves all of this one's rows.
            options: Further options.
        """
        write_without_spark(self.table, rows(*numbers), {OPERATION: operation, **options})
        self.ids = left + numbers
        self.check(by_apache=by_apache)

    def insert(self, numbers: list[int], **options: str) -> None:
        """Insert with pyhudi, in two tasks."""
        path = self._folder / f"rows-{numbers[0]}-{len(self.ids)}.parquet"
        pq.write_table(rows(*numbers), path, store_schema=False)
        frame = self.spark.read.parquet(str(path)).repartition(2)
        frame.write.format("pyhudi").options(**options).mode("append").save(str(self.table))
        self.ids += numbers
        self.check()

    def insert_theirs(self, numbers: list[int], **options: str) -> None:
        """Insert with Apache Hudi."""
        self.apache.write(self.table, rows(*numbers), {**OPTIONS, **INSERT, **options})
        self.ids += numbers
        self.check()

    def check(self, *, by_spark: bool = False, by_apache: bool = True) -> None:
        """Hold all readers against what was written, and their keys against each other."""
        snapshots = {
            "pyhudi": read_pyhudi(self.spark, self.table) if by_spark else read_without_spark(self.table),
            "hudi-rs": read_hudi_rs(self.table),
        }
        if by_apache:
            snapshots["Apache Hudi"] = self.apache.read(self.table)
        for reader, table in snapshots.items():
            assert sorted(table["id"].to_pylist()) == sorted(self.ids), reader
        keys = {reader: sorted(table[KEY].to_pylist()) for reader, table in snapshots.items()}
        assert len(set(keys["pyhudi"])) == len(self.ids)
        assert all(some == keys["pyhudi"] for some in keys.values())
        assert pending(self.table) == set()


@pytest.fixture
def both(spark: SparkSession, apache: ApacheHudi, tmp_path: Path) -> Both:
    """An empty folder for a table."""
    return Both(spark, apache, tmp_path)


def test_a_table_of_pyhudi_is_carried_on_by_apache_hudi_and_back(both: Both) -> None:
    """Apache Hudi's insert fills up pyhudi's small files; its delete finds rows by the index that it has by default."""
    both.insert(list(range(20)), **INSERT, **OPTIONS)
    assert "hoodie.table.recordkey.fields" not in properties(both.table)
    assert "hoodie.index.type" not in properties(both.table)
    both.insert(list(range(20, 24)))
    both.insert_theirs(list(range(24, 30)), **PLAIN)
    both.insert_theirs(list(range(30, 34)), **{**PLAIN, OPERATION: "bulk_insert"})

    gone = both.apache.read(both.table)
    gone = gone.filter(pa.compute.is_in(gone["id"], value_set=pa.array([0, 21, 25, 31])))
    both.apache.write(both.table, gone, {**OPTIONS, **PLAIN, OPERATION: "delete"})
    both.ids = [one for one in both.ids if one not in {0, 21, 25, 31}]
    both.check()
    both.insert(list(range(34, 40)))
    both.check(by_spark=True)


def test_a_table_of_apache_hudi_is_carried_on_by_pyhudi_and_back(both: Both) -> None:
    """pyhudi needs no option, changes no file with an insert, and deletes rows as they were read."""
    both.insert_theirs(list(range(20)), **{OPERATION: "bulk_insert"})
    both.insert_theirs(list(range(20, 26)))
    files = data_files(both.table)
    both.insert(list(range(26, 32)))
    assert files < data_files(both.table)

    table = HudiTable(both.spark, str(both.table))
    result = table.delete(table.to_df().where("id in (1, 22, 27, 30)"))
    assert (result.deletes, result.not_found) == (4, 0)
    both.ids = [one for one in both.ids if one not in {1, 22, 27, 30}]
    both.check(by_spark=True)
    both.insert_theirs(list(range(32, 36)))


@pytest.mark.parametrize("maker", ["pyhudi", "Apache Hudi"])
def test_rows_and_partitions_are_replaced_whoever_made_the_table(both: Both, maker: str) -> None:
    if maker == "pyhudi":
        both.write("insert", list(range(20)), left=[], **OPTIONS)
    else:
        both.insert_theirs(list(range(20)), **PLAIN)
    both.write("bulk_insert", [20, 21, 22], left=list(range(20)))
    both.write("insert_overwrite", [31, 33], left=list(range(0, 23, 2)), by_apache=False)
    both.write("delete_partition", [], left=[31, 33], **{PARTITIONS: "p0"})
    both.insert_theirs([40, 41], **PLAIN)
    both.write("insert_overwrite_table", [50, 51], left=[], by_apache=False)
    both.insert_theirs([60, 61], **PLAIN)
