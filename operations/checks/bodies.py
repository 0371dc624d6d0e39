"""The contents of instants' files: whether they parse, which engine fails on them, what writes state about files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...storage.base import join, split
from ...storage.bounds import parse_json
from ...storage.threads import for_each
from ...table.files.file_group import data_file
from ...table.files.log_names import log_names
from ...table.files.slice_rule import slice_rule
from ...table.files.written import logs_in
from ...timeline.instants import WRITE_ACTIONS, Instant, State
from ...timeline.metadata.codec import PYHUDI_KEYS, REPAIR, CommitFiles, InstantBody, Stat
from ...timeline.timeline import Timeline
from .check_catalogue import (
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
from .finding import Check, Findings
from .subject import NamedFile, Subject, WriteStatements, called

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
# Which engine fails on an empty file, by action and state. No engine fails on the others.
_CHOKES = {
    ("commit", State.COMPLETED): "pyhudi fails on it, and hudi-rs if it is the newest write",
    ("deltacommit", State.COMPLETED): "hudi-rs fails on it if it is the newest write",
    ("replacecommit", State.COMPLETED): "pyhudi fails on it, and hudi-rs if it is the newest write",
    ("compaction", State.REQUESTED): _EVERY_READ,
    ("logcompaction", State.REQUESTED): _EVERY_READ,
    ("clean", State.REQUESTED): "Apache Hudi fails on every write",
    ("clean", State.COMPLETED): "it does not say what it took",
    ("rollback", State.COMPLETED): "Apache Hudi fails when it builds a metadata table",
    ("restore", State.COMPLETED): "Apache Hudi fails when it builds a metadata table",
    ("savepoint", State.COMPLETED): "it keeps no file, and Apache Hudi's cleans fail",
    ("indexing", State.COMPLETED): "Apache Hudi builds a wrong metadata table, without the table's rows",
}
_SERVICES = frozenset({"clean", "rollback", "restore", "indexing", "compaction", "logcompaction", "clustering"})
_SCHEMA = "schema"
# The fields of a write statistic that the checks need.
_OF_FILES = ("fileId", "path", "numWrites", "numDeletes", "fileSizeInBytes")
_AT_ONCE = 256


def read_statements(timeline: Timeline, states: Sequence[Instant], findings: Findings) -> WriteStatements:
    """Return what a timeline's completed writes state; report the instants that cannot be parsed.

    ``states`` has each state of an instant that has a file.
    """
    bodies = _BodyReader(timeline, findings)
    for part in _batches(sorted(states, key=lambda instant: instant.requested_time)):
        records = for_each(timeline.storage, bodies.read, part)
        completed = [
            (instant, record) for instant, record in zip(part, records, strict=True) if instant.state == State.COMPLETED
        ]
        completed_writes = [(instant, record) for instant, record in completed if instant.action in WRITE_ACTIONS]
        _add_statements(bodies.statements, timeline, completed_writes)
    bodies.check_newest()
    return bodies.statements


def read_archived_statements(subject: Subject, writes: Sequence[Instant]) -> None:
    """Add what archived writes state to ``subject.statements``, with a write without a readable body as unparsable."""
    codec = subject.timeline.files.codec
    for part in _batches(writes):
        bodies: Mapping[Instant, bytes] = {}
        with subject.findings.turning(TORN_INSTANT):
            bodies = subject.table.archive.bodies(part)
        records: list[tuple[Instant, Mapping[str, Any] | None]] = []
        for instant in part:
            record = None
            if instant in bodies:
                with subject.findings.turning(TORN_INSTANT, instant=instant.requested_time):
                    record = codec.decode_record(InstantBody(bodies[instant], f"the archived {called(instant)}"))
            records.append((instant, record))
        _add_statements(subject.statements, subject.timeline, records)


def _batches(instants: Sequence[Instant]) -> Iterator[Sequence[Instant]]:
    """Yield the instants in batches, as their records are many times larger than what the checks keep of them."""
    return (instants[at : at + _AT_ONCE] for at in range(0, len(instants), _AT_ONCE))


def read_record(timeline: Timeline, instant: Instant) -> Mapping[str, Any]:
    """Return the record of an instant's state, empty if its file is empty or gone.

    Raises CorruptInstantError if the file does not parse, and StorageError.
    """
    path = timeline.files.path(instant)
    try:
        data = timeline.storage.read(path)
    except FileNotFoundError:
        return {}  # Archived or rolled back since the listing.
    return timeline.files.codec.decode_record(InstantBody(data, path)) if data else {}


def undone_instants(subject: Subject) -> Mapping[str, Instant]:
    """Return the rollback or restore that undid an instant, by the requested time of that instant."""
    victims: dict[str, Instant] = {}
    for instant in subject.timeline.completed:
        if instant.is_undo:
            with subject.turning(TORN_INSTANT, instant):
                record = read_record(subject.timeline, instant)
                # A rollback has the first field, a restore the second.
                victim_times = record.get("commitsRollback") or record.get("instantsToRollback") or ()
                victims |= {str(time): instant for time in victim_times}
    return victims


def is_by_pyhudi(subject: Subject, instant: Instant) -> bool:
    """Return whether pyhudi made a completed write; False if its body cannot be read."""
    with subject.turning(TORN_INSTANT, instant):
        record = read_record(subject.timeline, instant)
        return any(name.startswith(PYHUDI_KEYS) for name in record.get("extraMetadata") or ())
    return False


def _has_body(instant: Instant) -> bool:
    """Return whether the file of a state may hold a record; writers request commits with an empty file."""
    if instant.state == State.COMPLETED:
        return True
    return instant.state == State.REQUESTED and instant.action in _SERVICES | {"replacecommit"}


def _add_statements(
    statements: WriteStatements, timeline: Timeline, records: Iterable[tuple[Instant, Mapping[str, Any] | None]]
) -> None:
    """Add what writes state to the statements. A write whose record is None cannot be parsed, and is noted as such."""
    bodies = []
    for instant, record in records:
        if record is None:
            statements.unparsable.add(instant.requested_time)
            continue
        bodies.append((instant, _files_of(statements, instant, record)))
        statements.operations[instant.requested_time] = str(record.get("operationType") or "")
        statements.given_up |= _given_up_logs(record)
    statements.written = statements.written.joined_by(bodies, log_names(timeline))


def _given_up_logs(record: Mapping[str, Any]) -> set[str]:
    """Return the paths of the damaged log files that a repair gave up; none for the record of another write."""
    text = (record.get("extraMetadata") or {}).get(REPAIR)
    try:
        entries = parse_json(text) if text else []
        return {str(entry["file"]) for entry in entries}
    except (ValueError, TypeError, KeyError):
        return set()


def _files_of(statements: WriteStatements, instant: Instant, record: Mapping[str, Any]) -> CommitFiles:
    """Return the files of a write's body, and add to the statements what it says about each data file.

    ``record`` is the decoded body of the completed write ``instant``, with the field names of Apache Hudi.
    """
    time = instant.requested_time
    stats: dict[str, list[Stat]] = {}
    by_pyhudi = any(key.startswith(PYHUDI_KEYS) for key in record.get("extraMetadata") or ())
    for partition, stat in _stats(record):
        path = stat.get("path")
        statements.merged.add(str(stat.get("prevCommit")))
        stats.setdefault(partition, []).append({name: stat.get(name) for name in _OF_FILES})
        if not path:
            continue
        statements.files[path] = NamedFile(time, stat.get("fileSizeInBytes") or 0, stat.get("numWrites"))
        for name in stat.get("logFiles") or ():
            statements.files.setdefault(join(partition, name), NamedFile(time, 0))
        for change_file, size in (stat.get("cdcStats") or {}).items():
            statements.files[change_file] = NamedFile(time, size)
    # Several statistics may be of one log file, so `logs_in` says what they state together.
    for partition, of_partition in stats.items():
        for _, name, stated in logs_in(of_partition, instant, by_pyhudi):
            statements.files[join(partition, name)] = NamedFile(time, stated.size, log=stated if stated.size else None)
    return CommitFiles(stats, record.get("partitionToReplaceFileIds") or {}, by_pyhudi)


def _stats(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each write statistic of a write's record with its partition path."""
    for partition, stats in (record.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            yield partition, stat


@dataclass
class _BodyReader:
    """Reads the files of a timeline's instants, checks each, and gathers what completed writes state."""

    timeline: Timeline
    findings: Findings
    statements: WriteStatements = field(default_factory=WriteStatements)

    def read(self, instant: Instant) -> Mapping[str, Any] | None:
        """Return the record of a completed write; None if its file is gone or holds none, and for other instants."""
        path, record = self.timeline.files.path(instant), None
        if not _has_body(instant):
            return None
        with self.findings.turning(TORN_INSTANT, file=path, instant=instant.requested_time):
            try:
                data = self.timeline.storage.read(path)
            except FileNotFoundError:
                return None
            if data:
                record = self.timeline.files.codec.decode_record(InstantBody(data, path))
            else:
                self._report_empty(instant)
        if record is None or instant.state != State.COMPLETED or instant.action not in WRITE_ACTIONS:
            return None
        self._check_commit(instant, record)
        return record

    def _report(self, check: Check, instant: Instant, what: str, file: str = "") -> None:
        path = self.timeline.files.path(instant)
        self.findings.add(check, f"{path} {what}.", file=file or path, instant=instant.requested_time)

    @cached_property
    def _newest(self) -> Mapping[tuple[str, str], Instant]:
        """The newest state of each instant, by requested time and group of actions."""
        return {(instant.requested_time, instant.group): instant for instant in self.timeline.instants}

    def _report_empty(self, instant: Instant) -> None:
        """Report an empty file, if any engine fails on it.

        A requested file does no harm once its instant is complete.
        """
        failing_engine = _CHOKES.get((instant.action, instant.state))
        is_complete = self._newest[instant.requested_time, instant.group].state == State.COMPLETED
        if failing_engine is None or (instant.state == State.REQUESTED and is_complete):
            return
        is_clean = (instant.action, instant.state) == ("clean", State.COMPLETED)
        self._report(EMPTY_CLEAN if is_clean else EMPTY_INSTANT, instant, f"is empty: {failing_engine}")

    def _check_commit(self, instant: Instant, record: Mapping[str, Any]) -> None:
        """Report what engines fail on in a completed write, and statistics that do not fit their files.

        ``record`` is the decoded body of the write. A repair is reported, too, with the damaged files that it gave up.
        """
        time = instant.requested_time
        for name in ("extraMetadata", "partitionToWriteStats"):
            if name in record and record[name] is None:
                self._report(NULL_IN_COMMIT, instant, f"holds null as {name}")
        given_up = (record.get("extraMetadata") or {}).get(REPAIR)
        if given_up:
            self._report(REPAIRED, instant, f"completed a repair of damaged log files: {given_up}")
        operation = record.get("operationType")
        if operation is not None and operation not in _OPERATIONS:
            self._report(UNKNOWN_OPERATION, instant, f"names the operation {operation!r}")
        for partition, stat in _stats(record):
            file, group = stat.get("path"), stat.get("fileId")
            if not file:
                continue
            parsed_file, rule = data_file(file, changes=True), slice_rule(self.timeline)
            fits_name = parsed_file is not None and parsed_file.file_id == group and rule.may_be_of(parsed_file, time)
            if not fits_name or split(file)[0] != partition:
                what = f"names the file {file} for the file group {group} of the partition {partition!r}"
                self._report(STAT_MISMATCH, instant, what, file)
            if not stat.get("fileSizeInBytes"):
                self._report(NO_SIZE, instant, f"does not say how large {file} is", file)

    def check_newest(self) -> None:
        """Check that the newest completed write names the table's columns, or files that have them.

        Apache Hudi and hudi-rs read the columns there.
        """
        newest = self.timeline.writes[-1] if self.timeline.writes else None
        if newest is None or newest.requested_time in self.statements.unparsable:
            return
        with self.findings.turning(TORN_INSTANT, file=self.timeline.files.path(newest), instant=newest.requested_time):
            record = read_record(self.timeline, newest)
            if record and not (record.get("extraMetadata") or {}).get(_SCHEMA) and not any(_stats(record)):
                self._report(NO_SCHEMA, newest, "names neither columns nor files")
