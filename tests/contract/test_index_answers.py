"""What an index of another package says is held against the table, before a write goes by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError, IndexMisfitError, PyHudiError, StorageError
from pyhudi.index import NOT_FOUND, FileGroupId, KeyedRows, Tags
from pyhudi.testing.indexes import offered
from pyhudi.testing.tables import ROWS, DrivenTable, rows_of
from support.places import files_below
from support.strange_index import ENTRY_POINT, NAME, Answer, StrangeIndex, elsewhere, nothing

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
    (piece,) = table.view().slices(partition).values()
    return piece.group


def coded(groups: tuple[FileGroupId, ...], codes: dict[str, int]) -> Answer:
    """Answer with a code for each key."""
    return lambda rows: Tags(groups, np.array([codes[key] for key in rows.record_keys.to_pylist()], np.int32))


def too_few(rows: KeyedRows) -> Tags:
    return Tags((), np.full(len(rows) - 1, NOT_FOUND, np.int32))


def broken(rows: KeyedRows) -> Tags:
    return Tags((), np.full(len(rows), float(NOT_FOUND)))


def beyond(rows: KeyedRows) -> Tags:
    return Tags((), np.zeros(len(rows), np.int32))


def copied_beyond(rows: KeyedRows) -> Tags:
    return Tags((), nothing(rows).codes, copied=np.array([0]), copy_codes=np.array([3], np.int32))


def away(rows: KeyedRows) -> Tags:
    raise RuntimeError("the database is away")


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (too_few, IndexMisfitError, r"was asked for 3 keys and answered with codes of the shape \(2,\)"),
        (broken, IndexMisfitError, "float64"),
        (beyond, IndexMisfitError, "with 0 file groups and with codes from 0 to 0"),
        (copied_beyond, IndexMisfitError, "with codes of further places from 3 to 3"),
        (elsewhere, IndexMisfitError, "6e1f7a52-0c4d-4b3e-9a55-1d2c3b4a5f60-0 of partition 'x', which the table does"),
        (away, StorageError, r"failed \(RuntimeError: the database is away\)"),
    ],
)
def test_an_answer_that_cannot_be_fails_the_write_and_nothing_is_left_of_it(
    table: DrivenTable, monkeypatch: pytest.MonkeyPatch, answer: Answer, error: type[PyHudiError], words: str
) -> None:
    before = sorted(name for name in files_below(Path(table.path)) if name.endswith((".parquet", "commit")))
    answering(monkeypatch, answer)
    with pytest.raises(error, match=words) as raised:
        table.write(AGAIN)

    assert f"the index {NAME} of the table {table.storage.path}" in raised.value.what.replace("The", "the", 1)
    left = sorted(name for name in files_below(Path(table.path)) if name.endswith((".parquet", "commit")))
    assert left == before
    assert rows_in(table) == FIRST


def test_a_file_group_of_another_partition_is_none_of_an_index_that_is_not_global(
    table: DrivenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = (there(table, "x"), there(table, "y"))
    answering(monkeypatch, coded(groups, {"k1": 0, "k2": 0, "k3": NOT_FOUND}))

    with pytest.raises(IndexMisfitError, match="the key 'k2' of partition 'y' is in partition 'x'"):
        table.write(AGAIN)


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

    with pytest.raises(ConcurrentWriteError, match="was told by others 10 times"):
        table.write(AGAIN)
