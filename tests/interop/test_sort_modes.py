"""bulk_insert by pyhudi in every sort mode, into new and into filled buckets."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.instants import upserted
from interop.readers import Readers
from interop.scenarios import BUCKETS, PARTITIONED, Model
from interop.writer import write_without_spark

pytestmark = pytest.mark.interop

MODES = ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"]


@pytest.mark.parametrize("mode", MODES)
def test_every_reader_sees_the_rows(mode: str, readers: Readers, tmp_path: Path) -> None:
    options = {
        **PARTITIONED.table_options,
        BUCKETS: "2",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.bulkinsert.sort.mode": mode,
    }
    model = Model(PARTITIONED)
    for numbers in (range(30, -1, -1), range(60, 30, -1)):
        rows = PARTITIONED.rows(numbers, 1, ts=1)
        write_without_spark(tmp_path / "t", PARTITIONED.table(rows), options)
        upserted(tmp_path / "t", model, rows)

    readers.check(tmp_path / "t", model, by_spark=False)
