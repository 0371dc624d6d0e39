"""Jobs of many threads, none of which has an active session until somebody gives it one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyspark.sql import SparkSession


@pytest.mark.oldest
def test_tables_are_made_written_and_read_in_any_thread(spark: SparkSession, tmp_path: Path) -> None:
    """Three threads with a table each write at once, and a fourth reads one of the tables all the while."""
    shared = HudiTable.create(spark, tmp_path / "t0", "id bigint", record_key="id", buckets=1)
    seen: list[int] = []
    writes_ended = threading.Event()

    def read() -> None:
        while True:
            last = writes_ended.is_set()
            seen.append(shared.to_df().count())
            if last:
                break

    def life(number: int) -> list[int]:
        path = tmp_path / f"t{number}"
        table = shared if number == 0 else HudiTable.create(spark, path, "id bigint", record_key="id", buckets=1)
        counts = [table.upsert(spark.range(5)).inserts, table.delete("id = 3").deletes]
        return [*counts, table.to_df().count(), table.history().count()]

    with ThreadPoolExecutor(4) as pool:
        reading = pool.submit(read)
        try:
            lives = list(pool.map(life, range(3)))
        finally:
            writes_ended.set()
        reading.result()

    assert lives == [[5, 1, 4, 2]] * 3
    assert list(dict.fromkeys(seen)) == [count for count in (0, 5, 4) if count in seen]
    assert seen[-1] == 4


def test_a_plain_write_needs_what_the_page_on_places_says(spark: SparkSession, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "places.md"
    [line] = [one for one in page.read_text(encoding="utf-8").splitlines() if one.startswith("spark.createDataFrame(")]

    def write(path: Path, *, as_told: bool) -> None:
        if as_told:
            exec(line, {"spark": spark})  # noqa: S102
        spark.range(3).write.format("pyhudi").option("record_key", "id").mode("append").save(str(path))

    with ThreadPoolExecutor(1) as fresh, pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        fresh.submit(write, tmp_path / "t", as_told=False).result()
    with ThreadPoolExecutor(1) as fresh:
        fresh.submit(write, tmp_path / "t", as_told=True).result()
    assert spark.read.format("pyhudi").load(str(tmp_path / "t")).count() == 3
