"""The archive of version 6 as pyhudi writes it, held against Apache Hudi's records of the same instants."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CorruptInstantError, StorageError
from pyhudi.operations.inspect.validate import validate
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.noted_instants import NOTE
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.instants import Instant
from support.faults.faulty import Faults, FaultyStorage
from support.made.old_archives import Record, archive_files, blocks_of, body_of, put_back, records_of
from support.recorded.recorded_version_6 import unpack
from support.seams import patch_seam

# Made by 0.15, by 1.2, and by 0.15 with compactions; and the folder of its archive.
ARCHIVED = {"cow_archived": "archived", "new_cow": "history", "mor_archived": "archived"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("made"))


class Unarchived:
    """A table of Apache Hudi's whose archived instants are on the timeline again."""

    def __init__(self, path: Path, folder: str, *, plans_again: bool = True) -> None:
        self.path, self.folder = path, path / ".hoodie" / folder
        self.theirs = put_back(path, self.folder, plans_again=plans_again)
        self.times = {record["commitTime"] for record in self.theirs}

    def open(self, storage: Any = None) -> Table:
        return open_table(storage or open_storage(str(self.path)))

    @property
    def instants(self) -> list[Instant]:
        return [instant for instant in self.open().timeline().completed if instant.requested_time in self.times]

    def put(self, instants: list[Instant] | None = None, storage: Any = None) -> None:
        table = self.open(storage)
        table.archive_writer.put(self.instants if instants is None else instants, table.instants)

    @property
    def files(self) -> list[str]:
        return [path.name for path in archive_files(self.folder)]


@pytest.fixture
def table(made: Path, tmp_path: Path) -> Unarchived:
    return Unarchived(Path(shutil.copytree(made / "cow_archived", tmp_path / "t")), "archived")


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on as a process that begins."""
    patch_seam(monkeypatch, "instants that the process knows in old archives", {})


def state_of(record: Record) -> tuple[str, str, str]:
    return record["commitTime"], record["actionType"], record["actionState"]


def plain(schema: Any) -> Any:
    """Return a schema without what no reader of a record takes from it."""
    if isinstance(schema, dict):
        return {name: plain(value) for name, value in schema.items() if name not in {"default", "doc", "namespace"}}
    return [plain(value) for value in schema] if isinstance(schema, list) else schema


def as_archived_by_0_15(record: Record) -> Record:
    """Return what 0.15 keeps of a record: it knows fewer statistics, and notes an empty commit for a requested one."""
    changed = json.loads(json.dumps(record))
    for value in body_of(changed).values():
        value.pop("compacted", None)
        for stats in (value.get("partitionToWriteStats") or {}).values():
            for stat in stats:
                for name in list(stat)[list(stat).index("fileSizeInBytes") + 1 :]:
                    del stat[name]
    if changed["actionType"] in {"commit", "deltacommit"} and changed["actionState"] == "REQUESTED":
        empty = {"partitionToWriteStats": {}, "extraMetadata": {"ROLLING_STAT": ""}, "version": None}
        changed["hoodieCommitMetadata"] = {**empty, "operationType": "UNKNOWN"}
    return changed


@pytest.mark.parametrize("name", ARCHIVED)
def test_a_record_is_that_of_apache_hudi(made: Path, tmp_path: Path, name: str) -> None:
    """That of 1.2 in full, and that of 0.15 less what 0.15 does not archive."""
    new = name == "new_cow"
    table = Unarchived(Path(shutil.copytree(made / name, tmp_path / "t")), ARCHIVED[name], plans_again=not new)
    schema = next(blocks_of(archive_files(made / "new_cow/.hoodie/history")[0].read_bytes())).schema
    table.put()

    (path,) = archive_files(table.folder)
    assert path.name == ".commits_.archive.1_1-0-1"
    ours = records_of(table.folder)
    records_by_state = {state_of(record): record if new else as_archived_by_0_15(record) for record in ours}
    # What 0.15's schema does not have, as JSON does not either.
    wanted = {state_of(record): without_null_plans(record) for record in table.theirs}
    assert {state: without_null_plans(record) for state, record in records_by_state.items()} == wanted
    blocks = list(blocks_of(path.read_bytes()))
    assert {len(block.records) for block in blocks[:-1]} == {10}
    assert all(plain(block.schema) == plain(schema) for block in blocks)


def without_null_plans(record: Record) -> Record:
    """Return a record less a field of plans that 1.2 alone has."""
    return {
        name: {inner: one for inner, one in value.items() if inner != "missingSchedulePartitions"}
        if isinstance(value, dict)
        else value
        for name, value in record.items()
    }


def test_cleans_come_before_writes_and_states_in_their_order(table: Unarchived) -> None:
    table.put()

    actions = [record["actionType"] for record in records_of(table.folder)]
    assert actions.index("commit") == actions.count("clean") == 12
    assert "clean" not in actions[12:]
    assert [record["actionState"] for record in records_of(table.folder)] == ["REQUESTED", "INFLIGHT", "COMPLETED"] * 12


def test_each_run_makes_the_next_file_and_writes_nothing_twice(table: Unarchived) -> None:
    instants = table.instants
    table.put(instants[:4])
    table.put(instants[:6])
    table.put(instants[:6])
    (table.folder / ".commits_.archive.7").write_bytes(b"#HUDI#")
    table.put(instants)

    assert table.files == [".commits_.archive.1_1-0-1", ".commits_.archive.2_1-0-1", ".commits_.archive.8_1-0-1"]
    states = [state_of(record) for record in records_of(table.folder)]
    assert len(states) == len(set(states)) == len(table.theirs)
    assert table.open().archive.instants() == tuple(instants)


def test_a_number_that_another_process_takes_is_not_taken_again(table: Unarchived) -> None:
    class Late(FaultyStorage):
        """Another process archives between the listing and the file."""

        def create(self, path: str, data: bytes, **how: Any) -> Any:
            table.put(instants[:2])
            return self._inner.create(path, data, **how)

    instants = table.instants
    table.put(instants, Late(open_storage(str(table.path)), Faults()))

    assert len(table.files) == 2
    assert table.open().archive.instants() == tuple(instants)


def test_many_large_instants_fill_several_files(table: Unarchived, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "most bytes of a file of an old archive", 1 << 14)
    table.put()

    assert len(table.files) == 4
    assert table.open().archive.instants() == tuple(table.instants)


def test_a_file_that_a_crash_tore_is_passed_over_and_its_instants_are_archived_again(table: Unarchived) -> None:
    """As by a file system without hard links, or by Apache Hudi."""
    table.put(table.instants[:4])
    (path,) = archive_files(table.folder)
    path.write_bytes(path.read_bytes()[:-100])
    table.put()

    assert len(table.files) == 2
    assert table.open().archive.instants() == tuple(table.instants)


@pytest.mark.parametrize(
    ("action", "ending", "state", "left"),
    [
        ("commit", "inflight", "INFLIGHT", b"\x00 no commit"),
        ("clean", "clean.requested", "REQUESTED", b'{"operationType": "UNKNOWN"}'),
    ],
)
def test_what_cannot_be_read_of_an_earlier_state_is_left_out(
    table: Unarchived, action: str, ending: str, state: str, left: bytes
) -> None:
    """Apache Hudi's downgrade leaves other bodies there."""
    first = next(instant for instant in table.instants if instant.action == action)
    (table.path / f".hoodie/{first.requested_time}.{ending}").write_bytes(left)
    table.put()

    records = {state_of(record): record for record in records_of(table.folder)}
    assert body_of(records[first.requested_time, action, state]) == {}
    assert body_of(records[first.requested_time, action, "COMPLETED"])


@pytest.mark.parametrize(
    ("action", "left"), [("commit", b""), ("commit", b'{"partitionToWriteStats'), ("clean", b'{"version": 2}')]
)
def test_a_completed_instant_that_cannot_be_read_is_named_and_nothing_is_archived(
    table: Unarchived, action: str, left: bytes
) -> None:
    last = next(instant for instant in reversed(table.instants) if instant.action == action)
    path = table.path / f".hoodie/{last.requested_time}.{action}"
    path.write_bytes(left)

    with pytest.raises(CorruptInstantError, match=path.name):
        table.put()
    assert not table.folder.exists()


def test_an_instant_that_another_process_archived_meanwhile_is_left_to_it(table: Unarchived) -> None:
    instants = table.instants
    gone = instants[0]
    for path in (table.path / ".hoodie").glob(f"{gone.requested_time}.*"):
        path.unlink()
    table.put(instants)

    assert table.open().archive.instants() == tuple(instants[1:])


class TestTheNote:
    """Which files hold which instants: a note, that a process which begins need not read all files."""

    @pytest.fixture
    def noted(self, table: Unarchived) -> Unarchived:
        for start in range(0, 12, 2):
            table.put(table.instants[start : start + 2])
        assert len(table.files) == 6
        return table

    @staticmethod
    def asked(table: Unarchived, wanted: list[Instant]) -> list[str]:
        """Return which files are read for the instants of a window and their bodies."""
        read: list[str] = []

        class Reading(FaultyStorage):
            def read(self, path: str, *most: int) -> Any:
                read.append(path.rpartition("/")[2])
                return self._inner.read(path, *most)

        archive = table.open(Reading(open_storage(str(table.path)), Faults())).archive
        held = archive.instants(wanted[0].requested_time, wanted[-1].requested_time)
        assert held == tuple(wanted)
        assert set(archive.bodies(held)) == set(wanted)
        return [name for name in read if name.startswith(".commits")]

    def test_a_process_that_begins_reads_the_files_that_hold_what_it_wants(
        self, noted: Unarchived, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        instants = noted.instants
        forget(monkeypatch)
        assert self.asked(noted, instants[4:6]) == [noted.files[2]]
        # What another writer adds is read once, and the next round of ours notes it.
        shutil.copy(archive_files(noted.folder)[0], noted.folder / ".commits_.archive.9_1-0-1")
        forget(monkeypatch)
        assert self.asked(noted, instants[4:6]) == [noted.files[-1], noted.files[2]]
        noted.put()
        forget(monkeypatch)
        assert self.asked(noted, instants[4:6]) == [noted.files[2]]

    @pytest.mark.parametrize("harm", ["lost", "cut", "changed", "newer", "of other files"])
    def test_without_it_the_files_are_read(self, noted: Unarchived, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
        instants, path = noted.instants, noted.path / NOTE
        whole = path.read_bytes()
        {
            "lost": path.unlink,
            "cut": lambda: path.write_bytes(whole[:-30]),
            "changed": lambda: path.write_bytes(whole.replace(b".clean", b".claen", 1)),
            "newer": lambda: path.write_bytes(whole.replace(b'"format":1', b'"format":2')),
            "of other files": lambda: [os.utime(each, (1, 1)) for each in archive_files(noted.folder)],
        }[harm]()
        forget(monkeypatch)
        assert len(self.asked(noted, instants[4:6])) == 7
        noted.put()
        forget(monkeypatch)
        assert len(self.asked(noted, instants[4:6])) == 1

    def test_a_store_that_refuses_it_keeps_nobody_from_archiving(self, table: Unarchived) -> None:
        class Refusing(FaultyStorage):
            def write(self, path: str, data: bytes, **how: Any) -> Any:
                raise StorageError(f"There is no room for {path}.", "Make room.")

        table.put(storage=Refusing(open_storage(str(table.path)), Faults()))
        assert table.open().archive.instants() == tuple(table.instants)
        assert not (table.path / NOTE).exists()

    def test_damage_of_a_file_that_it_knows_is_found_all_the_same(self, noted: Unarchived) -> None:
        path = archive_files(noted.folder)[2]
        times, data = path.stat(), path.read_bytes()
        assert b"UPSERT" in data
        path.write_bytes(data.replace(b"UPSERT", b"\xff" * 6))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

        found = validate(open_storage(str(noted.path))).to_pylist()
        assert ("ARCHIVE_FILE_CORRUPT", f".hoodie/archived/{path.name}") in [
            (row["code"], row["file"]) for row in found
        ]
        with pytest.raises(CorruptInstantError, match=path.name):
            noted.open().archive.bodies(noted.instants)
