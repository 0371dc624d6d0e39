"""The table that is checked, read once: folders, instants, archived instants, and what completed writes state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from ...errors import UnsupportedTableError
from ...index.base import ComputedIndex, Index
from ...index.registry import as_computed, has_buckets, index_for
from ...storage.base import FileInfo, Storage, join
from ...storage.threads import for_each
from ...table.buckets.numbers import BucketNumbers, bucket_numbers, rule_files
from ...table.config import TableConfig
from ...table.files.file_group import DataFile, FileGroup, StatedLog, data_file
from ...table.files.names import FileGroupId
from ...table.files.partitions import is_partition
from ...table.files.view import FileView
from ...table.files.written import Written
from ...table.inferred.index import InferredIndex, index_of_table, index_of_view, is_unnoted, with_inferred
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import WRITE_IDS
from .check_catalogue import FILE_CORRUPT, NOT_CHECKED, WRONG_BUCKET
from .finding import Check, Findings

META_FOLDER = ".hoodie"
# Instants of a bootstrap have times that begin with zeros.
_TIME = re.compile("[12][0-9]{13,16}")


@dataclass(frozen=True, slots=True)
class Folders:
    """A table's folders without ``.hoodie``, from one walk through them.

    Attributes:
        partitions: The files of each partition.
        nested: Partitions inside a partition, each with the outer partition; readers do not see them.
        plain: The files of other folders that have files.
        links: The paths of symbolic links.
    """

    partitions: Mapping[str, tuple[FileInfo, ...]]
    nested: Mapping[str, str]
    plain: Mapping[str, tuple[FileInfo, ...]]
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedFile:
    """What a completed write states about one data file.

    Attributes:
        size: Bytes; 0 if the write does not state them.
        rows: None if the write does not state them, as for log files.
        log: What the write states about a log file; None if it states nothing, and for other files.
    """

    instant: str
    size: int
    rows: int | None = None
    log: StatedLog | None = None


@dataclass(slots=True)
class WriteStatements:
    """What those completed writes state that could be parsed; it grows as batches of writes are read.

    Attributes:
        files: The data files that they name, by path.
        unparsable: Requested times of writes that cannot be parsed, so that their files are unknown.
        operations: Each write's operation, by its requested time.
        given_up: The damaged log files that repairs gave up.
        merged: Requested times of the writes whose file slices they merged, or the text that Apache Hudi has for none.
    """

    files: dict[str, NamedFile] = field(default_factory=dict)
    written: Written = field(default_factory=Written)
    unparsable: set[str] = field(default_factory=set)
    operations: dict[str, str] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    merged: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Subject:
    """A table under examination.

    Attributes:
        folders: The folders, listed before the timeline.
        states: Each state of an instant that has a file on the timeline.
        timeline: The newest state of each instant.
        archived: The instants of the archive that could be read.
        deep: Whether rows are read.
    """

    table: Table
    findings: Findings
    folders: Folders
    states: tuple[Instant, ...]
    timeline: Timeline
    archived: tuple[Instant, ...]
    statements: WriteStatements
    deep: bool
    _archived: frozenset[str] = field(init=False, repr=False)
    _archived_times: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_archived", frozenset(instant.identity for instant in self.archived))
        times = frozenset(instant.requested_time for instant in self.archived if instant.is_write)
        object.__setattr__(self, "_archived_times", times)

    @property
    def storage(self) -> Storage:
        return self.table.storage

    @property
    def config(self) -> TableConfig:
        return self.table.config

    def path(self, instant: Instant) -> str:
        return self.timeline.files.path(instant)

    def is_archived(self, requested_time: str) -> bool:
        """Return whether a write is in the archive."""
        return requested_time in self._archived_times

    def in_archive(self, instant: Instant) -> bool:
        """Return whether an instant of any action is in the archive."""
        return instant.identity in self._archived

    def is_complete(self, requested_time: str) -> bool:
        """Return whether a write is complete, on the timeline or in the archive."""
        instant = self.timeline.find(requested_time)
        on_timeline = instant is not None and instant.is_write and instant.state == State.COMPLETED
        return on_timeline or self.is_archived(requested_time)

    def maker(self, path: str) -> str:
        """Return the requested time of the youngest instant that wrote a data file; empty for any other path.

        A log file is opened if neither its name nor a write says who wrote it.
        """
        file = data_file(path, changes=True)
        made_by = () if file is None else self.table.format.makers([file], self.timeline, opens=True)
        return max(made_by, default="")

    def is_there(self, path: str) -> bool:
        """Return whether a file exists; it may be newer than the listing of the folders."""
        return path in self._listed or self.storage.exists(path)

    def tell(self, check: Check, about: Instant | DataFile, what: str) -> None:
        """Add a finding about an instant or a data file, with its path and its requested time."""
        file, time = self._path_and_time(about)
        self.findings.add(check, what, file=file, instant=time)

    @contextmanager
    def turning(self, check: Check, about: Instant | DataFile) -> Iterator[None]:
        """Turn an error in reading something of an instant or a data file into a finding about it."""
        file, time = self._path_and_time(about)
        with self.findings.turning(check, file=file, instant=time):
            yield

    def check_buckets(self, file: DataFile, group: FileGroupId, keys: pa.Array) -> None:
        """Check that some record keys of a file belong to the bucket of its file group, if that is a bucket."""
        index = self.index
        if index is None or index.number_of(group) is None:
            return
        misplaced = index.misfits(keys, group)
        if len(misplaced):
            key = keys[int(misplaced[0])].as_py()  # one value, for the finding
            what = f"{file.path} has the record key {key!r}, which does not belong to {index.rival_key(group)}."
            self.tell(WRONG_BUCKET, file, what)

    def _path_and_time(self, about: Instant | DataFile) -> tuple[str, str]:
        """Return the path of an instant's file or of a data file, and the requested time of the instant behind it."""
        if isinstance(about, Instant):
            return self.timeline.files.path(about), about.requested_time
        return about.path, self.maker(about.path)

    @contextmanager
    def unreadable(self, path: str) -> Iterator[None]:
        """Turn an error in reading a data file or a partition into a finding."""
        instant_time = self.maker(path)
        with self.findings.turning(FILE_CORRUPT, file=path, instant=instant_time):
            try:
                yield
            except UnsupportedTableError as error:
                self.findings.add(NOT_CHECKED, error.what, file=path, instant=instant_time)

    def view(self) -> FileView:
        """Return the file slices that readers see, by the writes that could be parsed."""
        return FileView(self.timeline, self.statements.written, self.folders.partitions)

    @cached_property
    def lost_archive(self) -> str:
        """A sign that instants were archived though the archive has no file, in words; empty without such a sign."""
        folder = self.config.archive_folder
        if self.table.archive.is_there():
            return ""
        # The timeline lacks these writes, and has writes that merged their slices.
        merged = [time for time in self.statements.merged if _TIME.fullmatch(time) and self.timeline.find(time) is None]
        archived = [time for time in merged if self.timeline.is_committed(time)]
        if archived:
            return f"{folder} has no file, and writes of the timeline merged the slice of the instant {max(archived)}."
        return (
            f"{folder} has no file, and {WRITE_IDS} notes the ids of its writes."
            if self.storage.exists(WRITE_IDS)
            else ""
        )

    @cached_property
    def _listed(self) -> frozenset[str]:
        """The paths of all files in partitions, as they were when the folders were listed."""
        return frozenset(info.path for files in self.folders.partitions.values() for info in files)

    @cached_property
    def live(self) -> tuple[FileGroup, ...]:
        """The live file groups of all partitions; valid only once every completed write has been parsed."""
        view = self.view()
        return tuple(
            group for partition in sorted(self.folders.partitions) for group in view.groups(partition).values()
        )

    @cached_property
    def inferred_index(self) -> InferredIndex | None:
        """The index that the table's files show; None if the properties note the index."""
        if not is_unnoted(self.config):
            return None
        with self.findings.turning(NOT_CHECKED):
            return index_of_table(self.table, self.view(), sorted(self.folders.partitions))
        # The record index cannot be read, which is a finding: the names of file groups remain.
        return index_of_view(self.view(), sorted(self.folders.partitions))

    @cached_property
    def index(self) -> Index | None:
        """The table's index; None if it is unknown."""
        if self.inferred_index is not None and self.inferred_index.kind is None:
            return None
        with self.findings.turning(NOT_CHECKED):
            config = self.config if self.inferred_index is None else with_inferred(self.config, self.inferred_index)
            return index_for(config, numbers=self.numbers if has_buckets(config) else None)
        return None

    @property
    def computed_index(self) -> ComputedIndex | None:
        """The table's index if it computes the file group from a key; None if it looks keys up, or is unknown."""
        return None if self.index is None else as_computed(self.index)

    @cached_property
    def numbers(self) -> BucketNumbers | None:
        """The numbers of buckets; None for a table without buckets.

        A table that notes no index has numbers if rule files state them.
        """
        by_rules = is_unnoted(self.config) and rule_files(self.table)
        return bucket_numbers(self.table, self.timeline) if by_rules or has_buckets(self.config) else None


def walk(storage: Storage) -> Folders:
    """Return the folders of a table, from one visit of each; raises StorageError if the store cannot be reached.

    ``storage`` is the table's. The walk leaves out its folder ``.hoodie``, and visits the folders of a level together.
    """
    partitions: dict[str, tuple[FileInfo, ...]] = {}
    nested: dict[str, str] = {}
    plain: dict[str, tuple[FileInfo, ...]] = {}
    links: list[str] = []
    level: list[tuple[str, str | None]] = [("", None)]
    while level:
        below: list[tuple[str, str | None]] = []
        looks = for_each(storage, lambda entry: storage.look(entry[0]), level)
        for (folder, outer), content in zip(level, looks, strict=True):
            links += [join(folder, name) for name in content.links]
            if not is_partition(folder, content.files):
                if content.files:
                    plain[folder] = content.files
            elif outer is None:
                partitions[folder] = content.files
            else:
                nested[folder] = outer
            outer_partition = folder if folder in partitions else outer
            below += [
                (join(folder, name), outer_partition) for name in content.folders if folder or name != META_FOLDER
            ]
        level = below
    return Folders(partitions, nested, plain, tuple(links))


def called(instant: Instant) -> str:
    """Return an instant's name for a sentence."""
    return f"{instant.action} {instant.requested_time}"


def shown(paths: Iterable[str], most: int = 3) -> str:
    """Return up to ``most`` paths for a sentence, and how many more there are."""
    sorted_paths = sorted(paths)
    more = len(sorted_paths) - most
    return ", ".join(sorted_paths[:most]) + (f" and {more} more" if more > 0 else "")
