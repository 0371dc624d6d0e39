"""A base file that a commit names is gone: it is named, whoever needs it; what had to go is not missed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, MissingFileError, StorageError, UnreadableTimeError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.reader.query import AsOf, Changes
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CleanMetadata, CleanPartition, InstantInfo, RollbackPlan
from support.drive import plan, task, write
from support.made.cleaning import archive, clean
from support.models.past import Past, rows_of
from support.places import files_below


@pytest.fixture
def past(tmp_path: Path) -> Past:
    """Three commits: two to one file group of partition a, one to b."""
    past = Past(tmp_path / "t")
    past.upsert("a", ["k1"], 1)
    past.upsert("b", ["k1"], 2)
    past.upsert("a", ["k1"], 3)
    return past


def files_of(past: Past, number: int) -> list[Path]:
    return sorted(Path(str(past.path)).glob(f"*/*_{past.commits[number].instant}.parquet"))


def lose(past: Past, number: int) -> str:
    """Delete the base file of one commit, and return its name."""
    (file,) = files_of(past, number)
    file.unlink()
    return file.name


def rows(partition: str, *keys: str) -> pa.Table:
    return pa.table({"id": list(keys), "p": [partition] * len(keys), "value": [9] * len(keys)})


def refused(past: Past, act: Callable[[], object], name: str, number: int) -> None:
    with pytest.raises(MissingFileError) as raised:
        act()
    for words in (name, str(past.path), past.commits[number].instant, "is gone", "backup", "roll back", "overwrite"):
        assert words in str(raised.value)


@pytest.mark.parametrize("number", [1, 2], ids=["the only slice", "an older slice is there"])
def test_every_read_that_would_show_it_names_it(past: Past, number: int) -> None:
    name, commit = lose(past, number), past.commits[number]

    for query in (
        None,
        AsOf("2999-12-31"),
        AsOf(commit.instant),
        Changes("earliest"),
        Changes(past.commits[0].completed),
    ):
        refused(past, lambda query=query: past.shown(query), name, number)
    other = "b" if number == 2 else "a"
    assert [row[0] for row in past.shown(None, Compare("p", "=", other))] == [other]
    assert past.shown(AsOf(past.commits[0].instant)) == past.as_of(past.commits[0].instant)


def test_a_partition_s_folder_that_is_gone_is_noticed(past: Past) -> None:
    name = lose(past, 1)
    shutil.rmtree(Path(str(past.path)) / "b")

    refused(past, past.shown, name, 1)


@pytest.mark.parametrize("colocated", [True, False], ids=["colocated", "plain"])
@pytest.mark.parametrize("operation", ["upsert", "insert", "delete"])
def test_a_write_that_lists_its_partition_fails_and_leaves_nothing(past: Past, operation: str, colocated: bool) -> None:
    name, settings = lose(past, 2), WriteSettings(colocated=colocated)
    before = {file: data for file, data in files_below(past.path).items() if "/.pyhudi/" not in file}

    refused(past, lambda: write(past.path, rows("a", "k1"), operation=operation, settings=settings), name, 2)
    assert {file: data for file, data in files_below(past.path).items() if "/.pyhudi/" not in file} == before
    write(past.path, rows("b", "k2"), operation="upsert", settings=settings)


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table"])
def test_an_overwrite_mends_the_table(past: Past, operation: str) -> None:
    lose(past, 2)
    write(past.path, rows("a", "k5"), operation=operation)

    assert ("a", "k5", 9) in [row[:3] for row in past.shown()]


def test_what_was_replaced_is_not_missed(past: Past) -> None:
    past.overwrite("c", ["k9"], 4)
    for number in range(3):
        lose(past, number)
    shutil.rmtree(Path(str(past.path)) / "b")

    assert past.shown() == past.as_of("3")
    past.upsert("a", ["k1"], 5)
    assert past.shown() == past.as_of("3")


def test_what_newer_files_replaced_is_no_loss_of_the_present(past: Past) -> None:
    """A clean may have taken it of which nothing is left on the timeline."""
    name = lose(past, 0)

    assert past.shown() == past.as_of("3")
    past.upsert("a", ["k1"], 5)
    with pytest.raises(UnreadableTimeError, match=name):
        past.shown(AsOf(past.commits[0].instant))


def test_what_a_clean_names_is_not_missed(past: Past) -> None:
    name = lose(past, 2)
    storage = open_storage(str(past.path))
    timeline, at = open_table(storage).timeline(), f"{int(past.commits[0].instant) - 1}"
    part = CleanPartition(partition_path="a", policy="KEEP_LATEST_COMMITS", success_delete_files=[name])
    clean_metadata = CleanMetadata(
        start_clean_time=at,
        time_taken_in_millis=0,
        total_files_deleted=1,
        earliest_commit_to_retain="",
        partition_metadata={"a": part},
    )
    clean = Instant(at, "clean", State.COMPLETED, f"{at[:-1]}9")
    timeline.files.request(clean)
    timeline.files.start(clean)
    timeline.complete(clean, encode(clean_metadata))

    assert past.shown() == past.as_of(past.commits[1].instant)


def test_a_read_that_meets_a_rollback_is_to_be_run_again(past: Past) -> None:
    """Apache Hudi takes the completed file away first, and then the rows."""
    snapshot = open_snapshot(str(past.path))
    (Path(str(past.path)) / past.commits[2].file).unlink()
    lose(past, 2)

    with pytest.raises(StorageError, match=past.commits[2].instant):
        rows_of(snapshot)
    assert past.shown() == past.as_of(past.commits[1].instant)


def test_a_rollback_at_work_is_no_damage(past: Past) -> None:
    storage = open_storage(str(past.path))
    instants, victim = open_table(storage).instants, past.commits[2].instant
    named = RollbackPlan(instant_to_rollback=InstantInfo(commit_time=victim, action="commit"))
    instants.request(Instant(f"{int(victim) + 50}", "rollback", State.REQUESTED), encode(named))
    lose(past, 2)

    with pytest.raises(StorageError, match="rolled back"):
        past.shown()


def test_a_write_whose_previous_file_was_cleaned_meanwhile_is_to_be_run_again(past: Past) -> None:
    schema = rows("a", "k1").schema
    planned = plan(past.path, schema, settings=WriteSettings(colocated=True))
    write(past.path, rows("a", "k1"))
    lose(past, 2)

    with pytest.raises(CommitConflictError, match="another writer took it"):
        task(planned, rows("a", "k1"), 0)


def test_what_a_process_remembers_is_what_the_timeline_says(past: Past) -> None:
    """Archived commits are not asked any more, and a table made anew in the same place knows nothing of the old one."""
    assert past.shown() == past.as_of("3")
    archive(past.path, 2)
    lose(past, 1)
    assert [row[:3] for row in past.shown()] == [("a", "k1", 3)]

    shutil.rmtree(past.path)
    again = Past(past.path)
    again.upsert("b", ["k2"], 7)
    assert again.shown() == again.as_of("3")
    again.upsert("b", ["k2"], 8)
    refused(again, again.shown, lose(again, 1), 1)


def test_cleaned_tables_lack_nothing(past: Past) -> None:
    past.upsert("a", ["k1"], 4)
    assert clean(past.path, retain=1)
    archive(past.path, 1)

    assert past.shown() == past.as_of("3")
    past.upsert("a", ["k2"], 5)
    assert past.shown() == past.as_of("3")
