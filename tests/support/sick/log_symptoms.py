"""Sicknesses of merge-on-read tables: how each is made on one that is healthy, and what has to be said of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.services.compaction.repair import repair
from pyhudi.operations.upkeep.after_write import means_of
from pyhudi.storage import open_storage
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import CompactionOperation, CompactionPlan
from support.made.logged import Logged, Working
from support.sick.sick_tables import TIMELINE
from support.sick.spoiling import LONG_AGO, SOON, Symptom, clean_of, savepoint_of

LATER = "20981231000000000"


def make_logged(path: Path) -> None:
    """Make a table with older slices in ``x``, whose two newest have log files, and a group without a base in ``y``."""
    table = Logged(path).made(1, 2, 3, 4, partition="x")
    table.append(1, 2, value=1, partition="x")
    table.compact()
    for value in (2, 3):
        table.append(1, 2, 3, 4, value=value, partition="x")
    table.append(9, value=4, partition="y")


def newest_logs(path: Path, partition: str = "x") -> list[Path]:
    """Return the log files of the newest delta commit in a partition, in order of the bucket."""
    logs = sorted((path / partition).glob(".*.log.*"))
    last = max(instant_in(one) for one in logs)
    return [one for one in logs if instant_in(one) == last]


def instant_in(log: Path) -> str:
    return log.name.partition(".log.")[0].rpartition("_")[2]


def _change(change: Callable[[bytes, str], bytes]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        log = newest_logs(path)[0]
        log.write_bytes(change(log.read_bytes(), instant_in(log)))

    return spoil


def tear_unstated(path: Path, noise: bytes) -> Path:
    """Write noise behind the newest log file, whose instant does not state its size any more, and return the file."""
    table, log = Logged(path), newest_logs(path)[0]
    files = table.timeline.files
    (instant,) = (one for one in table.timeline.writes if one.requested_time == instant_in(log))
    body = files.read_commit(instant)
    stats = {
        partition: [stat.model_copy(update={"file_size_in_bytes": 0}) for stat in some]
        for partition, some in body.partition_to_write_stats.items()
    }
    silent = body.model_copy(update={"partition_to_write_stats": stats})
    table.storage.write(files.path(instant), files.codec.encode(silent))
    log.write_bytes(log.read_bytes() + noise)
    return log


def _repair(path: Path) -> None:
    """Cut a log file and give up what cannot be read of it."""
    log = newest_logs(path)[0]
    log.write_bytes(log.read_bytes()[:-3])
    repair(open_storage(str(path)), [log.relative_to(path).as_posix()], means_of(WriteSettings()))


def _copied(instant: str, attempt: str = "0-0-0", partition: str = "x") -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        log = newest_logs(path, partition)[0]
        name = log.name.replace(instant_in(log), instant or instant_in(log)).replace("_0-0-0", f"_{attempt}")
        shutil.copy(log, log.with_name(name))

    return spoil


def _second_group(path: Path) -> None:
    """Leave a group of one bucket twice: by a log file alone, of a write that names it."""
    table, (log,) = Logged(path), newest_logs(path, "y")
    work = table.begin(9, value=5, partition="y")
    (own,) = work.files
    other = own.replace(own.split("/.")[1][8:20], "-0000-4000-a")
    (path / own).rename(path / other)
    stat = work.stats["y"][0]
    group = other.split("/.")[1].partition("_")[0]
    work.stats["y"][0] = stat.model_copy(update={"path": other, "file_id": group, "log_files": None})
    table.finish(work)
    assert log.exists()


def _planned(change: Callable[[Logged, Working], object]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        table = Logged(path)
        change(table, table.plan_compaction())

    return spoil


def _without_a_log(table: Logged, work: Working) -> None:
    """Write the plan anew, less one of the log files of one slice."""
    files = table.timeline.files
    instant = Instant(work.instant, "compaction", State.REQUESTED)
    plan = files.read_compaction_plan(instant)
    assert plan is not None
    first, *others = plan.operations
    less = first.model_copy(update={"delta_file_paths": first.delta_file_paths[1:]})
    body = files.codec.encode(plan.model_copy(update={"operations": [less, *others]}))
    table.storage.write(files.path(instant), body)


def _of_unknown_group(table: Logged, work: Working) -> None:
    """Write the plan anew, with one file group under another file id."""
    files = table.timeline.files
    instant = Instant(work.instant, "compaction", State.REQUESTED)
    plan = files.read_compaction_plan(instant)
    assert plan is not None
    first, *others = plan.operations
    unknown = first.model_copy(update={"file_id": "00000000-dead-4000-8000-000000000000-0"})
    body = files.codec.encode(plan.model_copy(update={"operations": [unknown, *others]}))
    table.storage.write(files.path(instant), body)


def _undone(table: Logged) -> None:
    """Take the newest delta commit in ``x`` back to inflight, by hand."""
    time = instant_in(newest_logs(table.path)[0])
    (done,) = (table.path / TIMELINE).glob(f"{time}_*.deltacommit")
    done.unlink()


def _twice(table: Logged, work: Working) -> None:
    one = work.slices[0]
    plan = CompactionPlan(operations=[CompactionOperation(file_id=one.file_id, partition_path=one.partition_path)])
    files = table.timeline.files
    files.request(Instant(SOON, "compaction", State.REQUESTED), files.codec.encode(plan))


def _swap(path: Path) -> None:
    first, second = newest_logs(path)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


LOG_SYMPTOMS = [
    Symptom("LOG_DAMAGED", "cut", "and the instant states", _change(lambda data, _: data[:-3])),
    Symptom("LOG_DAMAGED", "noise behind", "no whole block", _change(lambda data, _: data + b"noise")),
    Symptom("LOG_DAMAGED", "another magic", "from byte 0 on", _change(lambda data, _: b"#NONE#" + data[6:])),
    Symptom("REPAIRED", "cut", ".log.1", _repair),
    Symptom("TORN_BLOCK", "nothing stated", "from byte 0 on", lambda path: tear_unstated(path, b"noise")),
    Symptom("SKIPPED_BLOCK", "half before", "60 bytes from byte 0 on", _change(lambda data, _: data[:60] + data)),
    Symptom("BLOCK_INSTANT", "older", SOON, _change(lambda data, own: data.replace(own.encode(), SOON.encode(), 1))),
    Symptom("FILE_CORRUPT", "version", ".log.1", _change(lambda data, _: data[:14] + b"\0\0\0\x09" + data[18:])),
    Symptom("LOG_SIZE", "longer", "and the write", _change(lambda data, _: data + b"#HUDI#")),
    Symptom("LOST_FILE", "log", ".log.1", lambda p: newest_logs(p)[0].unlink()),
    Symptom("LOST_FILE", "the only one", "y/.", lambda p: newest_logs(p, "y")[0].unlink()),
    Symptom("CLEANED_LIVE_FILE", "log", "a clean took it", lambda p: clean_of(p, newest_logs(p), done=True)),
    Symptom("CLEAN_TAKES_LIVE", "log", "readers see", lambda p: clean_of(p, newest_logs(p), done=False)),
    Symptom("SAVEPOINT_FILE_LOST", "log", ".log.7", lambda p: savepoint_of(p, [".k_1.log.7_0-0-0"])),
    Symptom("UNNAMED_FILE", "attempt", "9-9-9", _copied("", "9-9-9")),
    Symptom("ORPHAN", "young", LATER, _copied(LATER)),
    Symptom("ORPHAN_SHOWN", "old", LONG_AGO, _copied(LONG_AGO)),
    Symptom("BUCKET_TWICE", "log", "has the file groups", _second_group),
    Symptom("PENDING_SERVICE", "compaction", "queries have to merge", _planned(lambda *_: None)),
    Symptom("PLAN_FILE_LOST", "log", ".log.1", _planned(lambda table, work: newest_logs(table.path)[0].unlink())),
    Symptom("PLAN_MISFIT", "less", ".log.1", _planned(_without_a_log)),
    Symptom("PLAN_MISFIT", "undone", ".log.1", _planned(lambda table, _: _undone(table))),
    Symptom("PLAN_MISFIT", "unknown group", "which the table does not have", _planned(_of_unknown_group)),
    Symptom("CLAIMED_TWICE", "compactions", "both want", _planned(_twice)),
    Symptom("WRONG_BUCKET", "swapped", "does not belong to bucket", _swap, deep=True),
    Symptom("FILE_NAME_COLUMN", "swapped", "is right", _swap, deep=True),
    Symptom("COMMIT_TIME_COLUMN", "younger", "no completed instant before", _copied(LONG_AGO, "0-0-0", "y"), deep=True),
    Symptom("FILE_CORRUPT", "page", ".log.1", _change(lambda data, _: _noise(data)), deep=True),
]


def _noise(data: bytes) -> bytes:
    """Return the file with noise in the first page of its rows."""
    at = data.index(b"PAR1") + 40
    return data[:at] + bytes(byte ^ 255 for byte in data[at : at + 8]) + data[at + 8 :]
