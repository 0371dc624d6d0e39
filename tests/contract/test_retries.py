"""What the loop of writes runs again: each conflict with another write, and nothing else."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import (
    CommitConflictError,
    ConcurrentWriteError,
    CorruptFileError,
    MetInstant,
    MissingFileError,
    NullKeyError,
    OptionConflictError,
    PyHudiError,
    SchemaMismatchError,
    StorageError,
    from_spark,
)
from pyhudi.index.registry import computed_index_for
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import CommitResult, PastAttempts, find_write
from pyhudi.operations.rollback.dead import wait_until_over
from pyhudi.operations.rollback.pending import OtherWriters
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.write.retries import Retries
from pyhudi.operations.write.run import LocalRun
from pyhudi.operations.write.task import TaskResult
from pyhudi.options.model import HudiOptions
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig, create_config
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers.owner import Owner
from pyhudi.timeline.writers.reserve import Reserve
from pyhudi.timeline.writers.tickets import FOLDER, Ticket
from support.attempts import rows
from support.drawn.upkept import OFF
from support.drive import KEYED, plan, rows_of, task, write
from support.made.cleaning import archive, clean
from support.made.compacting import timeline_of
from support.made.rescales import leave_rescale
from support.rewording import reword_errors
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.write_settings import write_settings

# As `HudiTable` writes: the tasks have all rows of a file group, so that the commit cannot merge again.
PLACED = WriteSettings(upkeep=OFF, colocated=True)
LOOKED_UP = replace(KEYED, bucket_count=None, index_type="SIMPLE")
Act = Callable[[Path], object]


@dataclass
class Attempts:
    """A write of one row, in whose first attempt something happens between the plan and the tasks, or the commit.

    Attributes:
        ids: The write ids of the attempts.
    """

    path: Path
    between: Act
    data: pa.Table = field(default_factory=lambda: rows(1, value=9, ts=9))
    before_tasks: bool = False
    table: TableSettings = field(default_factory=TableSettings)
    settings: WriteSettings = PLACED
    ids: list[str] = field(default_factory=list)

    def __call__(self, write_id: str, past: PastAttempts) -> CommitResult:
        """Make one attempt; its error comes as through Spark."""
        self.ids.append(write_id)
        settings = replace(self.settings, past=past)
        planned = plan(self.path, self.data.schema, table=self.table, settings=settings, write_id=write_id)
        try:
            return LocalRun(planned).finish(lambda: self._tasks(planned))
        except PyHudiError as error:
            known = from_spark(RuntimeError(str(error)))
            assert known is not None
            raise known from error

    def _tasks(self, planned: WritePlan) -> list[TaskResult]:
        first = len(self.ids) == 1
        if first and self.before_tasks:
            self.between(self.path)
        handed = [task(planned, self.data, 0)]
        if first and not self.before_tasks:
            self.between(self.path)
        return handed


def run(attempts: Attempts) -> CommitResult:
    """Run the write as `HudiTable` does."""
    return Retries.of(open_storage(str(attempts.path)), HudiOptions().write_settings()).run(attempts)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path / "t", rows(1, 2, value=1), table=KEYED, settings=PLACED)
    return tmp_path / "t"


def upsert(*keys: int) -> Act:
    """Return a write of other keys."""
    return lambda path: write(path, rows(*keys, value=3), settings=PLACED)


def upsert_and_clean(path: Path) -> None:
    """Have a clean take the base files that the other write saw."""
    upsert(1, 2, 3)(path)
    assert clean(path, retain=1)


def widen(path: Path) -> None:
    """Add a column to the table."""
    data = rows(4, value=4)
    write(path, data.append_column("y", data["value"]), settings=PLACED)


def lose_a_write(path: Path) -> None:
    """Roll back the newest completed write."""
    timeline = open_table(open_storage(str(path))).timeline()
    rollback(open_storage(str(path)), timeline.writes[-1].requested_time, patience=PLACED.patience)


def make_anew(path: Path) -> None:
    """Drop the table, and create it with another number of buckets."""
    shutil.rmtree(path)
    write(path, rows(5, value=5), table=replace(KEYED, bucket_count=4), settings=PLACED)


def drop_and_make_anew(path: Path) -> None:
    """Do the same once the write has begun."""
    make_anew(path)


def upsert_plainly(path: Path) -> None:
    """Write a key by a plain write."""
    write(path, rows(1, value=3), settings=replace(PLACED, colocated=False))


def create_with(buckets: int) -> Act:
    """Return a write that creates the table with a number of buckets."""
    return lambda path: write(path, rows(2, value=1), table=replace(KEYED, bucket_count=buckets), settings=PLACED)


def upsert_and_archive(path: Path) -> None:
    """Take the moment that the other write saw off the timeline."""
    for key in (2, 3, 4):
        upsert(key)(path)
    archive(path, 2)


@pytest.fixture(params=["", "reworded"])
def words(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        reword_errors(monkeypatch)


BEFORE_TASKS = {upsert_and_clean, upsert_and_archive, lose_a_write, make_anew}


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize(
    ("between", "left"),
    [
        (upsert(1), {"k1", "k2"}),
        (upsert(1, 3), {"k1", "k2", "k3"}),
        (upsert_and_clean, {"k1", "k2", "k3"}),
        (upsert_and_archive, {"k1", "k2", "k3", "k4"}),
        (lose_a_write, {"k1", "k2"}),
        (make_anew, {"k1", "k5"}),
        (drop_and_make_anew, {"k1", "k5"}),
    ],
    ids=["file group", "more rows", "clean", "archived", "base rolled back", "buckets", "dropped"],
)
def test_a_conflict_is_no_error(table: Path, between: Act, left: set[str]) -> None:
    """Each attempt has the same write id, and the last one completes."""
    upsert(1)(table)
    result = run(attempts := Attempts(table, between, before_tasks=between in BEFORE_TASKS))

    assert attempts.ids == [result.write_id] * 2
    assert result.attempts == 2
    assert {key for (key,) in rows_of(table, "id")} == left
    assert ("k1", 9) in rows_of(table, "id", "value")


def test_a_bucket_that_another_write_opened_is_no_error(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(2, value=1), table=replace(KEYED, bucket_count=64), settings=PLACED)
    done = run(Attempts(tmp_path / "t", upsert(1)))

    assert done.attempts == 2
    assert_whole(tmp_path / "t")


def test_a_key_that_another_write_added_is_no_error(tmp_path: Path) -> None:
    """Each of the two writes opens a file group for it."""
    first = rows(2, value=1)
    write(tmp_path / "t", first, table=LOOKED_UP, settings=PLACED)
    plain = replace(PLACED, colocated=False)
    done = run(Attempts(tmp_path / "t", upsert_plainly, settings=plain))

    assert done.attempts == 2
    assert rows_of(tmp_path / "t", "id", "value") == [("k1", 9), ("k2", 1)]


def test_columns_that_another_write_added_are_seen_by_the_next_attempt(table: Path) -> None:
    settings = write_settings(PLACED, set_null=True)
    done = run(Attempts(table, widen, before_tasks=True, settings=settings))

    assert done.attempts == 2
    assert rows_of(table, "id", "value", "y") == [("k1", 9, None), ("k2", 1, None), ("k4", 4, 4)]


def test_a_table_that_another_write_created_is_taken_as_it_is(tmp_path: Path) -> None:
    """The options of the write say nothing of what differs."""

    def create(path: Path) -> None:
        made = plan(path, rows(1, value=1).schema, table=KEYED).config.properties
        create_config(open_storage(str(path)), TableConfig({**made, "hoodie.table.news": "x"}))

    done = run(Attempts(tmp_path / "t", create, table=KEYED))

    assert done.attempts == 2
    assert rows_of(tmp_path / "t", "id", "value") == [("k1", 9)]


def test_options_that_a_created_table_contradicts_end_the_attempts(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path / "t", create_with(4), table=KEYED)
    with pytest.raises(OptionConflictError, match=r"num\.buckets is 2 here and 4 in the table"):
        run(attempts)

    assert len(attempts.ids) == 2


@pytest.fixture
def parted(tmp_path: Path) -> Path:
    write(tmp_path / "p", in_a(1, value=1), table=replace(KEYED, partition_fields=("p",)), settings=PLACED)
    return tmp_path / "p"


def in_a(key: int, *, value: int) -> pa.Table:
    return rows(key, value=value, ts=value).append_column("p", pa.array(["a"]))


def end(path: Path, instant: Instant) -> None:
    """End a rescale as a process that gives it up."""
    for state in (State.INFLIGHT, State.REQUESTED):
        timeline_of(path).files.remove_pending(instant.at(state))


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("placed", [True, False], ids=["runs again", "merges again"])
def test_a_write_that_meets_a_rescale_waits_until_that_is_over(
    parted: Path, monkeypatch: pytest.MonkeyPatch, placed: bool
) -> None:
    """Its commit waits where that may merge its rows later; else each further attempt would fail like the first."""
    left: list[Instant] = []
    events: list[str] = []

    def pause() -> None:
        events.append("waits")
        end(parted, left.pop())

    patch_seam(monkeypatch, "pause of a wait for another write", pause)
    settings = PLACED if placed else write_settings(PLACED, colocated=False, retry_s=60.0)

    class Watched(Attempts):
        def __call__(self, write_id: str, past: PastAttempts) -> CommitResult:
            events.append("attempt")
            return super().__call__(write_id, past)

    attempts = Watched(
        parted, lambda path: left.append(leave_rescale(path, "a", inflight=True)), in_a(1, value=9), settings=settings
    )
    result = run(attempts)

    assert events == ["attempt", "waits", "attempt"] if placed else ["attempt", "waits"]
    assert result.updates == 1


def test_a_meeting_that_was_read_from_text_undoes_nothing(parted: Path) -> None:
    """The rescale is dead: a process that met it undoes it, and one that read of it leaves it to the next write."""
    dead = leave_rescale(parted, "a", inflight=True)
    Reserve(open_storage(str(parted)), dead.requested_time).release()
    others = OtherWriters(open_table(open_storage(str(parted))), PLACED.patience)
    met = MetInstant(dead.requested_time, "rescale", "a")
    until = time.monotonic() + 60

    wait_until_over(others, replace(met, from_text=True), until)
    assert timeline_of(parted).find(dead.requested_time) == dead
    wait_until_over(others, met, until)
    assert timeline_of(parted).find(dead.requested_time) is None


@pytest.mark.usefixtures("no_meetings")
def test_a_forged_meeting_takes_no_ticket_away(table: Path) -> None:
    """It adds to the places of which this process knows that it met others there."""
    [number] = computed_index_for(open_table(open_storage(str(table))).config).buckets(pa.array(["k1"]))
    run(Attempts(table, upsert(1)))

    def forge(path: Path) -> None:
        met = MetInstant("20200101000000000", "write", "elsewhere", "00000077-0000-0000-0000-000000000000-0")
        raise CommitConflictError("Another write came first.", "", met=met)

    result = run(Attempts(table, forge))
    [meetings] = read_seam("where this process met other writers").values()

    assert result.attempts == 2
    assert [places for _, places in meetings] == [{"": frozenset({str(number)})}, {"elsewhere": frozenset({"77"})}]


def test_a_table_that_was_dropped_ends_the_attempts(table: Path) -> None:
    attempts = Attempts(table, shutil.rmtree, table=TableSettings())
    with pytest.raises(PyHudiError) as raised:
        run(attempts)

    assert len(attempts.ids) == 2
    assert not isinstance(raised.value, CommitConflictError)


def test_an_attempt_that_completed_all_the_same_ends_the_attempts(table: Path) -> None:
    """Its answer was lost: a further attempt would add the rows again."""

    def lost(write_id: str, past: PastAttempts) -> CommitResult:
        ids.append(write_id)
        assert not past.attempts
        write(table, rows(3, value=3), settings=PLACED, write_id=write_id)
        raise CommitConflictError("Another write came first.", "Write again.")

    ids: list[str] = []
    result = Retries.of(open_storage(str(table)), HudiOptions().write_settings()).run(lost)

    assert ids == [result.write_id]
    assert result.inserts == 1


@pytest.mark.parametrize(
    "error",
    [
        NullKeyError("A key is null.", ""),
        OptionConflictError("An option differs.", ""),
        SchemaMismatchError("A column differs.", ""),
        CorruptFileError("A file is damaged.", ""),
        MissingFileError("The base file x is gone, which the commit y made.", ""),
        ConcurrentWriteError("A foreign writer is at work.", ""),
        StorageError("The store refused.", ""),
        StorageError("The base file 00000000-9939-5616-91a7-59d54d892d41-0 was removed while it was needed.", ""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_are_not_tried_again(table: Path, error: PyHudiError) -> None:
    ids: list[str] = []

    def fail(write_id: str, past: PastAttempts) -> CommitResult:
        ids.append(write_id)
        assert not past.attempts
        raise error

    with pytest.raises(type(error)):
        Retries.of(open_storage(str(table)), HudiOptions().write_settings()).run(fail)

    assert len(ids) == 1


def test_the_completed_instant_says_what_came_before(table: Path) -> None:
    """The attempts that met another write, and the wait for an older write, which another process can read then."""
    storage = open_storage(str(table))
    older = Ticket(storage, "20200101000000000.old", Owner.of_this_process("older"), None)
    older.touch()
    attempts = Attempts(table, upsert(1))
    result = Retries.of(storage, HudiOptions(lock_wait_ms=60).write_settings()).run(attempts)
    opened = open_table(storage)

    assert (result.attempts, result.met) == (2, ("older",))
    assert result.seconds["wait"] >= 0.12
    assert find_write(opened, opened.timeline(), result.write_id) == result
    assert opened.timeline().files.read_commit(opened.timeline().writes[-1]).extra_metadata["pyhudi.attempts"] == "2"


@pytest.fixture
def no_meetings(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "where this process met other writers", {})


@pytest.mark.usefixtures("no_meetings", "words")
def test_after_a_meeting_the_next_write_leaves_a_ticket_for_its_data_alone(table: Path) -> None:
    """Before it begins: it waits for older writes of the bucket, and for no other writes."""
    storage = open_storage(str(table))
    [number] = computed_index_for(open_table(storage).config).buckets(pa.array(["k1"]))
    of_bucket = {"": frozenset({str(number)})}
    run(Attempts(table, upsert(1)))
    for name, places in (("elsewhere", {"": frozenset({"77"})}), ("here", of_bucket)):
        Ticket(storage, f"20200101000000000.{name}", Owner.of_this_process(name), places).touch()
    left: list[object] = []

    def look(path: Path) -> None:
        del path
        names = [info.path for info in storage.list(FOLDER) if "/2020" not in info.path]
        left.extend(json.loads(storage.read(name))["places"] for name in names)

    result = Retries.of(storage, HudiOptions(lock_wait_ms=60).write_settings()).run(Attempts(table, look))

    assert left == [{"": [str(number)]}]
    assert (result.attempts, result.met) == (1, ("here",))


@pytest.mark.usefixtures("no_meetings")
def test_a_write_that_met_no_other_leaves_no_ticket_before_it_begins(table: Path) -> None:
    storage = open_storage(str(table))
    done = run(Attempts(table, lambda _: pytest.fail("a ticket") if storage.list(FOLDER, strict=False) else None))
    assert done.attempts == 1


@pytest.mark.usefixtures("no_meetings")
def test_a_meeting_is_forgotten_once_no_writer_waits(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "seconds for which a meeting is remembered", 0.0)
    run(Attempts(table, upsert(1)))
    storage = open_storage(str(table))
    run(Attempts(table, lambda _: pytest.fail("a ticket") if storage.list(FOLDER, strict=False) else None))
