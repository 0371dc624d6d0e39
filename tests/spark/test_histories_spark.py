"""Random histories of writes through Spark against a dict, read back by Spark twice over and by hudi-rs."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest
from pyhudi import CommitResult, HudiTable
from pyhudi.connector.source.own_errors import own_errors
from pyhudi.errors import DuplicateKeyError
from pyspark.sql import DataFrame, SparkSession
from support.models.model import PARTITIONS, SCHEMA, Counts, Model, Step, random_history
from support.readers import rows_by_hudi_rs
from support.rules.ends import assert_whole

COLUMNS = ("p", "id", "ts", "value")
DDL = "id string, p string, ts bigint, value bigint, _hoodie_is_deleted boolean"
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.bucket.index.num.buckets": "3",
}


def frame(spark: SparkSession, step: Step) -> DataFrame:
    """Return a step's rows in as many Spark partitions as it says, shuffled."""
    rows = [tuple(row[name] for name in SCHEMA.names) for row in step.rows]
    random.Random(step.shuffle).shuffle(rows)
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, step.tasks), DDL)


def rows_of(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in df.select(*COLUMNS).collect())


def write_plainly(spark: SparkSession, path: Path, step: Step, *, creates: bool) -> CommitResult | None:
    mode = "overwrite" if step.operation.startswith("insert_overwrite") and step.shuffle % 2 else "append"
    options = {**(OPTIONS if creates else {}), "hoodie.datasource.write.operation": step.operation, **step.options}
    with own_errors():
        frame(spark, step).write.format("pyhudi").options(**options).mode(mode).save(str(path))
    return HudiTable(spark, str(path)).last_commit()


def write_by_table(spark: SparkSession, path: Path, step: Step) -> CommitResult | None:
    table, df = HudiTable(spark, str(path)), frame(spark, step)
    options = {"hoodie.pyhudi.place.rows": "always" if step.shuffle % 3 else "never", **step.options}
    if step.operation == "insert_overwrite_table":
        return table.overwrite(df, **options)
    if step.operation == "delete_partition":
        named = options.pop(PARTITIONS, None) or ",".join({str(row["p"]) for row in step.rows} or {"none"})
        return table.delete_partitions(*named.split(","), **options)
    done: CommitResult = getattr(table, step.operation)(df, **options)
    return done


@pytest.mark.parametrize(
    "seed",
    [
        *range(4),
        *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 7)),
        pytest.param(7, marks=pytest.mark.oldest),
    ],
)
def test_a_random_history_gives_what_the_dict_says(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Plain writes and placed ones, on one table, of any number of tasks, of every operation."""
    path, model, chance = tmp_path / "t", Model(), random.Random(seed)
    for number, step in enumerate(random_history(seed, steps=3, keys=20, partitions=["a", "ab", "c"])):
        if number == 0 and chance.random() < 0.5:
            HudiTable.create(spark, str(path), DDL, record_key="id", partition_by="p", order_by="ts", buckets=3)
        creates = not path.exists()
        write = write_by_table if not creates and chance.random() < 0.5 else partial(write_plainly, creates=creates)
        expected = model.apply(step)
        if expected is None:
            with pytest.raises(DuplicateKeyError):
                write(spark, path, step)
        else:
            result = write(spark, path, step)

            assert result is not None
            assert Counts(result.inserts, result.updates, result.deletes, result.not_found, result.dropped) == expected

    assert rows_of(spark.read.format("pyhudi").load(str(path))) == model.tuples()
    assert rows_of(HudiTable(spark, str(path)).to_df()) == model.tuples()
    assert rows_by_hudi_rs(path, *COLUMNS) == model.elsewhere()
    assert_whole(path, unique=False)
