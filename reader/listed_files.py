"""A listing of a table's files, and the file slices of any moment of its history that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..storage.base import FileInfo, split
from ..table.files.cleaned import Clean, cleaned_since, read_cleans
from ..table.files.file_group import DataFile, FileSlice, data_file
from ..table.files.listing import FileListing, Needed, StoreListing
from ..table.files.long_replaced import without_long_replaced
from ..table.files.lost import superseded
from ..table.files.names import PARQUET
from ..table.files.read_written import read_written
from ..table.files.slice_rule import slice_rule
from ..table.files.view import FileView
from ..table.files.written import time_in
from ..table.seen_table import SeenTable
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .window import Window


@dataclass(frozen=True, slots=True)
class Moment:
    """The part of a timeline that a query shows: completed instants, or the rows of a window's commits alone.

    ``history`` holds the archived instants, too, if the moment is before the timeline's first write.
    """

    timeline: Timeline
    time: str
    window: Window | None = None
    history: Timeline | None = None

    @classmethod
    def of_request(cls, timeline: Timeline, time: str) -> Moment:
        """Return the moment with the instants that were requested until a time."""
        return cls(timeline.as_of_request(time), time)


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The files of some partitions, by path, with the cleans that may have removed some of them.

    ``seen`` is the table as of the query, ``now`` a timeline that names every clean which removed files before the
    listing. ``everything`` means that all partitions were to be listed, less those that the query does not need;
    ``by_folders``, that the store itself listed them.
    """

    seen: SeenTable
    listings: Mapping[str, tuple[FileInfo, ...]]
    now: Timeline
    cleans: list[tuple[Instant, Clean]]
    everything: bool
    by_folders: bool = True

    @classmethod
    def find(
        cls,
        seen: SeenTable,
        now: Timeline,
        time: str,
        partitions: Iterable[str] | None = None,
        needed: Callable[[str], bool] | None = None,
        listing: FileListing | None = None,
    ) -> ListedFiles:
        """Return the files of partitions, and the cleans that matter to a reader of any moment from ``time`` on.

        ``partitions`` is None for all; of all, ``needed`` selects those that the query may need. The store lists them
        unless a ``listing`` is given.
        """
        listing = listing or StoreListing(seen.storage)
        if partitions is None:
            # A folder that commits name is a partition without a look into it.
            named = frozenset() if needed is None else frozenset(read_written(seen.timeline).partitions)
            listed = listing.partitions(None if needed is None else Needed(needed, named))
        else:
            listed = listing.of(sorted(partitions))
        if not _names_all_cleans(now, time, listed.files):
            # Read after the listing, a timeline has each clean that began before it.
            now = seen.timeline.reload()
        return cls(seen, listed.files, now, read_cleans(now, time), partitions is None, listed.by_folders)

    def at(self, moment: Moment) -> tuple[FileView, list[str]]:
        """Return the view of a moment, and the partitions in which it may show or miss a file."""
        cleaned = self._cleaned_since(moment)
        view = FileView(moment.timeline, read_written(moment.timeline), self.listings, cleaned)
        named = view.named_partitions() if self.everything else []
        return view, sorted({*self.listings, *cleaned, *named})

    def unlisted(self, timeline: Timeline) -> int:
        """Return the number of file groups that a moment's unarchived writes name in unlisted partitions."""
        return read_written(timeline).count_groups(self.listings) if self.everything else 0

    def other_sizes(self) -> Iterator[str]:
        """Yield the paths of base files that are listed with another size than their writes state.

        If the metadata table listed them, the size is a sign that it is wrong.
        """
        for partition, bases in read_written(self.seen.timeline).newest.items():
            listed = {info.path: info.size for info in self.listings.get(partition, ())}
            folder_prefix = f"{partition}/" if partition else ""
            paths = ((folder_prefix + base.name, base.size) for base in bases.values() if base.size)
            yield from (path for path, size in paths if listed.get(path, size) != size)

    def removed_by_cleans(
        self, lost: Iterable[DataFile], moment: Moment, now: Timeline | None = None
    ) -> list[DataFile]:
        """Return those of a moment's lost files that cleans, or newer writes, made superfluous.

        ``now`` is a timeline read after the files were listed. Raises MissingFileError for a file that is gone without
        a clean or a newer write, StorageError for a file that was rolled back.
        """
        cleaned_paths = {file.path for files in self._cleaned_since(moment).values() for file in files}
        by_cleans = [file for file in lost if file.path in cleaned_paths]
        not_cleaned = [file for file in lost if file.path not in cleaned_paths]
        return [*by_cleans, *superseded(moment.timeline, not_cleaned, now)]

    def _cleaned_since(self, moment: Moment) -> Mapping[str, tuple[DataFile, ...]]:
        """Return the files, by partition, that cleans after a moment removed."""
        return cleaned_since(self.cleans, self.now, moment.timeline, moment.time)


@dataclass(frozen=True, slots=True)
class SliceFilter:
    """The slices that a query wants, by partition and by file.

    ``written`` accepts a file that makes its slice wanted, with the slice's other files.
    """

    partition: Callable[[str], bool] = lambda path: True
    file: Callable[[DataFile], bool] = lambda file: True
    written: Callable[[DataFile], bool] = lambda file: True

    def narrowed(self, partition: Callable[[str], bool], file: Callable[[DataFile], bool]) -> SliceFilter:
        """Return a filter of the slices that satisfy two more tests, of the partition and of the file."""
        return SliceFilter(
            lambda path: self.partition(path) and partition(path),
            lambda data_file: file(data_file) and self.file(data_file),
            self.written,
        )

    def written_in(self, window: Window | None, timeline: Timeline) -> SliceFilter:
        """Return a filter of the slices to which the commits of a window wrote.

        A window of all rows does not narrow this filter.
        """
        if window is None or window.times is None:
            return self
        times, rule = {instant.requested_time for instant in window.instants}, slice_rule(timeline)
        return SliceFilter(self.partition, self.file, lambda file: not times.isdisjoint(rule.makers([file], timeline)))

    def lost(self, files: ListedFiles, moment: Moment) -> list[DataFile]:
        """Return the files of a moment that the wanted slices need and that no longer exist."""
        view, partitions = files.at(moment)
        lost = [file for path in partitions if self.partition(path) for file in self._lost_files(view, path)]
        return without_long_replaced(files.seen.table.archive, moment.timeline, lost)

    def slices(self, files: ListedFiles, moment: Moment) -> list[FileSlice]:
        """Return the wanted slices that a moment shows."""
        view, partitions = files.at(moment)
        return [
            file_slice for path in partitions if self.partition(path) for file_slice in self._wanted_slices(view, path)
        ]

    def _wanted_slices(self, view: FileView, partition_path: str) -> list[FileSlice]:
        """Return the slices of a partition with a file that passes both tests of files."""
        slices = view.slices(partition_path).values()
        return [
            file_slice
            for file_slice in slices
            if any(self.file(file) and self.written(file) for file in file_slice.data_files)
        ]

    def _lost_files(self, view: FileView, partition_path: str) -> list[DataFile]:
        """Return the lost files of a partition that wanted slices need."""
        lost = [file for file in view.lost(partition_path) if self.file(file)]
        if all(map(self.written, lost)):
            return lost
        # Without its base file a slice would show rows that the base file beats; without a log file, deleted rows.
        groups = {file_slice.file_id for file_slice in self._wanted_slices(view, partition_path)}
        groups |= {file.file_id for file in lost if self.written(file)}
        return [file for file in lost if file.file_id in groups]


def _names_all_cleans(timeline: Timeline, time: str, listings: Mapping[str, tuple[FileInfo, ...]]) -> bool:
    """Return whether the timeline has every clean that may have removed a moment's slices before the listing.

    A clean removes slices of the present only after newer slices were written, whose files are in the listing, or after
    all file groups of a partition were replaced, which leaves it without files.
    """
    if time < timeline.completed_until:
        # A clean that the timeline lacks may have removed slices of the past.
        return False
    newest = timeline.instants[-1].requested_time if timeline.instants else ""
    for files in listings.values():
        names = (split(info.path)[1] for info in files)
        if any(time_in(name) > newest for name in names if name.endswith(PARQUET)):
            return False
        if not any(data_file(info.path) for info in files):
            return False
    return bool(listings)
