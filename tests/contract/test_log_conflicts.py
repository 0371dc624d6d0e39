"""Writes to merge-on-read tables beside compactions: appends wait for none, a new base file must not be hidden."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.files.lost import open_view
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from support.attempts import rows
from support.drive import KEYED, choosing_now, plan, rows_of, task, write
from support.made.compacting import compaction_of, run, schedule

MERGED = replace(KEYED, table_type="MERGE_ON_READ", bucket_count=1)
# An insert keeps two rows of a key, and so rewrites the file group; an upsert appends to it.
REWRITE, APPEND = "insert", "upsert"


def request_compaction(path: Path, action: str = "compaction") -> str:
    """Ask for the compaction of every file group as it is, and return its time."""
    storage = open_storage(str(path))
    timeline = open_table(storage).timeline()
    now = time.time_ns() // 1_000_000 + 1  # after whatever was planned before
    asked = next_time(now, timeline.greatest_time(), "UTC")
    plan = timeline.files.codec.encode(compaction_of(open_view(timeline).all_slices()))
    assert storage.create(f".hoodie/timeline/{asked}.{action}.requested", plan)
    return asked


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """One file group with a base file and a log file."""
    write(tmp_path, rows(1, 2, value=1), table=MERGED)
    write(tmp_path, rows(1, value=2))
    return tmp_path


def begun(path: Path, operation: str) -> WritePlan:
    """Return a write that has chosen its time, before its first task puts it on the timeline."""
    return choosing_now(plan(path, rows(1, value=3).schema, operation=operation))


def finish(planned: WritePlan) -> None:
    commit_write(planned, [task(planned, rows(1, 3, value=3), 0)])


@pytest.mark.parametrize("action", ["compaction", "logcompaction"])
def test_appends_go_on_while_a_compaction_is_asked_for(table: Path, action: str) -> None:
    early = begun(table, APPEND)
    request_compaction(table, action)
    finish(early)
    finish(begun(table, APPEND))

    assert rows_of(table, "id", "value") == [("k1", 3), ("k2", 1), ("k3", 3)]


def test_a_rewrite_is_not_hidden_by_a_compaction_that_was_asked_for_after_it(table: Path) -> None:
    """The compaction's base file has the later instant, and holds nothing of the rewrite."""
    early = begun(table, REWRITE)
    compaction = request_compaction(table)
    with pytest.raises(CommitConflictError, match=f"{compaction} was requested meanwhile"):
        finish(early)
    abort_write(early)

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 1)]
    finish(begun(table, REWRITE))
    assert rows_of(table, "id", "value") == [("k1", 2), ("k1", 3), ("k2", 1), ("k3", 3)]


def test_a_compaction_that_completes_beside_writes_takes_nothing_of_them(table: Path) -> None:
    """The append's log file goes with the compacted base file; a rewrite that was asked for later replaces both."""
    early = begun(table, APPEND)
    schedule(table)
    late = begun(table, REWRITE)
    run(table)
    finish(early)

    assert rows_of(table, "id", "value") == [("k1", 3), ("k2", 1), ("k3", 3)]
    with pytest.raises(CommitConflictError, match="changed the file group"):
        finish(late)
    abort_write(late)

    schedule(table)
    late = begun(table, REWRITE)
    run(table)
    finish(late)
    assert rows_of(table, "id", "value") == [("k1", 3), ("k1", 3), ("k2", 1), ("k3", 3), ("k3", 3)]
    write(table, rows(2, value=9))
    schedule(table)
    run(table)
    assert rows_of(table, "id", "value") == [("k1", 3), ("k1", 3), ("k2", 9), ("k3", 3), ("k3", 3)]


def test_a_rewrite_is_not_hidden_by_a_compaction_that_completed_meanwhile(table: Path) -> None:
    early = begun(table, REWRITE)
    schedule(table)
    run(table)
    with pytest.raises(CommitConflictError, match=r"compaction .* was requested meanwhile"):
        finish(early)
    abort_write(early)

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 1)]


def test_a_rewrite_waits_for_a_log_compaction_whenever_it_was_asked_for(table: Path) -> None:
    """Its log file completes after the rewrite, and would be read on top of the rows that it was made of."""
    request_compaction(table, "logcompaction")
    late = begun(table, REWRITE)
    with pytest.raises(CommitConflictError, match="compaction"):
        finish(late)
    abort_write(late)
