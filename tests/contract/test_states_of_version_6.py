"""Tables of version 6 in states that writers leave: half undone, appended to, archived twice, damaged, pending."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.errors import CorruptInstantError, UnsupportedTableError
from pyhudi.operations.inspect.detail import detail
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.service_settings import Upkeep
from pyhudi.operations.services.versions.timeline_copy import TimelineCopy, remove_old_files
from pyhudi.operations.state.table_state import table_state
from pyhudi.reader.streams.offsets import INITIAL
from pyhudi.reader.streams.table_stream import TableStream
from pyhudi.reader.streams.terms import StreamTerms
from pyhudi.storage import open_storage
from pyhudi.table.config import property_keys as key
from pyhudi.table.config import update_config
from pyhudi.table.config.version_changes import changes_from_6_to_9
from pyhudi.table.files.lost import open_view
from pyhudi.table.table import open_table
from pyhudi.timeline.writers.patience import Patience
from support.readers import read_without_spark
from support.recorded.recorded_version_6 import HUDI_RS, names, shown, unpack, writes

PAYLOAD = "hoodie.compaction.payload.class"
MODEL = "org.apache.hudi.common.model"
ARCHIVE = ".hoodie/archived/.commits_.archive.{}_1-0-1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = unpack(tmp_path_factory.mktemp("made"))
    shutil.unpack_archive(HUDI_RS, folder)
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Returns a copy of a table that the test may change."""
    return lambda name: Path(shutil.copytree(made / name, tmp_path / name))


def ids(table: Path) -> list[tuple[str, str]]:
    found = read_without_spark(table)
    return sorted(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def instants(table: Path, action: str) -> list[Path]:
    return sorted((table / ".hoodie").glob(f"*.{action}"))


@pytest.mark.parametrize("name", names())
def test_nothing_is_wrong_with_a_table_of_apache_hudi(made: Path, name: str) -> None:
    # What is pending in a fixture grows older, and that is no fault.
    found = validate(open_storage(str(made / name)), deep=True, stale_s=float("inf")).to_pylist()

    assert [(row["severity"], row["code"], row["what"]) for row in found if row["code"] != "NOT_CHECKED"] == []


def told(path: Path, code: str) -> list[tuple[str, str]]:
    """Return the findings of a code: file and instant."""
    rows = validate(open_storage(str(path)), stale_s=0.0).to_pylist()
    return [(row["file"], row["instant"]) for row in rows if row["code"] == code]


def test_a_pending_clustering_is_a_service_that_waits(made: Path) -> None:
    table = made / "cow_clustered"
    requested = instants(table, "replacecommit.requested")[-1]

    assert told(table, "PENDING_WRITE") == []
    assert told(table, "PENDING_SERVICE") == [(f".hoodie/{requested.name}", requested.name.partition(".")[0])]


def test_files_of_instants_whose_times_apache_hudi_misreads_are_named(copied: Callable[[str], Path]) -> None:
    """As in a table that was copied without the times of its files: all are of the copy."""
    table = copied("mor_archived")
    assert told(table, "FILE_TIME") == []
    for file in (table / ".hoodie").glob("*commit"):
        os.utime(file)

    findings = told(table, "FILE_TIME")

    view = open_view(open_table(open_storage(str(table))).timeline())
    followed = {
        before.base_time
        for partition in view.partitions()
        for group in view.groups(partition).values()
        for before in group.slices[:-1]
        if before.logs
    }
    assert {time for _, time in findings} == followed & set(writes(table)) != set()
    before = {file: file.stat().st_mtime for file in (table / ".hoodie").glob("*commit")}
    foretold = arrow.Table(table).repair(file_times=True, dry_run=True)
    assert {file: file.stat().st_mtime for file in before} == before

    done = arrow.Table(table).repair(file_times=True)

    assert foretold.steps == done.steps != ()
    assert told(table, "FILE_TIME") == []


def test_rows_that_an_upgrade_hid_behind_a_pending_compaction_are_named(copied: Callable[[str], Path]) -> None:
    """Apache Hudi upgrades without carrying it out, and log files that are named by the plan have no instant then."""
    table = copied("mor_pending")
    storage = open_storage(str(table))
    opened = open_table(storage)
    changes = changes_from_6_to_9(opened.config)
    TimelineCopy.planned(opened, changes).make()
    update_config(storage, changes)
    remove_old_files(open_table(storage))

    findings = told(table, "LOG_PASSED_OVER")

    time = max((table / ".hoodie/timeline").glob("*.compaction.requested")).name.partition(".")[0]
    assert findings
    assert all(f"_{time}.log." in file for file, _ in findings)


@pytest.mark.parametrize("left", [(), ("requested",), ("requested", "inflight")])
def test_a_rollback_that_is_half_done_changes_no_row(copied: Callable[[str], Path], left: tuple[str, ...]) -> None:
    """What the undone instants appended stays uncounted, with and without the command that takes it back."""
    table = copied("mor_rolled_back")
    before = ids(table)
    for rollback in instants(table, "rollback"):
        rollback.unlink()
        for state in {"requested", "inflight"}.difference(left):
            rollback.with_name(f"{rollback.name}.{state}").unlink()
    assert ids(table) == before
    commands = [path for path in (table / "a").glob(".*.log.*") if path.stat().st_size == 105]
    assert len(commands) == 2
    for command in commands:
        command.unlink()

    assert ids(table) == before


def test_what_a_command_takes_back_stays_away_once_its_instant_counts_as_archived(
    copied: Callable[[str], Path],
) -> None:
    """Blocks older than the first active write count, so that from then on the commands alone keep dead rows away."""
    table = copied("mor_rolled_back")
    before = ids(table)
    for commit in instants(table, "deltacommit")[:-1]:
        for file in (table / ".hoodie").glob(f"{commit.stem}.*"):
            file.unlink()
    assert ids(table) == before

    for command in (path for path in (table / "a").glob(".*.log.*") if path.stat().st_size == 105):
        command.unlink()
    assert ids(table) != before


def test_commits_may_append_to_one_log_file(made: Path, copied: Callable[[str], Path]) -> None:
    """As they do on HDFS, failed ones among them, whose blocks a command takes back in the same file."""
    table = copied("mor_rolled_back")
    logs = sorted((table / "a").glob(".*.log.*"))
    first = logs[0]
    assert len(logs) == 6
    with first.open("ab") as file:
        for log in logs[1:]:
            file.write(log.read_bytes())
            log.unlink()
    for commit in instants(table, "deltacommit"):
        text = commit.read_text(encoding="utf-8")
        for log in logs:
            text = text.replace(log.name, first.name)
        commit.write_text(text, encoding="utf-8")

    assert shown(read_without_spark(table)) == shown(read_without_spark(made / "mor_rolled_back"))
    assert [row["code"] for row in validate(open_storage(str(table)), deep=True).to_pylist()] == []


def test_an_instant_that_is_archived_twice_counts_once(copied: Callable[[str], Path]) -> None:
    table = copied("cow_archived")
    before = open_table(open_storage(str(table))).archive.instants()
    shutil.copyfile(table / ARCHIVE.format(2), table / ARCHIVE.format(99))

    archive = open_table(open_storage(str(table))).archive

    assert archive.instants() == before
    assert len({instant.identity for instant in before}) == len(before) > 4
    assert {instant.action for instant in before} == {"commit", "replacecommit", "clean"}
    bodies = archive.bodies(before)
    assert {json.loads(bodies[one]).get("operationType") for one in before if one.is_write} == {
        "UPSERT",
        "INSERT_OVERWRITE",
    }
    assert archive.newest(2, frozenset({before[-1].identity})) == before[-2:-4:-1]


def test_a_torn_end_of_the_archive_is_passed_over_and_other_damage_is_named(copied: Callable[[str], Path]) -> None:
    table = copied("cow_archived")
    path = table / ARCHIVE.format(1)
    whole = path.read_bytes()
    before = open_table(open_storage(str(table))).archive.instants()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert open_table(open_storage(str(table))).archive.instants() == before

    path.write_bytes(b"x" + whole + whole)
    with pytest.raises(CorruptInstantError, match=r"archive\.1_1-0-1"):
        open_table(open_storage(str(table))).archive.instants()
    assert "ARCHIVE_FILE_CORRUPT" in [row["code"] for row in validate(open_storage(str(table))).to_pylist()]


@pytest.mark.parametrize("count", [1, None])
def test_a_table_that_was_being_raised_is_refused(copied: Callable[[str], Path], count: int | None) -> None:
    """All instants moved and the properties still of version 6 would show no row."""
    table = copied("cow_past")
    folder = table / ".hoodie/timeline"
    folder.mkdir()
    for commit in instants(table, "commit")[:count]:
        shutil.copyfile(commit, folder / f"{commit.stem}_{commit.stem}.commit")
    assert ids(table)
    for commit in instants(table, "commit")[:count]:
        commit.unlink()

    with pytest.raises(UnsupportedTableError, match=r"have left \.hoodie"):
        read_without_spark(table)
    assert "PROPERTY_INVALID" in [row["code"] for row in validate(open_storage(str(table))).to_pylist()]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (PAYLOAD, "com.example.OwnPayload"),
        (PAYLOAD, f"{MODEL}.debezium.MySqlDebeziumAvroPayload"),
        ("hoodie.compaction.record.merger.strategy", "11111111-2222-3333-4444-555555555555"),
    ],
)
def test_rules_that_pyhudi_does_not_know_are_refused_by_name(
    copied: Callable[[str], Path], option: str, value: str
) -> None:
    table = copied("mor_latest")
    properties = table / ".hoodie/hoodie.properties"
    lines = properties.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(option)]
    properties.write_text("\n".join([*kept, f"{option}={value}", ""]), encoding="utf-8")

    with pytest.raises(UnsupportedTableError, match=value.rpartition(".")[2]):
        read_without_spark(table)
    assert read_without_spark(table, {"hoodie.datasource.query.type": "read_optimized"}).num_rows


def test_a_stream_waits_for_a_pending_write_and_then_brings_it(copied: Callable[[str], Path]) -> None:
    """Readers see a write from its requested time on, so a batch behind it would never have its rows."""
    table = copied("mor_event_time")
    instant_files = instants(table, "deltacommit")
    late = instant_files[2].read_bytes()
    instant_files[2].unlink()
    stream = TableStream(str(table), {}, StreamTerms())

    first = stream.latest(INITIAL)
    assert first.time == instant_files[1].stem
    assert stream.latest(first) == first

    instant_files[2].write_bytes(late)
    second = stream.latest(first)
    assert second.time == instant_files[-1].stem
    batch = stream.batch(first, second)
    assert batch is not None
    assert batch.moment.window is not None
    assert [instant.requested_time for instant in batch.moment.window.instants] == [
        one.stem for one in instant_files[2:]
    ]


# Tables whose newest write is of 1.x, of none, and the rest of 0.x.
OF_RELEASE_1 = {"new_cow", "new_mor"}
UNTOLD = {"cow_empty", "mor_empty"}


@pytest.mark.parametrize("name", sorted({*names(), "cow_empty", "cow_nonpartitioned", "mor_trips_8i3d"}))
def test_a_table_tells_which_release_wrote_last(made: Path, name: str) -> None:
    storage = open_storage(str(made / name))
    wanted = "Apache Hudi 1.x" if name in OF_RELEASE_1 else None if name in UNTOLD else "Apache Hudi 0.x"

    state = table_state(storage, Upkeep(), Patience())

    assert state.written_by == wanted
    assert detail(storage)["written_by"].to_pylist() == [wanted]


def test_the_writer_that_came_last_is_told(made: Path, copied: Callable[[str], Path]) -> None:
    """Properties tell who made the table, not who wrote it last."""
    path = copied("cow_past")
    of_release_1 = max((made / "new_cow/.hoodie").glob("*.commit"))
    later = path / ".hoodie/20261130000000000.commit"
    shutil.copy(of_release_1, later)
    assert table_state(open_storage(str(path)), Upkeep(), Patience()).written_by == "Apache Hudi 1.x"
    later.unlink()

    arrow.Table(path).upsert(arrow.Table(path).read().slice(0, 1))

    assert table_state(open_storage(str(path)), Upkeep(), Patience()).written_by == "pyhudi"


@pytest.mark.parametrize("name", ["cow_past", "cow_empty"])
def test_the_upgrade_is_offered_where_it_can_be_done(copied: Callable[[str], Path], name: str) -> None:
    path = copied(name)
    storage = open_storage(str(path))
    assert [offer.service for offer in table_state(storage, Upkeep(), Patience()).offers] == ["upgrade"]

    update_config(storage, {key.PAYLOAD_CLASS: "com.mine.Own"})
    assert table_state(storage, Upkeep(), Patience()).offers == ()
    update_config(storage, {key.PAYLOAD_CLASS: None})
    arrow.Table(path).upgrade()
    assert table_state(storage, Upkeep(), Patience()).offers == ()


def test_what_a_table_is_shows_and_no_service_is_asked_for(made: Path) -> None:
    """Its compaction waits for Apache Hudi."""
    state = table_state(open_storage(str(made / "mor_pending")), Upkeep(), Patience())

    assert (state.version, state.type, state.log_files, state.pending_instants) == (6, "MERGE_ON_READ", 4, 1)
    assert state.needs == ()


CHANGES: dict[str, Callable[[arrow.Table, pa.Table], object]] = {
    "upsert": lambda table, rows: table.upsert(rows),
    "overwrite": lambda table, rows: table.overwrite(rows),
    "delete": lambda table, rows: table.delete(rows),
    "delete_partitions": lambda table, _: table.delete_partitions("a"),
    "merge": lambda table, rows: table.merge(rows, on="id").when_matched_update_all().execute(),
    "clean": lambda table, _: table.clean(),
    "archive": lambda table, _: table.archive(),
    "compact": lambda table, _: table.compact(),
    "schedule_compaction": lambda table, _: table.schedule_compaction(),
    "log_compact": lambda table, _: table.log_compact(),
    "savepoint": lambda table, _: table.savepoint(),
    "rollback": lambda table, _: table.rollback(writes(Path(table.path))[-1]),
    "restore": lambda table, _: table.restore(writes(Path(table.path))[0]),
    "repair": lambda table, _: table.repair(),
    "sort": lambda table, _: table.sort(by="name"),
    "rescale_buckets": lambda table, _: table.rescale_buckets(4),
}


@pytest.mark.parametrize("call", CHANGES)
def test_every_change_of_a_merge_on_read_table_is_refused_and_leaves_it_as_it_was(made: Path, call: str) -> None:
    table = made / "mor_pending"
    files = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    rows = arrow.read(str(table)).slice(0, 1)

    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.version=6"):
        CHANGES[call](arrow.Table(str(table)), rows)
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == files
