"""Writes undone in a table with a metadata table: what they wrote there goes, or all of it goes out of use first."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.errors import StorageError, UndoError
from pyhudi.operations.checks.check_catalogue import METADATA_BOUNDS_WIDE
from pyhudi.operations.following.kept_metadata import KEPT
from pyhudi.operations.services.repair.repair_table import repair_table
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.transaction import carried_out
from pyhudi.operations.transaction.decide import settle
from pyhudi.operations.transaction.locks import HeldLock
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config.property_keys import METADATA_PARTITIONS
from pyhudi.table.metadata.index_definitions import index_definitions
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.decisions import Decision
from support.attempts import IMPATIENT, PARTED, parted
from support.drive import noted, plan, task, write
from support.faults.faulty import Faults, FaultyStorage, Killed
from support.faults.stops import Stop
from support.made.compacting import means
from support.made.metadata_records import Files
from support.made.metadata_tables import How, simulate, simulate_compaction
from support.places import copied
from support.recorded.recorded_metadata import MADE, unpack
from support.rules.ends import assert_whole
from support.rules.health import of_metadata
from support.seams import patch_seam, read_seam
from support.stores import wrap_stores
from support.upkeep.undoing import Life, assert_gone, content, lived, logged, timeline_at

SCHEMA = parted("a", 1, value=1).schema
KINDS = pytest.mark.parametrize("make", [lived, logged], ids=["copy-on-write", "merge-on-read"])
MDT = ".hoodie/metadata"
ALL = ("column_stats", "files", "partition_stats")


def begun(path: Path) -> None:
    """Make a metadata table with a list of files, as Apache Hudi would."""
    simulate(str(path), how=How(only=["files"]))


def in_use(path: Path) -> tuple[str, ...]:
    return load_config(open_storage(str(path))).metadata_partitions


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


@KINDS
def test_each_write_is_rolled_back_with_what_it_wrote(tmp_path: Path, make: Callable[..., Life]) -> None:
    """Only what a base file holds cannot be taken back: with the first write the metadata table goes out of use."""
    life = make(tmp_path / "t", begun)
    path = life.path
    storage = open_storage(str(path))
    for number in reversed(range(1, len(life.instants))):
        rollback(storage, life.instants[number])
        assert in_use(path) == ("files",)
        assert content(path) == life.contents[number]
        assert_gone(path, life.instants[number])
        assert_whole(path)
    write(path, parted("b", 9, value=9))
    assert_whole(path)


@pytest.mark.parametrize("when", ["built later", "compacted since"])
def test_what_a_base_file_holds_goes_out_of_use_before_the_first_file(
    tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies while it undoes leaves a table without a metadata table, whose rows are right."""
    path = tmp_path / "t"
    write(path, parted("a", 1, value=1), table=PARTED)
    if when == "compacted since":
        begun(path)
    newest = write(path, parted("a", 2, value=2)).instant
    if when == "compacted since":
        simulate_compaction(str(path))
    else:
        begun(path)
    assert_whole(path)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch_seam(patch, "hide the completion of a rolled back instant", killed)
        rollback(open_storage(str(path)), newest)
    assert in_use(path) == ()

    write(path, parted("b", 3, value=3))

    assert content(path) == [("a", "k1", 1), ("b", "k3", 3)]
    assert_gone(path, newest)
    assert_whole(path)


def test_a_planned_compaction_that_names_what_goes_is_given_up(tmp_path: Path) -> None:
    """Apache Hudi would carry it out, and fail at the log file that is gone."""
    path = tmp_path / "t"
    first = write(path, parted("a", 1, value=1), table=PARTED).instant
    begun(path)
    newest = write(path, parted("a", 2, value=2)).instant
    planned = simulate_compaction(str(path), completes=False)
    since = write(path, parted("a", 3, value=3)).instant

    rollback(open_storage(str(path)), since)
    assert of_instant(path, planned)

    rollback(open_storage(str(path)), newest)
    assert not of_instant(path, planned)
    assert in_use(path) == ("files",)
    assert [one.requested_time for one in timeline_at(path).writes] == [first]
    assert_whole(path)


@pytest.mark.parametrize("by", ["a write", "a repair", "name"])
def test_a_write_that_died_in_the_metadata_table_is_taken_back(tmp_path: Path, by: str) -> None:
    """At each step before its completed file, as writers of other engines leave it, which know no decisions."""
    origin = tmp_path / "origin"
    write(origin, parted("a", 1, value=1), table=PARTED)
    begun(origin)
    left: list[tuple[str, ...]] = []
    for number in count(1):
        path = copied(origin, tmp_path / f"t{number}")
        dying = Faults(at=number, kill=True)
        with deciding(dying), suppress(Killed):
            write(path, parted("a", 2, value=2), settings=IMPATIENT)
        if len(dying.steps) < number:
            break
        (dead,) = (instant.requested_time for instant in timeline_at(path).pending)
        shutil.rmtree(path / ".hoodie/.pyhudi/decisions")
        left.append(tuple(sorted(one.name.rpartition(".")[2] for one in of_instant(path, dead))))
        storage = open_storage(str(path))
        if by == "name":
            rollback(storage, dead)
        elif by == "a repair":
            repair_table(storage, means(storage))
        write(path, parted("b", 3, value=3), settings=IMPATIENT)

        assert content(path) == [("a", "k1", 1), ("b", "k3", 3)]
        assert_gone(path, dead)
        assert in_use(path) == ("files",)
        assert_whole(path)
    # Nothing, requested, inflight, the log file, the completed file.
    assert [len(names) for names in dict.fromkeys(left)] == [0, 1, 2, 3, 4]


def test_a_write_takes_back_what_is_pending_in_the_metadata_table_alone(tmp_path: Path) -> None:
    """What another engine's write left there that a rollback of the table alone has undone; one at work keeps it."""
    path = tmp_path / "t"
    write(path, parted("a", 1, value=1), table=PARTED)
    begun(path)
    gone = write(path, parted("a", 2, value=2)).instant
    (done,) = (path / MDT / ".hoodie/timeline").glob(f"{gone}_*")
    done.unlink()
    for file in (*path.glob(f".hoodie/timeline/{gone}*"), *path.glob(f"a/*{gone}*")):
        file.unlink()
    planned = plan(path, SCHEMA)
    task(planned, parted("a", 4, value=4), 0)
    living = noted(planned)
    (path / MDT / f".hoodie/timeline/{living}.deltacommit.requested").touch()

    write(path, parted("b", 3, value=3))

    assert not of_instant(path, gone)
    assert of_instant(path, living)
    assert of_metadata(path) == []


def test_a_log_file_that_an_undo_left_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule at the end of each of these tests sees it."""
    path = tmp_path / "t"
    write(path, parted("a", 1, value=1), table=PARTED)
    begun(path)
    newest = write(path, parted("a", 2, value=2)).instant
    patch_seam(monkeypatch, "take back what a rolled back instant told the metadata table", lambda *_: None)
    rollback(open_storage(str(path)), newest)

    assert of_metadata(path)


def settle_and_undo(path: Path, undone: list[str]) -> None:
    """Carry out the newest decision for its maker, undo the newest write, and add its time to ``undone``."""
    storage = open_storage(str(path))
    settle(open_table(storage))
    undone.append(timeline_at(path).writes[-1].requested_time)
    rollback(storage, undone[-1])


def test_a_process_that_stalled_in_its_decision_makes_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has finished for it, and then undone the instant."""
    origin = tmp_path / "origin"
    write(origin, parted("a", 1, value=1), table=PARTED)
    begun(origin)
    patch_seam(monkeypatch, "seconds after which a commit is late", 0.0)
    for number in count(1):
        path = copied(origin, tmp_path / f"t{number}")
        stop = Stop(at=number, meanwhile=partial(settle_and_undo, path, []), awake=True)
        with deciding(stop):
            write(path, parted("a", 2, value=2))
        if number > len(stop.steps):
            break
        assert content(path) == [("a", "k1", 1)]
        assert in_use(path) == ("files",)
        assert_whole(path)
    assert number > 5


@dataclass
class Sleeper(Stop):
    """Stops before one of its steps, and is gone some steps later."""

    steps_left: int = 0

    def take(self, name: str, effect: Callable[[], Any]) -> Any:
        """Take a step, or stop there; raise `Killed` once no step is left."""
        if not self.asleep and self.at <= len(self.steps) - self.steps_left:
            raise Killed(name)
        return super().take(name, effect)


def test_the_next_write_takes_back_what_a_process_made_again_before_it_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has finished for it, and undone the instant, and the process did not come to look."""
    origin = tmp_path / "origin"
    write(origin, parted("a", 1, value=1), table=PARTED)
    begun(origin)
    patch_seam(monkeypatch, "seconds after which a commit is late", 1000.0)
    left_by_sleepers: list[list[str]] = []
    # The sixth step makes the completed file of the table's instant.
    for number, steps_left in ((at, death - at) for at, death in combinations_with_replacement(range(2, 6), 2)):
        path = copied(origin, tmp_path / f"t{number}-{steps_left}")
        undone: list[str] = []
        meanwhile = partial(settle_and_undo, path, undone)
        sleeper = Sleeper(at=number, kill=True, meanwhile=meanwhile, awake=True, steps_left=steps_left)
        with deciding(sleeper), suppress(Killed):
            write(path, parted("a", 2, value=2))
        left_by_sleepers.append([file.name for file in of_instant(path, undone[0])])

        write(path, parted("b", 3, value=3))

        assert of_instant(path, undone[0]) == []
        assert content(path) == [("a", "k1", 1), ("b", "k3", 3)]
        assert in_use(path) == ("files",)
        assert_whole(path)
    assert any(all(".log." in name for name in names) for names in left_by_sleepers if names)


def killed(*_: object) -> None:
    raise Killed("undo")


def every_file(path: Path) -> Files:
    """Return all data files in a table's folders."""
    file_paths = sorted(file.relative_to(path) for file in path.glob("*/*.parquet"))
    return Files(
        pa.array([str(file.parent) for file in file_paths]),
        pa.array([file.name for file in file_paths]),
        np.array([(path / file).stat().st_size for file in file_paths], dtype=np.int64),
        np.ones(len(file_paths), dtype=np.int64),
        np.ones(len(file_paths), dtype=np.bool_),
    )


def of_instant(path: Path, time: str) -> list[Path]:
    """Return the files of the metadata table that bear an instant's time."""
    return sorted((path / MDT).rglob(f"*{time}*"))


@contextmanager
def deciding(faults: Faults) -> Iterator[None]:
    """Let the steps by which the completion of a write is carried out be those of ``faults``, and each after a kill."""
    inside: list[bool] = []

    class Counting(Faults):
        def take(self, name: str, effect: Callable[[], Any]) -> Any:
            dead = faults.kill and len(faults.steps) >= faults.at
            return faults.take(name, effect) if any(inside) or dead else effect()

    def carry_out(held: HeldLock, decision: Decision, timeline: Timeline) -> None:
        inside.append(decision.instant.state == State.COMPLETED)
        try:
            carried_out.carry_out(held, decision, timeline)
        finally:
            inside.pop()

    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, lambda storage: FaultyStorage(storage, Counting()))
        patch_seam(patch, "carry out a decision", carry_out)
        yield


@pytest.mark.parametrize("name", [made.name for made in MADE if made.version > 6])
def test_writes_of_apache_hudi_are_rolled_back_with_what_it_wrote(tables: Path, tmp_path: Path, name: str) -> None:
    path = copied(tables / name, tmp_path / "t")
    storage = open_storage(str(path))
    kept_partitions = sorted({*in_use(path)} & KEPT)
    update_config(storage, {METADATA_PARTITIONS: ",".join(kept_partitions)})
    repair_table(storage, replace(means(storage), patience=IMPATIENT.patience))
    ways = []
    for newest in reversed(timeline_at(path).writes):
        try:
            rollback(storage, newest.requested_time)
        except UndoError:
            break
        assert in_use(path) in {(), tuple(kept_partitions)}
        ways.append(in_use(path) != ())
        assert of_instant(path, newest.requested_time) == []
        # Bounds of partitions that Apache Hudi called tight before that write are wider than what is there.
        assert {one["code"] for one in of_metadata(path)} <= {METADATA_BOUNDS_WIDE.code}
    assert ways


def test_a_restore_does_without_the_metadata_table_before_its_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that a second call finishes."""
    life = lived(tmp_path / "t", begun)
    path, storage = life.path, open_storage(str(life.path))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch_seam(patch, "take restored instants off the timeline", killed)
        restore(storage, life.instants[1])
    assert in_use(path) == ()

    restore(storage, life.instants[1])

    assert content(path) == life.contents[2]
    for undone in life.instants[2:]:
        assert_gone(path, undone)
    assert_whole(path)


@pytest.mark.parametrize("listed", [False, True])
def test_a_repair_keeps_the_metadata_table_unless_it_lists_what_it_moves(tmp_path: Path, listed: bool) -> None:
    """Apache Hudi may list files of writes that never completed."""
    path = tmp_path / "t"
    write(path, parted("a", 1, value=1), table=PARTED)
    (file,) = path.glob("a/*.parquet")
    time = write(path, parted("a", 2, value=2)).instant
    rollback(open_storage(str(path)), time)
    write(path, parted("b", 2, value=2))
    orphan = file.with_name(f"{file.name.partition('_')[0]}_9-9-9_{time}.parquet")
    orphan.write_bytes(file.read_bytes())
    begun(path) if not listed else simulate(str(path), every_file(path), how=How(only=["files"]))

    done = repair_table(open_storage(str(path)), means(open_storage(str(path))))

    assert done.moved == (f"a/{orphan.name}",)
    assert in_use(path) == (() if listed else ("files",))
    assert_whole(path)


@pytest.mark.parametrize("small", [True, False])
def test_what_went_out_of_use_is_built_anew_unless_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """With the columns whose bounds it had; of a large one the result names the call that builds it."""
    path = tmp_path / "t"
    life = lived(path, lambda path: simulate(str(path), how=How(only=ALL)))
    table = arrow.Table(str(path))
    table.drop_index("column_stats")
    table.create_index("partition_stats", columns=["value"])
    before = index_definitions(open_storage(str(path)))["column_stats"].columns
    if not small:
        patch_seam(monkeypatch, "bytes of a metadata table that is built anew at once", 0)

    result = table.restore(life.instants[1])

    assert in_use(path) == (ALL if small else ())
    assert ("create_index('partition_stats')" in result.todo) is not small
    table.create_index("partition_stats", columns=["value"])
    assert index_definitions(open_storage(str(path)))["column_stats"].columns == before
    assert content(path) == life.contents[2]
    assert_whole(path)
    write(path, parted("b", 9, value=9))
    newest = write(path, parted("a", 9, value=9)).instant
    table.compact_metadata()
    if small:
        # A compaction took in what the newest write had said.
        assert not table.rollback(newest).todo
        assert in_use(path) == ALL
        assert_whole(path)


@pytest.mark.parametrize("named", [[], ["new"]])
def test_bounds_of_meta_columns_alone_are_built_anew_too(tmp_path: Path, named: list[str]) -> None:
    """The user may have named no others, and a restore may have taken all others away."""
    table = arrow.Table(str(tmp_path / "t"))
    first = table.write(parted("a", 1, value=1), record_key="id", partition_by="p").instant
    table.upsert(parted("b", 2, value=2).append_column("new", pa.array([2])))
    table.create_index("partition_stats", columns=["_hoodie_record_key", *named])

    result = table.restore(first)

    assert not result.todo
    assert in_use(tmp_path / "t") == ALL
    assert_whole(tmp_path / "t")


def test_bounds_of_a_table_that_has_lost_its_columns_go_out_of_use_and_the_result_says_so(tmp_path: Path) -> None:
    """Apache Hudi makes tables whose properties name no columns, so that they are gone with the only write."""
    path = tmp_path / "t"
    table = arrow.Table(str(path))
    only = table.write(parted("a", 1, value=1), record_key="id", partition_by="p").instant
    update_config(open_storage(str(path)), {"hoodie.table.create.schema": None})
    table.create_index("partition_stats")

    result = table.rollback(only)

    assert in_use(path) == ("files",)
    assert result.todo.startswith("column_stats and partition_stats went out of use")
    assert "create_index('partition_stats')" in result.todo
    assert_whole(path)


@pytest.mark.parametrize("way", [(9, 8), (8, 9), (6, 9)])
def test_a_change_of_version_builds_the_metadata_table_anew(tables: Path, tmp_path: Path, way: tuple[int, int]) -> None:
    path = tmp_path / "t"
    before, after = way
    made = replace(PARTED, version=before)
    write(path, [parted("a", 1, value=1), parted("b", 1, value=1)], table=made)
    if before == 6:
        path = copied(tables / "live_6_by_0_15", tmp_path / "made")
        update_config(open_storage(str(path)), {METADATA_PARTITIONS: "files"})
    else:
        simulate(str(path), how=How(only=ALL))
        write(path, parted("a", 2, value=2))
    rows, names = sorted(map(str, arrow.Table(str(path)).read().to_pylist())), in_use(path)
    table = arrow.Table(str(path), options={"hoodie.clean.failed.writes.policy": "EAGER"})
    call = table.upgrade if before < after else table.downgrade

    told = call(to=after, dry_run=True)
    result = call(to=after)

    assert any("is built anew" in one for one in result.warnings)
    assert result.warnings == told.warnings
    assert in_use(path) == names
    assert sorted(map(str, arrow.Table(str(path)).read().to_pylist())) == rows
    assert of_metadata(path) == []


def test_a_write_looks_again_where_a_rollback_took_a_log_file_back_that_it_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    write(path, [parted("a", 1, value=1), parted("b", 1, value=1)], table=PARTED)
    begun(path)
    planned = plan(path, SCHEMA)
    told = task(planned, parted("b", 3, value=3), 0)
    newest = write(path, parted("a", 2, value=2)).instant
    records = read_seam("records of an instant for the metadata table")
    undone: list[object] = []

    def meet(*given: Any) -> object:
        if not undone:
            undone.append(rollback(open_storage(str(path)), newest))
            raise StorageError("The log file is gone.", "Try again.")
        return records(*given)

    patch_seam(monkeypatch, "records of an instant for the metadata table", meet)
    commit_write(planned, [told])

    assert content(path) == [("a", "k1", 1), ("b", "k1", 1), ("b", "k3", 3)]
    assert_whole(path)
