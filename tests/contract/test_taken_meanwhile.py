"""Writes that miss a file or an instant of the moment that they saw, because other instants took it since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.connector.source.own_errors import own_errors
from pyhudi.errors import CommitConflictError, MetInstant, MissingFileError, StorageError
from pyhudi.operations.meeting.taken import taken_since
from pyhudi.operations.result import RowCounts
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.watermark import spell_moment
from support.attempts import SCHEMA, rows
from support.drawn.upkept import OFF
from support.drive import KEYED, plan, rows_of, task, write
from support.made.cleaning import archive, clean
from support.rewording import reword_errors
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.write_settings import write_settings

AGAIN = write_settings(retry_s=60.0, upkeep=OFF)
COLOCATED = replace(AGAIN, colocated=True)
SEEN, OPENED = "table that a commit merges with", "open a base file"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path / "t", rows(1, 2, value=1), table=KEYED, settings=AGAIN)
    return tmp_path / "t"


@pytest.fixture(params=["", "reworded"])
def words(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        reword_errors(monkeypatch)


def write_and_clean(table: Path, *keys: int, value: int) -> None:
    """Replace the base files of some keys, and have a clean take the old ones that asks for no pending write."""
    write(table, rows(*keys, value=value, ts=1), settings=AGAIN)
    assert clean(table, retain=1)


def meanwhile(monkeypatch: pytest.MonkeyPatch, seam: str, act: Callable[[], object]) -> None:
    """Act once, right before a function of pyhudi is called."""
    original, waiting = read_seam(seam), [act]

    def called(*arguments: object, **named: object) -> object:
        if waiting:
            waiting.pop()()
        return original(*arguments, **named)

    patch_seam(monkeypatch, seam, called)


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("seam", [OPENED, SEEN], ids=["base files", "moment"])
def test_a_commit_merges_again_what_a_clean_takes_from_it(
    table: Path, monkeypatch: pytest.MonkeyPatch, seam: str
) -> None:
    """Between the listing of a file and its reading, or the choice of the moment and the listing of its files."""
    slow = plan(table, SCHEMA, settings=AGAIN)
    handed = [task(slow, rows(1, 2, value=2, ts=2), 0)]
    meanwhile(monkeypatch, seam, lambda: write_and_clean(table, 1, 2, 3, value=3))
    done = commit_write(slow, handed)

    assert done.attempts == 2
    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 2), ("k3", 3)]
    assert_whole(table)


@pytest.mark.parametrize("seam", [None, OPENED], ids=["before the task", "in the task"])
def test_a_task_whose_base_files_a_clean_took_meets_a_conflict(
    table: Path, monkeypatch: pytest.MonkeyPatch, seam: str | None
) -> None:
    """It names the file group, and the clean."""
    slow = plan(table, SCHEMA, settings=COLOCATED)
    if seam is None:
        write_and_clean(table, 1, value=3)
    else:
        meanwhile(monkeypatch, seam, lambda: write_and_clean(table, 1, value=3))
    with pytest.raises(CommitConflictError, match=r"was replaced meanwhile, and the clean .* took it; the file group"):
        task(slow, rows(1, value=2, ts=2), 0)


def test_a_file_that_nothing_replaced_is_damage_as_ever(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose() -> None:
        for file in table.glob("*.parquet"):
            file.unlink()

    slow = plan(table, SCHEMA, settings=AGAIN)
    handed = [task(slow, rows(1, value=2, ts=2), 0)]
    meanwhile(monkeypatch, OPENED, lose)
    with pytest.raises(StorageError, match="was removed while it was needed"):
        commit_write(slow, handed)
    with pytest.raises(MissingFileError):
        write(table, rows(1, value=2, ts=2), settings=AGAIN)


@pytest.mark.parametrize(
    "text",
    [
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file {uri}. File does not exist.",
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {uri}.  SQLSTATE: KD001",
        "File {uri} does not exist",
    ],
)
def test_the_errors_of_spark_name_the_file_that_a_clean_took(table: Path, text: str) -> None:
    old = next(iter(table.glob("*.parquet")))
    error = RuntimeError(text.format(uri=old.as_uri()))
    opened = open_storage(str(table))
    assert taken_since(opened, error) is None
    write_and_clean(table, 1, 2, value=3)

    taken = taken_since(opened, error)
    assert taken is not None
    assert old.name in taken.what
    assert taken_since(opened, RuntimeError(f"The store could not read {old}: Permission denied.")) is None
    with pytest.raises(StorageError) as gone, own_errors():
        raise RuntimeError(f"[FAILED_READ_FILE.FILE_NOT_EXIST] Error while reading file {old.as_uri()}. It is gone.")
    assert taken_since(opened, gone.value) == taken
    assert taken_since(opened, StorageError(f"The base file {old.name} was removed while it was needed.", "")) is None


def test_an_instant_that_was_archived_meanwhile_is_no_failure_of_the_store(table: Path) -> None:
    timeline = open_table(open_storage(str(table))).timeline()
    (path,) = (table / ".hoodie" / "timeline").glob("*_*.commit")
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StorageError) as raised:
        timeline.files.read_commit(timeline.writes[0])
    taken = taken_since(open_storage(str(table)), raised.value)
    path.write_bytes(content)

    assert taken is not None
    assert timeline.writes[0].requested_time in taken.what
    assert taken_since(open_storage(str(table)), raised.value) is None


def test_a_moment_that_history_lacks_by_now_is_chosen_anew(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write has read nothing, so that it may see the table at any moment."""
    slow = plan(table, SCHEMA, settings=AGAIN)
    handed = [task(slow, rows(1, value=2, ts=2), 0)]
    write(table, rows(1, 3, value=3, ts=1), settings=AGAIN)
    original, lost = read_seam("compare a watermark with the timeline"), slow.transaction.watermark

    def against(mark: object, *rest: object) -> object:
        return None if mark == lost else original(mark, *rest)

    patch_seam(monkeypatch, "compare a watermark with the timeline", against)
    result = commit_write(slow, handed)

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 3)]
    assert result.attempts <= 2
    slow = plan(table, SCHEMA, settings=COLOCATED)
    lost = slow.transaction.watermark
    with pytest.raises(CommitConflictError, match="no longer shows which instants it saw"):
        commit_write(slow, [task(slow, rows(1, value=9, ts=9), 0)])


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_plan_that_meets_an_archiving_is_made_again(
    table: Path, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    """The archiving takes a commit between the listing of the timeline and the reading of that commit."""
    timeline = open_table(open_storage(str(table))).timeline()
    there = timeline.files.path(timeline.writes[-1]).rpartition("/")[2]
    gone = "20200101000000000_20200101000000001.commit" if is_gone else there

    def fail() -> None:
        met = MetInstant("20200101000000000", "archiving", file=gone)
        raise StorageError("The commit was archived while it was being read.", "", met=met)

    meanwhile(monkeypatch, "evolve columns", fail)
    if is_gone:
        plan(table, SCHEMA, settings=AGAIN)
    else:
        with pytest.raises(StorageError):
            plan(table, SCHEMA, settings=AGAIN)


def test_a_counted_row_that_went_with_its_archived_moment_is_a_conflict(table: Path) -> None:
    """An update read it long ago, as a process that stalls does; nothing names the file by now that held it."""
    read_at = spell_moment(open_table(open_storage(str(table))).timeline().completed)
    counted = write_settings(AGAIN, based_on=read_at, counted=RowCounts(updates=1))
    slow = plan(table, SCHEMA, settings=counted)
    handed = [task(slow, rows(1, value=2, ts=2), 0)]
    write_and_clean(table, 1, 2, value=3)
    write_and_clean(table, 1, 2, value=4)
    archive(table, 1)
    with pytest.raises(CommitConflictError):
        commit_write(slow, handed)
    assert rows_of(table, "id", "value") == [("k1", 4), ("k2", 4)]
