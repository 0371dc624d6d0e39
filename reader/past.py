"""The file slices that a query shows, or an error if cleaning has removed some of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ..errors import MetInstant, UnreadableTimeError
from ..storage.threads import for_each
from ..table.files.file_group import DataFile, FileSlice
from ..table.files.names import met_at_file
from ..table.metadata.at_hand import MetadataAtHand
from ..table.metadata.listing import MetadataListing
from ..table.seen_table import SeenTable
from ..timeline.archive.history import SilentArchiveError
from ..timeline.instants import Instant
from ..timeline.metadata.codec import InstantBody
from ..timeline.timeline import Timeline
from .listed_files import ListedFiles, Moment, SliceFilter
from .long_past import first_untold, first_whole, next_whole
from .query import AS_OF, BEGIN, END, FULL_SCAN, AsOf, Changes, Query
from .window import Window, plan_window

logger = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class ReadSlices:
    """The file slices that a query wants; ``whole`` is the number of all, if they were counted."""

    wanted: list[FileSlice]
    whole: int


@dataclass(frozen=True, slots=True)
class ShownSlices:
    """Finds the file slices that a query shows.

    ``now`` is the timeline as it was when the table was opened. For a query with a condition, ``every`` selects the
    slices that it would have without the condition; with ``counts`` they are counted, by the names in commits if a
    partition is not listed. ``metadata`` is the metadata table as of ``now``; without it, the store lists the files.
    """

    seen: SeenTable
    now: Timeline
    moment: Moment
    query: Query | None
    wanted: SliceFilter
    every: SliceFilter | None = None
    counts: bool = False
    metadata: MetadataAtHand | None = None

    def find(self) -> ReadSlices:
        """Return the slices in order of partition path and file id.

        Raises UnreadableTimeError if a clean removed a file among them, or the archive lacks what a commit of the
        window wrote.
        """
        window, moment = self.moment.window, self.moment
        if window is not None and not window.instants:
            return ReadSlices([], 0)
        if moment.history is not None:
            return self._of_long_ago(moment.history)
        partitions = None if window is None or window.times is None else self._written_in(window)
        wanted = self.wanted.written_in(window, self.seen.timeline)
        files, lost = self._listed(partitions, wanted)
        lost = files.taken(lost, moment)
        if not lost:
            return self._wanted_slices(files)
        gone, met = _cleaning_text(lost), met_at_file(lost[0].path)
        if isinstance(self.query, AsOf):
            raise self._no_such_past(self.query.time, gone, next_whole(files, self.wanted, moment.time), met)
        if window is None or window.end is None:
            raise UnreadableTimeError(
                f"The table {self._path} cannot be shown any more as it was when this DataFrame was made: {gone}.",
                "Make the DataFrame anew.",
                met=met,
            )
        raise self._no_such_window(files, window, lost)

    def _listed(self, partitions: frozenset[str] | None, wanted: SliceFilter) -> tuple[ListedFiles, Sequence[DataFile]]:
        """Return the files, and the lost files; only the store can tell that a file is lost."""
        find = partial(ListedFiles.find, self.seen, self.now, self.moment.time, partitions, self._needed)
        listing = self._metadata_listing()
        files = find(listing)
        lost = wanted.lost(files, self.moment)
        doubted = None if files.by_folders else next(chain(files.other_sizes(), (file.path for file in lost)), None)
        if doubted is None:
            return files, lost
        files = find()
        lost = wanted.lost(files, self.moment)
        if listing is not None and doubted not in {file.path for file in lost}:
            listing.doubt(doubted)
        return files, lost

    def _metadata_listing(self) -> MetadataListing | None:
        """Return a listing that may ask the metadata table; None if it may have files that are gone.

        A clean, a rollback and a restore delete files first, and update the metadata table afterwards. A clean keeps
        the files that the newest moment shows.
        """
        if self.metadata is None:
            return None
        is_past = self.moment.time < self.now.completed_until
        undoing = ("rollback", "restore", "clean") if is_past else ("rollback", "restore")
        if any(instant.action in undoing for instant in self.now.pending):
            return None
        return MetadataListing(self.seen.storage, self.metadata)

    @property
    def _path(self) -> str:
        return self.seen.table.path

    @property
    def _needed(self) -> Callable[[str], bool] | None:
        return None if self.every is None else self.wanted.partition

    def _of_long_ago(self, history: Timeline) -> ReadSlices:
        """Return the slices of a moment before the timeline's first write."""
        moment, met = self.moment, None
        gone = "its archive does not say what was cleaned since"
        try:
            files = ListedFiles.find(
                SeenTable(self.seen.table, moment.timeline), history, moment.time, needed=self._needed
            )
            untold = first_untold(files, self.wanted)
            if untold and untold <= moment.time:
                gone = f"nothing tells whether the write {untold}, of which there are files, was complete"
            else:
                lost = self.wanted.lost(files, moment)
                if not lost:
                    return self._wanted_slices(files)
                gone = f"{len(lost)} of the files that show it are gone, {lost[0].path} among them"
                files.taken(lost, moment, files.now)
                gone, met = _cleaning_text(lost), met_at_file(lost[0].path)
        except SilentArchiveError as error:
            logger.info("table %s: %s", self._path, error)
        spelled = self.query.time if isinstance(self.query, AsOf) else moment.time
        raise self._no_such_past(spelled, gone, first_whole(self.seen, moment.time, self.wanted), met)

    def _wanted_slices(self, files: ListedFiles) -> ReadSlices:
        moment = self.moment
        wanted = self.wanted.written_in(moment.window, moment.timeline).slices(files, moment)
        if self.every is None or not self.counts:
            return ReadSlices(wanted, len(wanted))
        listed = self.every.narrowed(files.listings.__contains__, lambda file: True)
        every = listed.written_in(moment.window, moment.timeline).slices(files, moment)
        return ReadSlices(wanted, len(every) + files.unlisted(moment.timeline))

    def _written_in(self, window: Window) -> frozenset[str] | None:
        """Return the partitions that a window's commits wrote to; None to look at all partitions.

        Raises UnreadableTimeError if they are unknown, and the query does not allow a full scan.
        """
        timeline = self.seen.timeline
        active = {instant.requested_time for instant in timeline.writes}
        commits = for_each(
            self.seen.storage,
            timeline.files.read_written_files,
            [instant for instant in window.instants if instant.requested_time in active],
        )
        archived = [instant for instant in window.instants if instant.requested_time not in active]
        bodies = self.seen.table.archive.bodies(archived)
        untold = [instant for instant in archived if instant not in bodies]
        if untold and isinstance(self.query, Changes) and self.query.full_scan:
            return None
        if untold:
            raise UnreadableTimeError(
                f"The changes of the table {self._path} since {window.begin} are unknown: the archive does not say "
                f"what the {untold[-1].action} {untold[-1].requested_time} wrote, so that the first readable begin is "
                f"{max(instant.visible_since for instant in untold)}.",
                f"Give {BEGIN} that time or a later time, or {FULL_SCAN}=true to look for its rows in the whole table.",
            )
        codec = timeline.files.codec
        commits += [
            codec.decode_files(InstantBody(body, f"{instant.requested_time} in the archive"), replaces=instant.replaces)
            for instant, body in bodies.items()
        ]
        return frozenset(partition for commit in commits for partition in commit.stats)

    def _no_such_past(
        self, time: str, gone: str, following: Instant, met: MetInstant | None = None
    ) -> UnreadableTimeError:
        return UnreadableTimeError(
            f"The table {self._path} cannot be shown as of {time}: {gone}. The first instant after it that "
            f"can be read whole is {following.requested_time}.",
            f"Give {AS_OF}={following.requested_time} or a later time, and let the cleaner keep more instants.",
            met=met,
        )

    def _no_such_window(self, files: ListedFiles, window: Window, lost: Sequence[DataFile]) -> UnreadableTimeError:
        """Return an error that suggests a begin for the window's end, and an end for its begin."""
        written = {instant.requested_time: instant.visible_since for instant in window.instants}
        last = window.end or ""
        # For a file of an older write, the time since which no query needs it is unknown here.
        timeline = self.seen.timeline
        begin = max(written.get(maker, last) for maker in self.seen.table.format.makers(lost, timeline))
        everything = ListedFiles.find(self.seen, files.now, last)
        writes_by_time = {instant.requested_time: instant for instant in (*window.instants, *timeline.writes)}

        def is_whole(end: str) -> bool:
            wanted = self.wanted.written_in(plan_window(writes_by_time.values(), window.begin, end), timeline)
            return not wanted.lost(everything, Moment(timeline.as_of_completion(end), end))

        ends = sorted(instant.visible_since for instant in timeline.writes if instant.visible_since > last)
        end = next(filter(is_whole, ends), None)
        hints = [f"The first readable end is {end}."] if end else []
        if begin < max(written.values()):
            hints.append(f"For the end given, the first readable begin is {begin}.")
        return UnreadableTimeError(
            f"What changed in the table {self._path} until {window.end} cannot be shown: {_cleaning_text(lost)}. "
            f"{' '.join(hints)}",
            f"Leave {END} out" + (", or give a window that can be read." if hints else "."),
            met=met_at_file(lost[0].path),
        )


def _cleaning_text(lost: Sequence[DataFile]) -> str:
    return f"cleaning has taken away {len(lost)} of the files that show it, {lost[0].path} among them"
