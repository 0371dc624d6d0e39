"""Two writers on one table: one commits, the other is told and leaves nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError, OptionConflictError, WriteSealedError
from pyhudi.operations.commit_lock import LOCK
from pyhudi.operations.settings import TableSettings, WriteSettings
from pyhudi.operations.write import abort_write, commit_write, run_task
from pyhudi.storage import open_storage
from pyhudi.table.names import WriteToken
from support.drive import carry_out, files_below, plan, rows_of, task, write

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=1)


def rows(partition: str, *keys: str, value: int) -> pa.Table:
    count = len(keys)
    return pa.table([list(keys), [partition] * count, [1] * count, [value] * count], schema=SCHEMA)


def data_files(path: Path) -> list[str]:
    return [name for name in files_below(path) if name.endswith(".parquet")]


def test_two_that_start_in_one_moment_and_open_the_same_new_bucket(tmp_path: Path) -> None:
    """Both invent a file group for the new bucket under their own instant; the later commit is refused."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    first, second = plan(table, SCHEMA), plan(table, SCHEMA)
    mine, theirs = task(first, rows("b", "x", value=1), 0), task(second, rows("b", "y", value=2), 0)
    carried = commit_write(first, [mine])
    before = data_files(table)
    with pytest.raises(CommitConflictError, match=carried.instant) as raised:
        commit_write(second, [theirs])
    abort_write(second)

    assert "'b'" in str(raised.value)
    assert rows_of(table, "id", "value") == [("k1", 1), ("x", 1)]
    assert data_files(table) == before
    write(table, rows("b", "y", value=2))
    assert rows_of(table, "id") == [("k1",), ("x",), ("y",)]


def test_two_of_one_millisecond_do_not_undo_each_other(tmp_path: Path) -> None:
    """The second finds the instant time taken; its abort leaves the first one's instant alone."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    first = plan(table, SCHEMA)
    second = replace(plan(table, SCHEMA), instant_time=first.instant_time)
    result = task(first, rows("a", "k1", value=2), 0)
    with pytest.raises(ConcurrentWriteError, match="same millisecond"):
        task(second, rows("a", "k1", value=3), 0)
    abort_write(second)
    commit_write(first, [result])

    assert rows_of(table, "id", "value") == [("k1", 2)]


def test_two_that_touch_different_file_groups_both_commit(tmp_path: Path) -> None:
    """Optimism pays where nothing is shared."""
    table = tmp_path / "t"
    write(table, [rows("a", "k1", value=1), rows("b", "k2", value=1)], table=TABLE)
    first, second = plan(table, SCHEMA), plan(table, SCHEMA)
    results = [task(first, rows("a", "k1", value=2), 0), task(second, rows("b", "k2", value=3), 0)]
    commit_write(second, results[1:])
    commit_write(first, results[:1])

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 3)]


def test_an_overwrite_conflicts_with_every_commit_since_it_began(tmp_path: Path) -> None:
    """What it would replace is no longer what it saw."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    overwriting, upserting = plan(table, SCHEMA, overwrite=True), plan(table, SCHEMA)
    mine, theirs = task(overwriting, rows("z", "new", value=9), 0), task(upserting, rows("b", "k2", value=2), 0)
    commit_write(upserting, [theirs])
    with pytest.raises(CommitConflictError):
        commit_write(overwriting, [mine])
    abort_write(overwriting)

    assert rows_of(table, "id") == [("k1",), ("k2",)]


def test_two_that_create_one_table_differently(tmp_path: Path) -> None:
    """The second finds the first's properties, which disagree with its own."""
    table = tmp_path / "t"
    first = plan(table, SCHEMA, table=TABLE)
    second = plan(table, SCHEMA, table=TableSettings(record_key_fields=("id",), bucket_count=5))
    results = [task(first, rows("a", "k", value=1), 0), task(second, rows("a", "k", value=2), 0)]
    commit_write(first, results[:1])
    with pytest.raises(OptionConflictError):
        commit_write(second, results[1:])
    abort_write(second)

    assert rows_of(table, "id", "value") == [("k", 1)]


def test_a_live_pending_write_makes_a_new_one_refuse_at_once(tmp_path: Path) -> None:
    """While its heartbeat is young nobody rolls a write back; it goes on and commits."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    living = plan(table, SCHEMA)
    result = task(living, rows("a", "k1", value=2), 0)
    with pytest.raises(ConcurrentWriteError, match=living.instant_time):
        plan(table, SCHEMA)
    commit_write(living, [result])

    assert rows_of(table, "value") == [(2,)]


def test_a_write_taken_for_dead_cannot_commit_any_more(tmp_path: Path) -> None:
    """Its instant was rolled back meanwhile: the commit says so instead of bringing back half a write."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    sleeper = plan(table, SCHEMA)
    result = task(sleeper, rows("a", "k1", value=2), 0)
    write(table, rows("a", "k3", value=3), settings=WriteSettings(heartbeat_misses=0))
    with pytest.raises(CommitConflictError, match="rolled it back"):
        commit_write(sleeper, [result])
    abort_write(sleeper)

    assert rows_of(table, "id", "value") == [("k1", 1), ("k3", 3)]


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_a_task_that_still_writes_after_abort_publishes_nothing(tmp_path: Path, colocated: bool) -> None:
    """Spark aborts while sibling tasks go on for seconds."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    before = data_files(table)
    planned = plan(table, SCHEMA, settings=WriteSettings(colocated=colocated))
    reached, go_on = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def batches():  # type: ignore[no-untyped-def]
        yield from rows("a", "k1", value=2).to_batches()
        reached.set()
        assert go_on.wait(60)
        yield from rows("b", "k2", value=2).to_batches()

    def straggle() -> None:
        try:
            run_task(planned, batches(), WriteToken(0, 1, 5))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=straggle)
    thread.start()
    assert reached.wait(60)
    abort_write(planned)
    go_on.set()
    thread.join(60)

    assert data_files(table) == before
    assert rows_of(table, "id", "value") == [("k1", 1)]
    if colocated:
        assert isinstance(errors[0], WriteSealedError)
    write(table, rows("b", "k2", value=3))
    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 3)]


def test_a_task_that_starts_after_abort_brings_nothing_back(tmp_path: Path) -> None:
    """The instant stays off the timeline."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    planned = plan(table, SCHEMA)
    task(planned, rows("a", "k1", value=2), 0)
    abort_write(planned)
    timeline = [name for name in files_below(table) if name.startswith(".hoodie/timeline")]
    with pytest.raises(WriteSealedError):
        task(planned, rows("a", "k1", value=2), 1)

    assert [name for name in files_below(table) if name.startswith(".hoodie/timeline")] == timeline


def test_a_commit_whose_answer_was_lost_is_taken_again(tmp_path: Path) -> None:
    """The second commit of one plan finds the first one's instant, and abort leaves it alone."""
    table = tmp_path / "t"
    planned = plan(table, SCHEMA, table=TABLE)
    results = [task(planned, rows("a", "k1", value=1), 0)]
    first = commit_write(planned, results)
    second = commit_write(planned, results)
    abort_write(planned)

    assert second == first
    assert rows_of(table, "id", "value") == [("k1", 1)]


def test_a_replay_of_a_completed_write_does_nothing(tmp_path: Path) -> None:
    """The caller's own write id identifies a job that is run again after its answer was lost."""
    table = tmp_path / "t"
    first = write(table, rows("a", "k1", value=1), table=TABLE, write_id="job-7")
    write(table, rows("a", "k1", value=2), write_id="job-8")
    replay = write(table, rows("a", "k1", value=1), write_id="job-7")

    assert replay == first
    assert rows_of(table, "value") == [(2,)]


def test_a_dead_holder_of_the_commit_lock_is_broken(tmp_path: Path) -> None:
    """A lock whose instant is not on the timeline any more binds nobody."""
    table = tmp_path / "t"
    write(table, rows("a", "k1", value=1), table=TABLE)
    open_storage(str(table)).create(LOCK, b"20200101000000000")
    write(table, rows("a", "k1", value=2))

    assert rows_of(table, "value") == [(2,)]
    assert not (table / LOCK).exists()


def test_many_writers_at_once_lose_no_committed_row(tmp_path: Path) -> None:
    """Eight threads upsert one row each into one bucket; whatever was reported as committed is there."""
    table = tmp_path / "t"
    write(table, rows("a", "k0", value=0), table=TABLE)
    done: list[str] = []
    barrier = threading.Barrier(8)

    def upsert(number: int) -> None:
        barrier.wait()
        try:
            planned = plan(table, SCHEMA)
            carry_out(planned, [rows("a", f"k{number}", value=number)])
            done.append(f"k{number}")
        except (CommitConflictError, ConcurrentWriteError):
            pass

    threads = [threading.Thread(target=upsert, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert rows_of(table, "id") == sorted([("k0",), *((key,) for key in done)])
    assert done
