"""The store calls of each operation on each kind of table are those that are on record.

A change that alters a line explains it. `PYHUDI_RECORD_TRACES=1` writes the traces anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, StorageError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.service_settings import (
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    LogCompactionSettings,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import Means, compact, schedule_compaction
from pyhudi.operations.services.repair.repair_table import repair_table
from pyhudi.operations.services.repair.undo_repair import undo_repair
from pyhudi.operations.services.rescale.rescale import rescale_buckets
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.operations.services.sorting.sort import sort
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.operations.write.micro_batch import abort_batch
from pyhudi.operations.write.task import TaskResult
from pyhudi.storage import Storage, open_storage
from pyhudi.table.buckets.numbers import OWN
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import plan, task, write
from support.faults.locks import watch_lock
from support.faults.traces import Trace, TracedStorage, begin_process, trace_writes
from support.made.compacting import IMPATIENT as PATIENCE
from support.made.compacting import means
from support.places import Place, below, files_below, put_files
from support.rules.checks import java_bucket
from support.s3 import new_url
from support.streams import STREAMED, DrivenQuery

TRACES = Path(__file__).parents[1] / "fixtures" / "traces"
KINDS = {
    "9_cow_bucket": PARTED,
    "9_mor_bucket": replace(PARTED, table_type="MERGE_ON_READ"),
    "8_mor_bucket": replace(PARTED, table_type="MERGE_ON_READ", version=8),
    "9_cow_bloom": replace(PARTED, index_type="BLOOM", bucket_count=None),
    "9_mor_simple": replace(PARTED, table_type="MERGE_ON_READ", index_type="SIMPLE", bucket_count=None),
}
ON_S3 = ("9_cow_bucket", "9_mor_bucket")
# Keys of both buckets; of many of one, because compactions take the largest file slices first.
_MANY = [key for key in range(200) if java_bucket(f"k{key}", ["id"], 2) == 0]
_FEW = [key for key in range(8) if java_bucket(f"k{key}", ["id"], 2) == 1]
_SOME = [*_MANY[:40], _FEW[0]]
_TWO_BLOCKS = LogCompactionSettings(blocks=2)


@dataclass
class _Life:
    """A table whose operations are traced."""

    path: Place
    made: TableSettings
    trace: Trace

    def act(self, title: str, operate: Callable[[Storage], object]) -> None:
        """Trace a table service."""
        begin_process(self.trace, title)
        operate(self.storage)

    def fail(self, title: str, operate: Callable[[Storage], object]) -> None:
        """Trace a table service that fails, and is given up."""
        begin_process(self.trace, title)
        with pytest.raises(StorageError):
            operate(self.storage)

    @property
    def storage(self) -> Storage:
        """The table's store, traced."""
        return cast(Storage, TracedStorage(open_storage(str(self.path)), self.trace))

    def write(self, title: str, *parts: pa.Table, operation: str | None = None, colocated: bool = False) -> str:
        """Trace a write by a task for each part; return its instant."""
        begin_process(self.trace, title)
        results = self._tasks(*parts, operation=operation, colocated=colocated)
        self.trace.head("  commit")
        return commit_write(*results).instant

    def conflict(self, title: str, rows: pa.Table, other: pa.Table) -> None:
        """Trace a write whose commit meets an overwrite of its partition, and that is given up."""
        begin_process(self.trace, title)
        planned, results = self._tasks(rows)
        self.trace.head("  overwrite")
        write(self.path, other, operation="insert_overwrite", settings=IMPATIENT)
        self.trace.head("  commit")
        with pytest.raises(CommitConflictError):
            commit_write(planned, results)
        self.trace.head("  abort")
        abort_write(planned)

    def stream(self, title: str, number: int, *parts: pa.Table, fails: bool = False) -> None:
        """Trace a batch of a streaming query; where it fails, it is given up with its tasks done."""
        begin_process(self.trace, title)
        settings = replace(STREAMED, patience=IMPATIENT.patience, upkeep=OFF)
        query = DrivenQuery(self.path, self.made, settings=settings, operation="upsert", schema=parts[0].schema)
        self.trace.head("  tasks")
        messages = query.tasks(number, parts)
        self.trace.head("  abort" if fails else "  commit")
        abort_batch(messages) if fails else query.commit(messages)

    def abort(self, title: str, *parts: pa.Table) -> None:
        """Trace a write whose tasks end and that is given up."""
        begin_process(self.trace, title)
        planned, _ = self._tasks(*parts)
        self.trace.head("  abort")
        abort_write(planned)

    def die(self, title: str, *parts: pa.Table) -> None:
        """Trace a write that dies before its commit."""
        begin_process(self.trace, title)
        self._tasks(*parts)

    def _tasks(
        self, *parts: pa.Table, operation: str | None = None, colocated: bool = False
    ) -> tuple[WritePlan, list[TaskResult]]:
        settings = replace(IMPATIENT, colocated=colocated, upkeep=OFF)
        self.trace.head("  plan")
        planned = plan(self.path, parts[0].schema, operation=operation, table=self.made, settings=settings)
        results = []
        for number, rows in enumerate(parts):
            self.trace.head(f"  task {number}")
            results.append(task(planned, rows, number))
        return planned, results


def _live(life: _Life) -> None:
    """Run each operation, each on what the ones before it left."""
    made = pa.concat_tables([parted("a", *_MANY, *_FEW, value=1), parted("b", _FEW[0], value=1)])
    life.write("upsert by one task that makes the table", made)
    first = life.write("upsert by two tasks", parted("a", *_SOME, value=2), parted("b", _FEW[0], value=2))
    life.act("savepoint", lambda storage: savepoint(storage, first))
    if life.made.index_type is None:
        rows = parted("a", *_SOME, value=3), parted("b", _FEW[0], value=3)
        life.write("upsert by two tasks that hold whole file groups", *rows, colocated=True)
    life.write("upsert that no service follows", parted("a", *_SOME, value=4))
    if life.made.table_type == "MERGE_ON_READ":
        life.act("log compaction", lambda storage: compact(storage, _TWO_BLOCKS, _means(storage)))
        life.act("compaction plan", lambda storage: schedule_compaction(storage, CompactionSettings(), PATIENCE))
        life.write("upsert beside a compaction plan", parted("a", 1, value=5))
        life.act("compaction", lambda storage: compact(storage, CompactionSettings(), _means(storage)))
    newest = life.write("insert_overwrite", parted("b", 5, value=6), operation="insert_overwrite")
    life.act("rollback", lambda storage: rollback(storage, newest, patience=PATIENCE))
    life.write("delete_partition", parted("b", 1, value=0), operation="delete_partition")
    life.act("restore", lambda storage: restore(storage, first, patience=PATIENCE))
    life.act("deletion of the savepoint", lambda storage: delete_savepoint(storage, first))
    life.abort("upsert that is aborted", parted("a", 6, value=7))
    life.die("upsert that dies before its commit", parted("a", 6, value=8))
    life.write("upsert that finds a dead write", parted("a", 1, 6, value=9))
    life.write("upsert that replaces a base file", parted("a", 1, value=10))
    life.act("clean", lambda storage: clean(storage, CleanSettings(commits=1)))
    life.act("archiving", lambda storage: archive(storage, ArchiveSettings(min_commits=1, max_commits=2, batch=2)))


def _keep_up(life: _Life) -> None:
    """Sort, rescale and repair the table, stream into it, and let each kind of work fail and be given up."""
    life.write("upsert by one task that makes the table", parted("a", *_SOME, value=1))
    life.write("upsert", parted("a", *_SOME, value=2))
    if life.made.table_type == "MERGE_ON_READ":
        life.write("another upsert", parted("a", *_SOME, value=2))
        life.fail("log compaction that fails", lambda storage: compact(storage, _TWO_BLOCKS, _failing(storage)))
        life.act("log compaction that ends it", lambda storage: compact(storage, _TWO_BLOCKS, _means(storage)))
        life.fail("compaction that fails", lambda storage: compact(storage, CompactionSettings(), _failing(storage)))
        life.act("compaction that ends it", lambda storage: compact(storage, CompactionSettings(), _means(storage)))
        life.write("one more upsert", parted("a", *_SOME, value=2))
    life.fail("sort that fails", lambda storage: sort(storage, _failing(storage), by=("value",)))
    life.act("sort", lambda storage: sort(storage, _means(storage), by=("value",)))
    life.act("sort that finds nothing", lambda storage: sort(storage, _means(storage)))
    life.fail("rescale that fails", lambda storage: rescale_buckets(storage, 4, _failing(storage)))
    life.act("rescale", lambda storage: rescale_buckets(storage, 4, _means(storage)))
    life.stream("batch of a stream", 0, parted("a", 1, value=3), parted("b", 1, value=3))
    life.stream("next batch of the stream, which is given up", 1, parted("a", 1, value=4), fails=True)
    life.stream("the same batch again", 1, parted("a", 1, value=4))
    life.stream("the same batch once more, which changes nothing", 1, parted("a", 1, value=4))
    life.conflict("upsert that meets an overwrite", parted("b", 1, value=5), parted("b", 2, value=5))
    newest = max(name for name in files_below(life.path) if name.startswith("b/") and name.endswith(".parquet"))
    orphan = f"{newest.partition('_')[0]}_9-9-9_20981231000000000.parquet"
    put_files(life.path, {orphan: files_below(life.path)[newest]})
    undone: list[str] = []
    life.act("repair", lambda storage: undone.append(repair_table(storage, _means(storage)).instant))
    life.act("undo of the repair", lambda storage: undo_repair(storage, undone[0], _means(storage)))


def _means(storage: Storage) -> Means:
    return means(storage, executor=lambda call, units: [call(unit) for unit in units])


def _failing(storage: Storage) -> Means:
    """Return means with which the first unit of work is done, and the rest fails."""

    def fail(call: Callable[[object], object], units: Sequence[object]) -> list[object]:
        call(units[0])
        raise StorageError("The store failed.", "Try again.")

    return means(storage, executor=fail)


def _check(name: str, trace: Trace) -> None:
    """Compare a trace with that on record, or put it on record."""
    target, lines = TRACES / f"{name}.txt", trace.text()
    if os.environ.get("PYHUDI_RECORD_TRACES"):
        target.write_text(lines, encoding="utf-8")
    assert lines.splitlines() == target.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("kind", KINDS)
def test_operations_make_the_calls_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    life = _Life(below(tmp_path, "t"), KINDS[kind], trace_writes(monkeypatch))
    _live(life)
    # Version 8 takes the same calls, and has rules of bucket numbers in one more place.
    life.trace.lines = [line for line in life.trace.lines if kind[0] == "9" or f"list {OWN} " not in line]
    _check(f"local_{kind.replace('8_', '9_')}", life.trace)


@pytest.mark.parametrize("kind", ON_S3)
@pytest.mark.usefixtures("direct_s3")
def test_operations_make_the_calls_on_record_on_s3(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    life = _Life(new_url(), KINDS[kind], trace_writes(monkeypatch))
    _live(life)
    _check(f"s3_{kind}", life.trace)


@pytest.mark.parametrize("kind", ON_S3)
def test_upkeep_and_failures_make_the_calls_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    life = _Life(below(tmp_path, "t"), KINDS[kind], trace_writes(monkeypatch))
    _keep_up(life)
    _check(f"local_{kind}_upkeep", life.trace)


@pytest.mark.parametrize("kind", ON_S3)
@pytest.mark.usefixtures("direct_s3")
def test_upkeep_and_failures_make_the_calls_on_record_on_s3(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    life = _Life(new_url(), KINDS[kind], trace_writes(monkeypatch))
    _keep_up(life)
    _check(f"s3_{kind}_upkeep", life.trace)


@pytest.mark.parametrize("live", [_live, _keep_up])
@pytest.mark.parametrize("kind", ON_S3)
def test_timelines_change_under_the_lock_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, live: Callable[[_Life], None]
) -> None:
    """No process takes the lock twice at once, or reads data files under it."""
    trace = watch_lock(monkeypatch)
    live(_Life(below(tmp_path, "t"), KINDS[kind], trace))
    assert trace.lock.broken == []
    assert trace.lock.taken


@pytest.mark.parametrize(("kind", "most"), [("9_cow_bucket", 6), ("9_cow_bloom", 6), ("9_mor_bucket", 6)])
def test_an_upsert_by_two_tasks_lists_the_timeline_a_few_times(kind: str, most: int) -> None:
    """What each listing is for: docs/write-path.md."""
    lines = (TRACES / f"local_{kind}.txt").read_text(encoding="utf-8").splitlines()
    began = lines.index("# upsert by two tasks")
    ended = lines.index("# savepoint")

    assert sum(line == "look .hoodie/timeline" for line in lines[began:ended]) == most
    assert not any(line.startswith("look .hoodie/timeline x") for line in lines[began:ended])
