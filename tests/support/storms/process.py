"""A process of a storm, a program that the storm starts: `python -m support.storms.process WORK`."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.result import CommitResult
from pyhudi.operations.services.means import Means
from pyhudi.operations.upkeep.service_entry import Call
from pyhudi.operations.upkeep.service_round import run_services
from pyhudi.operations.write.run import LocalRun, write
from pyhudi.reader.scan import scan
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.files.output import Output
from pyhudi.table.table import open_table
from pyhudi.timeline.watermark import spell_moment
from support.seams import set_seam
from support.storms.notes import COUNT, Act, Notes, now
from support.storms.oracle import HOT, Row, partition_of
from support.storms.work import TABLES, Work, batches_of
from support.write_settings import write_settings


def rows_of(path: str) -> list[Row]:
    """Return the rows of a table, read without an engine."""
    snapshot = open_snapshot(path)
    return [
        row
        for batch in scan(snapshot, ["id", "p", "value"])
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


def carry_out(work: Work, act: Act) -> CommitResult:
    """Write without an engine."""
    if act.operation != COUNT:
        return write(work.request(act), [batches_of(act)])
    path = work.table(act.table)
    moment = spell_moment(open_table(open_storage(path)).timeline().completed)
    known = {key: value for key, _, value in rows_of(path)}
    values = tuple(known[key] + 1 for key, _, _ in act.rows)
    return write(work.request(act, write_settings(work.settings, based_on=moment)), [batches_of(act, values)])


def call_of(work: Work, name: str) -> Call:
    """Return how services are run on a table."""
    means = Means(work.patience, Output(row_group_bytes=1 << 20, memory=1 << 24))
    return Call(open_storage(work.table(name)), work.patience, lambda: work.settings.upkeep, lambda: means)


def _write(work: Work) -> None:
    notes, chance = Notes(work.notes), random.Random(work.seed + work.number)
    for act in work.again:
        notes.around(act, partial(carry_out, work))
    for act in work.acts():
        if work.over.exists():
            return
        notes.around(act, partial(carry_out, work))
        time.sleep(chance.choice([0.0, 0.05, 0.3]))


def _serve(work: Work) -> None:
    while not work.over.exists():
        for name in TABLES:
            done = run_services(call_of(work, name))
            for failure in done.failed:
                print(f"FAILED {name}: {failure}", flush=True)  # noqa: T201 (the log of the process)
        time.sleep(1)


def _die_elsewhere(work: Work) -> None:
    """Die in the middle of a write of hot keys, on what looks like another machine."""
    set_seam("id of the machine", lambda: "elsewhere")
    set_seam("name of the host", lambda: "elsewhere")
    notes, name = Notes(work.notes), ("cow", "mor")[work.number % 2]
    act = Act(f"storm-{work.number}-0-1", name, "upsert", tuple((key, partition_of(key), -1) for key in HOT))
    notes.add(act)
    run = LocalRun(plan_write(work.request(act)))
    began = run.task(batches_of(act), 0).instant_time
    Path(work.folder, "elsewhere", f"{work.number}.part").write_text(json.dumps([name, began, now()]))
    Path(work.folder, "elsewhere", f"{work.number}.part").rename(Path(work.folder, "elsewhere", f"{work.number}.json"))
    os.kill(os.getpid(), signal.SIGKILL)


def main(work: Work) -> None:
    """Do what the storm says."""
    if work.kind == "writer":
        _write(work)
    elif work.kind == "services":
        _serve(work)
    elif work.kind == "elsewhere":
        _die_elsewhere(work)
    else:
        from support.storms import through_spark

        through_spark.main(work)


if __name__ == "__main__":
    main(Work.decode(sys.argv[1]))
