"""What stands inside of instants: whether it can be parsed, who chokes on it, and what writes say of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...storage.base import join, split
from ...storage.bounds import parse_json
from ...storage.parallel import for_each
from ...table.files.names import parse_data_name
from ...table.files.written import logs_in
from ...timeline.instants import WRITE_ACTIONS, Instant, State
from ...timeline.metadata.codec import PYHUDI_KEYS, REPAIR, CommitFiles, Stat
from ...timeline.timeline import Timeline
from .finding import Findings
from .sicknesses import (
    EMPTY_CLEAN,
    EMPTY_INSTANT,
    NO_SCHEMA,
    NO_SIZE,
    NULL_IN_COMMIT,
    REPAIRED,
    STAT_MISMATCH,
    TORN_INSTANT,
    UNKNOWN_OPERATION,
)
from .subject import NamedFile, Said, Subject, called

# ``WriteOperationType``.
_OPERATIONS = frozenset(
    {
        "INSERT",
        "INSERT_PREPPED",
        "UPSERT",
        "UPSERT_PREPPED",
        "BULK_INSERT",
        "BULK_INSERT_PREPPED",
        "DELETE",
        "DELETE_PREPPED",
        "BOOTSTRAP",
        "INSERT_OVERWRITE",
        "INSERT_OVERWRITE_TABLE",
        "CLUSTER",
        "DELETE_PARTITION",
        "COMPACT",
        "INDEX",
        "ALTER_SCHEMA",
        "LOG_COMPACT",
        "BUCKET_RESCALE",
        "UNKNOWN",
    }
)
_EVERY_READ = "Apache Hudi fails on every read"
# Who chokes on an empty file, by action and state; others are legal, or mean nothing to anybody.
_CHOKES = {
    ("commit", State.COMPLETED): "pyhudi fails on it, and hudi-rs where it is the newest",
    ("deltacommit", State.COMPLETED): "hudi-rs fails on it where it is the newest",
    ("replacecommit", State.COMPLETED): "pyhudi fails on it, and hudi-rs where it is the newest",
    ("compaction", State.REQUESTED): _EVERY_READ,
    ("logcompaction", State.REQUESTED): _EVERY_READ,
    ("clean", State.REQUESTED): "Apache Hudi fails on every write",
    ("clean", State.COMPLETED): "it does not say what it took",
    ("rollback", State.COMPLETED): "Apache Hudi fails where it builds a metadata table",
    ("restore", State.COMPLETED): "Apache Hudi fails where it builds a metadata table",
    ("savepoint", State.COMPLETED): "it keeps no file, and Apache Hudi's cleans fail",
    ("indexing", State.COMPLETED): "Apache Hudi builds a wrong metadata table, without the table's rows",
}
_SERVICES = frozenset({"clean", "rollback", "restore", "indexing", "compaction", "logcompaction", "clustering"})
_SCHEMA = "schema"
# What is kept of a write statistic.
_OF_FILES = ("fileId", "path", "numWrites", "numDeletes", "fileSizeInBytes")
_AT_ONCE = 256


def hear(timeline: Timeline, states: Sequence[Instant], findings: Findings) -> Said:
    """Return what a timeline's completed writes say, and tell of every instant that cannot be parsed.

    Args:
        timeline: The table's.
        states: Each state of an instant that has a file.
        findings: Where to tell it.
    """
    said = Said()
    newest = {(one.requested_time, one.group): one for one in timeline.instants}
    ordered = sorted(states, key=lambda one: one.requested_time)

    def read(instant: Instant) -> Mapping[str, Any] | None:
        record = _read(timeline, newest, instant, findings)
        is_write = instant.state == State.COMPLETED and instant.action in WRITE_ACTIONS
        if record is not None and is_write:
            _check_commit(timeline.files.path(instant), instant, record, findings)
        return record if is_write else None

    for some in _parts(ordered):
        records = for_each(timeline.files.storage, read, some)
        writes = [(one, record) for one, record in zip(some, records, strict=True) if one.action in WRITE_ACTIONS]
        _take(said, [(one, record) for one, record in writes if one.state == State.COMPLETED])
    _check_newest(timeline, said, findings)
    return said


def hear_archive(subject: Subject, wanted: Sequence[Instant]) -> None:
    """Add to what completed writes say what some archived ones do; one that cannot be parsed stays silent."""
    codec = subject.timeline.files.codec
    for some in _parts(wanted):
        found: Mapping[Instant, bytes] = {}
        with subject.findings.turning(TORN_INSTANT):
            found = subject.archive.bodies(some)
        records: list[tuple[Instant, Mapping[str, Any] | None]] = []
        for instant in some:
            record = None
            if instant in found:
                with subject.findings.turning(TORN_INSTANT, instant=instant.requested_time):
                    record = codec.decode_record(found[instant], f"the archived {called(instant)}")
            records.append((instant, record))
        _take(subject.said, records)


def _parts(instants: Sequence[Instant]) -> Iterator[Sequence[Instant]]:
    """Yield some instants at a time: what they hold is many times larger than what is kept of it."""
    return (instants[at : at + _AT_ONCE] for at in range(0, len(instants), _AT_ONCE))


def read_record(timeline: Timeline, instant: Instant) -> Mapping[str, Any]:
    """Return what the file of an instant's state holds; nothing where it is empty or gone.

    Raises:
        CorruptInstantError: It cannot be parsed.
        StorageError: The store failed.
    """
    data = _bytes(timeline, instant)
    return timeline.files.codec.decode_record(data, timeline.files.path(instant)) if data else {}


def _bytes(timeline: Timeline, instant: Instant) -> bytes:
    try:
        return timeline.files.storage.read(timeline.files.path(instant))
    except FileNotFoundError:
        return b""  # Archived or rolled back since the listing.


def _read(
    timeline: Timeline, newest: Mapping[tuple[str, str], Instant], instant: Instant, findings: Findings
) -> Mapping[str, Any] | None:
    """Return what an instant's file holds; None where it is empty or cannot be parsed."""
    if not _has_body(instant):
        return None
    path = timeline.files.path(instant)
    with findings.turning(TORN_INSTANT, file=path, instant=instant.requested_time):
        try:
            data = timeline.files.storage.read(path)
        except FileNotFoundError:
            return None
        if data:
            return timeline.files.codec.decode_record(data, path)
        _tell_empty(path, instant, newest, findings)
    return None


def _has_body(instant: Instant) -> bool:
    """Return whether the file of a state says anything: commits are requested empty, and inflight files may be."""
    if instant.state == State.COMPLETED:
        return True
    return instant.state == State.REQUESTED and instant.action in _SERVICES | {"replacecommit"}


def _tell_empty(path: str, instant: Instant, newest: Mapping[tuple[str, str], Instant], findings: Findings) -> None:
    who = _CHOKES.get((instant.action, instant.state))
    over = newest[instant.requested_time, instant.group].state == State.COMPLETED
    if who is None or (instant.state == State.REQUESTED and over):
        return
    sickness = EMPTY_CLEAN if (instant.action, instant.state) == ("clean", State.COMPLETED) else EMPTY_INSTANT
    findings.add(sickness, f"{path} is empty: {who}.", file=path, instant=instant.requested_time)


def _take(said: Said, records: Iterable[tuple[Instant, Mapping[str, Any] | None]]) -> None:
    """Keep what completed writes say of their files."""
    bodies = []
    for instant, record in records:
        if record is None:
            said.silent.add(instant.requested_time)
            continue
        bodies.append((instant, _files_of(said, instant, record)))
        said.operations[instant.requested_time] = str(record.get("operationType") or "")
        said.given_up |= _given_up(record)
    said.written = said.written.joined_by(bodies)


def _given_up(record: Mapping[str, Any]) -> set[str]:
    """Return the damaged log files that a repair gave up; none where the record is another write's."""
    text = (record.get("extraMetadata") or {}).get(REPAIR)
    try:
        found = parse_json(text) if text else []
        return {str(one["file"]) for one in found}
    except (ValueError, TypeError, KeyError):
        return set()


def _files_of(said: Said, instant: Instant, record: Mapping[str, Any]) -> CommitFiles:
    time = instant.requested_time
    stats: dict[str, list[Stat]] = {}
    by_pyhudi = any(key.startswith(PYHUDI_KEYS) for key in record.get("extraMetadata") or ())
    for partition, stat in _stats(record):
        path = stat.get("path")
        stats.setdefault(partition, []).append({name: stat.get(name) for name in _OF_FILES})
        if not path:
            continue
        said.files[path] = NamedFile(time, stat.get("fileSizeInBytes") or 0, stat.get("numWrites"))
        for name in stat.get("logFiles") or ():
            said.files.setdefault(join(partition, name), NamedFile(time, 0))
        for other, size in (stat.get("cdcStats") or {}).items():
            said.files[other] = NamedFile(time, size)
    for partition, some in stats.items():
        for _, name, stated in logs_in(some, by_pyhudi):
            said.files[join(partition, name)] = NamedFile(time, stated.size, log=stated if stated.size else None)
    return CommitFiles(stats, record.get("partitionToReplaceFileIds") or {}, by_pyhudi)


def _stats(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for partition, stats in (record.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            yield partition, stat


def _check_commit(path: str, instant: Instant, record: Mapping[str, Any], findings: Findings) -> None:
    time = instant.requested_time
    for name in ("extraMetadata", "partitionToWriteStats"):
        if name in record and record[name] is None:
            findings.add(NULL_IN_COMMIT, f"{path} holds null as {name}.", file=path, instant=time)
    given_up = (record.get("extraMetadata") or {}).get(REPAIR)
    if given_up:
        what = f"{path} completed a repair of damaged log files: {given_up}."
        findings.add(REPAIRED, what, file=path, instant=time)
    operation = record.get("operationType")
    if operation is not None and operation not in _OPERATIONS:
        findings.add(UNKNOWN_OPERATION, f"{path} names the operation {operation!r}.", file=path, instant=time)
    for partition, stat in _stats(record):
        file = stat.get("path")
        if not file:
            continue
        folder, name = split(file)
        parsed = parse_data_name(name)
        if parsed is None or folder != partition or (parsed.file_id, parsed.instant_time) != (stat.get("fileId"), time):
            what = (
                f"{path} names the file {file} for the file group {stat.get('fileId')} of the partition {partition!r}."
            )
            findings.add(STAT_MISMATCH, what, file=file, instant=time)
        if not stat.get("fileSizeInBytes"):
            findings.add(NO_SIZE, f"{path} does not say how large {file} is.", file=file, instant=time)


def _check_newest(timeline: Timeline, said: Said, findings: Findings) -> None:
    """Apache Hudi and hudi-rs look into the newest completed write for the table's columns."""
    if not timeline.writes or timeline.writes[-1].requested_time in said.silent:
        return
    newest = timeline.writes[-1]
    path = timeline.files.path(newest)
    with findings.turning(TORN_INSTANT, file=path, instant=newest.requested_time):
        record = read_record(timeline, newest)
        if record and not (record.get("extraMetadata") or {}).get(_SCHEMA) and not any(_stats(record)):
            findings.add(
                NO_SCHEMA, f"{path} names neither columns nor files.", file=path, instant=newest.requested_time
            )
