"""The file slices of any moment of a table's history, or an error where cleaning has taken some of them away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import UnreadableTimeError
from ..storage.base import FileInfo, Storage, split
from ..storage.parallel import for_each
from ..table.files.cleaned import Clean, cleaned_since, read_cleans
from ..table.files.file_group import DataFile, FileSlice
from ..table.files.long_replaced import without_long_replaced
from ..table.files.lost import superseded
from ..table.files.names import PARQUET
from ..table.files.partitions import metafile_of, walk_partitions
from ..table.files.view import FileView
from ..table.files.written import read_written
from ..table.table import Table
from ..timeline.archive.history import SilentArchiveError, with_archived
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .long_past import first_untold, first_whole_archived, reach_back
from .moment import Moment
from .query import AS_OF, BEGIN, END, FULL_SCAN, AsOf, Changes, Query
from .window import Window, plan_window

logger = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The files of some partitions with what happened to them; the slices of any moment follow from it.

    Attributes:
        table: The table.
        timeline: As of the moment at which the query was made.
        listings: The files, by partition path.
        now: A timeline that names every clean which took some of the files before they were listed.
        cleans: Those cleans, as far as they matter.
        everything: Whether all partitions were to be listed, less those that nobody asks for.
    """

    table: Table
    timeline: Timeline
    listings: Mapping[str, tuple[FileInfo, ...]]
    now: Timeline
    cleans: list[tuple[Instant, Clean]]
    everything: bool

    @classmethod
    def find(
        cls,
        table: Table,
        timeline: Timeline,
        now: Timeline,
        time: str,
        partitions: Iterable[str] | None,
        asked: Callable[[str], bool] | None = None,
    ) -> ListedFiles:
        """List partitions, and read what may be missing there for a reader of any moment from ``time`` on.

        Args:
            table: The table.
            timeline: As of the moment at which the query was made.
            now: As it was a moment ago.
            time: The moment.
            partitions: Their paths; None for all.
            asked: Whether the query may need a partition, of all of them; None where it may need each.
        """
        storage = table.storage
        if partitions is None:
            listings = walk_partitions(storage) if asked is None else _listed(storage, timeline, asked)
        else:
            names = sorted(partitions)
            found = for_each(storage, storage.list, names)
            listings = {name: tuple(files) for name, files in zip(names, found, strict=True)}
        if not _names_all_cleans(now, time, listings):
            now = timeline.reload()
        return cls(table, timeline, listings, now, read_cleans(now, time), partitions is None)

    def at(self, timeline: Timeline, time: str) -> tuple[FileView, list[str]]:
        """Return the view of a moment, and the partitions in which it may show or miss something."""
        cleaned = cleaned_since(self.cleans, self.now, timeline, time)
        view = FileView(timeline, read_written(timeline), self.listings, cleaned)
        named = view.named_partitions() if self.everything else []
        return view, sorted({*self.listings, *cleaned, *named})

    def unlisted(self, timeline: Timeline) -> int:
        """Return how many file groups the writes of a moment name in partitions that were not listed.

        Of partitions that archived writes alone name nobody knows here.
        """
        return read_written(timeline).count_groups(self.listings) if self.everything else 0

    def taken(
        self, lost: Iterable[DataFile], timeline: Timeline, time: str, now: Timeline | None = None
    ) -> list[DataFile]:
        """Return those of a moment's lost files that cleans took away.

        Args:
            lost: The files.
            timeline: Of the moment.
            time: The moment.
            now: The timeline as it is, after the files were listed; None where it is to be read.

        Raises:
            MissingFileError: Nobody had reason to take one of the others away.
            StorageError: One of the others was rolled back.
        """
        cleaned = cleaned_since(self.cleans, self.now, timeline, time)
        named = {file.path for files in cleaned.values() for file in files}
        by_cleans = [one for one in lost if one.path in named]
        others = [one for one in lost if one.path not in named]
        return [*by_cleans, *superseded(timeline, others, now)]


@dataclass(frozen=True, slots=True)
class SliceFilter:
    """Which slices a query wants to see.

    Attributes:
        partition: Whether it wants those of a partition.
        file: Whether it has a use for a file.
        written: Whether a slice that holds such a file is wanted for its sake; its other files are needed then, too.
    """

    partition: Callable[[str], bool] = lambda path: True
    file: Callable[[DataFile], bool] = lambda file: True
    written: Callable[[DataFile], bool] = lambda file: True

    def narrowed(self, partition: Callable[[str], bool], file: Callable[[DataFile], bool]) -> SliceFilter:
        """Return what a query wants that is interested in some partitions and files of these alone."""
        return SliceFilter(
            lambda path: self.partition(path) and partition(path),
            lambda one: file(one) and self.file(one),
            self.written,
        )

    def lost(self, files: ListedFiles, timeline: Timeline, time: str) -> list[DataFile]:
        """Return the files of a moment that are not there any more."""
        view, partitions = files.at(timeline, time)
        lost = [file for path in partitions if self.partition(path) for file in self._lost(view, path)]
        return without_long_replaced(files.table.archive, timeline, lost)

    def slices(self, files: ListedFiles, timeline: Timeline, time: str) -> list[FileSlice]:
        """Return the file slices of a moment."""
        view, partitions = files.at(timeline, time)
        return [one for path in partitions if self.partition(path) for one in self._slices(view, path)]

    def _slices(self, view: FileView, partition_path: str) -> list[FileSlice]:
        found = view.slices(partition_path).values()
        return [one for one in found if any(self.file(file) and self.written(file) for file in one.data_files)]

    def _lost(self, view: FileView, partition_path: str) -> list[DataFile]:
        lost = [file for file in view.lost(partition_path) if self.file(file)]
        if all(map(self.written, lost)):
            return lost
        # Without its base file a slice would show what that beats, and without a log file what that took away.
        groups = {one.file_id for one in self._slices(view, partition_path)}
        groups |= {one.file_id for one in lost if self.written(one)}
        return [file for file in lost if file.file_id in groups]


def slices_shown(
    table: Table,
    timeline: Timeline,
    now: Timeline,
    moment: Moment,
    query: Query | None,
    wanted: SliceFilter,
    every: SliceFilter | None = None,
) -> list[FileSlice]:
    """Return the file slices that a query shows, in order of partition path and file id.

    Args:
        table: The table.
        timeline: As of the moment at which the query was made.
        now: As it was a moment ago.
        moment: What of it the query shows.
        query: None for the table as it is.
        wanted: What of that is wanted.
        every: What would be wanted without the query's condition, which the log counts at the level INFO, of partitions
            that nobody lists by the names in commits; None where it has none.

    Raises:
        UnreadableTimeError: A clean took away a file that would be among them, or nobody knows what an archived commit
            of the window wrote.
        MissingFileError: Such a file is gone, and no clean took it.
        StorageError: Such a file was rolled back meanwhile.
    """
    window = moment.window
    if window is not None and not window.instants:
        return []
    if moment.history is not None:
        spelled = query.time if isinstance(query, AsOf) else moment.time
        return _slices_of_long_ago(table, timeline, moment.history, moment, spelled, wanted, every)
    partitions = None
    if window is not None and window.times is not None:
        partitions = _written(table, timeline, window, isinstance(query, Changes) and query.full_scan)
    asked = None if every is None else wanted.partition
    files = ListedFiles.find(table, timeline, now, moment.time, partitions, asked)
    inside = _inside(window, wanted)
    lost = files.taken(inside.lost(files, moment.timeline, moment.time), moment.timeline, moment.time)
    if not lost:
        return _found(files, moment, inside, every)
    gone = f"cleaning has taken away {len(lost)} of the files that show it, {lost[0].path} among them"
    if isinstance(query, AsOf):
        raise _no_such_past(files, moment, query, wanted, gone)
    if window is None or window.end is None:
        raise UnreadableTimeError(
            f"The table {table.path} cannot be shown any more as it was when this DataFrame was made: {gone}.",
            "Make the DataFrame anew.",
        )
    raise _no_such_window(files, window, wanted, lost, gone)


def first_whole(table: Table, timeline: Timeline, after: str, wanted: SliceFilter | None = None) -> Instant:
    """Return the first completed write from a time on as of which the whole table can be shown.

    Args:
        table: The table.
        timeline: As of the moment at which the query was made.
        after: A time before the first write of the timeline.
        wanted: What has to be shown; None for everything.
    """
    wanted = wanted or SliceFilter()
    first = timeline.writes[0]
    history = with_archived(table.archive, timeline)
    begun = [one for one in history.writes if after <= one.requested_time < first.requested_time] if history else []
    if history is not None and begun and reach_back(table, timeline, begun[0].requested_time) is not None:
        try:
            files = ListedFiles.find(table, history.as_of_request(after), history, after, None)
        except SilentArchiveError:
            files = None
        archived = files and first_whole_archived(files, history, wanted, after, first.requested_time)
        if archived:
            return archived
    files = ListedFiles.find(table, timeline, timeline, first.requested_time, None)
    return _next_whole(files, wanted, first.requested_time)


def _slices_of_long_ago(
    table: Table,
    timeline: Timeline,
    history: Timeline,
    moment: Moment,
    spelled: str,
    wanted: SliceFilter,
    every: SliceFilter | None,
) -> list[FileSlice]:
    """Return the file slices of a moment among archived writes; see `slices_shown`."""
    asked = None if every is None else wanted.partition
    gone = "its archive does not say what was cleaned since"
    try:
        files = ListedFiles.find(table, moment.timeline, history, moment.time, None, asked)
        untold = first_untold(files, wanted)
        if untold and untold <= moment.time:
            gone = f"nothing tells whether the write {untold}, of which there are files, was complete"
        else:
            lost = wanted.lost(files, moment.timeline, moment.time)
            if not lost:
                return _found(files, moment, wanted, every)
            gone = f"{len(lost)} of the files that show it are gone, {lost[0].path} among them"
            files.taken(lost, moment.timeline, moment.time, files.now)
            gone = f"cleaning has taken away {len(lost)} of the files that show it, {lost[0].path} among them"
    except SilentArchiveError as error:
        logger.info("table %s: %s", table.path, error)
    raise _not_shown(table, spelled, gone, first_whole(table, timeline, moment.time, wanted))


def _found(files: ListedFiles, moment: Moment, inside: SliceFilter, every: SliceFilter | None) -> list[FileSlice]:
    """Return the file slices of a moment, and log how many a condition leaves out."""
    found = inside.slices(files, moment.timeline, moment.time)
    if every is not None and logger.isEnabledFor(logging.INFO):
        listed = every.narrowed(files.listings.__contains__, lambda file: True)
        whole = len(_inside(moment.window, listed).slices(files, moment.timeline, moment.time))
        whole += files.unlisted(moment.timeline)
        path, left_out = files.table.path, whole - len(found)
        logger.info("table %s: partitions and buckets leave out %d of %d file slices", path, left_out, whole)
    return found


def _listed(storage: Storage, timeline: Timeline, asked: Callable[[str], bool]) -> dict[str, tuple[FileInfo, ...]]:
    """Return the files of partitions, less those that nobody asks for: a write or its metafile tells that it is one."""
    named = frozenset(read_written(timeline).partitions)
    return walk_partitions(
        storage, lambda folder: not asked(folder) and (folder in named or storage.exists(metafile_of(folder)))
    )


def _names_all_cleans(timeline: Timeline, time: str, listings: Mapping[str, tuple[FileInfo, ...]]) -> bool:
    """Return whether every clean that may have taken slices of a moment before they were listed is on the timeline.

    Slices of the present go only after newer ones were written, which are there for all to see.
    """
    if time < timeline.completed_until:
        return False
    newest = timeline.instants[-1].requested_time if timeline.instants else ""
    names = (split(info.path)[1] for files in listings.values() for info in files)
    return not any(name.rpartition("_")[2] > newest + PARQUET for name in names if name.endswith(PARQUET))


def _written(table: Table, timeline: Timeline, window: Window, full_scan: bool) -> frozenset[str] | None:
    """Return the partitions that the commits of a window wrote to; None where nobody knows, and all may be looked at.

    Raises:
        UnreadableTimeError: Nobody knows, and not all may be looked at.
    """
    active = {one.requested_time for one in timeline.writes}
    commits = for_each(
        table.storage,
        timeline.files.read_written_files,
        [one for one in window.instants if one.requested_time in active],
    )
    archived = [one for one in window.instants if one.requested_time not in active]
    bodies = table.archive.bodies(archived)
    untold = [one for one in archived if one not in bodies]
    if untold and full_scan:
        return None
    if untold:
        raise UnreadableTimeError(
            f"What changed in the table {table.path} since {window.begin} cannot be told: the archive does not say "
            f"what the {untold[-1].action} {untold[-1].requested_time} wrote, so that the first readable begin is "
            f"{max(one.visible_since for one in untold)}.",
            f"Give {BEGIN} that time or a later one, or {FULL_SCAN}=true to look for its rows in the whole table.",
        )
    codec = timeline.files.codec
    commits += [
        codec.decode_files(body, f"{one.requested_time} in the archive", replaces=one.group == "replacecommit")
        for one, body in bodies.items()
    ]
    return frozenset(partition for commit in commits for partition in commit.stats)


def _inside(window: Window | None, wanted: SliceFilter) -> SliceFilter:
    """Return what is wanted of the files that the commits of a window wrote; no others hold rows of theirs."""
    if window is None or window.times is None:
        return wanted
    times = {one.requested_time for one in window.instants}
    return SliceFilter(wanted.partition, wanted.file, lambda file: file.instant_time in times)


def _next_whole(files: ListedFiles, wanted: SliceFilter, time: str) -> Instant:
    """Return the first write requested at a time or later as of which nothing is lost; the newest at the latest."""
    later = [one for one in files.timeline.writes if one.requested_time >= time]
    whole = (
        one
        for one in later
        if not wanted.lost(files, files.timeline.as_of_request(one.requested_time), one.requested_time)
    )
    return next(whole, later[-1])


def _no_such_past(
    files: ListedFiles, moment: Moment, query: AsOf, wanted: SliceFilter, gone: str
) -> UnreadableTimeError:
    return _not_shown(files.table, query.time, gone, _next_whole(files, wanted, moment.time))


def _not_shown(table: Table, asked: str, gone: str, following: Instant) -> UnreadableTimeError:
    return UnreadableTimeError(
        f"The table {table.path} cannot be shown as of {asked}: {gone}. The first instant after it that "
        f"can be read whole is {following.requested_time}.",
        f"Give {AS_OF}={following.requested_time} or a later one, and let the cleaner keep more for the next time.",
    )


def _no_such_window(
    files: ListedFiles, window: Window, wanted: SliceFilter, lost: list[DataFile], gone: str
) -> UnreadableTimeError:
    """Say which begin goes with the window's end, and which end with its begin."""
    written = {one.requested_time: one.visible_since for one in window.instants}
    # Of a file that an older write made nobody knows here since when it is not needed.
    begin = max(written.get(file.instant_time, window.end or "") for file in lost)
    table, timeline = files.table, files.timeline
    everything = ListedFiles.find(table, timeline, files.now, window.end or "", None)
    known = {one.requested_time: one for one in (*window.instants, *timeline.writes)}
    ends = sorted(one.visible_since for one in timeline.writes if one.visible_since > (window.end or ""))
    end = next(
        (
            time
            for time in ends
            if not _inside(plan_window(known.values(), window.begin, time), wanted).lost(
                everything, timeline.as_of_completion(time), time
            )
        ),
        None,
    )
    hints = [f"The first readable end is {end}."] if end else []
    if begin < max(written.values()):
        hints.append(f"For the end given, the first readable begin is {begin}.")
    return UnreadableTimeError(
        f"What changed in the table {table.path} until {window.end} cannot be shown: {gone}. {' '.join(hints)}",
        f"Leave {END} out" + (", or give a window that can be read." if hints else "."),
    )
