"""Merge-on-read tables of version 6 brought to version 9: what becomes of their log files and of pending plans."""

from __future__ import annotations

import pickle
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from contract.test_upgrades_of_version_6 import history, rows_at, upgrade
from pyhudi import arrow
from pyhudi.errors import CorruptInstantError, UnsupportedTableError
from pyhudi.operations.services.compaction.log_compactor import EXECUTOR
from pyhudi.operations.services.compaction.plan import Plan, operations_of
from pyhudi.operations.services.service import NoTasksError
from pyhudi.operations.services.versions import change_version as versions
from pyhudi.operations.services.versions.compact_whole import WholeCompaction
from pyhudi.operations.transaction.left_overs import by_maker
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.storage.local import LocalStorage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config.property_keys import INITIAL_VERSION, METADATA_PARTITIONS, RECORD_INDEX_LOOKUP
from pyhudi.table.files.file_group import FileSlice, data_file, log_file
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.files.lost import open_view
from pyhudi.table.table import open_table
from pyhudi.timeline.metadata import models
from pyhudi.timeline.timeline import Timeline
from support.attempts import PARTED, parted
from support.drive import plan, rows_of, task, write
from support.made.compacting import means
from support.readers import read_without_spark
from support.recorded.recorded_past import AS_OF
from support.recorded.recorded_version_6 import Values, shown, unpack, writes
from support.rules.health import errors
from support.seams import patch_seam

# After whatever an upgrade does meanwhile.
LATER = f"{datetime.now(timezone.utc) + timedelta(hours=2):%Y%m%d%H%M%S}000"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Returns a copy of a table that the test may change, with the times of its files."""
    return lambda name: Path(shutil.copytree(made / name, tmp_path / name))


def slices(path: Path) -> list[FileSlice]:
    return open_view(open_table(open_storage(str(path))).timeline()).all_slices()


def logs(path: Path) -> list[Path]:
    """Return the log files in the order of their versions."""
    found = [file for file in path.rglob(".*.log.*") if log_file(file.name) is not None]
    return sorted(found, key=lambda file: file.name)


def completed_at(path: Path, requested: str) -> str:
    [found] = [instant for instant in history(path) if instant.is_write and instant.requested_time == requested]
    return found.visible_since


def rows(path: Path, requested: str | None = None) -> tuple[list[str], Values]:
    """Return the rows now, or as of a write."""
    options = {} if requested is None else {AS_OF: completed_at(path, requested)}
    return shown(read_without_spark(path, options))


def test_dead_blocks_beside_blocks_that_count_never_count(copied: Callable[[str], Path]) -> None:
    """Not in the past either, once archiving has passed the time of the dead write."""
    path = copied("mor_failed")
    first, second = writes(path)
    dead = "20261129102727418"
    log_file, other = logs(path)
    log_file.write_bytes(log_file.read_bytes() + other.read_bytes())
    other.unlink()
    then = {time: rows_at(path, time) for time in (first, second)}
    now = rows(path)

    upgrade(path)

    kept, command = logs(path)
    assert kept == log_file
    [block] = read_blocks(open_storage(str(path)), str(command.relative_to(path)))
    assert (block.type, block.target_instant_time) == (BlockType.COMMAND, dead)
    assert rows(path) == now
    assert {time: rows(path, time) for time in then} == then
    table = arrow.Table(path)
    for _ in range(3):
        table.upsert(table.read().slice(0, 1))
    table.archive(keep=2)
    assert min(write.requested_time for write in open_table(open_storage(str(path))).timeline().writes) > dead
    assert {time: rows(path, time) for time in then} == then
    assert errors(path) == []


def test_the_past_is_merged_by_the_new_merge_mode(copied: Callable[[str], Path]) -> None:
    """The rows of now stay what they were: the newest of two, though its ordering value is lower."""
    path = copied("mor_latest")
    newest = writes(path)[-1]

    result = upgrade(path)

    assert result.changed_keys == 2
    assert any("at most 2 keys" in text for text in result.warnings)
    assert named(rows(path))["k0"] == "between"
    past = named(rows(path, newest))
    assert past["k0"] == "later"
    assert past.keys() - named(rows(path)).keys() == {"n3"}


@pytest.mark.parametrize("name", ["mor_latest", "new_cow"])
def test_a_record_index_goes_out_of_use_and_is_noted(copied: Callable[[str], Path], name: str) -> None:
    """Whether or not log files are merged first; without the note a moved key would be inserted a second time."""
    path = copied(name)
    update_config(open_storage(str(path)), {METADATA_PARTITIONS: "files,record_index"})

    assert upgrade(path).changed

    properties = load_config(open_storage(str(path))).properties
    assert (properties[METADATA_PARTITIONS], properties[RECORD_INDEX_LOOKUP]) == ("", "GLOBAL_SIMPLE")


class Tasks:
    """An engine that runs tasks, or none."""

    def __init__(self, *, runs: bool) -> None:
        self.runs = runs
        self.units: list[object] = []

    def __call__(self, call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        if not self.runs:
            raise NoTasksError("it runs none")
        self.units += units
        sent = pickle.loads(pickle.dumps(call))  # noqa: S301 (made here)
        return [sent(unit) for unit in units]


@pytest.mark.parametrize(("runs", "most_bytes", "counted"), [(True, 0, 2), (False, None, 2), (False, 0, None)])
def test_changed_keys_are_counted_by_tasks_and_only_few_by_this_process(
    copied: Callable[[str], Path], runs: bool, most_bytes: int | None, counted: int | None
) -> None:
    path = copied("mor_latest")
    tasks, near = Tasks(runs=runs), replace(means(open_storage(str(path))), most_bytes=most_bytes)

    foretold = upgrade(path, dry_run=True, executor=tasks, without_tasks=near)

    assert foretold.changed_keys == counted
    assert tasks.units == [one for one in slices(path) if one.logs and runs]


@pytest.mark.parametrize("name", ["mor_latest", "mor_pending"])
def test_log_files_that_only_tasks_may_merge_refuse_the_upgrade_where_none_run(
    copied: Callable[[str], Path], name: str
) -> None:
    """The error says so, and no plan of the call stays on the table, which no other call could carry out."""
    path = copied(name)
    near = replace(means(open_storage(str(path))), most_bytes=0)
    before = open_table(open_storage(str(path))).timeline().pending

    with pytest.raises(UnsupportedTableError, match="it runs none") as raised:
        upgrade(path, executor=Tasks(runs=False), without_tasks=near)

    assert "pyhudi.connector.jobs upgrade" in raised.value.todo
    assert {one.identity for one in open_table(open_storage(str(path))).timeline().pending} == {
        one.identity for one in before
    }
    assert upgrade(path).changed


def writes_in(path: Path) -> list[str]:
    return [instant.requested_time for instant in history(path) if instant.is_write]


def named(answer: tuple[list[str], Values]) -> dict[str, str]:
    """Return the name of each key."""
    columns, values = answer
    return {row[columns.index("id")]: row[columns.index("name")] for row in values}


@pytest.mark.parametrize("name", ["mor_rolled_back", "mor_pending", "new_mor"])
def test_a_table_is_written_kept_up_and_restored_to_before_its_upgrade(
    copied: Callable[[str], Path], name: str
) -> None:
    path = copied(name)
    middle = writes(path)[len(writes(path)) // 2]
    then = rows_at(path, middle)
    upgrade(path)
    table = arrow.Table(path)

    table.upsert(table.read().slice(0, 2))
    assert any(file_slice.logs for file_slice in slices(path))
    table.compact()
    table.clean()
    assert errors(path) == []
    newest = max(writes_in(path))
    table.rollback(newest)

    table.restore(middle)

    assert rows(path) == then
    assert errors(path) == []
    table.upsert(table.read().slice(0, 1))
    number = table.read().num_rows
    table.compact()
    assert table.read().num_rows == number
    assert errors(path) == []


def test_log_files_that_do_not_say_who_wrote_them_are_opened_at_once(copied: Callable[[str], Path]) -> None:
    """Over a network each waits for an answer."""
    opened: dict[str, threading.Thread] = {}

    class Remote(LocalStorage):
        remote = True

        def open_input(self, path: str) -> Any:
            opened[path] = threading.current_thread()
            return super().open_input(path)

    path = copied("mor_rolled_back")
    upgrade(path)
    table = open_table(Remote.open(str(path)))
    timeline, listed = table.timeline(), table.storage.list("", recursive=True)
    opened.clear()
    files_by_maker = by_maker(table, timeline, listed)

    assert len(opened) > 1
    assert threading.main_thread() not in opened.values()
    alone = [data_file(info.path, info.size) for info in listed]
    makers = {file.path: table.format.makers([file], timeline, opens=True) for file in alone if file is not None}
    assert {(time, info.path) for time, infos in files_by_maker.items() for info in infos} == {
        (time, name) for name, times in makers.items() for time in times
    }


def put(path: Path, name: str, plan: models.InstantModel) -> None:
    data = open_table(open_storage(str(path))).format.codec.encode(plan)
    (path / ".hoodie" / name).write_bytes(data)


def log_compaction(path: Path) -> None:
    """Plan to join the log files, and let an execution have died that had appended its block."""
    found = [file_slice for file_slice in slices(path) if file_slice.logs]
    strategy = models.CompactionStrategy(compactor_class_name=EXECUTOR, strategy_params={})
    plan = models.CompactionPlan(operations=operations_of(found), extra_metadata={}, version=2, strategy=strategy)
    put(path, f"{LATER}.logcompaction.requested", plan)
    (path / ".hoodie" / f"{LATER}.logcompaction.inflight").write_bytes(b"")
    newest = logs(path)[-1]
    block = newest.read_bytes().replace(writes(path)[-1].encode(), LATER.encode())
    newest.with_name(newest.name.replace(".log.", ".log.9")).write_bytes(block)


def clustering(path: Path) -> None:
    """Plan to cluster the file groups that have log files."""
    pieces = [
        models.SliceInfo(
            data_file_path=None if one.base is None else one.base.path,
            delta_file_paths=[log.path for log in one.logs],
            file_id=one.file_id,
            partition_path=one.partition_path,
        )
        for one in slices(path)
    ]
    plan = models.ClusteringPlan(input_groups=[models.ClusteringGroup(slices=pieces)])
    body = models.RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan)
    put(path, f"{LATER}.replacecommit.requested", body)


def outdated_compaction(path: Path, time: str = LATER) -> None:
    """Plan to compact all log files but one, whose writer had not seen the plan: a decision held it."""
    [file_slice, *_] = [one for one in slices(path) if one.logs]
    older = replace(file_slice, logs=file_slice.logs[1:])
    put(path, f"{time}.compaction.requested", models.CompactionPlan(operations=operations_of([older]), version=2))


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        (log_compaction, "Take back the logcompaction"),
        (clustering, "Take back the clustering"),
        (outdated_compaction, "Take back the compaction"),
    ],
)
def test_plans_that_hold_log_files_and_are_in_no_names_are_taken_back(
    copied: Callable[[str], Path], begin: Callable[[Path], None], told: str
) -> None:
    path = copied("mor_event_time")
    now = rows(path)
    begin(path)
    assert rows(path) == now

    done = upgrade(path)

    assert [text.startswith(told) for text in done.unfinished] == [True, False]
    assert rows(path) == now
    assert not any(file_slice.logs for file_slice in slices(path))
    assert not open_table(open_storage(str(path))).timeline().pending
    assert errors(path) == []


def test_a_plan_that_log_files_name_and_that_cannot_be_carried_out_stops_the_upgrade(
    copied: Callable[[str], Path],
) -> None:
    """Taken back, it would take the rows of these log files along."""
    path = copied("mor_pending")
    requested = path / ".hoodie/20261129102658854.compaction.requested"
    planned, now, before = requested.read_bytes(), rows(path), logs(path)
    outdated_compaction(path, "20261129102658854")

    for dry_run in (True, False):
        with pytest.raises(CorruptInstantError, match="its time in their names"):
            upgrade(path, dry_run=dry_run)
    assert logs(path) == before
    assert rows(path) == now

    requested.write_bytes(planned)
    upgrade(path)
    assert rows(path) == now


@pytest.mark.parametrize("behind", ["compact a whole table", "decide on properties"])
def test_a_delta_commit_that_came_since_the_compaction_is_compacted_too(
    copied: Callable[[str], Path], behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a writer of Apache Hudi's, which appends to the new base file; before or after the instants are copied."""
    path = copied("mor_event_time")
    step = {"compact a whole table": versions.compact_whole, "decide on properties": versions.set_properties}[behind]
    came: list[str] = []

    def append(*given: object) -> None:
        compacts = behind == "compact a whole table"
        if compacts:
            step(*given)  # type: ignore[operator]
        if not came:
            came.append(LATER)
            deliver(path, LATER)
        if not compacts:
            step(*given)  # type: ignore[operator]

    patch_seam(monkeypatch, behind, append)
    done = upgrade(path)

    assert [text.split()[0] for text in done.unfinished] == ["Merge", "Merge"]
    assert not any(file_slice.logs for file_slice in slices(path))
    assert LATER in writes_in(path)
    assert [row for row in rows(path)[1] if row[0] == LATER]
    assert errors(path) == []


def test_a_delta_commit_that_began_beside_the_plan_of_the_compaction_keeps_its_rows(
    copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a writer of Apache Hudi's that has not seen the plan: it appends to the old slice, and completes later."""
    path = copied("mor_event_time")
    completed = path / f".hoodie/{LATER}.deltacommit"
    aside = path.parent / completed.name
    plan, compact = WholeCompaction.plan, versions.compact_whole

    def begin(self: WholeCompaction, timeline: Timeline) -> Plan | None:
        made = plan(self, timeline)
        if not aside.exists():
            deliver(path, LATER)
            completed.rename(aside)
        return made

    def complete(*given: Any) -> None:
        try:
            compact(*given)
        finally:
            shutil.copy(aside, completed)

    patch_seam(monkeypatch, "plan the compaction of a whole table", begin)
    patch_seam(monkeypatch, "compact a whole table", complete)
    upgrade(path)

    assert not any(file_slice.logs for file_slice in slices(path))
    assert [row for row in rows(path)[1] if row[0] == LATER]
    assert errors(path) == []


def deliver(path: Path, time: str) -> None:
    """Commit the newest log file once more, under a time, behind the newest base file of its file group."""
    newest = logs(path)[-1]
    [old] = {block.instant_time for block in read_blocks(open_storage(str(path)), str(newest.relative_to(path)))}
    parsed = log_file(newest.name)
    assert parsed is not None
    [base] = [one.base_time for one in slices(path) if one.file_id == parsed.file_id]
    appended = newest.with_name(f".{parsed.file_id}_{base}.log.9_0-1-1")
    appended.write_bytes(newest.read_bytes().replace(old.encode(), time.encode()))
    folder = path / ".hoodie"
    text = (folder / f"{old}.deltacommit").read_text()
    (folder / f"{time}.deltacommit.requested").write_bytes(b"")
    (folder / f"{time}.deltacommit.inflight").write_bytes(b"")
    (folder / f"{time}.deltacommit").write_text(text.replace(newest.name, appended.name).replace(old, time))


def test_a_log_file_of_another_attempt_goes_and_the_reported_log_file_stays(tmp_path: Path) -> None:
    """In a table whose old log files may hold blocks of several instants."""
    table = replace(PARTED, table_type="MERGE_ON_READ")
    write(tmp_path, parted("a", 1, value=1), table=table)
    update_config(open_storage(str(tmp_path)), {INITIAL_VERSION: "6"})
    planned = plan(tmp_path, parted("a", 1, value=2).schema)
    _, reported = (task(planned, parted("a", 1, value=2), 0, attempt=attempt) for attempt in (1, 2))
    assert len(logs(tmp_path)) == 2

    commit_write(planned, [reported])

    assert len(logs(tmp_path)) == 1
    assert rows_of(tmp_path, "id", "value") == [("k1", 2)]
