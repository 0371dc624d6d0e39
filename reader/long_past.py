"""Moments among archived writes: which of them are known exactly, and the first that can be read whole.

The bodies of all writes that were requested until a moment determine it: they name the newest files of every file group
and the file groups that were replaced. Decision 62 lists what makes a moment undecidable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from ..storage.base import join
from ..table.files.cleaned import files_of
from ..table.files.file_group import data_file
from ..table.files.log_names import LogNames, log_names
from ..table.files.read_written import read_written
from ..table.files.written import bases_in, logs_in, time_in
from ..table.seen_table import SeenTable
from ..timeline.archive.history import SilentArchiveError, undone, with_archived
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .listed_files import ListedFiles, Moment, SliceFilter


def reach_back(seen: SeenTable, time: str) -> Timeline | None:
    """Return a timeline with the archived instants, which covers a moment before the first write.

    None if the archive begins later, or does not determine the moment exactly.
    """
    history = with_archived(seen.table.archive, seen.timeline)
    if history is None:
        return None
    shown_timeline = history.as_of_request(time)
    times = [instant.requested_time for instant in shown_timeline.writes]
    if not times:
        return None
    try:
        # A write that was archived, and undone before it left the timeline, is in the archive as if it were complete.
        if not undone(history).isdisjoint(times):
            return None
        # Raises SilentArchiveError if the archive lacks the body of a write.
        read_written(shown_timeline)
    except SilentArchiveError:
        return None
    return history


def first_readable_write(seen: SeenTable, after: str, wanted: SliceFilter | None = None) -> Instant:
    """Return the first completed write from a time on as of which the whole table can be read.

    ``after`` is before the first write of the timeline.
    """
    wanted = wanted or SliceFilter()
    first_time = seen.timeline.writes[0].requested_time
    history = with_archived(seen.table.archive, seen.timeline)
    archived_writes = (
        [instant for instant in history.writes if after <= instant.requested_time < first_time] if history else []
    )
    # The archive helps only if it determines what the table had at the first of these writes.
    if history is not None and archived_writes and reach_back(seen, archived_writes[0].requested_time) is not None:
        try:
            shown = SeenTable(seen.table, history.as_of_request(after))
            files = ListedFiles.find(shown, history, after)
        except SilentArchiveError:
            files = None
        archived = files and _first_readable_archived_write(files, history, wanted, after, first_time)
        if archived:
            return archived
    files = ListedFiles.find(seen, seen.timeline, first_time)
    return next_readable_write(files, wanted, first_time) or seen.timeline.writes[-1]


def next_readable_write(files: ListedFiles, wanted: SliceFilter, time: str) -> Instant | None:
    """Return the first write requested from a time on as of which no file is lost; None if there is none."""
    timeline = files.seen.timeline
    later_writes = [instant for instant in timeline.writes if instant.requested_time >= time]
    readable = (
        instant
        for instant in later_writes
        if not wanted.lost(files, Moment.of_request(timeline, instant.requested_time))
    )
    return next(readable, None)


def first_unknown_write(files: ListedFiles, wanted: SliceFilter) -> str:
    """Return the least time in the name of a file whose write is unknown; "" if there is none.

    The write may be missing from the archive, or may never have completed. ``files`` are of a moment among archived
    writes.
    """
    history = files.now
    write_times = {instant.requested_time for instant in history.instants if instant.is_write}
    listed = (data_file(info.path) for infos in files.listings.values() for info in infos)
    cleaned = (file for found in files_of(clean for _, clean in files.cleans).values() for file in found)
    files_to_explain = [
        file
        for file in (*listed, *cleaned)
        if file is not None and wanted.partition(file.path.rpartition("/")[0]) and wanted.file(file)
    ]
    return min(files.seen.table.format.makers(files_to_explain, history) - write_times, default="")


def _first_readable_archived_write(
    files: ListedFiles, history: Timeline, wanted: SliceFilter, after: str, before: str
) -> Instant | None:
    """Return the first archived write from ``after`` on, before ``before``, as of which no file is lost.

    None if there is none before the first unknown write.
    """
    end = first_unknown_write(files, wanted)
    end = min(end, before) if end else before
    present = {info.path for infos in files.listings.values() for info in infos}

    def is_lost(path: str) -> bool:
        file = data_file(path)
        wants = file is not None and wanted.partition(path.rpartition("/")[0]) and wanted.file(file)
        return wants and path not in present

    try:
        for instant in _readable_writes(history, end, is_lost):
            time = instant.requested_time
            if time >= after and not wanted.lost(files, Moment.of_request(history, time)):
                return instant
    except SilentArchiveError:
        pass  # later writes are unknown, too
    return None


def _readable_writes(history: Timeline, end: str, is_lost: Callable[[str], bool]) -> Iterator[Instant]:
    """Yield the writes before the time ``end`` as of which the newest slices lack no file that the writes name.

    ``is_lost`` says of a path whether a wanted file is gone.
    """
    groups: dict[tuple[str, str], _NewestSlice] = defaultdict(partial(_NewestSlice, log_names(history)))
    replaced_groups: set[tuple[str, str]] = set()
    broken_groups: set[tuple[str, str]] = set()
    for instant in history.writes:
        if instant.requested_time >= end:
            return
        body = history.files.read_written_files(instant)
        written_groups: set[tuple[str, str]] = set()
        for partition, stats in body.stats.items():
            for file_id, base in bases_in(stats).items():
                written_groups.add((partition, file_id))
                groups[partition, file_id].begin(base.name)
            for file_id, name, _ in logs_in(stats, instant, body.by_pyhudi):
                written_groups.add((partition, file_id))
                groups[partition, file_id].append(name, instant)
        for partition, ids in body.replaced.items():
            replaced_groups.update((partition, file_id) for file_id in ids)
        lacking_groups = {group for group in written_groups if any(map(is_lost, groups[group].paths(group[0])))}
        # A write can complete a slice with a newer base file, and a replaced file group no longer matters.
        broken_groups = (broken_groups - written_groups | lacking_groups) - replaced_groups
        if not broken_groups:
            yield instant


@dataclass(slots=True)
class _NewestSlice:
    """The newest slice of a file group, as the writes so far name its files."""

    names: LogNames
    base: str = ""
    logs: dict[str, Instant] = field(default_factory=dict)

    def begin(self, name: str) -> None:
        """Take a newer base file; of the log files those stay that belong to it."""
        if time_in(name) >= time_in(self.base):
            self.base = name
            self.logs = {log: write for log, write in self.logs.items() if self.names.fits(log, write, time_in(name))}

    def append(self, name: str, instant: Instant) -> None:
        """Take a log file, unless it belongs to an older base file."""
        if self.names.fits(name, instant, time_in(self.base)):
            self.logs[name] = instant

    def paths(self, partition: str) -> list[str]:
        return [join(partition, name) for name in (self.base, *self.logs) if name]
