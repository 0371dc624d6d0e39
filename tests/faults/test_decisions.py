"""Decisions whose makers died, or failed, before they carried them out; and what becomes of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CommitConflictError, StorageError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.config import PROPERTIES_PATH
from pyhudi.table.table import open_table
from pyhudi.timeline.writers import decisions, owner
from support.drive import noted, plan, rows_of, task, write
from support.faults.faulty import Killed
from support.faults.races import IMPATIENT, SCHEMA, TABLE, rows
from support.made import compacting
from support.rules.ends import assert_whole
from support.seams import patch_seam


@contextlib.contextmanager
def nothing_is_carried_out(error: BaseException) -> Iterator[None]:
    """Let every decision of the block be made and not carried out."""

    def carry_out(*_: Any) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "carry out a decision", carry_out)
        patch_seam(patch, "pause between two looks at a decision", 0.0)
        yield


def die_decided(path: Path, table: TableSettings = TABLE) -> str:
    """Write a row, up to the decision; return the instant."""
    planned = plan(path, SCHEMA, table=table, settings=IMPATIENT)
    result = task(planned, rows("a", "k1", value=1), 0)
    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        commit_write(planned, [result])
    return noted(planned)


def test_a_commit_whose_process_died_after_its_decision_is_completed_by_the_next_writer(tmp_path: Path) -> None:
    """At the time that was decided, which is before all that is decided after it."""
    write(tmp_path, rows("a", "k0", value=0), table=TABLE)
    died = die_decided(tmp_path)
    assert rows_of(tmp_path, "id") == [("k0",)]

    result = write(tmp_path, rows("b", "k2", value=2), settings=IMPATIENT)

    assert rows_of(tmp_path, "id") == [("k0",), ("k1",), ("k2",)]
    storage = open_storage(str(tmp_path))
    times = {one.requested_time: one.completion_time for one in open_table(storage).timeline().writes}
    assert str(times[died]) < str(times[result.instant])
    assert not [one for one in open_table(storage).timeline().instants if one.action == "rollback"]
    assert_whole(tmp_path)


def test_a_compaction_whose_process_died_after_its_decision_leaves_nothing_behind_the_next_write(
    tmp_path: Path,
) -> None:
    """No write waits for a compaction, or rolls it back, so that none but whoever clears away looks at it."""
    compacting.new_table(tmp_path, ("k1", "a", 1, 1))
    compacting.append(tmp_path, ("k1", "a", 2, 2))
    compacting.schedule(tmp_path)
    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        compacting.run(tmp_path)
    assert any(one.logs for one in compacting.slices(tmp_path))

    write(tmp_path, compacting.rows(("k1", "a", 3, 3)), settings=IMPATIENT)

    (file_slice,) = compacting.slices(tmp_path)
    assert len(file_slice.logs) == 1
    assert compacting.merged(tmp_path) == [("a", "k1", 3)]
    assert_whole(tmp_path)


def test_a_write_to_the_same_rows_was_planned_without_them_and_is_refused_once(tmp_path: Path) -> None:
    write(tmp_path, rows("a", "k0", value=0), table=TABLE)
    died = die_decided(tmp_path)
    with pytest.raises(CommitConflictError, match=died):
        write(tmp_path, rows("a", "k1", value=2), settings=IMPATIENT)
    assert rows_of(tmp_path, "id", "value") == [("k0", 0), ("k1", 1)]

    write(tmp_path, rows("a", "k1", value=2), settings=IMPATIENT)

    assert rows_of(tmp_path, "id", "value") == [("k0", 0), ("k1", 2)]
    write(tmp_path, rows("b", "k2", value=3), settings=IMPATIENT)
    assert_whole(tmp_path)


@pytest.mark.parametrize("same", [True, False])
def test_a_table_whose_creation_was_decided_is_made_with_what_was_decided(tmp_path: Path, same: bool) -> None:
    die_decided(tmp_path)
    assert not (tmp_path / PROPERTIES_PATH).exists()
    others = TABLE if same else TableSettings(record_key_fields=("id",), bucket_count=5)

    with pytest.raises(CommitConflictError):
        write(tmp_path, rows("a", "k2", value=2), table=others, settings=IMPATIENT)

    write(tmp_path, rows("a", "k2", value=2), settings=IMPATIENT)
    assert rows_of(tmp_path, "id") == [("k1",), ("k2",)]
    write(tmp_path, rows("b", "k3", value=3), settings=IMPATIENT)
    assert_whole(tmp_path)


def test_a_commit_that_could_not_be_carried_out_is_completed_by_its_own_abort(tmp_path: Path) -> None:
    """It was decided, and so it is never taken back."""
    write(tmp_path, rows("a", "k0", value=0), table=TABLE)
    planned = plan(tmp_path, SCHEMA)
    result = task(planned, rows("a", "k1", value=1), 0)
    with nothing_is_carried_out(StorageError("No.", "Wait.")):
        stands = rf"No\. The commit {noted(planned)} was decided.*completes it"
        with pytest.raises(StorageError, match=stands):
            commit_write(planned, [result])
        with pytest.raises(StorageError, match=stands):
            abort_write(planned)
    abort_write(planned)

    assert rows_of(tmp_path, "id") == [("k0",), ("k1",)]
    assert_whole(tmp_path)


def test_a_decision_that_nobody_can_read_binds_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its maker may still be at work, and is given a moment; then the next number is decided."""
    patch_seam(monkeypatch, "age at which a torn decision is dead", 0.0)
    write(tmp_path, rows("a", "k0", value=0), table=TABLE)
    storage = open_storage(str(tmp_path))
    [number] = decisions.numbers(storage)
    storage.write(decisions.path_of(number + 1), b"half of")

    write(tmp_path, rows("a", "k1", value=1))

    assert rows_of(tmp_path, "id") == [("k0",), ("k1",)]
    assert "not binding" in caplog.text
    assert decisions.numbers(storage) == [number, number + 1, number + 2]


def test_few_decisions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "decisions that stay", 2)
    for number in range(8):
        write(tmp_path, rows("a", "k0", value=number), table=TABLE)

    kept = decisions.numbers(open_storage(str(tmp_path)))
    assert len(kept) <= 5
    assert kept[-1] == 8


def test_a_write_that_its_own_process_sealed_for_good_is_dead_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its abort failed right after the seal; its process lives and its heart has just beaten."""
    write(tmp_path, rows("a", "k0", value=0), table=TABLE)
    planned = plan(tmp_path, SCHEMA, settings=WriteSettings(colocated=True))
    task(planned, rows("a", "k1", value=1), 0)
    owner.Seal(open_storage(str(tmp_path)), noted(planned)).set_for_good()

    write(tmp_path, rows("a", "k2", value=2))

    assert rows_of(tmp_path, "id") == [("k0",), ("k2",)]
    assert_whole(tmp_path)
