"""The metadata table of one table: its partitions and their records, as of one listing of both timelines.

A reader lists the timeline of the table first, and that of the metadata table then: a write completes in the metadata
table before it completes in the table. So a log block counts whose write completed in the table, or in the metadata
table alone and before the table's newest instant. Source: ``HoodieTableMetadataUtil.getValidInstantTimestamps``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from ...errors import CorruptInstantError, TableConfigError, UnsupportedTableError
from ...storage.base import Storage, join
from ...storage.threads import for_each
from ...timeline.instant_files import InstantFiles
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ..config import PROPERTIES_PATH, TableConfig, load_config_below
from ..config.property_keys import VERSION
from ..files.file_group import FileSlice, LogFile
from ..files.slice_rule import slice_rule
from ..files.view import FileView
from ..files.written import Written
from ..format import format_of
from ..table import Table
from .file_groups import AllEntries, EntriesOfKeys, EntriesOfPrefixes, GroupReader
from .kinds import FILE_GROUPS, FILES, MetadataKind, by_partition, groups_of, kind_of, new_file_id

FOLDER = ".hoodie/metadata"
BEGINNING = "00000000000000"
"""Begins the time of an instant that begins a partition; no write has such a time."""
_DIGITS = 17
_INDEXING = "indexing"


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table of a table whose properties name partitions of it.

    Attributes:
        of_table: The timeline of the table itself.
        timeline: The timeline of the metadata table.
        names: The partitions of the metadata table that count.
    """

    storage: Storage
    of_table: Timeline
    timeline: Timeline
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, timeline: Timeline) -> MetadataTable | None:
        """Return the metadata table of a table whose timeline was listed; None if its properties name none.

        Raises `TableConfigError` if the properties of the metadata table are missing or damaged.
        """
        names = table.config.metadata_partitions
        return cls.with_partitions(table, timeline, names) if names else None

    @classmethod
    def with_partitions(cls, table: Table, timeline: Timeline, names: Sequence[str]) -> MetadataTable:
        """Return the metadata table with some partitions, such as those that a write writes to. Raises as `of`."""
        files = instants_of_metadata(table, _metadata_config(table.storage))
        return cls(table.storage, timeline, Timeline.load(files), tuple(names))

    def partition(self, name: str) -> MetadataPartition:
        """Return a partition; raises `UnsupportedTableError` if this release does not know its kind."""
        kind = kind_of(name)
        if kind is None:
            raise UnsupportedTableError(
                f"The metadata table of {self.storage.path} has a partition {name!r}, which this pyhudi does not know.",
                "Use a newer pyhudi.",
            )
        return MetadataPartition(self, name, kind)

    def lacks(self) -> tuple[str, ...]:
        """Return the completed writes of the table that the metadata table knows nothing of; none as a rule.

        A reader that goes by the metadata table would miss their rows.
        """
        completed = {instant.requested_time for instant in self.timeline.completed}
        first_write = min((time for time in completed if not time.startswith(BEGINNING)), default="")
        beginning = min(self._beginnings.values(), default="")
        absent = [
            write
            for write in self.of_table.writes
            if write.requested_time not in completed
            and write.requested_time >= first_write
            and write.visible_since > beginning
        ]
        if absent:
            # This opens instants, and so comes only if writes seem to be absent.
            beginning = self.files_begun()
        return tuple(write.requested_time for write in absent if write.visible_since > beginning)

    def is_of_now(self) -> bool:
        """Return whether all that the metadata table says is of the moment at which the table's timeline was listed.

        A compaction of the metadata table may have taken in a write that completed in the table since. Then an index
        names the new places of rows, if the old places matter. `FILES` and `COLUMN_STATS` state facts of one file,
        which stay true.
        """
        completed = self.timeline.completed
        compacted = max((instant.visible_since for instant in completed if _is_compaction(instant)), default="")
        return not any(
            instant.visible_since < compacted and not self.counts(instant.requested_time)
            for instant in completed
            if instant.is_write and not _is_compaction(instant)
        )

    @property
    def last_compaction(self) -> Instant | None:
        """The newest completed compaction of the metadata table; None if there was none."""
        return next(filter(_is_compaction, reversed(self.timeline.completed)), None)

    @property
    def _beginnings(self) -> dict[Instant, str]:
        """The instants that began partitions, the newest first, each with the time from which they have all writes."""
        beginnings: dict[Instant, str] = {}
        # What Apache Hudi begins has the least requested times, whenever it began.
        for instant in sorted(self.timeline.completed, key=lambda instant: instant.visible_since, reverse=True):
            if instant.requested_time in self._indexing_times:
                # What completed after an indexing was requested wrote to the partition itself.
                beginnings[instant] = instant.requested_time
            elif begins_partitions(instant.requested_time):
                beginnings[instant] = instant.completion_time or instant.requested_time[:_DIGITS]
        return beginnings

    def files_begun(self) -> str:
        """Return when the list of files began: it has all that was complete then.

        Apache Hudi may build a metadata table anew, beside the old instants. Other partitions may begin later: the list
        of files has the writes in between by the instants of these writes.
        """
        for instant, beginning in self._beginnings.items():  # O(partitions)
            # An instant that cannot be read says nothing.
            with suppress(CorruptInstantError):
                if FILES in self.timeline.files.read_written_files(instant).stats:
                    return beginning
        return min(self._beginnings.values(), default="")

    def counts(self, time: str) -> bool:
        """Return whether log blocks of an instant count.

        They do if the instant begins a partition, or completed in the table; else if it completed in the metadata
        table, is not pending in the table, and is no newer than the table's newest instant.
        """
        if time.startswith(BEGINNING):
            return True
        # What version 6 does for the metadata table itself has the time of a write with three digits more.
        write = time[:_DIGITS]
        if write in self._completed_times:
            return True
        return write not in self._pending_times and write <= self._newest_time and time in self._completed_in_metadata

    @cached_property
    def _indexing_times(self) -> frozenset[str]:
        """The requested times of the instants that built indexes."""
        return frozenset([each.requested_time for each in self.of_table.completed if each.action == _INDEXING])

    @cached_property
    def _completed_times(self) -> frozenset[str]:
        return frozenset([instant.requested_time for instant in self.of_table.completed])

    @cached_property
    def _pending_times(self) -> frozenset[str]:
        """The requested times of the table's instants that have not completed."""
        return frozenset([instant.requested_time for instant in self.of_table.pending]) - self._completed_times

    @cached_property
    def _newest_time(self) -> str:
        """The requested time of the newest instant of the table, completed or not; empty without instants."""
        return max((instant.requested_time for instant in self.of_table.instants), default="")

    @cached_property
    def _completed_in_metadata(self) -> frozenset[str]:
        return frozenset(
            [instant.requested_time for instant in self.timeline.instants if instant.state == State.COMPLETED]
        )

    def listed_logs(self) -> Iterator[LogFile]:
        """Yield all log files, also those of pending and undone instants; the view lists each partition once."""
        return chain.from_iterable(self.view.listed_logs(join(FOLDER, name)) for name in self.names)

    @cached_property
    def view(self) -> FileView:
        return FileView(self.timeline, Written())


@dataclass(frozen=True)
class MetadataPartition:
    """One partition; each record is one of Apache Hudi's ``HoodieMetadataRecord``, with its key.

    Files that were deleted are left out.
    """

    table: MetadataTable
    name: str
    kind: MetadataKind

    def records(self) -> Iterator[pa.StructArray]:
        """Yield all records."""
        for file_id in self.slices:
            yield from self.records_in(file_id)

    def records_in(self, file_id: str) -> Iterator[pa.StructArray]:
        """Yield the records of one file group."""
        yield from self.reader(self.slices[file_id]).records(AllEntries())

    def find(self, keys: pa.StringArray, of_partitions: Collection[str] | None = None) -> Iterator[pa.StructArray]:
        """Yield the records of some keys.

        Of a record index by partitions ``of_partitions`` names some, escaped as in file ids; by default all count.
        """

        def read(keys_of_slice: tuple[FileSlice, pa.StringArray]) -> list[pa.StructArray]:
            file_slice, wanted = keys_of_slice
            return list(self.reader(file_slice).records(EntriesOfKeys(wanted.cast(pa.binary()))))

        for parts in for_each(self.table.storage, read, self._groups_of(keys, of_partitions), computes=True):
            yield from parts

    def with_prefixes(self, prefixes: Sequence[str], *, by_hash: bool = False) -> Iterator[pa.StructArray]:
        """Yield the records whose keys begin with one of some prefixes.

        ``by_hash`` says that the hash of a prefix names the file group with all of its records.
        """
        slices = list(self.slices.values())
        wanted: dict[int, list[bytes]] = {}
        groups = groups_of(pa.array(prefixes, pa.string()), len(slices)) if by_hash and slices else None
        for number, prefix in enumerate(prefixes):
            for group in range(len(slices)) if groups is None else [int(groups[number])]:
                wanted.setdefault(group, []).append(prefix.encode())
        for group, prefixes_of_group in wanted.items():
            yield from self.reader(slices[group]).records(EntriesOfPrefixes(prefixes_of_group))

    def counts(self, file_ids: Collection[str]) -> dict[str, int] | None:
        """Return how many keys some file groups have; None if log files are too large to be read for that."""
        names = list(file_ids)
        counted = for_each(
            self.table.storage, lambda name: self.reader(self.slices[name]).count(), names, computes=True
        )
        counts = {name: count for name, count in zip(names, counted, strict=True) if count is not None}
        return counts if len(counts) == len(names) else None

    @cached_property
    def file_ids(self) -> tuple[str, ...]:
        """All file groups of which the folder has a file, in their order; those of a new partition if it has none.

        The hash of a key names one of them by its number, so a group counts even if its only file is of a pending
        instant.
        """
        listed = self.table.view.listed_file_ids(join(FOLDER, self.name))
        return listed or tuple(new_file_id(self.name, group) for group in range(FILE_GROUPS[self.name]))

    @cached_property
    def slices(self) -> dict[str, FileSlice]:
        """The newest slice of each file group by its file id, in the order of file ids."""
        return self.table.view.slices(join(FOLDER, self.name))

    def _groups_of(
        self, keys: pa.StringArray, of_partitions: Collection[str] | None
    ) -> Iterator[tuple[FileSlice, pa.StringArray]]:
        """Yield the slices of the file groups that can have some of the keys, each with those keys.

        ``of_partitions`` is as of `find`.
        """
        for path, file_ids in by_partition(list(self.slices)).items():
            if of_partitions is not None and path is not None and path not in of_partitions:
                continue
            # The hash of a whole key does not tell, so that each file group may have the keys.
            if not self.kind.by_hash:
                yield from ((self.slices[file_id], keys) for file_id in file_ids)
                continue
            groups = groups_of(keys, len(file_ids))
            for group in np.unique(groups):  # O(file groups)
                yield self.slices[file_ids[group]], keys.filter(pa.array(groups == group))

    def reader(self, file_slice: FileSlice) -> GroupReader:
        """Return a reader of one file slice; log files may be torn if several instants append to one log file."""
        torn = slice_rule(self.table.timeline).shares_logs
        return GroupReader(self.table.storage, file_slice, self.table.counts, self.kind.adds_up, may_be_torn=torn)


def instants_of_metadata(table: Table, config: TableConfig | None = None) -> InstantFiles:
    """Return the instants of a table's metadata table, of which there may be none.

    Without ``config``, the properties of the metadata table, they are where Apache Hudi has them by default.
    """
    config = config or TableConfig({VERSION: table.config.properties[VERSION]})
    chosen = format_of(config)
    archive_folder = join(FOLDER, config.archive_folder)
    layout = chosen.layout(join(FOLDER, config.timeline_folder), archive_folder)
    archive = chosen.archive(table.storage, archive_folder)
    return InstantFiles(table.storage, layout, chosen.codec, archive, table.instants.is_current)


def _metadata_config(storage: Storage) -> TableConfig:
    """Read the properties of the metadata table; raise `TableConfigError` if they are missing or damaged."""
    config = load_config_below(storage, FOLDER)
    if config is None:
        raise TableConfigError(
            f"The properties of the table {storage.path} name a metadata table, and {join(FOLDER, PROPERTIES_PATH)} "
            "does not exist.",
            "Take it out of use with HudiTable.drop_index('files'); HudiTable.create_index builds it anew.",
        )
    return config


def _is_compaction(instant: Instant) -> bool:
    """Return whether a completed instant of the metadata table compacted it; its writes are delta commits."""
    return instant.action == "commit"


def begins_partitions(time: str) -> bool:
    """Return whether an instant of the metadata table began partitions, by its time.

    In version 6 the three digits behind the time of a write tell.
    """
    return time.startswith(BEGINNING) or (len(time) > _DIGITS and time[_DIGITS:] >= "010")
