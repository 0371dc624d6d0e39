"""A timeline as Apache Flink leaves it: an instant is always open, without a heartbeat, and idle for hours.

Nothing of pyhudi rolls it back. A backfill beside it passes, or its refusal names the instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import ConcurrentWriteError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import Upkeep
from pyhudi.operations.streams.batch import StreamBatch
from pyhudi.operations.upkeep.service_entry import Call
from pyhudi.operations.upkeep.service_round import run_services
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.patience import Patience
from support.drive import write
from support.made.compacting import TABLE, means, merged, rows
from support.seams import patch_seam, read_seam

IDLE_S = 5 * 3600.0
Backfill = Callable[[Path, int], object]


class FlinkWriter:
    """A writer that opens its next instant when its last is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open = self._begin()

    @property
    def timeline(self) -> Timeline:
        """The table's timeline."""
        return open_table(open_storage(str(self.path))).timeline()

    def _begin(self) -> Instant:
        timeline = self.timeline
        at = next_time(int(timeline.storage.now() * 1000), timeline.greatest_time(), "UTC")
        made = Instant(at, "deltacommit", State.REQUESTED)
        timeline.files.request(made, b"")
        timeline.files.start(made)
        return made.at(State.INFLIGHT)

    def is_open(self) -> bool:
        """Return whether its instant is as it left it, and nothing is about to undo it."""
        timeline = self.timeline
        undone = [one for one in timeline.instants if one.action in {"rollback", "restore"}]
        return timeline.find(self.open.requested_time) == self.open and not undone

    def checkpoint(self) -> None:
        """Complete the instant and open the next."""
        files = self.timeline.files
        empty = CommitMetadata(partition_to_write_stats={}, compacted=False, extra_metadata={}, operation_type="UPSERT")
        at = next_time(int(files.storage.now() * 1000), self.timeline.greatest_time(), "UTC")
        done = replace(self.open, state=State.COMPLETED, completion_time=at)
        files.storage.write(files.path(done), files.codec.encode(empty))
        self.open = self._begin()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    write(path, rows(("k1", "a", 1, 1), ("k2", "b", 1, 1)), table=TABLE)
    return path


def upserted(path: Path, value: int) -> object:
    return write(path, rows(("k1", "a", value, value), ("k3", "c", value, value)), table=TABLE)


def deleted(path: Path, value: int) -> object:
    return write(path, rows(("k2", "b", value, value)), table=TABLE, operation="delete")


def inserted(path: Path, value: int) -> object:
    return write(path, rows((f"n{value}", "b", value, value)), table=TABLE, operation="bulk_insert")


def overwritten(path: Path, value: int) -> object:
    return write(path, rows(("k2", "b", value, value)), table=TABLE, operation="insert_overwrite")


def streamed(path: Path, value: int) -> object:
    batch = StreamBatch("q", value)
    settings = WriteSettings(batch=batch, upkeep=Upkeep())
    made = rows(("k1", "a", value, value))
    return write(path, made, table=TABLE, settings=settings, write_id=batch.write_id)


def served(path: Path, _: int) -> object:
    storage = open_storage(str(path))
    patient = replace(means(storage), patience=Patience())
    return run_services(Call(storage, patient.patience, Upkeep, lambda: patient))


@pytest.mark.parametrize("backfill", [upserted, deleted, inserted, overwritten, streamed])
def test_nothing_rolls_back_an_instant_that_is_idle_for_hours(
    table: Path, monkeypatch: pytest.MonkeyPatch, backfill: Backfill
) -> None:
    flink = FlinkWriter(table)
    now = read_seam("time of a local store")
    late = 0.0
    patch_seam(monkeypatch, "time of a local store", lambda storage: now(storage) + late)
    passed = 0
    for turn in range(2, 8):
        late = IDLE_S * turn
        try:
            backfill(table, turn)
            passed += 1
        except ConcurrentWriteError as error:
            assert flink.open.requested_time in str(error)
        assert flink.is_open()
        if turn % 3 == 0:
            flink.checkpoint()
            assert flink.is_open()
    assert passed in {0, 6}
    assert merged(table)


def test_services_leave_it_open(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flink = FlinkWriter(table)
    now = read_seam("time of a local store")
    patch_seam(monkeypatch, "time of a local store", lambda storage: now(storage) + IDLE_S)

    served(table, 0)

    assert flink.is_open()
