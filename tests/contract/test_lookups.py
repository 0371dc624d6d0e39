"""Plain writes to tables whose keys are looked up: the rows of each key end in the one file group that holds it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyhudi.errors import DuplicateKeyError, KeyNotFoundError, PlacementError
from pyhudi.index.base import LookupFigures
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.inspect.history import last_commit
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.files.output import Output
from pyhudi.timeline.metadata.models import CommitMetadata
from support.drawn.lookups import APART, LOGGED, TABLE, assert_healthy, home, homes, planned, rows, slices
from support.drive import carry_out, plan, rows_of, task, write
from support.models.model import SCHEMA as WITH_FLAG
from support.places import files_below
from support.rules.health import findings
from support.seams import patch_seam
from support.write_settings import write_settings

STRICT = write_settings(APART, delete_missing_ok=False)
TYPES = pytest.mark.parametrize("made", [TABLE, LOGGED], ids=["cow", "mor"])
FLAGGED = TableSettings(
    record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), index_type="SIMPLE"
)


@TYPES
def test_rows_go_to_the_file_groups_that_hold_their_keys(tmp_path: Path, made: TableSettings) -> None:
    """From several tasks, among new ones, in several partitions."""
    write(tmp_path, rows(1, 2, 3, value=1), table=made, settings=APART)
    write(tmp_path, [rows(4, 5, value=1), rows(1, 2, value=1, p="b")], settings=APART)
    before = {(key, p): home(tmp_path, key) for key, p in [(3, "a"), (4, "a"), (5, "a")]}
    done = write(tmp_path, [rows(3, 4, 9, value=3), rows(3, 4, 5, value=2), rows(2, 8, value=2, p="b")], settings=APART)

    assert (done.inserts, done.updates, done.deletes, done.not_found) == (2, 4, 0, 0)
    assert rows_of(tmp_path, "p", "id", "value") == [
        *(("a", f"k{key}", value) for key, value in [(1, 1), (2, 1), (3, 3), (4, 3), (5, 2), (9, 3)]),
        *(("b", f"k{key}", value) for key, value in [(1, 1), (2, 2), (8, 2)]),
    ]
    assert {(key, p): home(tmp_path, key) for key, p in before} == before
    assert_healthy(tmp_path)


def test_each_pass_holds_as_many_keys_as_there_is_memory_for(tmp_path: Path) -> None:
    """Rows of one key meet in one pass, whichever tasks they come from, and files are searched once a pass."""
    tiny = write_settings(APART, batch_size=3000, output=Output(memory=6000))
    write(tmp_path, [rows(*range(500), value=1), rows(*range(300), value=1, p="b")], table=TABLE, settings=APART)
    parts = [rows(*range(start, 700, 2), value=start + 2) for start in (0, 1)]
    result = write(tmp_path, [*parts, rows(*range(0, 700, 2), value=9), rows(*range(5), value=5, p="b")], settings=tiny)

    assert (result.inserts, result.updates) == (200, 505)
    assert result.lookup.files > 5, "there were several passes"
    expected = [(f"k{key}", 9 if key % 2 == 0 else 3) for key in range(700)]
    assert [row[1:] for row in rows_of(tmp_path, "p", "id", "value") if row[0] == "a"] == sorted(expected)
    assert len(slices(tmp_path)) == 3
    assert_healthy(tmp_path)


def test_deletes_of_keys_that_are_nowhere_go_nowhere(tmp_path: Path) -> None:
    write(tmp_path, rows(1, 2, value=1), table=TABLE, settings=APART)
    result = write(tmp_path, [rows(2, 7, value=0), rows(7, 8, value=0)], operation="delete", settings=APART)
    assert (result.deletes, result.not_found, result.files) == (1, 2, 1)

    result = write(tmp_path, rows(7, 8, 9, value=0), operation="delete", settings=APART)
    assert (result.deletes, result.not_found, result.files) == (0, 3, 0)
    assert rows_of(tmp_path, "id") == [("k1",)]
    with pytest.raises(KeyNotFoundError, match=r"'k7'.*partition 'a'"):
        write(tmp_path, rows(1, 7, value=0), operation="delete", settings=STRICT)
    assert rows_of(tmp_path, "id") == [("k1",)]
    assert (write(tmp_path, rows(1, value=0), operation="delete", settings=STRICT)).deletes == 1
    assert_healthy(tmp_path)


@TYPES
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("inserted", ["before the delete", "after it"])
def test_a_key_that_an_insert_put_elsewhere_comes_back_once(
    tmp_path: Path, made: TableSettings, index: str, inserted: str
) -> None:
    """Log files deleted it in one file group, or in both; base files go on holding it there."""
    write(tmp_path, rows(1, 2, value=1), table=replace(made, index_type=index), settings=APART)
    steps = ["insert", "delete"] if inserted == "before the delete" else ["delete", "insert"]
    for operation in steps:
        write(tmp_path, rows(1, value=3), operation=operation, settings=APART)
    result = write(tmp_path, rows(1, value=9), settings=APART)

    assert rows_of(tmp_path, "id", "value") == [("k1", 9), ("k2", 1)]
    assert result.inserts + result.updates == 1
    # Base files go on holding the key, of which log files deleted all rows but one.
    assert not findings(tmp_path)


def test_new_rows_that_are_deleted_in_the_same_write_go_nowhere(tmp_path: Path) -> None:
    """The delete that wins over the row of its key is one of a key that is not there."""

    def some(*marked: tuple[str, int, bool]) -> pa.Table:
        return pa.Table.from_pylist(
            [{"id": key, "p": "a", "ts": ts, "value": ts, "_hoodie_is_deleted": gone} for key, ts, gone in marked],
            WITH_FLAG,
        )

    write(tmp_path, some(("there", 1, False)), table=FLAGGED, settings=APART)
    parts = [some(("new", 5, False), ("late", 3, True)), some(("new", 7, True), ("late", 4, False), ("there", 2, True))]
    done = write(tmp_path, parts, settings=APART)

    assert (done.inserts, done.updates, done.deletes, done.not_found) == (1, 0, 1, 1)
    assert rows_of(tmp_path, "id", "ts") == [("late", 4)]
    assert_healthy(tmp_path)


@TYPES
def test_inserts_look_keys_up_where_they_are_asked_to(tmp_path: Path, made: TableSettings) -> None:
    write(tmp_path, rows(1, 2, value=1), table=made, settings=APART)
    write(tmp_path, rows(2, value=2), settings=APART)
    drop, fail = (write_settings(APART, insert_dup_policy=policy) for policy in ("drop", "fail"))
    result = write(tmp_path, [rows(1, 3, value=5), rows(2, 4, value=5)], operation="insert", settings=drop)
    assert (result.inserts, result.dropped, result.lookup.candidates) == (2, 2, 1)

    with pytest.raises(DuplicateKeyError, match="'k3'"):
        write(tmp_path, rows(3, 9, value=6), operation="insert", settings=fail)
    merging = write_settings(APART, allow_duplicates_on_insert=False)
    result = write(tmp_path, rows(3, 5, value=7), operation="insert", settings=merging)
    assert (result.inserts, result.updates) == (1, 1)
    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 2), ("k3", 7), ("k4", 5), ("k5", 7)]
    assert_healthy(tmp_path)


@TYPES
def test_all_copies_of_a_key_are_updated_and_deleted(tmp_path: Path, made: TableSettings) -> None:
    """Inserts that look for no key may leave some; whichever file groups these are in, none is left behind."""
    for value in (1, 2, 3):
        write(tmp_path, rows(1, value + 1, value=value), operation="insert", table=made, settings=APART)
    assert len(homes(tmp_path)["k1"]) == 3
    write(tmp_path, rows(1, 9, value=7), settings=APART)
    assert rows_of(tmp_path, "id", "value") == [("k1", 7)] * 3 + [("k2", 1), ("k3", 2), ("k4", 3), ("k9", 7)]

    done = write(tmp_path, rows(1, 4, value=9), operation="delete", settings=APART)
    assert done.deletes == 4
    assert rows_of(tmp_path, "id") == [("k2",), ("k3",), ("k9",)]


def test_new_keys_fill_small_files_up_together_with_what_is_found_there(tmp_path: Path) -> None:
    write(tmp_path, rows(1, 2, value=1), table=TABLE)
    (before,) = slices(tmp_path)
    done = write(tmp_path, [rows(1, 3, value=2), rows(4, value=2)])

    assert (done.inserts, done.updates, done.files) == (2, 1, 1)
    (after,) = slices(tmp_path)
    assert after.group == before.group
    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 2), ("k4", 2)]
    write(tmp_path, rows(5, value=3), operation="insert")
    assert [file_slice.group for file_slice in slices(tmp_path)] == [before.group]
    assert_healthy(tmp_path)


def test_many_new_keys_open_several_file_groups_by_the_size_of_a_row(tmp_path: Path) -> None:
    """Two tasks and a commit that does it again name the same file groups."""
    sizes = FileSizes(small=0, largest=100_000, record_bytes=1000)
    settings = write_settings(lookup=LookupSettings(sizes=sizes), batch_size=5000, output=Output(memory=20_000))
    result = write(
        tmp_path, [rows(*range(0, 1000, 2), value=1), rows(*range(1, 1000, 2), value=1)], table=TABLE, settings=settings
    )

    assert (result.inserts, result.files) == (1000, 10)
    assert {len(found) for found in homes(tmp_path).values()} == {1}
    write(tmp_path, [rows(*range(0, 1000, 3), value=2), rows(*range(1, 1000, 3), value=2)], settings=settings)
    assert len(slices(tmp_path)) == 10
    # What was written tells that a row takes less than was guessed.
    assert write(tmp_path, rows(*range(1000, 2000), value=1), settings=settings).files == 1
    assert_healthy(tmp_path)


def test_small_files_that_look_like_buckets_are_left_to_their_keys(tmp_path: Path) -> None:
    """A table whose index was changed has its keys where they are; new ones go where no bucket is taken for theirs."""
    bucketed = replace(TABLE, index_type="BUCKET", bucket_count=2)
    write(tmp_path, rows(1, 2, 3, 4, value=1), table=bucketed)
    buckets = {file_slice.file_id for file_slice in slices(tmp_path)}
    storage = open_storage(str(tmp_path))
    properties = storage.read(".hoodie/hoodie.properties").decode().splitlines()
    lines = [line for line in properties if "bucket" not in line and not line.startswith("hoodie.table.checksum")]
    lines = ["hoodie.index.type=SIMPLE" if line.startswith("hoodie.index.type") else line for line in lines]
    storage.write(".hoodie/hoodie.properties", "\n".join([*lines, ""]).encode())
    done = write(tmp_path, rows(1, 2, 5, 6, value=2))

    assert (done.inserts, done.updates) == (2, 2)
    assert {home(tmp_path, key) for key in (1, 2, 3, 4)} == buckets
    assert not {home(tmp_path, key) for key in (5, 6)} & buckets
    assert rows_of(tmp_path, "id", "value") == [(f"k{key}", 1 if key in {3, 4} else 2) for key in range(1, 7)]


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table"])
def test_what_replaces_looks_nothing_up_and_joins_nothing(tmp_path: Path, operation: str) -> None:
    write(tmp_path, [rows(1, 2, value=1), rows(1, value=1, p="b")], table=TABLE)
    before = {file_slice.group for file_slice in slices(tmp_path)}
    settings = write_settings(combine_before_insert=True)
    result = write(tmp_path, [rows(2, 3, value=2), rows(3, value=4)], operation=operation, settings=settings)

    kept = [("b", "k1", 1)] if operation == "insert_overwrite" else []
    assert rows_of(tmp_path, "p", "id", "value") == [("a", "k2", 2), ("a", "k3", 4), *kept]
    assert result.lookup == LookupFigures()
    assert not {file_slice.group for file_slice in slices(tmp_path) if file_slice.partition_path == "a"} & before
    assert_healthy(tmp_path)


def test_more_than_one_host_should_merge_is_refused_before_and_after_the_lookup(tmp_path: Path) -> None:
    write(tmp_path, rows(*range(1000), value=1), table=TABLE, settings=APART)
    (file_slice,) = slices(tmp_path)
    rest = [name for name in files_below(tmp_path) if name.endswith(".parquet")]
    for bound in (100, file_slice.size):
        with pytest.raises(PlacementError, match=r"HudiTable\(spark, path\)"):
            write(tmp_path, rows(1, 5000, value=2), settings=write_settings(APART, merge_max_bytes=bound))
    assert [name for name in files_below(tmp_path) if name.endswith(".parquet")] == rest
    assert_healthy(tmp_path)


def test_what_a_lookup_took_is_told_by_the_commit_and_by_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [rows(1, value=1), rows(1, value=1, p="b")], table=TABLE, settings=APART)
    write(tmp_path, rows(2, value=1), settings=APART)
    patch_seam(monkeypatch, "clock of lookups", SimpleNamespace(monotonic=count(100, 2.5).__next__))
    result = write(tmp_path, rows(1, 3, value=2), settings=APART)

    assert (result.lookup.files, result.lookup.candidates, result.lookup.bytes > 0) == (
        2,
        result.lookup.candidates,
        True,
    )
    assert "lookup" in result.seconds
    kept = last_commit(open_storage(str(tmp_path)))
    assert kept is not None
    assert kept.lookup == result.lookup
    assert result.lookup.seconds == 2.5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"files": 1}',
        '{"files":1e400,"candidates":1,"false_positives":1,"bytes":1,"seconds":1}',
        '{"files":1.5,"candidates":1,"false_positives":1,"bytes":1,"seconds":1}',
        '{"files":"1","candidates":1,"false_positives":1,"bytes":1,"seconds":1}',
    ],
)
def test_figures_that_pyhudi_did_not_write_are_none(text: str) -> None:
    from pyhudi.operations.result import LOOKUP, result_from

    assert result_from("t", "1", CommitMetadata(extra_metadata={LOOKUP: text})).lookup == LookupFigures()


@TYPES
def test_an_attempt_that_ran_twice_and_one_that_was_lost_change_nothing(tmp_path: Path, made: TableSettings) -> None:
    write(tmp_path, rows(1, 2, value=1), table=made, settings=APART)
    work = planned(tmp_path, settings=APART)
    task(work, rows(1, 7, value=5), 0, attempt=3)
    results = [task(work, rows(1, 3, value=2), 0, attempt=4), task(work, rows(3, 4, value=3), 1)]
    committed = commit_write(work, results)
    again = commit_write(work, results)

    assert again == committed
    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 3), ("k4", 3)]
    given_up = planned(tmp_path, settings=APART)
    task(given_up, rows(1, 9, value=9), 0)
    abort_write(given_up)
    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 3), ("k4", 3)]
    assert_healthy(tmp_path)


def test_a_replay_of_a_write_is_none(tmp_path: Path) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    first = carry_out(planned(tmp_path, settings=APART, write_id="mine"), [rows(1, 2, value=2)])
    second = carry_out(planned(tmp_path, settings=APART, write_id="mine"), [rows(1, 2, value=3)])

    assert second == first
    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k2", 2)]


def test_generated_keys_are_looked_up_nowhere_whatever_the_table_says(tmp_path: Path) -> None:
    schema = pa.schema([("value", pa.int64())])
    table = pa.table([[1, 2]], schema=schema)
    write(tmp_path, table, operation="insert", table=TableSettings())
    work = plan(tmp_path, schema)

    assert not work.looks_up
    assert carry_out(work, [table]).inserts == 2


@pytest.mark.parametrize("most", [1, 2])
def test_few_small_files_of_a_partition_take_new_keys_in_where_rows_are_appended(tmp_path: Path, most: int) -> None:
    table = tmp_path / "t"
    for key in (1, 2):
        write(table, rows(key, value=1), table=LOGGED, settings=APART)
    small = {file_slice.file_id for file_slice in slices(table)}
    largest = max(file_slice.size for file_slice in slices(table)) + 20 * 100
    sizes = FileSizes(small=largest, largest=largest, record_bytes=100, most_rewritten=most)
    result = write(table, rows(*range(3, 43), value=2), settings=WriteSettings(lookup=LookupSettings(sizes=sizes)))

    joined = {home(table, key) for key in range(3, 43)} & small
    assert (len(small), len(joined), result.files) == (2, most, 2)
    assert_healthy(table)
