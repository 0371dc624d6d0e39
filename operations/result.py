"""The results of commits and of table services, as values; the result of a commit is read from its instant."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from ..index.base import LookupFigures
from ..storage.bounds import parse_json
from ..table.files.file_group import log_file
from ..table.files.read_written import read_written
from ..table.schema.changes import SchemaChange, parse_changes
from ..table.table import Table
from ..timeline.instants import Instant
from ..timeline.metadata.codec import REPAIR, SORTED, WRITE_ID, InstantBody
from ..timeline.rescales import KEY as RESCALED
from ..timeline.timeline import Timeline
from ..timeline.writers.patience import NOT_WAITED, Waited
from .words.text import html_facts
from .write_ids import archived_write

if TYPE_CHECKING:
    from ..timeline.metadata.models import CommitMetadata

# Keys that pyhudi adds to an instant's extraMetadata, beside the write's id.
NOT_FOUND = "pyhudi.deletes.not.found"
DROPPED = "pyhudi.inserts.dropped"
SECONDS = "pyhudi.seconds"
LOOKUP = "pyhudi.lookup"
COUNTED = "pyhudi.rows"
SCHEMA_CHANGES = "pyhudi.schema.changes"
ATTEMPTS = "pyhudi.attempts"
MET = "pyhudi.met"

# Names of the services that run after writes.
CLEAN, ARCHIVE, COMPACTION, LOG_COMPACTION = "clean", "archive", "compaction", "logcompaction"
CREATE_INDEX, DROP_INDEX = "create_index", "drop_index"
METADATA = "metadata"

RESCALE_OPERATION, SORT_OPERATION = "RESCALE", "SORT"
# These operations rewrite rows and change no values.
OPERATIONS_OF_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", RESCALE_OPERATION, SORT_OPERATION})

_GREATEST = (1 << 63) - 1
_COUNT = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class RepairedLog:
    """A damaged log file whose unreadable rows a repair gave up, or would give up.

    Attributes:
        file: Relative to the table's root.
        instant: Requested time of the write that made the file.
        expected_size: Size in bytes by the completed instant of the write; None if it is not on the timeline.
        actual_size: Size of the file in bytes.
        stated_records: Rows and deletes by that instant; None if it is not on the timeline.
        readable_records: Rows and deletes in readable blocks.
    """

    file: str
    instant: str
    expected_size: int | None
    actual_size: int
    stated_records: int | None
    readable_records: int


@dataclass(frozen=True, slots=True)
class MetadataWritten:
    """What one instant wrote to the metadata table.

    Attributes:
        partitions: The partitions of the metadata table with new records.
        records: The number of records and deletes.
        bytes: The size of their log files.
        seconds: The seconds that it took to make them; 0 if Spark wrote the rows.
        warnings: The partitions that went out of use, with the reason and the call that builds them again.
    """

    partitions: tuple[str, ...] = ()
    records: int = 0
    bytes: int = 0
    seconds: float = field(default=0.0, compare=False)
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.partitions:
            return "Nothing was written to the metadata table."
        names, size = ", ".join(self.partitions), _size_text(self.bytes)
        return f"{_amount(self.records, 'record')} written to {names} of the metadata table ({size})."


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """What one table service did.

    Attributes:
        path: The table's path.
        service: Its name: clean, archive, rollback, savepoint, restore, compaction, schedule_compaction, logcompaction,
            schedule_log_compaction, metadata, repair, rescale_buckets, sort.
        instant: Requested time of the instant that it made, or that its caller named. Of a repair that moved files, the
            time for its undo. Empty if there was nothing to do.
        files: Data files that it deleted, a savepoint kept, or a compaction, log compaction or rescale wrote.
        bytes: Their size, if it is known.
        instants: Instants that it archived or undid; 1 for a deleted savepoint.
        file_groups: File groups that it compacted or planned to compact, or that a rescale replaced.
        log_files: Their log files.
        bytes_read: The size of the log files and base files of these file groups.
        seconds: Its duration.
        error: Why it failed, if it ran after a completed write or in a round of services; empty if it succeeded.
        dry: Whether this was a dry run; the numbers then say what the service would have done.
        skipped: What it did not do, and why; empty if it did all.
        repaired: The damaged log files that a repair gave up.
        partitions: Partitions to which a rescale gave another number of buckets.
        new_file_groups: File groups that a rescale made of ``file_groups``; the most that it can make in a dry run.
        todo: What the caller has to do now; empty for nothing.
        moved: The paths of the files that a repair moved aside, or copied there before it changed them.
        put_back: The paths of the files that the undo of a repair put back.
        steps: What a repair did or would do, step by step.
        indexes: The partitions of the metadata table that it built or dropped.
        records: The number of records in the built partitions.
    """

    path: str
    service: str
    instant: str = ""
    files: int = 0
    bytes: int = 0
    instants: int = 0
    file_groups: int = 0
    log_files: int = 0
    bytes_read: int = 0
    seconds: float = field(default=0.0, compare=False)
    error: str = ""
    dry: bool = False
    skipped: str = ""
    repaired: tuple[RepairedLog, ...] = ()
    partitions: int = 0
    new_file_groups: int = 0
    todo: str = ""
    moved: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    records: int = 0

    def __str__(self) -> str:
        head = f"{self.service} {self.instant}".strip() + f" of {self.path}"
        if self.error:
            return f"{head} failed: {self.error}"
        words = "would be " if self.dry else ""
        parts = [text.format(words, _amount(number, noun)) for number, (text, noun) in _counts_with_texts(self)]
        size = f" ({_size_text(self.bytes)})" if self.bytes and parts else ""
        summary = f": {', '.join(parts)}{size}" if parts else " had nothing to do"
        return f"{head}{summary} in {self.seconds:.1f} s." + "".join(
            f" {text}." for text in (self.skipped, self.todo) if text
        )

    def _repr_html_(self) -> str:
        return html_facts(self)

    @property
    def changed(self) -> bool:
        """Whether it changed anything, or would change anything if this was a dry run."""
        return bool(self.instant or _counts_with_texts(self))

    @property
    def left(self) -> str:
        """The old name of `skipped`."""
        warnings.warn("ServiceResult.left is now ServiceResult.skipped", DeprecationWarning, stacklevel=2)
        return self.skipped


@dataclass(frozen=True, slots=True)
class ServicesResult:
    """What one round of table services did.

    Attributes:
        path: The table's path.
        services: The result of each service of the round, in order. ``skipped`` says what a service left to which other
            process and why, ``error`` why it failed.
        seconds: The duration of the round.
        warnings: What the call asked for and did not get: options that pyhudi accepts without effect, and failed
            services.
    """

    path: str
    services: tuple[ServiceResult, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def failed(self) -> tuple[ServiceResult, ...]:
        """The results of the services that failed."""
        return tuple(service for service in self.services if service.error)

    @property
    def skipped(self) -> tuple[ServiceResult, ...]:
        """The results of the services that left something to other processes."""
        return tuple(service for service in self.services if service.skipped)

    def __str__(self) -> str:
        idle = [
            service.service
            for service in self.services
            if not service.changed and not service.error and not service.skipped
        ]
        texts = [_sentence_in_round(service) for service in self.services if service.service not in idle]
        texts += [f"Nothing was due of {', '.join(idle)}."] if idle else []
        return " ".join([f"Services of {self.path} in {self.seconds:.1f} s:", *texts])

    def _repr_html_(self) -> str:
        return html_facts(self)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The changes that a merge or an update makes to rows of the table; moved rows are updates, too."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class PastAttempts:
    """What `HudiTable` did for a write before the current attempt.

    Attributes:
        attempts: How many attempts met another write.
        waited: The writes for which it waited.
    """

    attempts: int = 0
    waited: Waited = NOT_WAITED


NO_PAST = PastAttempts()


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What one commit did.

    Attributes:
        path: The table's path.
        instant: Requested time of the instant; empty if a write without rows made none.
        operation: Hudi's name of the operation; RESCALE and SORT for what Hudi calls CLUSTER or COMPACT.
        inserts: Rows added: those with new keys, and all rows of an insert, which looks no key up.
        updates: Rows that replaced another row of their key.
        deletes: Rows removed one by one; rows of replaced file groups are not counted.
        moved: How many updates gave their row another key or partition, if the write counted them.
        not_found: Deletes that removed nothing.
        dropped: Incoming rows left out because the table had their key (``hoodie.datasource.insert.dup.policy=drop``),
            and new rows of a merge left out because their key was deleted with a greater ordering value.
        replaced: File groups that an overwrite, or a delete of partitions, replaced as a whole.
        files: Base files written.
        bytes: Their size.
        log_files: Log files appended. All their rows count as updates and all their deletes as deletes, because the
            write did not look up whether the table had their keys.
        log_bytes: Their size.
        seconds: Seconds by phase: summed over the tasks, of the commit, of each service after it by its name, and of
            the whole call as ``total`` if a method of `HudiTable` made the commit.
        write_id: Identifies the write across replays.
        lookup: The cost of finding the file groups of the rows' keys; all zero under an index that computes them.
        services: Results of the table services that ran after the commit.
        repair: The damaged log files that the commit gave up, as JSON with the fields of `RepairedLog`; empty for
            others.
        schema_changes: Each column that the commit added to the table or made wider, with its type before and after.
        warnings: What the call asked for and did not get: options that pyhudi accepts without effect, and partitions
            to be deleted that the table does not have. Only the call's own result has them.
        attempts: How often the commit merged the rows, because other writers changed the same data meanwhile.
        met: The ids of writes of the same data for which the commit waited; ``seconds["wait"]`` says how long.
        metadata: What it wrote to the table's metadata table; None if the table has none. Only the call's own result
            has it.
    """

    path: str
    instant: str
    operation: str
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    moved: int = 0
    not_found: int = 0
    dropped: int = 0
    replaced: int = 0
    files: int = 0
    bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    write_id: str = ""
    lookup: LookupFigures = field(default_factory=LookupFigures, compare=False)
    services: tuple[ServiceResult, ...] = field(default=(), compare=False)
    repair: str = ""
    schema_changes: tuple[SchemaChange, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    attempts: int = 1
    met: tuple[str, ...] = ()
    metadata: MetadataWritten | None = field(default=None, compare=False)

    def __str__(self) -> str:
        counts = [
            f"{_amount(getattr(self, name), noun)} {did}" for name, (noun, did) in _ROWS.items() if getattr(self, name)
        ]
        files = [f"{_amount(self.files, 'base file')} written ({_size_text(self.bytes)})"] if self.files else []
        files += (
            [f"{_amount(self.log_files, 'log file')} appended ({_size_text(self.log_bytes)})"] if self.log_files else []
        )
        duration = f" in {self.seconds['total']:.1f} s" if "total" in self.seconds else ""
        head = f"{self.operation} {self.instant}".strip() + f" of {self.path}: "
        service_sentences = [
            f" Then {service}" for service in self.services if service.error or _counts_with_texts(service)
        ]
        metadata = f" {self.metadata}" if self.metadata is not None and self.metadata.partitions else ""
        facts = ", ".join([*(counts or ["no rows"]), *files])
        return f"{head}{facts}{duration}.{metadata}" + "".join([*service_sentences, *self._warning_texts()])

    def _repr_html_(self) -> str:
        return html_facts(self)

    def _warning_texts(self) -> list[str]:
        return [f" Warning: {text}" for text in self.warnings]

    def __repr__(self) -> str:
        counts = [f"{getattr(self, name):,} {words}" for name, words in _COUNTED.items() if getattr(self, name)]
        files = [f"{self.files:,} files, {self.bytes:,} bytes"] if self.files else []
        files += [f"{self.log_files:,} log files, {self.log_bytes:,} bytes"] if self.log_files else []
        took = [f"{self.seconds['total']:.1f} s"] if "total" in self.seconds else []
        facts = "; ".join(
            [", ".join(counts) or "no rows", *files, *filter(None, map(_short_text, self.services)), *took]
        )
        return f"<{self.operation} {self.instant or 'that left nothing'} of {self.path}: {facts}>"


def with_services(result: CommitResult, services: tuple[ServiceResult, ...]) -> CommitResult:
    """Return a commit's result with the results of the services after it, and with their seconds among its phases."""
    seconds = {**result.seconds, **{service.service: service.seconds for service in services}}
    return replace(result, seconds=seconds, services=services)


def _counts_with_texts(service: ServiceResult) -> list[tuple[int, tuple[str, str]]]:
    """Return the counts that are not zero, each with its text and its noun as in `_TEXTS_BY_SERVICE`.

    A service without texts of its own gets those of deleting.
    """
    texts = _TEXTS_BY_SERVICE.get(service.service, _DELETED)
    counts = [(getattr(service, name), words) for name, words in texts.items()]
    return [(len(value) if isinstance(value, tuple) else value, words) for value, words in counts if value]


def _sentence_in_round(service: ServiceResult) -> str:
    """Return the sentence of a service in the result of a round: what it did, why it failed, or why it was skipped."""
    if service.error or service.changed:
        return str(service)
    return f"{service.service} was skipped: {service.skipped}."


def _short_text(service: ServiceResult) -> str:
    """Return a service after a commit in few words, for the commit's ``repr``; empty if it had nothing to do."""
    if service.error:
        return f"the {service.service} after it failed"
    if service.skipped:
        return service.skipped
    if service.log_files:
        return f"{service.service}: {service.log_files:,} log files of {service.file_groups:,} file groups"
    did = {"files deleted": service.files, "bytes": service.bytes, "instants": service.instants}
    counts = ", ".join(f"{number:,} {words}" for words, number in did.items() if number)
    return counts and f"{service.service}: {counts}"


def _amount(count: int, noun: str) -> str:
    """Return a count with its noun, which gets an "s" unless the count is 1."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _size_text(count: int) -> str:
    """Return a number of bytes in the largest unit of which there is at least 1."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            # After a division the count is a float.
            return f"{count:,.1f} {unit}" if isinstance(count, float) else f"{count:,} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:,.1f} TiB"


_DELETED = {"instants": ("{1} {0}undone", "instant"), "files": ("{1} {0}deleted", "file")}
SORT = "sort"
_MERGED = {
    "file_groups": ("{1} {0}merged", "file group"),
    "log_files": ("{1} {0}read", "log file"),
    "files": ("{1} {0}written", "file"),
}
_PLANNED = {"file_groups": ("{1} {0}planned", "file group"), "log_files": ("{1} in the plan", "log file")}
# By service, the texts of its counts: "{0}" is "would be " in a dry run, "{1}" the count with its noun.
_TEXTS_BY_SERVICE = {
    "archive": {"instants": ("{1} {0}archived", "instant"), "files": ("{1} {0}deleted", "orphaned file")},
    "savepoint": {"files": ("{1} {0}kept", "file")},
    "delete_savepoint": {"instants": ("{1} {0}deleted", "savepoint")},
    COMPACTION: _MERGED,
    LOG_COMPACTION: _MERGED,
    METADATA: {**_MERGED, "instants": ("{1} {0}archived", "instant")},
    "schedule_compaction": _PLANNED,
    "schedule_log_compaction": _PLANNED,
    "repair": {
        **_MERGED,
        "instants": ("{1} {0}rolled back", "dead write"),
        "moved": ("{1} {0}moved aside", "file"),
        "put_back": ("{1} {0}put back", "file"),
    },
    "rescale_buckets": {
        "partitions": ("{1} {0}rescaled", "partition"),
        "file_groups": ("{1} {0}replaced", "file group"),
        "new_file_groups": ("{1} {0}made", "file group"),
    },
    SORT: {**_MERGED, "file_groups": ("{1} {0}sorted", "file group")},
    CREATE_INDEX: {
        "indexes": ("{1} {0}built", "partition"),
        "files": ("{1} {0}listed", "file"),
        "records": ("{1} {0}written", "record"),
    },
    DROP_INDEX: {"indexes": ("{1} {0}dropped", "partition")},
}
# By field of a commit's result, the noun and the verb of its count in a sentence.
_ROWS = {
    "inserts": ("row", "inserted"),
    "updates": ("row", "updated"),
    "deletes": ("row", "deleted"),
    "moved": ("row", "moved"),
    "not_found": ("delete", "without a row"),
    "dropped": ("row", "dropped"),
    "replaced": ("file group", "replaced"),
}
# By the same fields, the words after its count in the ``repr``.
_COUNTED = {
    "inserts": "inserted",
    "updates": "updated",
    "deletes": "deleted",
    "moved": "moved",
    "not_found": "not found",
    "dropped": "dropped",
    "replaced": "file groups replaced",
}


def result_of(timeline: Timeline, instant: Instant) -> CommitResult:
    """Return the result of a completed write on the timeline."""
    return result_from(timeline.files.storage.path, instant.requested_time, timeline.files.read_commit(instant))


def find_write(table: Table, timeline: Timeline, write_id: str) -> CommitResult | None:
    """Return the result of the newest completed write with an id; None if there is none.

    Only ids of users are searched in the archive, because pyhudi looks for generated ids right after the write.
    """
    # The newest write has the id most often, so look at it first; a new table has no write.
    for newest in timeline.writes[-1:]:
        result = result_of(timeline, newest)
        if result.write_id == write_id:
            return result
    instant = timeline.write_at(read_written(timeline).ids.get(write_id, ""))
    if instant is not None:
        return result_of(timeline, instant)
    archived = archived_write(table, write_id)
    return None if archived is None else archived_results(table, [archived])[archived]


def archived_results(table: Table, instants: Iterable[Instant]) -> Mapping[Instant, CommitResult]:
    """Return the results of archived writes; if the archive lacks the body of a write, its result has no counts."""
    instants, files = tuple(instants), table.instants
    results = {instant: CommitResult(table.path, instant.requested_time, "UNKNOWN") for instant in instants}
    for instant, body in table.archive.bodies(instants).items():
        where = f"{instant.requested_time} in the archive of {table.path}"
        metadata = files.decode_commit(instant, InstantBody(body, where))
        results[instant] = result_from(table.path, instant.requested_time, metadata)
    return results


def result_from(path: str, instant_time: str, metadata: CommitMetadata) -> CommitResult:
    """Return the result of a commit by its metadata, also of another engine's commit.

    ``path`` is the table's path, ``instant_time`` the requested time of the commit, and ``metadata`` the content of its
    completed file. Counts that pyhudi noted there win over the sums of the write statistics.
    """
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    # The sizes of log files under True, those of base files under False.
    sizes: dict[bool, list[int]] = {True: [], False: []}
    for stat in stats:
        sizes[log_file(stat.path or "", changes=True) is not None].append(stat.file_size_in_bytes)
    extra = metadata.extra_metadata
    # The files count a moved row as a delete and an insert, and log files do not distinguish inserts from updates.
    rows = _row_counts(_numbers_by_name(_json_value(extra.get(COUNTED)))) or RowCounts(
        inserts=_total(stat.num_inserts for stat in stats),
        updates=_total(stat.num_update_writes for stat in stats),
        deletes=_total(stat.num_deletes for stat in stats),
    )
    return CommitResult(
        path=path,
        instant=instant_time,
        operation=_operation_of(metadata),
        inserts=rows.inserts,
        updates=rows.updates,
        deletes=rows.deletes,
        moved=rows.moved,
        not_found=_count_in_text(extra.get(NOT_FOUND, "0")),
        dropped=_count_in_text(extra.get(DROPPED, "0")),
        replaced=sum(map(len, metadata.replaced.values())),
        files=len(sizes[False]),
        bytes=_total(sizes[False]),
        log_files=len(sizes[True]),
        log_bytes=_total(sizes[True]),
        seconds=_numbers_by_name(_json_value(extra.get(SECONDS))),
        write_id=extra.get(WRITE_ID, ""),
        lookup=_lookup_figures(_numbers_by_name(_json_value(extra.get(LOOKUP)))),
        repair=extra.get(REPAIR, ""),
        schema_changes=parse_changes(_json_value(extra.get(SCHEMA_CHANGES))),
        attempts=_count_in_text(extra.get(ATTEMPTS, "1")) or 1,
        met=_list_of_texts(_json_value(extra.get(MET))),
    )


def _operation_of(metadata: CommitMetadata) -> str:
    """Return Hudi's name of the operation, or pyhudi's name if Hudi has none."""
    extra = metadata.extra_metadata
    if RESCALED in extra:
        return RESCALE_OPERATION
    return SORT_OPERATION if SORTED in extra else metadata.operation_type or "UNKNOWN"


def _total(numbers: Iterable[int]) -> int:
    """Return a sum that any column of 64 bits can hold, because other writers may have stated any numbers."""
    return max(-_GREATEST, min(_GREATEST, sum(numbers)))


def _count_in_text(text: str) -> int:
    """Return a number that pyhudi wrote into extraMetadata; 0 if another writer wrote something else."""
    return int(text) if _COUNT.fullmatch(text) else 0


def _json_value(text: str | None) -> Any:
    """Return the value of a JSON text in extraMetadata; None if the text is missing or no JSON."""
    try:
        return None if text is None else parse_json(text)
    except ValueError:
        return None


def _list_of_texts(parsed: Any) -> tuple[str, ...]:
    """Return the texts of a parsed JSON list; an empty tuple if another writer wrote something else."""
    return tuple(parsed) if isinstance(parsed, list) and all(isinstance(value, str) for value in parsed) else ()


def _numbers_by_name(parsed: Any) -> dict[str, float]:
    """Return a parsed JSON object of numbers, such as seconds by phase; empty if other software wrote another value."""
    return parsed if isinstance(parsed, dict) and all(type(value) in {int, float} for value in parsed.values()) else {}


def _row_counts(counts: Mapping[str, float]) -> RowCounts | None:
    """Return the counts of rows from numbers by field of `RowCounts`; None if other software wrote the numbers.

    pyhudi writes exactly these fields, and no float.
    """
    names = [field.name for field in fields(RowCounts)]
    if set(counts) != set(names) or any(type(number) is float for number in counts.values()):
        return None
    return RowCounts(**{name: _total([int(counts[name])]) for name in names})


def _lookup_figures(figures: Mapping[str, float]) -> LookupFigures:
    """Return the figures of a lookup from numbers by field; all zero if pyhudi did not write exactly these fields."""
    names = [field.name for field in fields(LookupFigures)]
    if set(figures) != set(names) or any(type(figures[name]) is float for name in names if name != "seconds"):
        return LookupFigures()
    counts = {name: _total([int(figures[name])]) for name in names if name != "seconds"}
    return LookupFigures(**counts, seconds=float(figures["seconds"]))
