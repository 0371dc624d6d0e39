"""Writes and scans without an engine: the same rows as through Spark, and nothing left of a failure."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import FrameType

import pyarrow as pa
import pytest
from pyhudi.errors import (
    InvalidOptionError,
    MissingColumnError,
    NullKeyError,
    WriteSealedError,
)
from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
from pyhudi.operations.transaction.fence import Fence
from pyhudi.operations.write import run
from pyhudi.operations.write.merge_spills import merge_spills
from pyhudi.reader.query import AsOf
from pyhudi.reader.scan import scan
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.timeline.writers import heartbeat
from pyhudi.timeline.writers.patience import Patience
from support import drive
from support.attempts import parted, rows
from support.drive import KEYED, rows_of
from support.places import files_below
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.threads import HANGS_S
from support.write_settings import write_settings

DEFAULTS = WriteSettings()
SCHEMA = rows(1, value=1).schema
MERGED = replace(KEYED, table_type="MERGE_ON_READ")


def request(
    path: Path, *, table: TableSettings = KEYED, operation: str = "upsert", write: WriteSettings = DEFAULTS
) -> WriteRequest:
    return WriteRequest(str(path), operation, False, SCHEMA, table, write)


def batches(*numbers: int, value: int = 1) -> list[pa.RecordBatch]:
    return rows(*numbers, value=value).to_batches(max_chunksize=2)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("table", [KEYED, MERGED])
def test_a_later_part_wins_however_many_tasks_run_at_once(tmp_path: Path, table: TableSettings, threads: int) -> None:
    parts = [batches(1, 2, 3, 4, value=1), [], batches(3, 4, 5, value=2), batches(5, value=3)]
    drive.write(tmp_path / "driven", [rows(2, 9, value=0)], table=table)
    drive.write(tmp_path / "run", [rows(2, 9, value=0)], table=table)

    result = run.write(request(tmp_path / "run", table=table), parts, threads=threads)
    driven = drive.write(tmp_path / "driven", [pa.Table.from_batches(part, SCHEMA) for part in parts])

    expected = [("k1", 1), ("k2", 1), ("k3", 2), ("k4", 2), ("k5", 3), ("k9", 0)]
    assert rows_of(tmp_path / "run", "id", "value") == expected == rows_of(tmp_path / "driven", "id", "value")
    assert (result.inserts, result.updates) == (driven.inserts, driven.updates)


def test_parts_and_batches_are_taken_as_they_are_written(tmp_path: Path) -> None:
    taken: list[str] = []

    def batches_of(part: int) -> Iterator[pa.RecordBatch]:
        for batch in batches(part, part + 10, part + 20):
            taken.append(f"batch of {part}")
            yield batch

    def parts() -> Iterator[Iterator[pa.RecordBatch]]:
        for part in range(2):
            taken.append(f"part {part}")
            yield batches_of(part)

    run.write(request(tmp_path), parts())

    assert taken == ["part 0", *["batch of 0"] * 2, "part 1", *["batch of 1"] * 2]


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_left_of_a_part_that_fails(tmp_path: Path, threads: int) -> None:
    drive.write(tmp_path, [rows(1, value=1)], table=KEYED)
    before = rows_of(tmp_path, "id", "value")
    files = [name for name in files_below(tmp_path) if name.endswith(".parquet")]
    bad = pa.RecordBatch.from_pylist([{"id": None}], SCHEMA)

    with pytest.raises(NullKeyError):
        run.write(request(tmp_path), [batches(1, 2, value=2), [bad], batches(3)], threads=threads)

    assert rows_of(tmp_path, "id", "value") == before
    assert [name for name in files_below(tmp_path) if name.endswith(".parquet")] == files
    assert not list(tmp_path.glob(".hoodie/.heartbeat/*"))


def test_a_failure_ends_the_tasks_beside_it(tmp_path: Path) -> None:
    failed = Event()
    after = 0

    def fails() -> Iterator[pa.RecordBatch]:
        yield from batches(1)
        failed.set()
        raise KeyError("rows")

    def waits() -> Iterator[pa.RecordBatch]:
        nonlocal after
        yield from batches(2)
        failed.wait()
        for number in range(1 << 20):
            after += 1
            yield from batches(number)

    with pytest.raises(KeyError):
        run.write(request(tmp_path), [waits(), fails()], threads=2)

    assert after < 1 << 20


def test_the_heartbeat_lasts_while_the_next_part_is_awaited(tmp_path: Path) -> None:
    beaten: list[bool] = []
    often = WriteSettings(patience=replace(Patience(), heartbeat_interval_s=0.01))

    def parts() -> Iterator[list[pa.RecordBatch]]:
        yield batches(1)
        storage = open_storage(str(tmp_path))
        path = next(tmp_path.glob(".hoodie/.heartbeat/*"))
        heartbeat.Heartbeat(storage, path.name).delete()
        while not path.exists():
            Event().wait(0.01)
        beaten.append(path.exists())
        yield batches(2)

    run.write(request(tmp_path, write=often), parts())

    assert beaten == [True]


def test_an_abort_that_fails_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def parts() -> Iterator[list[pa.RecordBatch]]:
        yield batches(1)
        patch_seam(monkeypatch, "seal a write for good", None)
        raise WriteSealedError("gone", "")

    with pytest.raises(WriteSealedError, match="gone"):
        run.write(request(tmp_path), parts())

    monkeypatch.undo()
    assert "left-overs of the failed commit" in caplog.text
    assert run.write(request(tmp_path), [batches(2)]).inserts == 1
    assert rows_of(tmp_path, "id") == [("k2",)]


def test_a_thread_that_interrupts_leave_behind_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C, pressed until the prompt is back; the thread was about to open a partition."""
    first, second = parted("a", 1, value=1), parted("b", 2, value=2)
    table = replace(KEYED, partition_fields=("p",))
    asked = replace(request(tmp_path, table=table), schema=first.schema)
    run.write(asked, [first.to_batches()])
    before, undone = files_below(tmp_path), Event()
    refuse = read_seam("refuse a task whose write is sealed")
    stalled: list[threading.Thread] = []

    def stalling(self: Fence) -> None:
        if self.sealed_by_us and not stalled:
            stalled.append(threading.current_thread())
            while not undone.wait(0.02):
                os.kill(os.getpid(), signal.SIGINT)
        refuse(self)

    usual = signal.signal(signal.SIGINT, interrupt_merges)
    try:
        with monkeypatch.context() as patch:
            patch_seam(patch, "refuse a task whose write is sealed", stalling)
            with pytest.raises(KeyboardInterrupt):
                run.write(asked, [second.to_batches()])
            undone.set()
            stalled[0].join(HANGS_S)
    finally:
        undone.set()
        signal.signal(signal.SIGINT, usual)

    assert not stalled[0].is_alive()
    assert [name for name in files_below(tmp_path) if name not in before and "/.pyhudi/" not in name] == []
    run.write(asked, [second.to_batches()])
    assert rows_of(tmp_path, "p", "value") == [("a", 1), ("b", 2)]
    assert_whole(tmp_path)


def interrupt_merges(_: int, frame: FrameType | None) -> None:
    """Interrupt the main thread where it merges, also where it waits for its threads after an interrupt."""
    while frame is not None:
        if frame.f_code is merge_spills.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


def test_a_write_without_rows(tmp_path: Path) -> None:
    drive.write(tmp_path, [rows(1, 2, value=1)], table=KEYED)
    every = write_settings(partitions_to_delete=("*",))

    run.write(request(tmp_path, operation="delete_partition", write=every))

    assert rows_of(tmp_path, "id") == []


@pytest.mark.parametrize("table", [KEYED, MERGED])
def test_a_scan_shows_the_rows_that_satisfy_every_predicate(tmp_path: Path, table: TableSettings) -> None:
    first = drive.write(tmp_path, [rows(1, 2, 3, 4, value=1)], table=table)
    drive.write(tmp_path, [rows(3, 4, 5, value=2)])
    drive.write(tmp_path, [rows(4, value=0)], operation="delete")
    now, then = open_snapshot(str(tmp_path)), open_snapshot(str(tmp_path), query=AsOf(first.instant))

    def ids(*predicates: Compare, of: object = now) -> list[str]:
        found = scan(of, ["id"], predicates)  # type: ignore[arg-type]
        return sorted(value for batch in found for value in batch.column("id").to_pylist())

    assert ids() == ["k1", "k2", "k3", "k5"]
    assert ids(Compare("value", "=", 2)) == ["k3", "k5"]
    assert ids(Compare("value", "=", 2), Compare("id", "!=", "k5")) == ["k3"]
    assert ids(Compare("value", "=", 1), of=then) == ["k1", "k2", "k3", "k4"]
    assert next(scan(now)).schema == now.schema


def test_a_scan_refuses_before_it_reads(tmp_path: Path) -> None:
    drive.write(tmp_path, [rows(1, value=1)], table=KEYED)
    snapshot = open_snapshot(str(tmp_path))

    with pytest.raises(MissingColumnError, match="'nothing'"):
        scan(snapshot, ["nothing"])
    with pytest.raises(InvalidOptionError, match="cannot be compared"):
        scan(snapshot, predicates=[Compare("id", "=", 1)])
