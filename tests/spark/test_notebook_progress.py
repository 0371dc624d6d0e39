"""In a notebook, writes and services that Spark carries out show how far they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyspark.sql import SparkSession
from support.cells import Cell, open_notebook
from support.seams import patch_seam

BY_SPARK = {"hoodie.pyhudi.write.local": "never", "hoodie.compact.inline": False}
OFF = {"hoodie.pyhudi.notebook.progress": False}


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    patch_seam(monkeypatch, "patience of notebooks", 0.0)
    patch_seam(monkeypatch, "pause between lines of notebooks", 0.01)
    patch_seam(monkeypatch, "seconds between looks at tasks", 0.01)
    return open_notebook(monkeypatch)


def test_a_write_a_merge_and_a_compaction_show_how_far_they_are(
    spark: SparkSession, tmp_path: Path, cell: Cell
) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(
        spark, path, "id long, n long", record_key="id", buckets=2, table_type="MERGE_ON_READ", options=BY_SPARK
    )
    rows = spark.range(1000).selectExpr("id", "id AS n")

    table.upsert(rows, **OFF)
    assert cell.outputs == []
    table.upsert(rows)
    table.merge(rows, "source.id = target.id").when_matched_update_all().execute()
    table.compact()

    shown = ["; ".join(texts) for texts in cell.outputs]
    assert [text.partition("<small>")[2].partition(" ")[0] for text in shown] == ["write", "write", "compact"]
    assert "data files: " in shown[0]
    assert "data files: " in shown[1]
    assert "compaction: " in shown[2]
    assert {texts[-1] for texts in cell.outputs} == {""}
