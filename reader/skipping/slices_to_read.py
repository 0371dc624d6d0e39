"""Which file slices a query has to read: one source after the other says which of them can hold its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...storage.base import Storage
from ...table.files.file_group import FileSlice
from ...table.files.read_written import read_written
from ...table.metadata.at_hand import MetadataAtHand
from ...table.metadata.kinds import PARTITION_STATS
from ...table.seen_table import SeenTable
from ...table.table import Table
from .answers import NOTHING, JudgedFiles, SliceSource
from .footer_search import matching_slices
from .search import Search

PARTITIONS, KEYS, FOOTERS = "partitions and buckets", "record keys", "footers"
# To open the metadata table and one partition of it takes as long as the footers of so many files: on a disk as
# measured, over a network by the number of requests.
_LEAST_ON_DISK = 64
_LEAST_REMOTE = 12


@dataclass(frozen=True, slots=True)
class Step:
    """What one source left out of so many file slices.

    The source is a partition of the metadata table, or `PARTITIONS`, `KEYS` (no key satisfies all) or `FOOTERS`.
    """

    source: str
    of: int
    left_out: int


@dataclass(frozen=True, slots=True)
class SlicesToRead:
    """The file slices that a query has to read, and the steps that led to them."""

    slices: list[FileSlice]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOutPartitions:
    """The partitions that the metadata table excludes as a whole, and how many file slices commits name in them."""

    paths: frozenset[str] = frozenset()
    slices: int = 0
    asked: bool = True

    def steps(self, of: int) -> tuple[Step, ...]:
        """Return the step that left out partitions of so many slices; none if the metadata table was not asked."""
        return (Step(PARTITION_STATS, of, self.slices),) if self.asked else ()


NO_PARTITIONS = LeftOutPartitions(asked=False)


def partitions_without_rows(
    seen: SeenTable, metadata: MetadataAtHand, search: Callable[[], Search], may_match: Callable[[str], bool]
) -> LeftOutPartitions:
    """Return the partitions without wanted rows of a table as it is now, which the read need not list.

    ``seen`` is the table with one listing of its timeline, and ``search`` returns the search for the wanted rows. The
    metadata table is opened if commits name many partitions that ``may_match`` by their paths. Otherwise, and if it
    does not answer, the result is `NO_PARTITIONS`.
    """
    config = seen.table.config
    if PARTITION_STATS not in config.metadata_partitions or not config.partition_fields:
        return NO_PARTITIONS
    written = read_written(seen.timeline)
    wanted = [*filter(may_match, written.partitions)]
    if len(wanted) < least_asked(seen.storage) or (trusted_metadata := metadata.trusted) is None:
        return NO_PARTITIONS
    from .metadata_sources import names_rows  # noqa: PLC0415 (brings fastavro along, which few reads need)
    from .partition_bounds import PartitionBounds  # noqa: PLC0415

    # That index is known to be whole only by the rows of all partitions, so none may be left out here.
    if names_rows(trusted_metadata, config, search()):
        return NO_PARTITIONS
    empty_partitions = PartitionBounds(trusted_metadata, config, search()).without_rows()
    if empty_partitions is None:
        return NO_PARTITIONS
    paths = empty_partitions.intersection(wanted)
    return LeftOutPartitions(paths, written.count_groups_in(paths))


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources for one search in one table; ``shows_newest`` is as `Snapshot.shows_newest`."""

    table: Table
    metadata: MetadataAtHand
    search: Search
    shows_newest: bool

    def read(self, slices: Sequence[FileSlice]) -> SlicesToRead:
        """Return the slices that all sources leave.

        Sources of the metadata table come first. Footers are read only if there are few files to read.
        """
        steps: list[Step] = []
        slices_left = list(slices)
        judged = NOTHING
        least = least_asked(self.table.storage)
        # The metadata table is not opened for few slices.
        for source in self._metadata_sources(slices_left) if len(slices_left) >= least else ():
            if len(slices_left) < least:
                break
            answer = source.slices_left(slices_left, judged)
            if answer is not None:
                steps.append(Step(source.name, len(slices_left), len(slices_left) - len(answer.slices)))
                slices_left, judged = list(answer.slices), judged.joined(answer.judged)
        step, slices_left = self._footers(slices_left, judged)
        return SlicesToRead(slices_left, (*steps, step))

    def _metadata_sources(self, slices: Sequence[FileSlice]) -> Iterator[SliceSource]:
        """Yield the sources of the metadata table that can answer, those that leave fewest first."""
        trusted_metadata = self.metadata.trusted
        if trusted_metadata is not None:
            from .metadata_sources import sources_of  # noqa: PLC0415 (brings along what most reads do not need)

            config, newest = self.table.config, self.shows_newest
            yield from sources_of(trusted_metadata, config, self.search, slices, shows_newest=newest)

    def _footers(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> tuple[Step, list[FileSlice]]:
        """Return what the footers of base files leave; a slice with log files stays."""
        slices_without_logs = [file_slice for file_slice in slices if not file_slice.logs]
        matching = matching_slices(self.table.storage, self.table.config, self.search, slices_without_logs, judged)
        paths = {file_slice.base_file.path for file_slice in matching}
        slices_left = [file_slice for file_slice in slices if file_slice.logs or file_slice.base_file.path in paths]
        return Step(FOOTERS, len(slices), len(slices) - len(slices_left)), slices_left


def least_asked(storage: Storage) -> int:
    """Return the number of file slices from which on the metadata table answers sooner than footers."""
    return _LEAST_REMOTE if storage.remote else _LEAST_ON_DISK
