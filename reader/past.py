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
from .long_past import first_readable_write, first_unknown_write, next_readable_write
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
            return self._slices_of_long_ago(moment.history)
        # Only a window of some commits' rows is limited to the partitions that these wrote to.
        partitions = None if window is None or window.times is None else self._partitions_written_in(window)
        wanted = self.wanted.written_in(window, self.seen.timeline)
        files, lost = self._listed_files(partitions, wanted)
        lost = files.removed_by_cleans(lost, moment)
        if not lost:
            return self._wanted_slices(files)
        reason, met_instant = _cleaning_text(lost), met_at_file(lost[0].path)
        following = next_readable_write(files, self.wanted, moment.time) if isinstance(self.query, AsOf) else None
        if isinstance(self.query, AsOf) and following is not None:
            raise self._past_error(self.query.time, reason, following, met_instant)
        if window is None or window.end is None:
            raise UnreadableTimeError(
                f"The table {self._path} cannot be shown any more as it was when this DataFrame was made: {reason}.",
                "Make the DataFrame anew.",
                met=met_instant,
            )
        raise self._window_error(files, window, lost)

    def _listed_files(
        self, partitions: frozenset[str] | None, wanted: SliceFilter
    ) -> tuple[ListedFiles, Sequence[DataFile]]:
        """Return the files of some partitions, None for all, and those lost that the wanted slices need.

        Only the store can tell that a file is lost. If the metadata table lacks a file or has another size, the store
        lists the files, and the metadata table is doubted, unless the file is gone.
        """
        list_files = partial(ListedFiles.find, self.seen, self.now, self.moment.time, partitions, self._needs_partition)
        listing = self._metadata_listing()
        files = list_files(listing)
        lost = wanted.lost(files, self.moment)
        # A listing of the store itself is in no doubt.
        doubted_path = (
            None if files.by_folders else next(chain(files.other_sizes(), (file.path for file in lost)), None)
        )
        if doubted_path is None:
            return files, lost
        files = list_files()
        lost = wanted.lost(files, self.moment)
        if listing is not None and doubted_path not in {file.path for file in lost}:
            listing.doubt(doubted_path)
        return files, lost

    def _metadata_listing(self) -> MetadataListing | None:
        """Return a listing that may ask the metadata table; None if it may have files that are gone.

        A clean, a rollback and a restore delete files first, and update the metadata table afterwards. A clean keeps
        the files that the newest moment shows.
        """
        if self.metadata is None:
            return None
        is_past = self.moment.time < self.now.completed_until
        if any(instant.is_undo or (is_past and instant.action == "clean") for instant in self.now.pending):
            return None
        return MetadataListing(self.seen.storage, self.metadata)

    @property
    def _path(self) -> str:
        return self.seen.table.path

    @property
    def _needs_partition(self) -> Callable[[str], bool] | None:
        """A test, by path, of the partitions that a query with a condition may need; None if it may need all."""
        return None if self.every is None else self.wanted.partition

    def _slices_of_long_ago(self, history: Timeline) -> ReadSlices:
        """Return the slices of a moment before the timeline's first write.

        ``history`` is the timeline with the archived instants. Raises UnreadableTimeError, which names the next
        readable write, if a file of the moment is gone, or if it is unknown which files are of complete writes.
        """
        moment, met_instant = self.moment, None
        reason = "its archive does not say what was cleaned since"
        try:
            files = ListedFiles.find(
                SeenTable(self.seen.table, moment.timeline), history, moment.time, needed=self._needs_partition
            )
            unknown_write = first_unknown_write(files, self.wanted)
            if unknown_write and unknown_write <= moment.time:
                reason = f"nothing tells whether the write {unknown_write}, of which there are files, was complete"
            else:
                lost = self.wanted.lost(files, moment)
                if not lost:
                    return self._wanted_slices(files)
                reason = f"{len(lost)} of the files that show it are gone, {lost[0].path} among them"
                # Raises if a file is gone for another reason than a clean, or the archive does not say.
                files.removed_by_cleans(lost, moment, files.now)
                reason, met_instant = _cleaning_text(lost), met_at_file(lost[0].path)
        except SilentArchiveError as error:
            logger.info("table %s: %s", self._path, error)
        query_time = self.query.time if isinstance(self.query, AsOf) else moment.time
        raise self._past_error(
            query_time, reason, first_readable_write(self.seen, moment.time, self.wanted), met_instant
        )

    def _wanted_slices(self, files: ListedFiles) -> ReadSlices:
        """Return the wanted slices, and the number of all slices if it is to be counted."""
        moment = self.moment
        wanted = self.wanted.written_in(moment.window, moment.timeline).slices(files, moment)
        if self.every is None or not self.counts:
            return ReadSlices(wanted, len(wanted))
        # Slices of listed partitions are counted as they are, those of others by the file groups that writes name.
        listed = self.every.narrowed(files.listings.__contains__, lambda file: True)
        all_slices = listed.written_in(moment.window, moment.timeline).slices(files, moment)
        return ReadSlices(wanted, len(all_slices) + files.unlisted(moment.timeline))

    def _partitions_written_in(self, window: Window) -> frozenset[str] | None:
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
        unknown_commits = [instant for instant in archived if instant not in bodies]
        if unknown_commits and isinstance(self.query, Changes) and self.query.full_scan:
            return None
        if unknown_commits:
            raise UnreadableTimeError(
                f"The changes of the table {self._path} since {window.begin} are unknown: the archive does not say "
                f"what the {unknown_commits[-1].action} {unknown_commits[-1].requested_time} wrote, so that the "
                f"first readable begin is "
                f"{max(instant.visible_since for instant in unknown_commits)}.",
                f"Give {BEGIN} that time or a later time, or {FULL_SCAN}=true to look for its rows in the whole table.",
            )
        codec = timeline.files.codec
        commits += [
            codec.decode_files(InstantBody(body, f"{instant.requested_time} in the archive"), replaces=instant.replaces)
            for instant, body in bodies.items()
        ]
        return frozenset(partition for commit in commits for partition in commit.stats)

    def _past_error(
        self, time: str, reason: str, following: Instant, met_instant: MetInstant | None = None
    ) -> UnreadableTimeError:
        """Return the error of a time that cannot be shown, for a reason; ``following`` is the next readable write."""
        return UnreadableTimeError(
            f"The table {self._path} cannot be shown as of {time}: {reason}. The first instant after it that "
            f"can be read whole is {following.requested_time}.",
            f"Give {AS_OF}={following.requested_time} or a later time, and let the cleaner keep more instants.",
            met=met_instant,
        )

    def _window_error(self, files: ListedFiles, window: Window, lost: Sequence[DataFile]) -> UnreadableTimeError:
        """Return the error of a window of commits of which a clean removed the ``lost`` files.

        It names the first later end, and for the same end the first begin, with which the window can be read, if there
        are any. ``files`` are those of the window's listing.
        """
        written = {instant.requested_time: instant.visible_since for instant in window.instants}
        last = window.end or ""
        # For a file of an older write, the time since which no query needs it is unknown here.
        timeline = self.seen.timeline
        # A window that begins once the newest lost file's write has completed does not need that file.
        begin = max(written.get(maker, last) for maker in self.seen.table.format.makers(lost, timeline))
        files_of_all = ListedFiles.find(self.seen, files.now, last)
        writes_by_time = {instant.requested_time: instant for instant in (*window.instants, *timeline.writes)}

        def is_whole(end: str) -> bool:
            """Return whether the window can be read if it ends at another time."""
            wanted = self.wanted.written_in(plan_window(writes_by_time.values(), window.begin, end), timeline)
            return not wanted.lost(files_of_all, Moment(timeline.as_of_completion(end), end))

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
    """Return the words for lost files in an error."""
    return f"cleaning has taken away {len(lost)} of the files that show it, {lost[0].path} among them"
