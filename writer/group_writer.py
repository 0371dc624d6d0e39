"""One file group's new base file: previous base and incoming rows in, a published Parquet file out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from ..storage.base import Storage
from ..table.arrow.spill import SpillWriter
from ..table.files.base_file import BaseFileReader
from ..table.files.file_group import BaseFile, FileSlice
from ..table.files.names import BaseFileName, FileGroupId, WriteToken
from ..table.merging.meet import Encounter
from ..table.merging.merger import Meeting, MergeCounts, MergeRules
from ..table.merging.row_spec import RowSpec
from ..table.schema.columns import FILE_NAME, RECORD_KEY, with_meta
from ..timeline.writers.markers import MarkerType
from .arrivals import Arrivals
from .base_output import BaseOutput, FileFormat
from .buffer import GroupRows
from .foreign import ForeignRows
from .publisher import Publisher
from .slice_reader import SliceReader
from .sort import RowSorter

if TYPE_CHECKING:
    from ..table.merging.laying import Laying


@dataclass(frozen=True, slots=True)
class GroupJob:
    """One file group to be written.

    Attributes:
        group: Names it.
        piece: Its newest slice; None where the group is new.
        logs_only: Whether a new group begins with log files.
        rewrites: Whether the group gets a new base file even where rows of others go to log files: it takes new keys
            in, which an index that reads base files would not find in log files.
        rolls: Whether rows that are too many for one file of a new group go on in further new groups.
    """

    group: FileGroupId
    piece: FileSlice | None
    logs_only: bool = False
    rewrites: bool = False
    rolls: bool = False

    @property
    def previous(self) -> BaseFile | None:
        """Its newest base file; None where it has none."""
        return None if self.piece is None else self.piece.base

    @property
    def size(self) -> int:
        """Bytes of the files that a rewrite reads."""
        return 0 if self.piece is None else sum(file.size for file in self.piece.data_files)

    @property
    def marker(self) -> MarkerType:
        """What the write does to the base file that it makes."""
        return MarkerType.CREATE if self.previous is None else MarkerType.MERGE


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What became of one file group; ``path`` is None where nothing changed and no file was made."""

    group: FileGroupId
    piece: FileSlice | None
    path: str | None = None
    size: int = 0
    rows: int = 0
    counts: MergeCounts = field(default_factory=MergeCounts)

    @property
    def previous(self) -> BaseFile | None:
        """The base file whose rows were merged; None where there was none."""
        return None if self.piece is None else self.piece.base


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes the file groups of one task, or of one commit.

    Attributes:
        storage: Rooted at the table.
        instant_time: The instant that these files belong to.
        token: Names this task attempt.
        spec: What incoming rows hold.
        file_format: How files look.
        foreign: Checks the rows of files that pyhudi did not write.
        rules: How incoming rows meet one another and the base.
        memory: Arrow bytes of incoming rows that may be merged at once.
        aside: Folder in which files grow before they are published.
        publisher: Lets finished files through.
        open_spill: Opens a spill for the parts of a group beyond memory, with the storage that reads it back.
        slices: Reads slices that have log files.
        laying: Puts rows together that leave columns to others of their key; None where of two rows one is left.
    """

    storage: Storage
    instant_time: str
    token: WriteToken
    spec: RowSpec
    file_format: FileFormat
    foreign: ForeignRows
    rules: MergeRules
    memory: int
    aside: str
    publisher: Publisher
    open_spill: Callable[[], tuple[SpillWriter, Storage]]
    slices: SliceReader
    laying: Laying | None = None

    def name_of(self, job: GroupJob) -> BaseFileName:
        """Return the name of the file that `write` makes for a group."""
        return BaseFileName(job.group.file_id, self.token, self.instant_time)

    def path_of(self, job: GroupJob) -> str:
        """Return the path of the file that `write` makes for a group, unless nothing changes."""
        return "/".join(part for part in (job.group.partition_path, self.name_of(job).format()) if part)

    def write(self, job: GroupJob, rows: GroupRows, sequence: str) -> GroupOutcome:
        """Merge, write and publish one file group.

        Args:
            job: Which group, and its previous base file.
            rows: The incoming rows; at least one.
            sequence: Middle part of ``_hoodie_commit_seqno``, unique to the group within the instant.

        Raises:
            BucketMisfitError: The previous base file holds keys of another bucket.
            UnsupportedTableError: It spells keys otherwise, or a newer release of pyhudi wrote it in a newer format.
            CorruptFileError: The previous base file cannot be read.
            DuplicateKeyError: A key is there already, and the rules forbid it.
            KeyNotFoundError: A key to be deleted, or to be updated in part, is not there, and the rules forbid it.
            WriteSealedError: The write was committed or given up meanwhile.
        """
        name, path = self.name_of(job).format(), self.path_of(job)
        with ExitStack() as stack:
            alone = job.piece is not None and not job.piece.logs
            base = stack.enter_context(self._open(job.previous)) if alone and job.previous is not None else None
            if base is not None:
                base.refuse_newer()
            staged = self.storage.stage(path, self.aside)
            stack.callback(staged.discard)
            output = self._output(job, name, sequence, staged.stream, base)
            stack.callback(output.abandon)
            counts = self._merge(job, rows, base, output)
            if not counts.changed:
                return GroupOutcome(job.group, job.piece, counts=counts)
            output.close()
            size = self.publisher.publish(staged, job.group.partition_path, path, job.marker)
        return GroupOutcome(job.group, job.piece, path, size, output.file.rows, counts)

    def _output(
        self, job: GroupJob, name: str, sequence: str, stream: object, base: BaseFileReader | None
    ) -> BaseOutput:
        columns = self.file_format.sort_columns
        return BaseOutput(
            self.file_format,
            name,
            stream,
            frozenset() if base is None else base.dictionaries,
            arrivals=Arrivals(self.instant_time, sequence, job.group.partition_path),
            sorter=RowSorter(columns, self.memory, self.open_spill) if columns else None,
            previous=base,
        )

    def _open(self, previous: BaseFile) -> BaseFileReader:
        """Open the previous base file so that columns that nobody looks into pass through as they are encoded."""
        looked_into = {RECORD_KEY, FILE_NAME, *self.spec.ordering_fields, *self.file_format.sort_columns}
        if self.laying is not None:
            looked_into |= {*self.laying.columns}
        return BaseFileReader(self.storage, previous.path, plain=looked_into)

    def _merge(self, job: GroupJob, rows: GroupRows, file: BaseFileReader | None, output: BaseOutput) -> MergeCounts:
        where = f"partition {job.group.partition_path!r} of the table {self.storage.path}"
        encounter = Encounter(self.spec, self.rules, self.memory, self.open_spill, where)
        if self.laying is not None:
            encounter.join = self.laying.together
            encounter.lay = self.laying.over if self.rules.meeting is Meeting.MERGE else None
        with closing(encounter.meet(rows, self._base(job, file))) as all_met:
            for met in all_met:
                if met.arrived:
                    output.arrive(met.rows)
                else:
                    output.keep(met.rows)
        return encounter.counts

    def _base(self, job: GroupJob, file: BaseFileReader | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the group holds: those of its base file, which is open, or merged with its log files."""
        if job.piece is None:
            return
        kept = pa.schema([one for one in with_meta(self.file_format.schema) if one.name != FILE_NAME])
        if file is not None:
            yield from self._checked(file.batches(kept), job.piece, stamped=file.stamped)
            return
        yield from self._checked(self.slices.merged(job.piece).batches(kept), job.piece, stamped=False)

    def _checked(
        self, batches: Iterator[pa.RecordBatch], piece: FileSlice, *, stamped: bool
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not stamped:
                self.foreign.check(batch, piece.group, piece.data_files[-1])
            yield batch
