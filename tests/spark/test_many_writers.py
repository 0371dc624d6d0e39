"""Several writers of one table at once, as threads of one driver: none is refused, and no row is lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyhudi
import pytest
from pyhudi import HudiTable
from pyhudi.operations.result import CommitResult
from pyhudi.storage import open_storage
from pyhudi.timeline.writers.write_heartbeat import WriteHeartbeat
from pyhudi.timeline.writers.write_notes import WriteNotes
from pyspark.sql import SparkSession
from support.seams import patch_seam, read_seam

WRITERS, ROUNDS = 3, 3
INTERVAL = "hoodie.client.heartbeat.interval_in_ms"
SCHEMA = "id string, ts long, n long"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    made = HudiTable.create(
        spark, tmp_path / "t", SCHEMA, record_key="id", order_by="ts", buckets=1, table_type=request.param
    )
    made.upsert(spark.createDataFrame([("shared", 0, 0)], SCHEMA))
    return made


def at_once(write: Callable[[int], list[CommitResult]]) -> list[CommitResult]:
    with ThreadPoolExecutor(WRITERS) as pool:
        return [done for some in pool.map(write, range(WRITERS)) for done in some]


BOTH_TYPES = pytest.mark.parametrize("table", ["cow", "mor"], indirect=True)


@BOTH_TYPES
def test_upserts_of_one_bucket_all_complete(spark: SparkSession, table: HudiTable) -> None:
    def write(writer: int) -> list[CommitResult]:
        return [
            table.upsert(spark.createDataFrame([(f"{writer}-{turn}", 1, turn), ("shared", turn, turn)], SCHEMA))
            for turn in range(ROUNDS)
        ]

    done = at_once(write)

    assert len({one.instant for one in done}) == WRITERS * ROUNDS
    found = {row.id: row.n for row in table.to_df().collect()}
    assert found == {
        "shared": ROUNDS - 1,
        **{f"{writer}-{turn}": turn for writer in range(WRITERS) for turn in range(ROUNDS)},
    }


@pytest.mark.parametrize("table", [pytest.param("cow", marks=pytest.mark.slow), "mor"], indirect=True)
def test_updates_and_merges_see_what_the_others_wrote(spark: SparkSession, table: HudiTable) -> None:
    """Each adds one to a number that it has read: none may be based on a number that another has replaced."""

    def write(writer: int) -> list[CommitResult]:
        if writer:
            return [table.update({"n": "n + 1"}, "id = 'shared'") for _ in range(ROUNDS)]
        source = spark.createDataFrame([("shared", 0)], "id string, by long")
        merge = table.merge(source, "source.id = target.id").when_matched_update({"n": "target.n + 1"})
        return [merge.execute() for _ in range(ROUNDS)]

    at_once(write)

    assert [row.n for row in table.to_df(where="id = 'shared'").collect()] == [WRITERS * ROUNDS]


def test_a_write_may_be_told_to_fail_at_once(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, tmp_path / "t", SCHEMA, record_key="id", buckets=1)
    rows = spark.createDataFrame([("k", 0, 0)], SCHEMA)
    first = table.upsert(rows)
    moment = table.history().collect()[0]
    assert moment.instant == first.instant
    table.upsert(rows)
    with pytest.raises(pyhudi.errors.CommitConflictError):
        table.upsert(rows, **{"hoodie.pyhudi.write.based.on": moment.completed})


def test_the_call_finds_the_instant_whose_heartbeat_it_touches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark plans the write and runs its tasks in other processes."""
    beats: list[WriteHeartbeat] = []
    original = read_seam("sign of life of a call")

    def touch(beat: WriteHeartbeat) -> None:
        beats.append(beat)
        original(beat)

    patch_seam(monkeypatch, "sign of life of a call", touch)
    table = HudiTable.create(spark, tmp_path / "t", SCHEMA, record_key="id", buckets=1)
    upserted = table.upsert(spark.createDataFrame([("k", 0, 0)], SCHEMA), **{INTERVAL: 20})

    assert beats
    assert WriteNotes(open_storage(str(tmp_path / "t")), beats[0].key).newest() == upserted.instant
    assert not list((tmp_path / "t" / ".hoodie" / ".heartbeat").glob("*"))
