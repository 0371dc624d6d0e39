"""Two writes choose one time, and one of them is over before the first task of the other looks whose time it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write, begun
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers.owner import Claim, Owner
from support.attempts import rows
from support.drive import KEYED, at_time, choosing_now, noted, plan, rows_of, task, write
from support.faults.locks import FakeLock
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam


def complete(planned: WritePlan) -> None:
    commit_write(planned, [task(planned, rows(2, value=2), 0)])


def give_up(planned: WritePlan) -> None:
    task(planned, rows(2, value=2), 0)
    abort_write(planned)


@pytest.mark.parametrize(("end", "keys"), [(complete, ["k1", "k2", "k3"]), (give_up, ["k1", "k3"])])
def test_a_write_takes_another_time_where_the_time_was_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[WritePlan], None], keys: list[str]
) -> None:
    write(tmp_path, rows(1, value=1), table=KEYED)
    mine, other = choosing_now(plan(tmp_path, rows(1, value=1).schema)), plan(tmp_path, rows(1, value=1).schema)
    first = noted(mine)
    at_time(other, first)
    make = read_seam("claim an instant time")

    def make_too_late(claim: Claim, owner: Owner) -> bool:
        """Claim after the other has claimed the time, and return once the other is over."""
        patch_seam(monkeypatch, "claim an instant time", make)
        end(other)
        return False

    patch_seam(monkeypatch, "claim an instant time", make_too_late)
    commit_write(mine, [task(mine, rows(3, value=3), 0)])

    assert noted(mine) > first
    assert [key for key, _ in rows_of(tmp_path, "id", "value")] == keys
    assert_whole(tmp_path)


def test_an_attempt_finds_a_time_however_many_attempts_came_before(tmp_path: Path) -> None:
    write(tmp_path, rows(1, value=1), table=KEYED)
    planned = plan(tmp_path, rows(1, value=1).schema)
    previous_times = [f"{20260101000000000 + number}" for number in range(120)]
    for number, instant_time in enumerate(previous_times, 1):
        planned.transaction.notes.make(number, instant_time)

    with begun(planned, previous_times[-1]) as begun_write:
        assert begun_write.plan.instant_time == noted(planned) > previous_times[-1]


def test_a_write_takes_another_time_where_an_instant_came_before_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another engine's writer, whose time is later, would not compare its files with those of an earlier time."""
    write(tmp_path, rows(1, value=1), table=KEYED)
    table = open_table(open_storage(str(tmp_path)))
    later: list[str] = []

    def clean_meanwhile() -> None:
        if not later:
            later.append(next_time(int(time.time() * 1000) + 1000, None, table.config.timezone))
            table.instants.request(Instant(later[0], "clean", State.REQUESTED))

    lock = FakeLock(enters=clean_meanwhile)
    patch_seam(monkeypatch, "lock of a table", lambda _: lock)
    planned = plan(tmp_path, rows(1, value=1).schema)
    commit_write(planned, [task(planned, rows(2, value=2), 0)])

    assert noted(planned) > later[0]
    assert [instant.requested_time > later[0] for instant in table.timeline().writes] == [False, True]
    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 2)]
