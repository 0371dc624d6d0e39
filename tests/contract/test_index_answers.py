"""What an index of another package says is held against the table, before a write goes by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyhudi.errors import (
    CommitConflictError,
    ConcurrentWriteError,
    UnsupportedOptionError,
    UnsupportedTableError,
)
from pyhudi.index import NOT_FOUND, FileGroupId, Tags
from pyhudi.operations.inspect.detail import detail
from pyhudi.testing.indexes import offered
from pyhudi.testing.tables import ROWS, DrivenTable, rows_of
from support.made.strange_index import ENTRY_POINT, NAME, Answer, StrangeIndex, coded

FIRST = [("k1", "x", 1, "first"), ("k2", "y", 1, "first")]
AGAIN = rows_of(("k1", "x", 2, "again"), ("k2", "y", 2, "again"), ("k3", "x", 2, "new"))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DrivenTable]:
    monkeypatch.setattr(StrangeIndex, "positions", {})
    with offered(NAME, ENTRY_POINT):
        made = DrivenTable.keyed(str(tmp_path / "t"), NAME, {})
        made.write(rows_of(*FIRST))
        yield made


def answering(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    monkeypatch.setattr(StrangeIndex, "answer", staticmethod(answer))


def rows_in(table: DrivenTable) -> list[tuple[object, ...]]:
    found = table.read()
    return sorted(zip(*(found.column(name).to_pylist() for name in ROWS.names), strict=True))


def there(table: DrivenTable, partition: str) -> FileGroupId:
    (file_slice,) = table.view().slices(partition).values()
    return file_slice.group


def test_the_right_answer_is_gone_by(table: DrivenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = (there(table, "y"), there(table, "x"))
    answering(monkeypatch, coded(groups, {"k1": 1, "k2": 0, "k3": NOT_FOUND}))

    result = table.write(AGAIN)

    assert (result.updates, result.inserts) == (2, 1)
    assert [row[3] for row in rows_in(table)] == ["again", "again", "new"]


def test_a_file_group_that_was_made_meanwhile_is_a_conflict(
    table: DrivenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = rows_of(("k9", "z", 2, "ours"))
    planned = table.plan(ROWS)
    table.write(rows_of(("k9", "z", 2, "theirs")))
    group = there(table, "z")
    answering(monkeypatch, lambda rows: Tags((group,), np.zeros(len(rows), np.int32)))

    with pytest.raises(CommitConflictError, match=f"{group.file_id} of partition 'z', which holds some of its keys"):
        table.commit(planned, [ours])


def test_an_index_that_takes_note_of_nothing_is_not_asked(table: DrivenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StrangeIndex, "listens", False)
    table.write(rows_of(("k7", "x", 1, "added")), operation="insert")

    with pytest.raises(ConcurrentWriteError, match="10 times, each time before this write could"):
        table.write(AGAIN)


def test_a_table_whose_index_is_not_installed_is_read_and_not_written(tmp_path: Path) -> None:
    table = DrivenTable.keyed(str(tmp_path / "t"), NAME, {})
    with offered(NAME, ENTRY_POINT):
        table.write(rows_of(*FIRST))

    assert rows_in(table) == FIRST
    assert detail(table.storage).select(["index", "buckets"]).to_pylist() == [{"index": NAME, "buckets": None}]
    with pytest.raises(UnsupportedTableError, match=f"hoodie.index.type={NAME}") as raised:
        table.write(AGAIN)
    assert "an entry point of the group pyhudi.indexes" in raised.value.todo
    with pytest.raises(UnsupportedOptionError, match=f"hoodie.index.type={NAME}"):
        DrivenTable.keyed(str(tmp_path / "new"), NAME, {}).write(rows_of(*FIRST))
