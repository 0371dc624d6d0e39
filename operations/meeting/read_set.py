"""Whether another write changed the rows of a table that decided what a write does.

A merge, an update or a delete by a condition reads the table at one moment, and commits later. In between another write
may add a matching row to a file group that this write does not change. So under serializable isolation, the new files
of other writes are compared with what was read: first partitions, buckets and footers, then the rows of the other
instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidOptionError, MissingFileError
from ...reader.skipping.predicates import satisfied
from ...reader.skipping.pruning import Pruning
from ...reader.skipping.search import Search
from ...table.arrow.arrays import plain
from ...table.buckets.numbers import BucketNumbers
from ...table.files.base_file import open_base
from ...table.files.file_group import BaseFile, DataFile, LogFile, data_file
from ...table.files.logs.log_contents import BlockContent
from ...table.files.logs.whole_log import read_log
from ...table.schema.columns import META_COLUMNS, with_meta
from ...timeline.instants import Instant
from ...timeline.metadata.models import CommitMetadata, WriteStat
from ..read_rows import ReadRows
from .transaction import Transaction

_COMMIT_TIME = META_COLUMNS[0]


def find_changed_read(
    work: Transaction,
    read: tuple[ReadRows, ...],
    columns: pa.Schema,
    instant: Instant,
    metadata: CommitMetadata,
    numbers: Callable[[], BucketNumbers],
) -> str | None:
    """Return a file or partition in which a completed write changed rows that this write read; None for none.

    ``read`` has the rows that this write read, ``columns`` the table's columns by this write, ``instant`` and
    ``metadata`` are of the other write, and ``numbers`` returns the numbers of buckets at its completion.
    """
    all_columns = with_meta(columns)
    for rows in read:
        pruning = Pruning(work.config, all_columns, rows.predicates)
        search = Search.of(rows.predicates, all_columns, work.config)
        comparison = _ComparedRead(work, rows, all_columns, instant, pruning, search, pruning.file_may_match(numbers))
        changed_place = next(comparison.changed_places(metadata), None)
        if changed_place is not None:
            return changed_place
    return None


@dataclass(frozen=True, slots=True)
class _ComparedRead:
    """The rows that a write read, compared with one other write.

    Attributes:
        columns: The meta columns and the canonical columns of the table.
        may_hold: Returns whether the index may put rows that were read into the file group of a file.
    """

    work: Transaction
    read: ReadRows
    columns: pa.Schema
    instant: Instant
    pruning: Pruning
    search: Search
    may_hold: Callable[[DataFile], bool]

    def changed_places(self, metadata: CommitMetadata) -> Iterator[str]:
        """Yield files of the other write with a row that was read, and partitions from which it took rows.

        Rows that are gone count only with `ReadRows.absence`.
        """
        for partition, stats in metadata.partition_to_write_stats.items():
            if self.pruning.partition_may_match(partition):
                for stat in stats:
                    file = data_file(stat.path or "")
                    if (
                        file is not None
                        and self.may_hold(file)
                        and (self._may_change_read_row(stat, file) or self._may_have_read_row(file))
                    ):
                        yield file.path
        if self.read.absence:
            replaced = (path for path, ids in metadata.replaced.items() if ids)
            yield from filter(self.pruning.partition_may_match, replaced)

    def _may_change_read_row(self, stat: WriteStat, file: DataFile) -> bool:
        """Return whether a file may delete a row that was read, or may change it so that it satisfies no predicates."""
        # Without `absence`, only rows that come to the read rows count.
        if not self.read.absence:
            return False
        # Rows of a log file that are no inserts may change or delete stored rows.
        if stat.num_deletes or (isinstance(file, LogFile) and stat.num_inserts < stat.num_writes):
            return True
        return bool(stat.num_update_writes) and not self._reads_fixed_columns

    @property
    def _reads_fixed_columns(self) -> bool:
        """Whether the predicates are about key and partition columns alone, which no update of a row changes."""
        names, config = self.search.columns, self.work.config
        return bool(names) and names <= {*config.record_key_fields, *config.partition_fields}

    def _may_have_read_row(self, file: DataFile) -> bool:
        """Return whether a file may have a row of the other write that this write read."""
        if not self.search.columns <= {*self.columns.names}:
            # The table has lost a column of the predicates, so that rows cannot be compared.
            return True
        try:
            if isinstance(file, BaseFile):
                return self._base_file_has(file)
            # The values of a partial update may come from the stored row, which the log file lacks.
            return self.work.config.partial_update_mode is not None or self._log_file_has(file)
        except (MissingFileError, InvalidOptionError):
            # A clean has deleted the file since, or a value cannot be compared with its column.
            return True

    def _base_file_has(self, file: BaseFile) -> bool:
        """Return whether a base file has a row of the other write that this write read."""
        with open_base(self.work.storage, file) as reader:
            # No row groups: by its footer the file has no row that satisfies the predicates.
            groups = self.search.row_groups(reader.parquet, file.path)
            return (
                any(map(self._holds_row, reader.batches(self._compared_columns, row_groups=groups)))
                if groups
                else False
            )

    def _log_file_has(self, file: LogFile) -> bool:
        """Return whether a log file may have a row of the other write that this write read."""
        for block in read_log(self.work.storage, file):
            # A partial block lacks values of the stored rows, so any row of it may count.
            if block.is_data and (
                block.is_partial
                or any(map(self._holds_row, BlockContent(self.work.storage, block).rows(self._compared_columns)))
            ):
                return True
        return False

    @property
    def _compared_columns(self) -> pa.Schema:
        """The columns that tell whether this write read a row: its commit time, and the columns of the predicates."""
        names = {_COMMIT_TIME, *self.search.columns}
        return pa.schema([field.with_nullable(True) for field in self.columns if field.name in names])

    def _holds_row(self, rows: pa.RecordBatch) -> bool:
        """Return whether this write read a row of the other write; a rewritten file also has older rows."""
        is_theirs = pc.equal(plain(rows.column(_COMMIT_TIME)), self.instant.requested_time)
        is_read = pc.and_(pc.fill_null(is_theirs, False), satisfied(rows, self.read.predicates))
        return bool(is_read.true_count)
