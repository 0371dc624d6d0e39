"""Tables of version 8 through Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyhudi.errors import OptionConflictError
from pyspark.sql import SparkSession
from support.readers import rows_by_hudi_rs

EIGHT = {"hoodie.write.table.version": 8}


def test_a_table_lives_in_version_8(spark: SparkSession, tmp_path: Path) -> None:
    """With the key generator COMPLEX, whose keys of one field are spelt otherwise than in version 9."""
    path = tmp_path / "t"
    columns = "id bigint, p string, q string, ts bigint, n int"
    table = HudiTable.create(
        spark,
        str(path),
        columns,
        record_key="id",
        partition_by=["p", "q"],
        order_by="ts",
        buckets=2,
        table_type="MERGE_ON_READ",
        options=EIGHT,
    )
    rows = spark.range(40).selectExpr("id", "concat('p', id % 2) p", "'q' q", "10L ts", "0 n")
    table.upsert(rows)
    rows.where("id < 20").selectExpr("id", "p", "q", "id ts", "1 n").write.format("pyhudi").mode("append").save(
        str(path)
    )
    assert table.delete(rows.where("id in (1, 12)")).deletes == 2
    assert table.compact().files > 0
    table.upsert(rows.where("id = 3").selectExpr("id", "p", "q", "11L ts", "2 n"))

    expected = [(str(one), one, 2 if one == 3 else int(10 <= one < 20)) for one in range(40) if one not in (1, 12)]
    names = ("_hoodie_record_key", "id", "n")
    for found in (table.to_df(), spark.read.format("pyhudi").load(str(path))):
        assert sorted(tuple(row) for row in found.select(*names).collect()) == sorted(expected)
    assert rows_by_hudi_rs(path, *names) == sorted(expected)
    assert [row[names[0]] for row in table.to_df(where={"id": 3}).collect()] == ["3"]
    assert table.detail().first().version == 8


def test_a_table_is_not_told_what_it_does_not_keep(spark: SparkSession, tmp_path: Path) -> None:
    marker = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}

    with pytest.raises(OptionConflictError, match="version 8 has no properties"):
        HudiTable.create(spark, str(tmp_path / "t"), "id int, op string", record_key="id", options={**EIGHT, **marker})

    assert not (tmp_path / "t").exists()
