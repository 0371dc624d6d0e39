"""Tables that generate their keys, carried on by pyhudi and Apache Hudi in turn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop.apache_hudi import ApacheHudi, data_files
from interop.instants import pending, properties
from interop.readers import read_hudi_rs, read_pyhudi
from pyhudi import HudiTable
from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

INSERT = {"hoodie.datasource.write.operation": "insert"}
OPTIONS = {"hoodie.table.name": "generated", "hoodie.datasource.write.partitionpath.field": "p"}
KEY = "_hoodie_record_key"


def rows(*numbers: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "p": [f"p{n % 2}" for n in numbers], "v": [n * 10 for n in numbers]}
    )


class Both:
    """Both writers and all readers of one table."""

    def __init__(self, spark: SparkSession, apache: ApacheHudi, folder: Path) -> None:
        self.spark, self.apache, self.table = spark, apache, folder / "a table"
        self._folder = folder
        self.ids: list[int] = []

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

    def check(self) -> None:
        """Hold all readers against what was written, and their keys against each other."""
        found = {
            "pyhudi": read_pyhudi(self.spark, self.table),
            "Apache Hudi": self.apache.read(self.table),
            "hudi-rs": read_hudi_rs(self.table),
        }
        for reader, table in found.items():
            assert sorted(table["id"].to_pylist()) == sorted(self.ids), reader
        keys = {reader: sorted(table[KEY].to_pylist()) for reader, table in found.items()}
        assert len(set(keys["pyhudi"])) == len(self.ids)
        assert keys["pyhudi"] == keys["Apache Hudi"] == keys["hudi-rs"]
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
    both.insert_theirs(list(range(24, 30)))
    both.insert_theirs(list(range(30, 34)), **{"hoodie.datasource.write.operation": "bulk_insert"})

    gone = both.apache.read(both.table)
    gone = gone.filter(pa.compute.is_in(gone["id"], value_set=pa.array([0, 21, 25, 31])))
    both.apache.write(both.table, gone, {**OPTIONS, "hoodie.datasource.write.operation": "delete"})
    both.ids = [one for one in both.ids if one not in {0, 21, 25, 31}]
    both.check()
    both.insert(list(range(34, 40)))


def test_a_table_of_apache_hudi_is_carried_on_by_pyhudi_and_back(both: Both) -> None:
    """pyhudi needs no option, changes no file with an insert, and deletes rows as they were read."""
    both.insert_theirs(list(range(20)), **{"hoodie.datasource.write.operation": "bulk_insert"})
    both.insert_theirs(list(range(20, 26)))
    files = data_files(both.table)
    both.insert(list(range(26, 32)))
    assert files < data_files(both.table)

    table = HudiTable(both.spark, str(both.table))
    result = table.delete(table.to_df().where("id in (1, 22, 27, 30)"))
    assert (result.deletes, result.not_found) == (4, 0)
    both.ids = [one for one in both.ids if one not in {1, 22, 27, 30}]
    both.check()
    both.insert_theirs(list(range(32, 36)))
