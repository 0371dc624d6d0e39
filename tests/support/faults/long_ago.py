"""Writes beside many others: what completed between plan and commit, on the timeline or archived by then."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import format_time, next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.watermark import RECENT
from support.drive import choosing_now, noted, plan, rows_of, task, write
from support.faults.races import SCHEMA, TABLE, data_files, rows
from support.made.cleaning import TIMELINE, archive
from support.places import Place, below
from support.seams import patch_seam

MANY = RECENT + 10


def commit_many(table: Place, count: int = MANY) -> None:
    """Let other writers complete so many commits, which keep to themselves: their files are no concern of the test."""
    storage = open_storage(str(table))
    instants = open_table(storage).instants
    at = open_table(storage).timeline().greatest_time()
    body = encode(CommitMetadata(operation_type="UPSERT"))
    for _ in range(count):
        asked = next_time(int(storage.now() * 1000), at, "UTC")
        at = next_time(int(storage.now() * 1000), asked, "UTC")
        storage.write(instants.path(Instant(asked, "commit", State.COMPLETED, at)), body)
    # Two plans before the clock has come so far would choose the same time.
    while at is not None and format_time(int(storage.now() * 1000), "UTC") <= at:
        time.sleep(0.01)


def instants(table: Place) -> Timeline:
    """Return the table's timeline."""
    storage = open_storage(str(table))
    return open_table(storage).timeline()


def check_older_than_all_recent(folder: Path, *, archived: bool = False) -> None:
    """Assert that a write is refused that did not see an older one, begun after more commits than it knows by name.

    A third one that touches other file groups commits all the same.

    Args:
        folder: Where the table goes.
        archived: Whether the older one was archived, with most others, before the younger ones commit.
    """
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    older = plan(table, SCHEMA)
    choosing_now(older)
    commit_many(table)
    younger, apart = plan(table, SCHEMA), plan(table, SCHEMA)
    results = [
        task(planned, rows(partition, *keys, value=value), 0)
        for planned, partition, keys, value in (
            (older, "a", ["k1", "k2"], 2),
            (younger, "a", ["k1", "k3"], 3),
            (apart, "b", ["k1"], 4),
        )
    ]
    commit_write(older, results[:1])
    if archived:
        archive(table, MANY - 20)
        assert instants(table).find(noted(older)) is None
    commit_write(apart, results[2:])
    before = data_files(table)
    with pytest.raises(CommitConflictError, match=noted(older)):
        commit_write(younger, results[1:2])
    abort_write(younger)

    assert rows_of(table, "p", "id", "value") == [("a", "k1", 2), ("a", "k2", 2), ("b", "k1", 4)]
    assert data_files(table) == before


def check_archived_while_at_work(folder: Path) -> None:
    check_older_than_all_recent(folder, archived=True)


def check_many_completed_since(folder: Path) -> None:
    """Assert that a write is refused where the one that it did not see lies before and among many others."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    planned = plan(table, SCHEMA)
    write(table, rows("a", "k1", "k2", value=2))
    commit_many(table)
    result = task(planned, rows("a", "k1", "k3", value=3), 0)
    with pytest.raises(CommitConflictError, match="file group"):
        commit_write(planned, [result])
    abort_write(planned)

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 2)]


def check_archived_before_it_is_given_up(folder: Path) -> None:
    """Assert that a write whose answer was lost keeps its files, though it is archived and its markers are there."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    planned = plan(table, SCHEMA)
    results = [task(planned, rows("a", "k1", value=2), 0)]
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "forget the work of a commit", lambda *_: None)
        commit_write(planned, results)
    commit_many(table, 9)
    archive(table, 5)
    assert instants(table).find(noted(planned)) is None
    abort_write(planned)

    assert rows_of(table, "id", "value") == [("k1", 2)]


def check_history_that_is_gone(folder: Path) -> None:
    """Assert that a write is refused where what it saw can be held against nothing any more."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    older = plan(table, SCHEMA)
    commit_many(table)
    younger = plan(table, SCHEMA)
    results = [task(older, rows("a", "k1", value=2), 0), task(younger, rows("b", "k1", value=3), 0)]
    commit_write(older, results[:1])
    archive(table, 5)
    open_storage(str(table)).delete_folder(f"{TIMELINE}/history")
    with pytest.raises(CommitConflictError, match="without being archived"):
        commit_write(younger, results[1:])
    abort_write(younger)

    assert rows_of(table, "p", "id", "value") == [("a", "k1", 2)]


def check_first_write_is_younger(folder: Path) -> None:
    """Assert that a write takes a later time where its files would count as archived, hence as committed."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    planned = choosing_now(plan(table, SCHEMA))
    chosen = noted(planned)
    commit_many(table, 3)
    archive(table, 2)
    task_result = task(planned, rows("a", "k1", value=2), 0)
    assert task_result.instant_time > chosen
    assert [one.requested_time for one in instants(table).pending] == [task_result.instant_time]
    commit_write(planned, [task_result])

    assert rows_of(table, "id", "value") == [("k1", 2)]
    assert not [name for name in data_files(table) if chosen in name]
