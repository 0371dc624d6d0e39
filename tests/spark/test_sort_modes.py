"""Which rows a bulk insert brings together, and how it sorts them, where tasks open file groups of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyhudi import HudiTable
from pyhudi.table.files.names import BaseFileName
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

COALESCES = "spark.sql.adaptive.coalescePartitions.enabled"
SORT_MODE = "hoodie.bulkinsert.sort.mode"
SORT_COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
# As numbers and as texts they are in different orders.
COUNT = 2000

Files = dict[str, list[tuple[int, list[str], list[int]]]]


def files_of(path: Path, since: set[Path]) -> Files:
    """Return the new files of each partition path: the task, the keys and the values of each."""
    files_by_partition: Files = {}
    for file in sorted({*path.glob("*/*.parquet")} - since):
        name = BaseFileName.parse(file.name)
        assert name is not None
        rows = pq.read_table(file, columns=["_hoodie_record_key", "v"])
        keys, values = (rows.column(at).to_pylist() for at in (0, 1))
        files_by_partition.setdefault(file.parent.name, []).append((name.write_token.partition, keys, values))
    return files_by_partition


def apart(spans: list[list[str]] | list[list[int]]) -> bool:
    """Whether each list is sorted, and no two of them lie in one another's span."""
    ordered = sorted(spans, key=lambda one: one[0])
    return [value for one in ordered for value in one] == sorted(value for one in spans for value in one)


@pytest.fixture
def tasks_apart(spark: SparkSession) -> Iterator[None]:
    """Else Spark makes one task of so few rows."""
    spark.conf.set(COALESCES, "false")
    yield
    spark.conf.unset(COALESCES)


@pytest.mark.usefixtures("tasks_apart")
def test_rows_are_brought_together_and_sorted_as_the_sort_mode_says(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = spark.range(COUNT).select(
        sf.col("id").cast("int").alias("id"),
        sf.concat(sf.lit("p"), (sf.col("id") % 2).cast("string")).alias("p"),
        (sf.hash("id") % 1000).alias("v"),
        sf.lit(1).alias("ts"),
    )
    rows = rows.repartition(4, sf.xxhash64("id")).cache()
    table = HudiTable.create(
        spark, str(path), rows.schema, record_key="id", partition_by="p", order_by="ts", index="SIMPLE"
    )
    files_by_mode: dict[str, Files] = {}
    modes = ["NONE", "PARTITION_SORT", "GLOBAL_SORT", "PARTITION_PATH_REPARTITION_AND_SORT"]
    for name, options in [*((mode, {SORT_MODE: mode}) for mode in modes), ("columns", {SORT_COLUMNS: "v"})]:
        before = {*path.glob("*/*.parquet")}
        assert table.bulk_insert(rows, **options).inserts == COUNT
        files_by_mode[name] = files_of(path, before)
        assert {*files_by_mode[name]} == {"p0", "p1"}
        keys = sorted(int(key) for files in files_by_mode[name].values() for _, some, _ in files for key in some)
        assert keys == list(range(COUNT))
    before = {*path.glob("*/*.parquet")}
    rows.write.format("pyhudi").option("operation", "bulk_insert").option(SORT_MODE, "GLOBAL_SORT").mode("append").save(
        str(path)
    )
    plain = files_of(path, before)

    for partition in ("p0", "p1"):
        keys_of = {name: [keys for _, keys, _ in files[partition]] for name, files in files_by_mode.items()}
        values = [some for _, _, some in files_by_mode["columns"][partition]]
        assert len(keys_of["NONE"]) == len(keys_of["PARTITION_SORT"]) == 4
        assert not any(keys == sorted(keys) for keys in keys_of["NONE"])
        assert all(keys == sorted(keys) for keys in keys_of["PARTITION_SORT"])
        assert not apart(keys_of["PARTITION_SORT"])
        assert len(keys_of["GLOBAL_SORT"]) > 1 and apart(keys_of["GLOBAL_SORT"])
        assert len(keys_of["PARTITION_PATH_REPARTITION_AND_SORT"]) == 1
        assert len(values) > 1 and apart(values)
        # Nobody moves the rows of a plain write.
        assert [keys == sorted(keys) for _, keys, _ in plain[partition]] == [True] * 4
