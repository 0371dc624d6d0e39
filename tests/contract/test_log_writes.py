"""Writes to merge-on-read tables: what they leave on the timeline and in the file groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.names import LogFileName
from pyhudi.table.files.output import Output
from pyhudi.table.table import open_table
from pyhudi.timeline.metadata.models import WriteStat
from support.attempts import rows
from support.drive import KEYED, rows_of, write
from support.places import Place, below, files_below, some_on_s3
from support.readers import rows_by_hudi_rs
from support.seams import patch_seam
from support.write_settings import write_settings

MERGED = replace(KEYED, table_type="MERGE_ON_READ")
COLOCATED = WriteSettings(colocated=True)


def stats_of(path: Path, instant_time: str) -> list[WriteStat]:
    storage = open_storage(str(path))
    timeline = open_table(storage).timeline()
    instant = timeline.find(instant_time)
    assert instant is not None
    metadata = timeline.files.read_commit(instant)
    return [stat for stats in metadata.partition_to_write_stats.values() for stat in stats]


def test_the_first_write_makes_base_files_in_a_delta_commit(tmp_path: Path) -> None:
    result = write(tmp_path, [rows(1, 2, 3, value=1)], table=MERGED)

    states = {name.rpartition("/")[2] for name in files_below(tmp_path) if "/timeline/" in name}
    assert {f"{result.instant}.deltacommit.requested", f"{result.instant}.deltacommit.inflight"} <= states
    assert [name for name in states if name.startswith(f"{result.instant}_") and name.endswith(".deltacommit")]
    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 1)]
    assert (result.inserts, result.files) == (3, 2)


def test_later_writes_append_log_files_and_read_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates, inserts into buckets that are there, and deletes: a log file each, with Apache Hudi's statistics."""
    write(tmp_path, [rows(1, 2, 3, value=1)], table=MERGED)
    before = files_below(tmp_path)
    patch_seam(monkeypatch, "open a base file", None)

    result = write(tmp_path, [rows(2, 3, 4, value=2)])
    gone = write(tmp_path, [rows(1, 9, value=0)], operation="delete")
    monkeypatch.undo()

    assert rows_of(tmp_path, "id", "value") == [("k2", 2), ("k3", 2), ("k4", 2)]
    assert not [name for name in files_below(tmp_path) if name.endswith(".parquet") and name not in before]
    assert (result.inserts, result.updates, result.deletes) == (0, 3, 0)
    assert (gone.inserts, gone.updates, gone.deletes) == (0, 0, 2)
    stats = stats_of(tmp_path, result.instant)
    assert stats
    for stat in stats:
        name = LogFileName.parse(stat.path or "")
        assert name is not None
        assert (name.named_time, name.version) == (result.instant, 1)
        assert (stat.prev_commit, stat.base_file, stat.log_offset) == (result.instant, "", 0)
        assert (stat.log_files, stat.log_version) == ([stat.path], 1)
        assert stat.num_writes == stat.num_update_writes
        assert stat.total_write_bytes == stat.file_size_in_bytes == (tmp_path / str(stat.path)).stat().st_size


def parts_of(count: int, start: int = 0) -> list[pa.Table]:
    """Return parts that all have rows of every bucket, the later part's being the ones that win a tie."""
    return [rows(1, 2, 3, 4, 5, value=start + number) for number in range(count)]


@some_on_s3("per_group", [1, 3, 8], 3)
def test_a_file_group_gets_one_log_file_of_each_of_some_tasks_and_one_of_the_commit(
    anywhere: Place, per_group: int
) -> None:
    """However many tasks have its rows; and the later task wins, whoever wrote what it had."""
    table = below(anywhere, "t")
    write(table, parts_of(1), table=MERGED)

    result = write(table, parts_of(12, 10), settings=WriteSettings(logs=LogSettings(per_group=per_group)))

    assert rows_of(table, "id", "value") == [(f"k{n}", 21) for n in range(1, 6)]
    assert result.log_files == 2 * (per_group + 1)
    assert result.files == 0
    write(table, parts_of(2, 30))
    assert rows_of(table, "id", "value") == [(f"k{n}", 31) for n in range(1, 6)]


def test_what_the_tasks_of_a_first_write_have_becomes_one_base_file_a_group(tmp_path: Path) -> None:
    """Each task would begin a group of log files alone, that every reader had to merge for as long as it lasts."""
    result = write(tmp_path, parts_of(12), table=MERGED)

    assert (result.files, result.log_files, result.inserts) == (2, 0, 5)
    assert rows_of(tmp_path, "id", "value") == [(f"k{n}", 11) for n in range(1, 6)]


def test_more_than_the_commit_may_merge_begins_file_groups_with_log_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are read, written to and rewritten as any other."""
    settings = write_settings(merge_max_bytes=1)

    result = write(tmp_path, parts_of(3), table=MERGED, settings=settings)

    assert "hoodie.pyhudi.log.files.per.group" in caplog.text
    assert (result.files, result.log_files, result.inserts, result.updates) == (0, 2, 5, 0)
    assert rows_of(tmp_path, "id", "value") == [(f"k{n}", 2) for n in range(1, 6)]
    write(tmp_path, rows(1, 6, value=9, ts=2))
    write(tmp_path, rows(2, value=0), operation="delete")
    assert rows_of(tmp_path, "id", "value") == [("k1", 9), ("k3", 2), ("k4", 2), ("k5", 2), ("k6", 9)]
    result = write(tmp_path, rows(7, 1, value=1, ts=9), operation="insert")
    assert (result.files, result.log_files) == (1, 0)
    assert rows_of(tmp_path, "id", "value") == [
        ("k1", 1), ("k1", 9), ("k3", 2), ("k4", 2), ("k5", 2), ("k6", 9), ("k7", 1)
    ]  # fmt: skip


def test_a_log_file_ends_where_it_is_large_enough(tmp_path: Path) -> None:
    write(tmp_path, parts_of(1), table=replace(MERGED, bucket_count=1))
    settings = WriteSettings(logs=LogSettings(block_bytes=100_000, file_bytes=1), colocated=True)
    more = rows(*range(20_000), value=7, ts=2)

    result = write(tmp_path, more, settings=settings)

    stats = stats_of(tmp_path, result.instant)
    assert [stat.log_version for stat in stats] == list(range(1, len(stats) + 1))
    assert len(stats) > 1
    assert sum(stat.num_writes for stat in stats) == result.updates == 20_000
    write(tmp_path, rows(0, 1, 2, value=0), operation="delete")
    found = rows_of(tmp_path, "id", "value")
    assert len(found) == 20_000 - 3
    assert {value for _, value in found} == {7}


@pytest.mark.parametrize(
    "bounds", [{"batch_size": 400}, {"output": Output(memory=1200)}], ids=["of a group", "of a task"]
)
@pytest.mark.parametrize("ordering", [("ts",), ()], ids=["event time", "commit time"])
def test_rows_that_memory_has_no_place_for_go_into_blocks_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, Any], ordering: tuple[str, ...]
) -> None:
    """No row waits on the task's disk; those of one key that are in several blocks are told apart by readers."""
    patch_seam(monkeypatch, "append rows to a spill", None)
    patch_seam(monkeypatch, "cut rows into chunks", lambda batches, most: iter(batches))
    write(tmp_path, parts_of(1), table=replace(MERGED, ordering_fields=ordering), settings=COLOCATED)
    keys = [n for n in range(1, 40) for _ in range(3)]
    many = pa.concat_tables([rows(n, value=place, ts=40 - place % 7) for place, n in enumerate(keys)])

    result = write(tmp_path, many, settings=write_settings(COLOCATED, **bounds))

    assert result.updates > 39
    assert result.log_files == 2
    best: dict[str, tuple[int, int]] = {}
    for one in many.to_pylist():
        stamp = (one["ts"] if ordering else 0, one["value"])
        best[one["id"]] = max(best.get(one["id"], stamp), stamp)
    assert rows_of(tmp_path, "id", "value") == sorted((key, value) for key, (_, value) in best.items())


def test_a_task_with_many_log_files_stays_before_the_next(tmp_path: Path) -> None:
    """Its last file grows: a further one would be read after those of the next Spark partition, which are later."""
    write(tmp_path, parts_of(1), table=replace(MERGED, bucket_count=1))
    settings = WriteSettings(logs=LogSettings(block_bytes=4_000, file_bytes=1))

    done = write(tmp_path, [rows(*range(20_000), value=7, ts=2), rows(19_999, value=8, ts=2)], settings=settings)

    assert [stat.log_version for stat in stats_of(tmp_path, done.instant)] == list(range(1, 66))
    assert [row for row in rows_of(tmp_path, "id", "value") if row[1] != 7] == [("k19999", 8)]
    assert rows_by_hudi_rs(tmp_path, "id", "value") == rows_of(tmp_path, "id", "value")


@pytest.mark.parametrize("made", [KEYED, MERGED])
@pytest.mark.parametrize("settings", [WriteSettings(), WriteSettings(logs=LogSettings(per_group=1))])
def test_a_delete_without_an_ordering_value_takes_away_what_other_tasks_have(
    tmp_path: Path, made: TableSettings, settings: WriteSettings
) -> None:
    """Though the task that has it has a newer row of its key, too: on both types of tables the same rows stay."""
    kinds = [("id", pa.string()), ("ts", pa.int32()), ("value", pa.int64()), ("_hoodie_is_deleted", pa.bool_())]

    def part(*some: tuple[str, int, int, bool]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(dict(kinds), row, strict=True)) for row in some], pa.schema(kinds))

    made = replace(made, ordering_fields=("ts",), partition_fields=(), bucket_count=1)
    write(tmp_path, part(("k", 1, 0, False), ("l", 1, 0, False), ("m", 1, 0, False)), table=made)
    first = part(("k", 20, 1, False), ("l", 20, 1, True), ("m", 20, 1, False))
    second = part(
        *(("k", 0, 2, True), ("k", 5, 3, False)),
        *(("l", 7, 2, False), ("l", 0, 3, True), ("l", 6, 4, False)),
        ("m", 0, 2, True),
    )

    write(tmp_path, [first, second], settings=settings)

    assert rows_of(tmp_path, "id", "value") == [("k", 3), ("l", 4)]
    write(tmp_path, [part(("m", 1, 5, False))])
    assert rows_of(tmp_path, "id", "value") == [("k", 3), ("l", 4), ("m", 5)]
