"""What the completed writes of a timeline say of a table's files: which are the newest, and which were replaced.

The bodies of completed writes never change, and a process reads a growing timeline again and again. So what it has read
is folded into one answer, which later answers extend. It grows with the table's file groups, not with its commits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

from ...errors import StorageError
from ...storage.base import split
from ...storage.parallel import for_each
from ...timeline.instants import Instant
from ...timeline.metadata.codec import CommitFiles, Stat
from ...timeline.timeline import Timeline
from .file_group import LogFile, StatedLog, log_file
from .names import PARQUET

FileGroups = frozenset[tuple[str, str]]
LogsWritten = Mapping[str, Mapping[str, Mapping[str, "LogWritten"]]]
# Bounds of what a process keeps: enough for the tables of one job, or for a few large tables.
_MOST_KNOWN = 32
_MOST_NAMES = 500_000


@dataclass(frozen=True, slots=True)
class LogWritten:
    instant: Instant
    stated: StatedLog


@dataclass(frozen=True, slots=True)
class Written:
    """What some completed writes say together.

    Attributes:
        newest: The name of the newest base file by partition path and file id, replaced file groups included.
        replaced_by: The file groups that each replacecommit among them took away.
        logs: The log files that go with the newest base file, or with none, by partition path, file id and name.
    """

    instants: frozenset[Instant] = frozenset()
    newest: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    replaced_by: Mapping[Instant, FileGroups] = field(default_factory=dict)
    logs: LogsWritten = field(default_factory=dict)

    @property
    def replaced(self) -> FileGroups:
        return _NONE.union(*self.replaced_by.values())

    @property
    def size(self) -> int:
        logs = sum(len(names) for groups in self.logs.values() for names in groups.values())
        return sum(map(len, self.newest.values())) + sum(map(len, self.replaced_by.values())) + logs

    @property
    def partitions(self) -> list[str]:
        """The partitions in which they left files of file groups that none of them replaced."""
        replaced = self.replaced
        every = [*self.newest, *(path for path in self.logs if path not in self.newest)]
        return [
            partition
            for partition in every
            if any((partition, file_id) not in replaced for file_id, _ in self.names(partition))
        ]

    def count_groups(self, passed_over: Container[str]) -> int:
        """Return the number of live file groups outside the partitions in ``passed_over``."""
        others = (partition for partition in {*self.newest, *self.logs} if partition not in passed_over)
        return len({(other, file_id) for other in others for file_id, _ in self.names(other)} - self.replaced)

    def stated(self, log: LogFile) -> StatedLog | None:
        """Return what the write that made a log file states about it; None where none of the writes names it."""
        found = self.logs.get(split(log.path)[0], {}).get(log.file_id, {}).get(split(log.path)[1])
        return None if found is None or not found.stated.size else found.stated

    def names(self, partition_path: str) -> Iterator[tuple[str, str]]:
        """Yield the file id and the name of each base and log file that is held of a partition."""
        yield from self.newest.get(partition_path, {}).items()
        for file_id, names in self.logs.get(partition_path, {}).items():
            yield from ((file_id, name) for name in names)

    def since(self, first: str) -> Written:
        kept = frozenset(instant for instant in self.instants if instant.requested_time >= first)
        if len(kept) == len(self.instants):
            return self
        newest = {
            partition: {file_id: name for file_id, name in names.items() if time_in(name) >= first}
            for partition, names in self.newest.items()
        }
        replaced_by = {instant: groups for instant, groups in self.replaced_by.items() if instant in kept}
        logs = {
            partition: {
                file_id: left
                for file_id, names in groups.items()
                if (left := {name: log for name, log in names.items() if log.instant.requested_time >= first})
            }
            for partition, groups in self.logs.items()
        }
        return Written(
            kept,
            {partition: names for partition, names in newest.items() if names},
            replaced_by,
            {partition: groups for partition, groups in logs.items() if groups},
        )

    def joined_by(self, bodies: Iterable[tuple[Instant, CommitFiles]]) -> Written:
        """Return what the writes and further writes, in order of requested time, say together."""
        newest, replaced_by, instants = dict(self.newest), dict(self.replaced_by), set(self.instants)
        logs: dict[str, dict[str, dict[str, LogWritten]]] = {}
        last = max((one.requested_time for one in self.instants), default="")
        for instant, body in bodies:
            instants.add(instant)
            replaced = body.replaced.items()
            if replaced:
                replaced_by[instant] = frozenset((partition, one) for partition, ids in replaced for one in ids)
            for partition, stats in body.stats.items():
                known, names = newest.get(partition, {}), dict(_base_files(stats))
                if instant.requested_time < last:  # requested before a write that completed earlier
                    names = {
                        file_id: name
                        for file_id, name in names.items()
                        if time_in(name) > time_in(known.get(file_id, ""))
                    }
                newest[partition] = {**known, **names}
                for file_id, name, stated in logs_in(stats, body.by_pyhudi):
                    logs.setdefault(partition, {}).setdefault(file_id, {})[name] = LogWritten(instant, stated)
        return Written(frozenset(instants), newest, replaced_by, _still_newest(self.logs, logs, newest))


def read_written(timeline: Timeline) -> Written:
    """Return what the completed writes of a timeline say; bodies that the process knows are not read again."""
    writes = timeline.writes
    if not writes:
        return Written()
    place, wanted = (timeline.storage.path, timeline.files.place), frozenset(writes)
    first = writes[0].requested_time
    base = _best_known(place, wanted, first)
    if base.instants == wanted:
        return base
    fresh = [write for write in writes if write not in base.instants]
    found = base.since(first).joined_by(zip(fresh, _read(timeline, fresh), strict=True))
    with _LOCK:
        _KNOWN.pop((place, base.instants), None)
        _KNOWN[place, wanted] = found
        while len(_KNOWN) > _MOST_KNOWN or (
            len(_KNOWN) > 1 and sum(written.size for written in _KNOWN.values()) > _MOST_NAMES
        ):
            _KNOWN.popitem(last=False)
    return found


def read_replaced(timeline: Timeline) -> Written:
    """Return at least what completed writes say of replaced file groups; it reads fewer bodies than `read_written`."""
    return _read_some(timeline, lambda write: write.replaces)


def read_stated(timeline: Timeline, times: Container[str]) -> Written:
    """Return at least what the completed writes of some requested times say; no other bodies are read."""
    return _read_some(timeline, lambda write: write.requested_time in times)


def _read_some(timeline: Timeline, wanted: Callable[[Instant], bool]) -> Written:
    writes = timeline.writes
    if not writes:
        return Written()
    place, first = (timeline.storage.path, timeline.files.place), writes[0].requested_time
    known = _best_known(place, frozenset(writes), first).since(first)
    fresh = [write for write in writes if wanted(write) and write not in known.instants]
    return known.joined_by(zip(fresh, _read(timeline, fresh), strict=True))


def _best_known(place: _Place, wanted: frozenset[Instant], first: str) -> Written:
    """Return what the process knows of most of the wanted writes; older, since archived writes may be among them."""
    with _LOCK:
        exact = _KNOWN.get((place, wanted))
        if exact is not None:
            _KNOWN.move_to_end((place, wanted))
            return exact
        usable = [
            known
            for (where, instants), known in _KNOWN.items()
            if where == place and all(instant.requested_time < first for instant in instants - wanted)
        ]
    return max(usable, key=lambda known: len(known.instants & wanted), default=Written())


def _read(timeline: Timeline, writes: list[Instant]) -> list[CommitFiles]:
    """Return the bodies of some writes; an empty body for a write that was archived since the timeline was read."""
    try:
        return for_each(timeline.storage, timeline.files.read_written_files, writes)
    except StorageError:
        now = timeline.reload()
        left = frozenset(now.instants)
        gone = [write for write in writes if write not in left]
        first = now.writes[0].requested_time if now.writes else ""
        if not gone or any(instant.requested_time >= first for instant in gone):
            raise
        bodies = iter(_read(now, [write for write in writes if write in left]))
        return [next(bodies) if write in left else CommitFiles() for write in writes]


def _still_newest(known: LogsWritten, fresh: LogsWritten, newest: Mapping[str, Mapping[str, str]]) -> LogsWritten:
    """Return the log files that go with the newest base file of their file group, or with none."""
    if not known and not fresh:
        return known
    found: dict[str, dict[str, Mapping[str, LogWritten]]] = {}
    for partition in {**known, **fresh}:
        before, added = known.get(partition, {}), fresh.get(partition, {})
        for file_id in {**before, **added}:
            since = time_in(newest.get(partition, {}).get(file_id, ""))
            names = {**before.get(file_id, {}), **added.get(file_id, {})}
            left = {name: log for name, log in names.items() if log.instant.visible_since >= since}
            if left:
                found.setdefault(partition, {})[file_id] = left
    return found


def time_in(name: str) -> str:
    return name.rpartition("_")[2].removesuffix(PARQUET)


_NONE: FileGroups = frozenset()
_Place = tuple[str, str]
# The key is the table's path with its timeline's folder, and the writes.
_KNOWN: OrderedDict[tuple[_Place, frozenset[Instant]], Written] = OrderedDict()
_LOCK = Lock()


def _base_files(stats: Iterable[Stat]) -> Iterator[tuple[str, str]]:
    for stat in stats:
        file_id, name = stat.get("fileId"), (stat.get("path") or "").rpartition("/")[2]
        if file_id and name.endswith(PARQUET):
            yield file_id, name


def logs_in(stats: Iterable[Stat], by_pyhudi: bool) -> Iterator[tuple[str, str, StatedLog]]:
    """Yield file id and name of each log file in a write's statistics of one partition, and what they state of it."""
    found: dict[tuple[str, str], StatedLog] = {}
    for stat in stats:
        file_id, name = stat.get("fileId"), (stat.get("path") or "").rpartition("/")[2]
        if file_id and name.startswith(".") and log_file(name) is not None:
            size = stat.get("fileSizeInBytes") or 0
            records = (stat.get("numWrites") or 0) + (stat.get("numDeletes") or 0)
            known = found.get((file_id, name), StatedLog(0, 0, by_pyhudi))
            found[file_id, name] = StatedLog(max(known.size, size), max(known.records, records), by_pyhudi)
    yield from ((file_id, name, stated) for (file_id, name), stated in found.items())
