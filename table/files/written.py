"""What the completed writes of a timeline say of a table's files: which are the newest, and which were replaced.

The bodies of completed writes never change, and a process reads a growing timeline again and again. So what it has read
is folded into one answer, which later answers extend. It grows with the table's file groups, and has of each commit
only its instant and its write id.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...storage.base import split
from ...timeline.instants import Instant
from ...timeline.metadata.codec import CommitFiles, Stat
from .file_group import BaseFile, LogFile, StatedLog, log_file
from .log_names import LogNames
from .names import PARQUET

FileGroups = frozenset[tuple[str, str]]
BasesWritten = Mapping[str, Mapping[str, "BaseWritten"]]
LogsWritten = Mapping[str, Mapping[str, Mapping[str, "LogWritten"]]]


@dataclass(frozen=True, slots=True)
class LogWritten:
    """A log file by the last write that names it, and what its writes state about it."""

    instant: Instant
    stated: StatedLog


class BaseWritten(NamedTuple):
    """A base file's name, and its size as its write states it; 0 if the write states none, or several."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """What some completed writes say together.

    Attributes:
        newest: The newest base file by partition path and file id, replaced file groups included.
        replaced_by: The file groups that each replacecommit among them took away.
        logs: The log files that go with the newest base file, or with none, by partition path, file id and name.
        ids: The requested time of the newest write of each write id.
    """

    instants: frozenset[Instant] = frozenset()
    newest: BasesWritten = field(default_factory=dict)
    replaced_by: Mapping[Instant, FileGroups] = field(default_factory=dict)
    logs: LogsWritten = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def replaced(self) -> FileGroups:
        """The partition path and the file id of each file group that a replacecommit among them took away."""
        return _NONE.union(*self.replaced_by.values())

    @property
    def size(self) -> int:
        """How many files, file groups and replaced groups it holds, as a measure of the memory that it takes."""
        logs = sum(len(names) for groups in self.logs.values() for names in groups.values())
        return sum(map(len, self.newest.values())) + sum(map(len, self.replaced_by.values())) + logs

    @property
    def partitions(self) -> list[str]:
        """The partitions in which they left files of file groups that none of them replaced."""
        replaced = self.replaced
        all_partitions = [*self.newest, *(path for path in self.logs if path not in self.newest)]
        return [
            partition
            for partition in all_partitions
            if any((partition, file_id) not in replaced for file_id, _ in self.names(partition))
        ]

    def count_groups(self, passed_over: Container[str]) -> int:
        """Return the number of file groups that no write replaced, outside the partitions in ``passed_over``."""
        counted = (partition for partition in {*self.newest, *self.logs} if partition not in passed_over)
        return len(
            {(partition, file_id) for partition in counted for file_id, _ in self.names(partition)} - self.replaced
        )

    def count_groups_in(self, partitions: Iterable[str]) -> int:
        """Return the number of file groups in some partitions that no write replaced."""
        groups = {(partition, file_id) for partition in partitions for file_id, _ in self.names(partition)}
        return len(groups - self.replaced)

    def stated(self, log: LogFile) -> StatedLog | None:
        """Return what the write that made a log file states about it; None if no write names it with a size."""
        log_written = self.logs.get(split(log.path)[0], {}).get(log.file_id, {}).get(split(log.path)[1])
        return None if log_written is None or not log_written.stated.size else log_written.stated

    def stated_size(self, base: BaseFile) -> int:
        """Return the size of a base file as the write that made it states it; 0 if none of the writes states it."""
        partition_path, name = split(base.path)
        newest = self.newest.get(partition_path, {}).get(base.file_id)
        return newest.size if newest is not None and newest.name == name else 0

    def names(self, partition_path: str) -> Iterator[tuple[str, str]]:
        """Yield the file id and the name of each base and log file that is held of a partition."""
        yield from ((file_id, base.name) for file_id, base in self.newest.get(partition_path, {}).items())
        for file_id, names in self.logs.get(partition_path, {}).items():
            yield from ((file_id, name) for name in names)

    def requested_since(self, first: str) -> Written:
        """Return what the writes requested at the time ``first`` or later say together.

        Callers pass the time of the oldest write on the timeline, so that archived writes leave the answer.
        """
        earlier = [instant for instant in self.instants if instant.requested_time < first]
        if not earlier:
            return self
        instants = self.instants.difference(earlier)
        newest = {
            partition: {file_id: base for file_id, base in bases.items() if time_in(base.name) >= first}
            for partition, bases in self.newest.items()
        }
        replaced_by = {instant: groups for instant, groups in self.replaced_by.items() if instant in instants}
        logs = {
            partition: {
                file_id: late_logs
                for file_id, names in groups.items()
                if (late_logs := {name: log for name, log in names.items() if log.instant.requested_time >= first})
            }
            for partition, groups in self.logs.items()
        }
        return Written(
            instants,
            {partition: bases for partition, bases in newest.items() if bases},
            replaced_by,
            {partition: groups for partition, groups in logs.items() if groups},
            {write_id: time for write_id, time in self.ids.items() if time >= first},
        )

    def joined_by(self, bodies: Iterable[tuple[Instant, CommitFiles]], names: LogNames) -> Written:
        """Return what the writes and further writes, in order of requested time, say together.

        ``bodies`` has each further write with the metadata of its commit. ``names`` says how log files of the table are
        named, and so which of them several writes may have made.
        """
        newest, replaced_by, instants, ids = dict(self.newest), dict(self.replaced_by), set(self.instants), {**self.ids}
        logs: dict[str, dict[str, dict[str, LogWritten]]] = {}
        newest_time = max((instant.requested_time for instant in self.instants), default="")
        for instant, body in bodies:
            instants.add(instant)
            if body.write_id:
                ids[body.write_id] = max(ids.get(body.write_id, ""), instant.requested_time)
            replaced = body.replaced.items()
            if replaced:
                replaced_by[instant] = frozenset((path, file_id) for path, groups in replaced for file_id in groups)
            for partition, stats in body.stats.items():
                old_bases, bases = newest.get(partition, {}), bases_in(stats)
                if instant.requested_time < newest_time:  # requested before a write that completed earlier
                    bases = {
                        file_id: base
                        for file_id, base in bases.items()
                        if time_in(base.name) > _base_time(old_bases, file_id)
                    }
                newest[partition] = {**old_bases, **bases}
                for file_id, name, stated in logs_in(stats, instant, body.by_pyhudi):
                    of_group = logs.setdefault(partition, {}).setdefault(file_id, {})
                    known_log = of_group.get(name) or self.logs.get(partition, {}).get(file_id, {}).get(name)
                    of_group[name] = LogWritten(instant, stated if names.says_maker else _shared(stated, known_log))
        return Written(frozenset(instants), newest, replaced_by, _still_newest(self.logs, logs, newest, names), ids)


def _still_newest(old_logs: LogsWritten, new_logs: LogsWritten, newest: BasesWritten, rule: LogNames) -> LogsWritten:
    """Return the log files that go with the newest base file of their file group, or with none.

    ``old_logs`` and ``new_logs`` have the log files of earlier and of further writes, ``newest`` the base files of all,
    and ``rule`` says by its name whether a log file belongs to a base file.
    """
    if not old_logs and not new_logs:
        return old_logs
    newest_logs: dict[str, dict[str, Mapping[str, LogWritten]]] = {}
    for partition in {**old_logs, **new_logs}:
        old_groups, new_groups = old_logs.get(partition, {}), new_logs.get(partition, {})
        for file_id in {**old_groups, **new_groups}:
            base_time = _base_time(newest.get(partition, {}), file_id)
            names = {**old_groups.get(file_id, {}), **new_groups.get(file_id, {})}
            fitting = {name: log for name, log in names.items() if rule.fits(name, log.instant, base_time)}
            if fitting:
                newest_logs.setdefault(partition, {})[file_id] = fitting
    return newest_logs


def _shared(stated: StatedLog, known_log: LogWritten | None) -> StatedLog:
    """Return what a write, and those before it (``known_log``), state of a log file to which others may append."""
    if known_log is None:
        return replace(stated, shared=True)
    earlier = known_log.stated
    return StatedLog(
        max(earlier.size, stated.size),
        earlier.records + stated.records,
        earlier.by_pyhudi and stated.by_pyhudi,
        tuple(dict.fromkeys([*earlier.makers, *stated.makers])),
        shared=True,
    )


def _base_time(bases: Mapping[str, BaseWritten], file_id: str) -> str:
    """Return the time in the name of a file group's base file; "" if it has none."""
    return time_in(bases[file_id].name) if file_id in bases else ""


def time_in(name: str) -> str:
    """Return the instant time in a base file's name."""
    return name.rpartition("_")[2].removesuffix(PARQUET)


_NONE: FileGroups = frozenset()


def bases_in(stats: Iterable[Stat]) -> dict[str, BaseWritten]:
    """Return the base files in a write's statistics of one partition, by file id.

    Apache Hudi's writers for Flink may write one file anew, with a statistic each time; its size counts as unstated.
    Source: ``FlinkMergeHandle``.
    """
    bases: dict[str, BaseWritten] = {}
    for stat in stats:
        file_id, name = stat.get("fileId"), (stat.get("path") or "").rpartition("/")[2]
        if file_id and name.endswith(PARQUET):
            base = BaseWritten(name, stat.get("fileSizeInBytes") or 0)
            known_base = bases.get(file_id, base)
            bases[file_id] = base if known_base.name != name or known_base.size == base.size else BaseWritten(name, 0)
    return bases


def logs_in(stats: Iterable[Stat], write: Instant, by_pyhudi: bool) -> Iterator[tuple[str, str, StatedLog]]:
    """Yield file id and name of each log file in a write's statistics of one partition, and what they state of it."""
    logs: dict[tuple[str, str], StatedLog] = {}
    makers = (write.requested_time,)
    for stat in stats:
        file_id, name = stat.get("fileId"), (stat.get("path") or "").rpartition("/")[2]
        if file_id and name.startswith(".") and log_file(name) is not None:
            size = stat.get("fileSizeInBytes") or 0
            records = (stat.get("numWrites") or 0) + (stat.get("numDeletes") or 0)
            # Of several statistics of one file the greatest numbers count.
            earlier = logs.get((file_id, name), StatedLog(0, 0, by_pyhudi, makers))
            logs[file_id, name] = StatedLog(max(earlier.size, size), max(earlier.records, records), by_pyhudi, makers)
    yield from ((file_id, name, stated) for (file_id, name), stated in logs.items())
