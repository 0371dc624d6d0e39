"""One clean: its instant, its note, what it looks at, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import (
    ConcurrentWriteError,
    CorruptInstantError,
    StorageError,
    UnreadableTimeError,
    UnsupportedTableError,
)
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from pyhudi.operations.services.clean import Cleaner
from pyhudi.operations.services.clean_guard import path_inside
from pyhudi.operations.services.clean_plan import CleanPlan
from pyhudi.operations.services.clean_scope import NOTE
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.operations.write.commit import commit_write
from pyhudi.reader.query import AsOf, Changes
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import update_config
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.codec import InstantBody
from pyhudi.timeline.metadata.models import (
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    ClusteringGroup,
    ClusteringPlan,
    RequestedReplaceMetadata,
    RollbackPlan,
    SliceInfo,
)
from support.drive import plan, rows_of, task, write
from support.faults.long_ago import instants
from support.models.past import Past
from support.places import files_below
from support.seams import patch_seam, read_seam
from support.upkeep.cleans import TABLE, data_files, rows, run_clean, save, unsave

ONE = CleanSettings(commits=1)
LONG_AGO = "20200101000000000"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four commits to one partition of two file groups; one slice of each is kept by nobody when three are retained."""
    table = tmp_path / "t"
    for value in range(4):
        write(table, rows("a", "k1", "k2", value=value), table=TABLE)
    return table


def times(table: Path) -> list[str]:
    return [one.requested_time for one in instants(table).writes]


def slices(table: Path, time: str) -> list[str]:
    return sorted(one for one in data_files(table) if time in one)


def last_clean(table: Path) -> CleanMetadata:
    timeline = instants(table)
    found = timeline.files.read_clean(next(one for one in reversed(timeline.completed) if one.action == "clean"))
    assert isinstance(found, CleanMetadata)
    return found


def request(table: Path, *paths: str, partition: str = "a", **fields: Any) -> Instant:
    """Put a clean on the timeline that somebody planned; paths are relative to the table, or URIs."""
    storage = open_storage(str(table))
    uris = [one if ":" in one or one.startswith("/") else storage.uri(one) for one in paths]
    files = {partition: [CleanFileInfo(file_path=one, is_bootstrap_base_file=False) for one in uris]}
    planned = CleanerPlan(policy="KEEP_LATEST_COMMITS", file_paths_to_be_deleted_per_partition=files)
    instant = Instant("20990101000000000", "clean", State.REQUESTED)
    instants(table).files.request(instant, encode(planned.model_copy(update=fields)))
    return instant


# --- its instant


def test_a_clean_says_what_apache_hudi_s_says(table: Path) -> None:
    saved, old, _, newest = times(table)
    save(table, saved)
    clean_result = run_clean(table, ONE)

    assert (clean_result.service, clean_result.files, clean_result.dry, clean_result.error) == ("clean", 2, False, "")
    timeline = instants(table)
    [instant] = [one for one in timeline.instants if one.action == "clean"]
    assert (instant.requested_time, instant.state) == (clean_result.instant, State.COMPLETED)
    requested = timeline.files.storage.read(timeline.files.path(instant.at(State.REQUESTED)))
    planned = timeline.files.codec.decode(CleanerPlan, InstantBody(requested, "plan")).model_dump(by_alias=True)
    uris = [one["filePath"] for one in planned.pop("filePathsToBeDeletedPerPartition")["a"]]
    assert all(uri.startswith(f"file://{table}/a/") and old in uri for uri in uris)
    assert planned == {
        "earliestInstantToRetain": {"timestamp": newest, "action": "commit", "state": "COMPLETED"},
        "lastCompletedCommitTimestamp": newest,
        "policy": "KEEP_LATEST_COMMITS",
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "partitionsToBeDeleted": [],
        "extraMetadata": {"savepointed_timestamps": saved},
    }
    result = last_clean(table).model_dump(by_alias=True)
    [part] = result.pop("partitionMetadata").values()
    assert sorted(part["successDeleteFiles"]) == sorted(uri.rpartition("/")[2] for uri in uris)
    assert (part["deletePathPatterns"], part["failedDeleteFiles"]) == (part["successDeleteFiles"], [])
    assert result.pop("timeTakenInMillis") >= 0
    assert result == {
        "startCleanTime": clean_result.instant,
        "totalFilesDeleted": 2,
        "earliestCommitToRetain": newest,
        "lastCompletedCommitTimestamp": newest,
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {"savepointed_timestamps": saved},
    }


def test_a_clean_by_file_versions_retains_no_instant(table: Path) -> None:
    assert run_clean(table, CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)).files == 6
    assert last_clean(table).earliest_commit_to_retain == ""


def test_a_trial_run_says_how_much_and_leaves_nothing(table: Path) -> None:
    before = files_below(table)
    told = run_clean(table, ONE, dry_run=True)
    gone = slices(table, times(table)[0]) + slices(table, times(table)[1])

    assert (told.files, told.dry, told.instant) == (4, True, "")
    assert told.bytes == sum(len(before[one]) for one in gone)
    assert files_below(table) == before
    done = run_clean(table, ONE)
    assert (done.files, done.bytes) == (told.files, told.bytes)
    assert sorted(set(before) - set(files_below(table))) == sorted(gone)


def test_a_trial_run_counts_what_is_pending_once(table: Path) -> None:
    old = slices(table, times(table)[0])
    request(table, *old)
    sizes = [len(data) for name, data in files_below(table).items() if name in old]

    told = run_clean(table, ONE, dry_run=True)

    assert (told.files, told.bytes) == (4, run_clean(table, ONE).bytes)
    assert told.bytes > sum(sizes)


# --- what it looks at


def looked_at(table: Path, settings: CleanSettings, monkeypatch: pytest.MonkeyPatch) -> list[str] | None:
    """Clean, and return the partitions that were listed; None for all."""
    seen: list[list[str] | None] = []
    original = read_seam("files that a clean lists")

    def listed(storage: Any, partitions: Any) -> Any:
        seen.append(None if partitions is None else sorted(partitions))
        return original(storage, partitions)

    with monkeypatch.context() as patch:
        patch_seam(patch, "files that a clean lists", listed)
        run_clean(table, settings)
    return seen[0]


def test_only_partitions_in_which_something_was_replaced_are_looked_at(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert looked_at(table, ONE, monkeypatch) is None
    write(table, rows("b", "k1", value=4))
    assert looked_at(table, ONE, monkeypatch) == ["a"], "by the commit that was the earliest before"
    write(table, rows("c", "k1", value=5))
    assert looked_at(table, ONE, monkeypatch) == [], "what was written to b was new"
    write(table, rows("b", "k1", value=6))
    write(table, rows("c", "k9", value=6), operation="insert_overwrite")
    write(table, rows("d", "k1", value=6))
    assert looked_at(table, ONE, monkeypatch) == ["b", "c"]
    assert looked_at(table, replace(ONE, incremental=False), monkeypatch) is None


def test_a_note_says_how_far_a_look_came_that_found_nothing(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in range(3):
        write(table.with_name("new"), rows("abc"[value], "k1"), table=TABLE)
    table = table.with_name("new")

    assert looked_at(table, ONE, monkeypatch) is None
    assert [one for one in instants(table).instants if one.action == "clean"] == []
    write(table, rows("d", "k1"))
    assert looked_at(table, ONE, monkeypatch) == []
    (table / NOTE).write_text('{"earliest": 3}')
    assert looked_at(table, ONE, monkeypatch) is None, "a note that nobody understands costs a look at everything"
    assert looked_at(table, ONE, monkeypatch) == []


def test_everything_is_looked_at_where_the_last_clean_does_not_tell_enough(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = times(table)[0]
    save(table, saved)
    run_clean(table, ONE)
    assert looked_at(table, ONE, monkeypatch) == []
    unsave(table, saved)
    assert looked_at(table, ONE, monkeypatch) is None, "a savepoint is gone"
    assert slices(table, saved) == []
    retained = times(table)[-1]
    for value in range(2):
        write(table, rows("a", "k1", value=value))
    timeline = instants(table)
    for one in timeline.instants:
        if one.requested_time <= retained:
            paths = [timeline.files.path(one), *(timeline.files.path(one.at(state)) for state in list(State)[:2])]
            timeline.files.storage.delete(*paths)
    assert looked_at(table, ONE, monkeypatch) is None, "what was replaced may have been archived"


def test_a_write_that_began_long_before_and_completed_after_a_clean_is_looked_at(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    write(table, rows("b", "k1", value=0))
    late = plan(table, rows("b").schema)
    base = slices(table, times(table)[-1])
    for value in range(3):
        write(table, rows("a", "k1", value=value))
    run_clean(table, ONE)
    commit_write(late, [task(late, rows("b", "k1", value=9), 0)])
    write(table, rows("a", "k1", value=9))

    assert looked_at(table, ONE, monkeypatch) == ["a", "b"]
    assert not data_files(table).intersection(base)


def test_a_clean_after_a_write_waits_for_as_many_commits(table: Path) -> None:
    three = replace(ONE, after_commits=3)
    assert run_clean(table, three, inline=True).files == 4
    for value in range(2):
        write(table, rows("a", "k1", value=value))
        assert run_clean(table, three, inline=True).files == 0
        assert run_clean(table, three, dry_run=True).files > 0
    write(table, rows("a", "k1", value=5))
    assert run_clean(table, three, inline=True).files == 4
    assert not (table / NOTE).exists()


# --- pending cleans


@pytest.mark.parametrize("spelling", ["file:{}", "file://{}", "{}", "file://localhost{}"])
def test_a_pending_clean_is_finished_however_it_spells_its_paths(table: Path, spelling: str) -> None:
    old = slices(table, times(table)[0])
    instant = request(table, *(spelling.format(table / one) for one in old))
    (table / old[0]).unlink()

    done = run_clean(table, CleanSettings())

    assert (done.instant, done.files) == (instant.requested_time, 2)
    assert not data_files(table).intersection(old)
    assert sorted(last_clean(table).partition_metadata["a"].success_delete_files) == [
        one.partition("/")[2] for one in old
    ]


@pytest.mark.parametrize(
    "named",
    [
        "file:///elsewhere/a/00000000-0-0_0-0-0_20200101000000000.parquet",
        "{table}2/a/00000000-0-0_0-0-0_20200101000000000.parquet",
        "file://{table}/a/../b/00000000-0-0_0-0-0_20200101000000000.parquet",
        "file://{table}/b/00000000-0-0_0-0-0_20200101000000000.parquet",
        "file://{table}/.hoodie/hoodie.properties",
        "file://{table}/a/.hoodie_partition_metadata",
        "file://{table}/a",
        "file://{table}/a/notes.parquet",
        "memory://a/00000000-0-0_0-0-0_20200101000000000.parquet",
        "",
    ],
)
def test_a_plan_that_names_no_data_file_of_this_table_is_refused(table: Path, named: str) -> None:
    old = slices(table, times(table)[0])
    request(table, *old, named.format(table=table) or "file:")
    before = files_below(table)
    with pytest.raises(CorruptInstantError, match=r"20990101000000000.*no data file of this table"):
        run_clean(table, CleanSettings())

    assert files_below(table) == before


def test_a_plan_of_another_path_is_carried_out_by_that_path_alone(table: Path) -> None:
    """Nothing proves that both paths lead to one table, so the error leaves that to the user."""
    link = table.with_name("link")
    link.symlink_to(table)
    old = slices(table, times(table)[0])
    instant = request(link, *old)
    with pytest.raises(CorruptInstantError, match=f"If file://{link} is another path to this table, clean the table"):
        run_clean(table, CleanSettings())

    assert data_files(table).issuperset(old)
    assert run_clean(link, CleanSettings()).instant == instant.requested_time
    assert not data_files(table).intersection(old)


def test_a_plan_that_names_a_slice_of_the_table_is_refused(table: Path) -> None:
    newest = slices(table, times(table)[-1])[0]
    request(table, newest)
    for dry_run in (True, False):
        with pytest.raises(CorruptInstantError, match=f"{newest} of the newest slice"):
            run_clean(table, CleanSettings(), dry_run=dry_run)
    assert newest in data_files(table)


def test_a_plan_that_leads_through_a_link_is_refused(table: Path, tmp_path: Path) -> None:
    old = slices(table, times(table)[0])[0]
    outside = tmp_path / "outside"
    (table / "a").rename(outside)
    (table / "a").symlink_to(outside)
    request(table, old)
    with pytest.raises(StorageError, match="symbolic link"):
        run_clean(table, CleanSettings())
    assert (outside / old.partition("/")[2]).exists()


@pytest.mark.parametrize("content", [b"", b"Obj\x01torn"])
def test_a_plan_that_nobody_can_read_is_reported(table: Path, content: bytes) -> None:
    instant = Instant("20990101000000000", "clean", State.REQUESTED)
    instants(table).files.request(instant, content)
    with pytest.raises(CorruptInstantError, match="20990101000000000"):
        run_clean(table, ONE)
    assert len(data_files(table)) == 8


def test_a_plan_of_the_first_version_names_files_alone(table: Path) -> None:
    old = slices(table, times(table)[0])
    names = {"a": [one.partition("/")[2] for one in old]}
    request(table, files_to_be_deleted_per_partition=names, version=1)

    assert run_clean(table, CleanSettings()).files == 2
    assert not data_files(table).intersection(old)


def test_a_file_that_a_savepoint_has_come_to_keep_is_spared(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, second = times(table)[:2]
    request(table, *slices(table, saved), *slices(table, second))
    saved_slices = slices(table, saved)
    save(table, saved)

    assert run_clean(table, CleanSettings()).files == 2
    part = last_clean(table).partition_metadata["a"]
    assert sorted(part.failed_delete_files) == [one.partition("/")[2] for one in saved_slices]
    assert slices(table, saved) == saved_slices
    assert slices(table, second) == []
    unsave(table, saved)
    assert run_clean(table, ONE).files == 2, "the clean named the savepoint, whose end has the next one look again"


# --- beside others


@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_nothing_is_cleaned_while_slices_may_come_back(table: Path, action: str) -> None:
    request(table, *slices(table, times(table)[0]))
    instants(table).files.request(Instant("20990102000000000", action, State.REQUESTED), encode(RollbackPlan()))
    before = files_below(table)
    for options in ({}, {"dry_run": True}, {"inline": True}):
        with pytest.raises(ConcurrentWriteError, match=f"{action} 20990102000000000"):
            run_clean(table, ONE, **options)
    assert files_below(table) == before


def test_the_groups_of_a_pending_clustering_stay(table: Path) -> None:
    timeline = instants(table)
    file_id = slices(table, times(table)[0])[0].partition("/")[2].partition("_")[0]
    pieces = ClusteringGroup(slices=[SliceInfo(partition_path="a", file_id=file_id)])
    body = RequestedReplaceMetadata(clustering_plan=ClusteringPlan(input_groups=[pieces]))
    timeline.files.request(Instant("20980101000000000", "clustering", State.REQUESTED), encode(body))
    by_versions = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)

    assert run_clean(table, by_versions).files == 3
    assert sum(file_id in one for one in data_files(table)) == 4


@pytest.mark.parametrize("comes", ["savepoint", "rollback", "clean", "write"])
def test_what_comes_between_plan_and_decision_counts(table: Path, monkeypatch: pytest.MonkeyPatch, comes: str) -> None:
    """Somebody makes a savepoint, undoes a write, or cleans, after the files were listed: it is planned anew."""

    first, original, rounds = times(table)[0], read_seam("request a clean"), []

    def between(*given: Any) -> Any:
        rounds.append(comes)
        if len(rounds) == 1:
            if comes == "savepoint":
                save(table, first)
            elif comes == "write":
                write(table, rows("a", "k1", value=9))
            elif comes == "clean":
                with monkeypatch.context() as patch:
                    patch_seam(patch, "request a clean", original)
                    run_clean(table, ONE)
            else:
                undone = Instant("20990101000000000", "rollback", State.COMPLETED, "20990101000000001")
                instants(table).complete(undone, b"")
        return original(*given)

    patch_seam(monkeypatch, "request a clean", between)
    result = run_clean(table, ONE)

    assert len(rounds) == {"savepoint": 2, "rollback": 2, "clean": 1, "write": 1}[comes]
    assert result.files == {"savepoint": 2, "rollback": 4, "clean": 0, "write": 4}[comes]
    assert len(slices(table, first)) == (2 if comes == "savepoint" else 0)
    assert rows_of(table, "id", "value") == [("k1", 9 if comes == "write" else 3), ("k2", 3)]


def test_a_clean_deletes_nothing_that_an_index_which_is_not_kept_names(table: Path) -> None:
    """It would list files that are gone: whoever finishes a clean of Apache Hudi's has to see to it too."""
    storage = open_storage(str(table))
    request(table, *slices(table, times(table)[0]))
    update_config(storage, {"hoodie.table.metadata.partitions": "files,record_index"})
    storage.write(".hoodie/metadata/x", b"x")
    with pytest.raises(UnsupportedTableError, match="record_index"):
        run_clean(table, ONE)
    assert len(data_files(table)) == 8

    drop_index(storage, "files")
    run_clean(table, ONE)

    assert len(data_files(table)) == 4
    assert storage.exists(".hoodie/metadata/x"), "for queries that run"


def test_an_inflight_file_made_after_all_was_archived_is_taken_back(table: Path) -> None:

    storage, before = open_storage(str(table)), files_below(table)
    gone = Instant(LONG_AGO, "clean", State.REQUESTED)
    everything = CleanPlan("KEEP_LATEST_COMMITS", None, "", {"a": tuple(data_files(table))})
    Cleaner(open_table(storage)).carry_out(gone, everything)

    assert files_below(table) == before


# --- readers


def test_readers_say_so_where_their_slices_were_cleaned_away(tmp_path: Path) -> None:

    past = Past(tmp_path / "t")
    for value in range(5):
        past.upsert("a", ["k1", "k2"], value)
    before = open_snapshot(str(past.path))
    for _ in range(3):
        past.upsert("a", ["k1", "k2"], 9)
    run_clean(past.path, CleanSettings(commits=2))
    first, retained_commit = past.commits[0], past.commits[-3]

    with pytest.raises(UnreadableTimeError, match="when this DataFrame was made"):
        before.slices(())
    with pytest.raises(UnreadableTimeError, match=retained_commit.instant):
        past.shown(AsOf(first.instant))
    assert past.shown(AsOf(retained_commit.instant)) == past.as_of(retained_commit.instant)
    with pytest.raises(UnreadableTimeError, match="cleaning has taken away"):
        past.shown(Changes(first.completed, past.commits[2].completed))
    assert past.shown(Changes(first.completed)) == past.changes(first.completed, None)
    assert past.shown() == past.as_of(past.commits[-1].instant)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3://b/t/a/x", "a/x"),
        ("s3a://b/t/a/x", "a/x"),
        ("s3://b/t2/a/x", None),
        ("s3://other/t/a/x", None),
        ("/b/t/a/x", None),
        ("s3://b/t", None),
    ],
)
def test_s3_has_three_names(uri: str, path: str | None) -> None:
    class Store:
        def uri(self, path: str) -> str:
            return f"s3a://b/t{path}"

    assert path_inside(Store(), uri) == path  # type: ignore[arg-type]
