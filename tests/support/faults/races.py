"""Writers and attempts that get in each other's way: checks that the fault tests and the mutations both run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, WriteSealedError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.operations.write.task import run_task
from pyhudi.storage import open_storage
from pyhudi.table.files.names import WriteToken
from pyhudi.timeline.writers import heartbeat
from pyhudi.timeline.writers.owner import SEALS
from pyhudi.timeline.writers.patience import Patience
from support.drive import noted, plan, rows_of, task, write
from support.faults.faulty import Faults, FaultyStorage
from support.places import Place, below, files_below
from support.rules.ends import assert_whole
from support.stores import wrap_stores
from support.threads import HANGS_S
from support.write_settings import write_settings

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=1)
# A writer in this very process counts as dead at once, and so do its left-overs: a heartbeat may be a moment old.
IMPATIENT = WriteSettings(patience=Patience(heartbeat_misses=-1))
COLOCATED = WriteSettings(colocated=True)


def rows(partition: str, *keys: str, value: int) -> pa.Table:
    """Return rows of one partition."""
    count = len(keys)
    return pa.table([list(keys), [partition] * count, [1] * count, [value] * count], schema=SCHEMA)


def data_files(path: Place) -> list[str]:
    """Return the paths of the table's data files."""
    return [name for name in files_below(path) if name.endswith(".parquet") or ".log." in name]


@dataclass
class Moments(Faults):
    """Lets something happen in the middle of a step: the next one of a name is handed to what was planned for it."""

    planned: dict[str, Callable[[Callable[[], Any]], Any]] = field(default_factory=dict)

    def take(self, name: str, effect: Callable[[], Any]) -> Any:
        """Take one step, or hand it over."""
        action = self.planned.pop(name, None)
        return effect() if action is None else action(effect)

    def hook(self, name: str, number: int, action: Callable[[Callable[[], Any]], Any]) -> None:
        """Plan an action for the n-th step of a name from now, from 1."""

        def wait(effect: Callable[[], Any]) -> Any:
            self.hook(name, number - 1, action)
            return effect()

        self.planned[name] = action if number == 1 else wait


@contextmanager
def interleaved() -> Iterator[Moments]:
    """Give the moments of every storage that a write opens in the block."""
    moments = Moments()
    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, lambda store: FaultyStorage(store, moments))
        yield moments


def check_one_new_bucket(folder: Place) -> None:
    """Assert that of two writers that open the same new bucket in one moment the later commit is refused."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    first, second = plan(table, SCHEMA), plan(table, SCHEMA)
    mine, theirs = task(first, rows("b", "x", value=1), 0), task(second, rows("b", "y", value=2), 0)
    carried = commit_write(first, [mine])
    before = data_files(table)
    with pytest.raises(CommitConflictError, match=carried.instant) as raised:
        commit_write(second, [theirs])
    abort_write(second)

    assert "'b'" in str(raised.value)
    assert rows_of(table, "id", "value") == [("k1", 1), ("x", 1)]
    assert data_files(table) == before
    assert_whole(table)
    write(table, rows("b", "y", value=2))
    assert rows_of(table, "id") == [("k1",), ("x",), ("y",)]


def check_taken_for_dead(folder: Place) -> None:
    """Assert that a write whose instant was rolled back meanwhile cannot commit any more."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    sleeper = plan(table, SCHEMA, settings=IMPATIENT)
    result = task(sleeper, rows("a", "k1", value=2), 0)
    write(table, rows("a", "k3", value=3), settings=IMPATIENT)
    with pytest.raises(CommitConflictError, match="rolled it back"):
        commit_write(sleeper, [result])
    abort_write(sleeper)

    assert rows_of(table, "id", "value") == [("k1", 1), ("k3", 3)]
    assert_whole(table)


def check_straggler(folder: Place, *, colocated: bool) -> None:
    """Assert that a task which goes on after abort publishes nothing."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    before = data_files(table)
    planned = plan(table, SCHEMA, settings=WriteSettings(colocated=colocated))
    reached, go_on = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows("a", "k1", value=2).to_batches()
        reached.set()
        assert go_on.wait(HANGS_S)
        yield from rows("b", "k2", value=2).to_batches()

    def straggle() -> None:
        try:
            run_task(planned, batches(), WriteToken(0, 1, 5))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=straggle)
    thread.start()
    assert reached.wait(HANGS_S)
    abort_write(planned)
    go_on.set()
    thread.join(HANGS_S)

    assert data_files(table) == before
    assert rows_of(table, "id", "value") == [("k1", 1)]
    if colocated:
        assert [type(error) for error in errors] == [WriteSealedError]
    write(table, rows("b", "k2", value=3), settings=IMPATIENT)
    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 3)]
    assert_whole(table)


def check_start_after_abort(folder: Place) -> None:
    """Assert that a task which starts after abort does not bring the instant back."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    planned = plan(table, SCHEMA)
    task(planned, rows("a", "k1", value=2), 0)
    abort_write(planned)
    with pytest.raises(WriteSealedError):
        task(planned, rows("a", "k1", value=2), 1)

    assert_whole(table)
    # A task that is still at work touches its heartbeat until it looks again: the next write takes that away.
    heartbeat.Heartbeat(open_storage(table), noted(planned)).touch()
    write(table, rows("a", "k1", value=2), settings=IMPATIENT)
    assert_whole(table)


def check_start_after_commit(folder: Place) -> None:
    """Assert that a task which starts after its write's commit begins nothing, and leaves nothing behind."""
    table = below(folder, "t")
    planned = plan(table, SCHEMA, table=TABLE)
    commit_write(planned, [task(planned, rows("a", "k1", value=1), 0)])
    with pytest.raises(WriteSealedError):
        task(planned, rows("a", "k1", value=2), 1)

    assert rows_of(table, "id", "value") == [("k1", 1)]
    assert_whole(table)


def check_start_during_abort(folder: Place) -> None:
    """Assert that a first task which found no seal, and met the abort before its next step, takes the instant back."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    with interleaved() as moments, pytest.raises(WriteSealedError):
        planned = plan(table, SCHEMA)
        # It reads its note, the claim of its time, and then the seal.
        moments.hook("read", 3, partial(_found_nothing, planned))
        task(planned, rows("a", "k1", value=2), 1)

    # Nothing is pending, or this write would be refused; the one after it takes away what else there is.
    write(table, rows("a", "k1", value=3))
    write(table, rows("a", "k1", value=3), settings=IMPATIENT)
    assert_whole(table)


def _found_nothing(planned: WritePlan, look: Callable[[], Any]) -> Any:
    """Give the write up right after the task has looked for its seal."""
    try:
        return look()
    finally:
        abort_write(planned)


def check_publish_during_end(folder: Place, ending: str) -> None:
    """Assert that a file which lands after its write was sealed and tidied up goes again.

    The attempt has passed the check when the commit, or the abort, seals the write, deletes what markers name, and only
    then the file gets its name.
    """
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)

    def end() -> None:
        commit_write(planned, [result]) if ending == "commit" else abort_write(planned)

    with interleaved() as moments, pytest.raises(WriteSealedError):
        planned = plan(table, SCHEMA, settings=COLOCATED)
        result = task(planned, rows("a", "k1", value=2), 0, attempt=5)
        moments.planned["publish"] = _ends_first(moments, end)
        task(planned, rows("a", "k1", value=3), 0, attempt=6)

    assert rows_of(table, "id", "value") == [("k1", 2 if ending == "commit" else 1)]
    # The task went on a little after the end: what it left besides its file, the next write takes away.
    write(table, rows("b", "k2", value=1), settings=replace(IMPATIENT, colocated=True))
    assert_whole(table)


def _ends_first(moments: Moments, ending: Callable[[], Any]) -> Callable[[Callable[[], Any]], Any]:
    """Return what makes a file be published within the write's end, once that has dealt with all data files."""

    def take(publish: Callable[[], Any]) -> Any:
        sizes: list[Any] = []

        def tidy(delete_folder: Callable[[], Any]) -> None:
            sizes.append(publish())
            delete_folder()

        moments.planned["delete_folder"] = tidy
        ending()
        return sizes[0]

    return take


def check_begun_again(folder: Place) -> None:
    """Assert that a write which was rolled back between two of its tasks cannot commit the files of the later one.

    The later task comes so late that the seal's note has been swept away.
    """
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    sleeper = plan(table, SCHEMA, settings=replace(IMPATIENT, colocated=True))
    results = [task(sleeper, rows("a", "k1", value=2), 0)]
    write(table, rows("b", "k2", value=3), settings=IMPATIENT)
    storage = open_storage(table)
    seals = storage.list(SEALS, recursive=True)
    storage.delete(*(info.path for info in seals if noted(sleeper) in info.path))
    results.append(task(sleeper, rows("c", "k4", value=2), 1))
    with pytest.raises(CommitConflictError, match="rolled it back"):
        commit_write(sleeper, results)
    abort_write(sleeper)

    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 3)]
    assert_whole(table)


def check_partition_fills(folder: Place) -> None:
    """Assert that a partition that fills while it is deleted, or is made meanwhile, does not survive in part."""
    for number, (names, place) in enumerate(((("a",), "a"), (("n*",), "new"), (("*",), "new"))):
        table = below(folder, f"t{number}")
        write(table, rows("a", "k1", value=1), table=replace(TABLE, bucket_count=64))
        settings = write_settings(partitions_to_delete=names)
        deleting = plan(table, SCHEMA, operation="delete_partition", settings=settings)
        write(table, rows(place, "k2", value=2))
        with pytest.raises(CommitConflictError):
            commit_write(deleting, [])
        abort_write(deleting)

        assert rows_of(table, "id") == [("k1",), ("k2",)]
        assert_whole(table)


def check_given_up_by_another_release(folder: Place) -> None:
    """Assert that a task takes its files back where a release that knows no hours has given its write up.

    The files landed between that release's look for files and the removal of the instant.
    """
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)
    before = data_files(table)

    def give_up(publish: Callable[[], Any]) -> Any:
        open_storage(table).write(f"{SEALS}/{noted(planned)}", b"given up")
        return publish()

    with interleaved() as moments, pytest.raises(CommitConflictError, match="taking its writer for dead"):
        planned = plan(table, SCHEMA, settings=COLOCATED)
        moments.planned["publish"] = give_up
        task(planned, rows("a", "k1", value=2), 0)

    assert data_files(table) == before
    abort_write(planned)
    assert rows_of(table, "id", "value") == [("k1", 1)]
    assert_whole(table)


def check_publish_during_rollback(folder: Place) -> None:
    """Assert that a file of a write taken for dead, which lands after its files were deleted, goes again."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)

    def roll_back() -> None:
        write(table, rows("b", "k2", value=3), settings=IMPATIENT)

    with interleaved() as moments, pytest.raises(CommitConflictError, match="taking its writer for dead"):
        sleeper = plan(table, SCHEMA, settings=replace(IMPATIENT, colocated=True))
        task(sleeper, rows("c", "k4", value=2), 1)
        moments.planned["publish"] = _ends_first(moments, roll_back)
        task(sleeper, rows("a", "k1", value=2), 0)

    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 3)]
    write(table, rows("b", "k2", value=4), settings=IMPATIENT)
    assert_whole(table)


def check_commit_during_rollback(folder: Place) -> None:
    """Assert that a commit's file goes again where a rollback meanwhile left no partition: it deleted the metafile."""
    table = below(folder, "t")
    write(table, rows("a", "k1", value=1), table=TABLE)

    def roll_back(publish: Callable[[], Any]) -> Any:
        write(table, rows("b", "k2", value=3), settings=IMPATIENT)
        return publish()

    with interleaved() as moments, pytest.raises(CommitConflictError, match="taking its writer for dead"):
        sleeper = plan(table, SCHEMA, settings=IMPATIENT)
        spilled = task(sleeper, rows("z", "k4", value=2), 1)
        moments.planned["publish"] = roll_back
        commit_write(sleeper, [spilled])
    abort_write(sleeper)

    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 3)]
    assert_whole(table)


def check_two_new_columns(folder: Place) -> None:
    """Assert that of two writers that add different columns in one moment the later commit is refused.

    They touch different file groups. Readers take the columns of the instant with the greater requested time, so that
    either order would lose a column.
    """
    for later in (0, 1):
        table = below(folder, f"t{later}")
        write(table, rows("a", "k1", value=1), table=TABLE)
        wide = [SCHEMA.append(pa.field(name, pa.int64())) for name in ("x", "y")]
        plans = [plan(table, schema) for schema in wide]
        results = [
            task(planned, with_column(rows(name, "k2", value=2), name), 0)
            for planned, name in zip(plans, "xy", strict=True)
        ]
        won, lost = 1 - later, later
        carried = commit_write(plans[won], [results[won]])
        with pytest.raises(CommitConflictError, match=rf"{carried.instant}.*columns.*'[xy]'"):
            commit_write(plans[lost], [results[lost]])
        abort_write(plans[lost])

        write(table, with_column(with_column(rows("c", "k3", value=3), "x"), "y"))
        assert rows_of(table, "id", "xy"[won]) == [("k1", None), ("k2", 2), ("k3", 3)]
        assert_whole(table)


def check_new_column_beside_a_delete(folder: Place) -> None:
    """Assert that a write that adds a column and a younger delete elsewhere do not both commit, whichever is first.

    Readers take the columns of the younger one, which does not know the new column.
    """
    for first in ("add", "delete"):
        table = below(folder, first)
        write(table, rows("a", "k1", value=1), table=TABLE)
        write(table, rows("b", "k2", value=1))
        adding = plan(table, SCHEMA.append(pa.field("x", pa.int64())))
        deleting = plan(table, SCHEMA, operation="delete")
        results = {
            "add": (adding, task(adding, with_column(rows("a", "k1", value=2), "x"), 0)),
            "delete": (deleting, task(deleting, rows("b", "k2", value=1), 0)),
        }
        planned, result = results.pop(first)
        commit_write(planned, [result])
        ((planned, result),) = results.values()
        with pytest.raises(CommitConflictError, match=r"columns .*'x'"):
            commit_write(planned, [result])
        abort_write(planned)

        write(table, with_column(rows("c", "k3", value=3), "x"))
        assert (
            rows_of(table, "id", "x")
            == {
                "add": [("k1", 2), ("k2", None), ("k3", 3)],
                "delete": [("k1", None), ("k3", 3)],
            }[first]
        )
        assert_whole(table)


def with_column(table: pa.Table, name: str) -> pa.Table:
    """Return rows with the column ``value`` once more, under another name."""
    return table.append_column(name, table.column("value"))
