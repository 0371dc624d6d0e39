"""Processes of one release of pyhudi, which do what their test asks line by line; test_two_releases.py starts them.

It uses what the releases since 56a4b1d have in common, and nothing else, and imports whichever `pyhudi` comes first:
settings from modules that use them, as their own module has another place in each.
The process that imported it does nothing but fork another one for each socket that it receives: to import takes longer
than all that most tests ask of a process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyhudi
from pyhudi.errors import PyHudiError
from pyhudi.operations.planning.plan import WritePlan, plan_write
from pyhudi.operations.planning.request import TableSettings, Upkeep, WriteRequest, WriteSettings
from pyhudi.operations.services.archive import ArchiveSettings, archive
from pyhudi.operations.services.clean import CleanSettings, clean
from pyhudi.operations.services.compaction.compact import CompactionSettings, compact, schedule_compaction
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.task import TaskResult, run_task
from pyhudi.reader import scan as reading
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.files.names import WriteToken
from pyhudi.timeline import clock
from pyhudi.timeline.writers.patience import Patience

try:
    from pyhudi.operations.upkeep.after_write import means_of
    from pyhudi.operations.write.instant import abort_write
except ImportError:
    # Where the older releases have them.
    from pyhudi.operations.write.abort import abort_write
    from pyhudi.operations.write.inline import means_of

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2)
OFF = Upkeep(CleanSettings(automatic=False), ArchiveSettings(automatic=False), CompactionSettings(inline=False))
PATIENT, IMPATIENT = Patience(), Patience(heartbeat_misses=-1, foreign_age_s=-1.0)
# The last words of a process that its test has die.
DIED = {"died": True}


def _read(storage: Any, split: Any, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    if hasattr(reading, "RowReader"):
        return reading.RowReader(storage, schema, schema).read(split)
    # The older release has a function for it.
    return reading.scan(storage, split, schema, (), schema)


def _in_turn(call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
    return [call(unit) for unit in units]


class Job:
    """What the process knows of its table.

    Args:
        path: The table's.
        table_type: Of the table.
        die: Ends the process.
    """

    def __init__(self, path: str, table_type: str, die: Callable[[], None]) -> None:
        self._path = path
        self._die = die
        self._table = replace(TABLE, table_type=table_type)
        self._plan: WritePlan | None = None
        self._results: list[TaskResult] = []

    def plan(
        self, operation: str = "upsert", *, colocated: bool = True, patient: bool = True, named: bool = True
    ) -> str:
        """Plan a write, and return its instant; only where it is ``named`` it says what the table has to be like."""
        time.sleep(0.002)
        settings = WriteSettings(colocated=colocated, upkeep=OFF, patience=PATIENT if patient else IMPATIENT)
        request = WriteRequest(
            path=self._path,
            operation=operation,
            overwrite=False,
            schema=SCHEMA,
            table=self._table if named else TableSettings(),
            write=settings,
        )
        self._plan, self._results = plan_write(request), []
        if self._plan.instant_time:
            return self._plan.instant_time
        # The older release chooses the time with the plan; here it is chosen as if the first task began now.
        chosen = clock.next_time(int(time.time() * 1000), None, "UTC", parity=clock.Parity.EVEN)
        self._plan.transaction.notes.make(1, chosen)
        return chosen

    def task(self, rows: Sequence[Sequence[Any]]) -> None:
        """Run the next task of the write over rows."""
        batch = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
        number = len(self._results)
        token = WriteToken(number, 1, 100 + number)
        self._results.append(run_task(self._planned(), iter(batch.to_batches()), token))

    def commit(self) -> str:
        """Commit the write, and return its instant."""
        return commit_write(self._planned(), self._results).instant

    def abort(self) -> None:
        """Give the write up."""
        abort_write(self._planned())

    def compact(self) -> int:
        """Carry out what is pending, plan a compaction and carry it out; return the number of base files."""
        storage = open_storage(self._path)
        means = replace(means_of(WriteSettings(patience=IMPATIENT)), executor=_in_turn)
        return compact(storage, CompactionSettings(), means).files

    def schedule(self) -> str:
        """Plan a compaction, and return its instant."""
        return schedule_compaction(open_storage(self._path), CompactionSettings(), IMPATIENT).instant

    def rescale(self, buckets: int) -> int:
        """Bring all partitions to a number of buckets, which releases since 2ce072f5 do."""
        from pyhudi.operations.services.rescale.rescale import rescale_buckets

        means = replace(means_of(WriteSettings(patience=IMPATIENT)), executor=_in_turn)
        return rescale_buckets(open_storage(self._path), buckets, means).file_groups

    def rollback(self, instant: str) -> None:
        """Take a write back whose writer counts as dead."""
        rollback(open_storage(self._path), instant, patience=IMPATIENT)

    def clean(self) -> int:
        """Clean, and return the number of files that went."""
        return clean(open_storage(self._path), CleanSettings(commits=1)).files

    def archive(self) -> int:
        """Archive, and return the number of instants that went."""
        return archive(open_storage(self._path), ArchiveSettings(min_commits=1, max_commits=2, batch=2)).instants

    def read(self) -> list[list[Any]]:
        """Return the rows, sorted."""
        snapshot = open_snapshot(self._path)
        batches = [
            batch
            for split in snapshot.plan(snapshot.schema, (), 1 << 27)
            for batch in _read(snapshot.storage, split, snapshot.schema)
        ]
        rows = pa.Table.from_batches(batches, snapshot.schema).select(SCHEMA.names).to_pylist()
        return sorted([row[name] for name in SCHEMA.names] for row in rows)

    def die_decided(self, after: int = 0) -> None:
        """End the process when it has made a decision, and looks whether that is the newest, having made so many."""
        link, scan_folder, left = Path.hardlink_to, os.scandir, [after]

        def count(path: Path, target: Path) -> None:
            link(path, target)
            left[0] -= path.parent.name == "decisions"

        def end(*args: Any) -> Any:
            if left[0] < 0:
                self._die()
            return scan_folder(*args)

        # Python's own, as the releases have nothing else in common for good.
        setattr(Path, "hardlink_to", count)  # noqa: B010
        setattr(os, "scandir", end)  # noqa: B010

    def where(self) -> tuple[str, int]:
        """Return where the release is, and the number of the process."""
        return str(pyhudi.__file__), os.getpid()

    def _planned(self) -> WritePlan:
        assert self._plan is not None
        return self._plan


def answer(call: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return what a call returned, or the error that it raised."""
    try:
        return {"returned": call(**given)}
    except PyHudiError as error:
        return {"error": type(error).__name__, "text": str(error)}


def work(asked: socket.socket) -> None:
    """Carry out the calls of a socket: its first line names the table, each further line is a call."""
    with asked.makefile("rw") as stream:

        def say(what: dict[str, Any]) -> None:
            print(json.dumps(what), file=stream, flush=True)

        def die() -> None:
            say(DIED)
            os._exit(0)

        job = Job(*json.loads(stream.readline()), die)
        for line in stream:
            given = json.loads(line)
            say(answer(getattr(job, given.pop("do")), given))


def main(control: socket.socket) -> None:
    """Fork a process for each socket that comes, until the test is gone."""
    # No call waits for them: the remains of a process that ended do not count.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        _, numbers, _, _ = socket.recv_fds(control, 1, 1)
        if not numbers:
            return
        with socket.socket(fileno=numbers[0]) as asked:
            if os.fork() == 0:
                control.close()
                try:
                    work(asked)
                finally:
                    os._exit(1)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
