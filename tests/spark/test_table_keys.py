"""The record keys of a table's files, as Spark reads them for a join with those of many rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyhudi import HudiTable
from pyhudi.connector.placement.table_keys import table_keys
from pyhudi.errors import NullKeyError
from pyhudi.storage import open_storage
from pyhudi.table.schema.columns import RECORD_KEY
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from pyspark.sql import SparkSession
from support.drawn.lookups import slices
from support.made.stated_sizes import state_sizes
from support.seams import patch_seam

COLUMNS = "id string, p string"


def written(spark: SparkSession, path: Path, *rows: tuple[str, str]) -> HudiTable:
    table = HudiTable.create(spark, str(path), COLUMNS, record_key="id", partition_by="p", index="SIMPLE")
    table.upsert(spark.createDataFrame(rows, COLUMNS))
    return table


def test_files_of_one_name_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Spark tells of a key the name of its file, which says nothing of the folder."""
    written(spark, tmp_path / "t", ("a1", "a"), ("a2", "a"), ("b1", "b"))
    storage = open_storage(str(tmp_path / "t"))
    table = open_table(storage)
    first_slice, other = sorted(slices(tmp_path / "t"), key=lambda file_slice: file_slice.partition_path)
    alike = replace(other.base_file, path=f"b/{first_slice.base_file.name}")
    (tmp_path / "t" / other.base_file.path).rename(tmp_path / "t" / alike.path)
    seen = SeenTable.now(table)

    keys = table_keys(spark, [first_slice, replace(other, base=alike)], seen, ("a1", "b1"), in_python=True)

    assert keys is not None
    # No key is of a log file.
    expected = [
        ("a", "a1", first_slice.file_id, False),
        ("a", "a2", first_slice.file_id, False),
        ("b", "b1", other.file_id, False),
    ]
    assert sorted(map(tuple, keys.collect())) == expected


def test_a_file_with_rows_without_keys_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of them would be found, and each be added again."""
    patch_seam(monkeypatch, "few keys for the driver", -1)
    table = written(spark, tmp_path / "t", ("a1", "a"), ("a2", "a"), ("a3", "a"))
    (file,) = (tmp_path / "t" / "a").glob("*.parquet")
    rows = pq.read_table(file)
    place = rows.schema.get_field_index(RECORD_KEY)
    keys = pc.if_else(pc.equal(rows["id"], "a2"), pa.scalar(None, pa.string()), rows[RECORD_KEY])
    pq.write_table(rows.set_column(place, RECORD_KEY, keys), file)
    state_sizes(tmp_path / "t")

    with pytest.raises(NullKeyError, match="without a record key"):
        table.upsert(
            spark.createDataFrame([("a1", "a"), ("a3", "a")], COLUMNS), **{"hoodie.pyhudi.place.rows": "always"}
        )
