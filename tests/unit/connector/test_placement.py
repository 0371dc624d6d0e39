from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.connector.placement.colocate import default_tasks, integers_by_slot, spark_hash
from pyhudi.connector.placement.slots import Placement
from pyhudi.errors import NullKeyError
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import BucketNumbers, BucketRule
from pyhudi.table.config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.table import Table

pytestmark = pytest.mark.oldest

PARTITIONED = TableConfig.new(
    TableSettings(name="t", record_key_fields=("id",), partition_fields=("p",), bucket_count=4)
)


def test_integers_hash_as_in_spark() -> None:
    """The expected values were printed by Spark's own function ``hash``."""
    values = np.array([0, 1, -5, 2**31 - 1, 12345], np.int32)

    assert spark_hash(values).tolist() == [933211791, -559580957, 1369497261, 133916647, -2122148428]


@given(st.integers(1, 500))
def test_there_is_an_integer_for_every_slot(tasks: int) -> None:
    found = integers_by_slot(tasks)

    assert (spark_hash(found).astype(np.int64) % tasks).tolist() == list(range(tasks))


def test_rows_of_one_file_group_have_one_slot() -> None:
    rows = pa.record_batch({"id": pa.array(np.arange(5_000)), "p": [f"p{n % 7}" for n in range(5_000)]})

    slots = Placement(PARTITIONED, None, 16).slots(rows)
    again = Placement(PARTITIONED, None, 16).slots(rows.slice(2_500))

    assert slots[2_500:].tolist() == again.tolist()
    groups = {(p, slot) for p, slot in zip(rows.column("p").to_pylist(), slots.tolist(), strict=True)}
    assert len(groups) == 7 * 4, "each partition has one slot a bucket"
    assert len(set(slots.tolist())) > 8, "partitions begin at different slots"


def test_a_partition_has_as_many_slots_as_it_has_buckets() -> None:
    rows = pa.record_batch({"id": pa.array(np.arange(2_000)), "p": [f"p{n % 2}" for n in range(2_000)]})
    numbers = BucketNumbers(BucketRule("20260101000000000", 4, (("^p1$", 7),)))

    slots = Placement(PARTITIONED, None, 1_000, numbers=numbers).slots(rows)

    groups = {(p, slot) for p, slot in zip(rows.column("p").to_pylist(), slots.tolist(), strict=True)}
    assert [sum(p == name for p, _ in groups) for name in ("p0", "p1")] == [4, 7]


def test_slots_do_not_depend_on_the_process() -> None:
    """CRC-32 of the partition path plus the bucket: crc32("a") = 3904355907 and the key "1" is in bucket 80 % 4 = 0."""
    rows = pa.record_batch({"id": pa.array([1, 2, 3]), "p": ["a", "b", "日本"]})

    assert Placement(PARTITIONED, None, 1_000).slots(rows).tolist() == [907, 682, 758]


def test_columns_that_decide_are_named_once() -> None:
    config = TableConfig.new(
        TableSettings(name="t", record_key_fields=("p", "id"), partition_fields=("p",), bucket_count=4)
    )

    assert Placement(config, None, 3).columns == ["p", "id"]


@pytest.mark.parametrize(
    ("shuffle", "partition_fields", "folders", "expected"),
    [
        ("200", [], [], 4),
        ("3", [], [], 3),
        ("200", ["p"], [], 200),
        ("200", ["p"], ["a", "b"], 32),
        ("20", ["p"], ["a", "b"], 20),
    ],
)
def test_no_more_tasks_than_there_are_file_groups_to_write(
    tmp_path: Path, shuffle: str, partition_fields: list[str], folders: list[str], expected: int
) -> None:
    config = TableConfig.new(
        TableSettings(name="t", record_key_fields=("id",), partition_fields=partition_fields, bucket_count=4)
    )
    for folder in [*folders, ".hoodie"]:
        (tmp_path / folder).mkdir()
    spark: Any = SimpleNamespace(conf={"spark.sql.shuffle.partitions": shuffle})

    assert default_tasks(spark, Table(open_storage(str(tmp_path)), config)) == expected


def test_a_null_key_has_no_place() -> None:
    with pytest.raises(NullKeyError):
        Placement(PARTITIONED, None, 3).slots(pa.record_batch({"id": pa.array([None], pa.int64()), "p": ["a"]}))
