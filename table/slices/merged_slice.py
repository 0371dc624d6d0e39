"""One file slice with its log files merged: into the rows of its base file, or alone, as a log compaction does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ...errors import UnsupportedTableError
from ...storage.base import Storage
from ..arrow.arrays import Mask
from ..arrow.spill import SpillWriter
from ..config import TableConfig, check_mergeable
from ..config.property_keys import EVENT_TIME_ORDERING
from ..files.base_file import BaseFileReader, open_base, with_dictionaries
from ..files.file_group import FileSlice
from ..files.footers import batch_rows
from ..files.logs.delete_block import Deletes
from ..files.logs.log_blocks import BlockType, LogBlock
from ..files.logs.log_scan import effective_blocks
from ..files.logs.whole_log import read_log
from ..merging.meet import FOLDING_BYTES, Encounter, PartialRows
from ..merging.merger import MergeCounts, MergeRules
from ..merging.overlay import Overlay, merged_partially
from ..schema.columns import RECORD_KEY, with_meta
from ..schema.conform import conform
from .hiding_deletes import HidingDeletes
from .log_rows import RESET, ROW, LogRows, LogSpec, kinds
from .partial_updates import PartialUpdates

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(slots=True)
class LogCounts:
    """What a merge met in the logs of a slice; ``records`` and ``merge`` are known once the slice was read.

    Attributes:
        data_bytes: Of the blocks of rows that count.
        seconds: How long a compaction of the slice took.
    """

    blocks: int = 0
    corrupt: int = 0
    data_bytes: int = 0
    records: int = 0
    merge: MergeCounts = field(default_factory=MergeCounts)
    seconds: float = 0


@dataclass(eq=False)
class MergedSlice:
    """The rows of one file slice, whole or some of their columns, as they are once its logs are merged.

    If a base file holds a key several times, an entry of the logs meets every row of the key. ``sees`` tells of an
    instant whether its blocks may be seen. Log entries beyond ``memory`` bytes are spilled. Raises
    `UnsupportedTableError` if pyhudi does not know how the table merges logs.
    """

    storage: Storage
    config: TableConfig
    file_slice: FileSlice
    schema: pa.Schema
    sees: Callable[[str], bool]
    memory: int = field(kw_only=True)
    open_spill: Callable[[], tuple[SpillWriter, Storage]] = field(kw_only=True)

    def __post_init__(self) -> None:
        """Add the meta columns to the schema, and refuse log files that pyhudi cannot merge."""
        config, file_slice, storage = self.config, self.file_slice, self.storage
        self.schema = with_meta(self.schema)
        if file_slice.logs:
            check_mergeable(config, storage.path)
        self._ordering = config.ordering_fields if config.merge_mode == EVENT_TIME_ORDERING else ()
        unknown = [name for name in self._ordering if name not in self.schema.names]
        if file_slice.logs and unknown:
            raise UnsupportedTableError(
                f"The table {storage.path} orders rows by {unknown[0]!r}, which is none of its columns, so that "
                "its log files cannot be merged.",
                "Read it with hoodie.datasource.query.type=read_optimized, which skips log files, or with Apache Hudi.",
            )
        self.counts = LogCounts()

    @cached_property
    def blocks(self) -> tuple[LogBlock, ...]:
        """The data and delete blocks that count, in their order."""
        blocks_of_logs = [(log, tuple(read_log(self.storage, log))) for log in self.file_slice.logs]
        self.counts.blocks = sum(len(blocks) for _, blocks in blocks_of_logs)
        self.counts.corrupt = sum(block.type is BlockType.CORRUPT for _, blocks in blocks_of_logs for block in blocks)
        counts, sees = self.file_slice.counts, self.sees
        counted = effective_blocks([blocks for _, blocks in blocks_of_logs], lambda time: counts(time) and sees(time))
        self.counts.data_bytes = sum(block.content_size for block in counted if block.is_data)
        return counted

    @cached_property
    def _partial(self) -> PartialUpdates | None:
        return PartialUpdates.of(self.config, self.blocks)

    def batches(
        self,
        columns: pa.Schema,
        *,
        row_groups: Callable[[pq.ParquetFile], Sequence[int]] | None = None,
        dictionaries: frozenset[str] = frozenset(),
        wanted: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ) -> Generator[pa.RecordBatch]:
        """Yield the rows in the types of ``columns``, the base file's first.

        ``row_groups`` returns which row groups of the base file are read, None for all. It may leave out a row group if
        no row of its keys would be shown, because an entry of a log meets only the rows of its key that are read.
        ``dictionaries`` names the string columns that may come as dictionaries, if the base file has them so.
        ``wanted`` chooses rows by their keys alone, of batches that hold the record key.
        """
        if not columns.names:
            # The number of rows shows only in an array, so read the key.
            keys = pa.schema([self.schema.field(RECORD_KEY)])
            yield from (batch.select([]) for batch in self.batches(keys, row_groups=row_groups))
            return
        with ExitStack() as stack:
            base = None
            if self.file_slice.base is not None:
                not_dictionaries = frozenset(self.schema.names) - (
                    dictionaries if self._partial is None else frozenset()
                )
                base = stack.enter_context(open_base(self.storage, self.file_slice.base, plain=not_dictionaries))
            if self.blocks:
                batches = self._merged(base, columns, row_groups, wanted)
            else:
                batches = iter(()) if base is None else _rows_of(base, columns, row_groups)
            yield from batches if wanted is None else _filtered(batches, wanted)

    def resets(self) -> Iterator[Deletes]:
        """Yield the deletes without an ordering value, which hide base rows from all later rows of their keys."""
        for keys in self._log_rows(self.schema).resets():
            values = tuple(pa.nulls(len(keys), self.schema.field(name).type) for name in self._ordering)
            lacks_value = pa.array(np.ones(len(keys), dtype=np.bool_))
            yield Deletes(keys, _repeated(self.file_slice.partition_path, len(keys)), values, lacks_value)

    def entries(self) -> Generator[tuple[pa.RecordBatch, Deletes]]:
        """Yield the folded log entries but for `resets`: rows with all columns, and deletes, each key once.

        No block may be partial.
        """
        partial, spec = self._partial, KeptEntries(self._ordering)
        rows = self._log_rows(self.schema)
        # A delete ends a chain of partial updates, so merging them must see which entries are deletes.
        spec_with_deletes = LogSpec(self._ordering)
        lay = (
            None
            if partial is None
            else lambda entries: LaidEntries(merged_partially(spec_with_deletes, entries, partial.given))
        )
        encounter = self._encounter(spec, lay)
        with closing(encounter.meet(rows, iter(()))) as all_met:
            for met in all_met:
                yield parted(met.rows, self._ordering, self.file_slice.partition_path)
        self.counts.records = rows.records
        self.counts.merge = encounter.counts

    @property
    def deletes(self) -> HidingDeletes:
        return HidingDeletes(self._log_rows(self.schema))

    def _log_rows(self, columns: pa.Schema, *, numbered: bool = False) -> LogRows:
        marker = self.config.delete_marker
        return LogRows(self.storage, self.blocks, columns, self.schema, self._ordering, marker, numbered=numbered)

    def _encounter(
        self,
        spec: LogSpec,
        lay: Callable[[pa.RecordBatch], PartialRows] | None,
        base_columns: Sequence[str] | None = None,
    ) -> Encounter:
        """Return what merges log entries by a spec with base rows.

        ``lay`` makes an overlay of partial entries, None if all entries are whole rows. ``base_columns`` are the
        columns of base rows to yield; None for all.
        """
        where = f"the file group {self.file_slice.file_id} of partition {self.file_slice.partition_path!r}"
        return Encounter(
            spec,
            MergeRules(),
            self.memory,
            self.open_spill,
            where,
            row_bytes=FOLDING_BYTES,
            lay=lay,
            base_columns=base_columns,
        )

    def _merged(
        self,
        base: BaseFileReader | None,
        columns: pa.Schema,
        row_groups: Callable[[pq.ParquetFile], Sequence[int]] | None,
        wanted: Callable[[pa.RecordBatch], pa.RecordBatch] | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the base rows that log entries leave, and the rows of log entries; ``base`` None without a file.

        ``row_groups`` and ``wanted`` are as of `batches`.
        """
        also_read = [name for name in (RECORD_KEY, *self._ordering) if name not in columns.names]
        columns_read = pa.schema([*columns, *(self.schema.field(name) for name in dict.fromkeys(also_read))])
        partial, spec = self._partial, LogSpec(self._ordering)
        rows = self._log_rows(columns_read, numbered=partial is not None)

        def lay(entries: pa.RecordBatch, partial: PartialUpdates) -> Overlay:
            """Return the entries ready to be laid over the base rows of their keys."""
            begun = partial.begun(spec, entries)
            return Overlay(spec, begun, partial.given, columns.names, partial.complete(begun))

        laid = None if partial is None else lambda entries: lay(entries, partial)
        encounter = self._encounter(spec, laid, columns.names)
        base_rows = iter(()) if base is None else _rows_of(base, columns_read, row_groups)
        base_rows = base_rows if wanted is None else _filtered(base_rows, wanted)
        base_schema = with_dictionaries(columns, frozenset() if base is None else base.dictionaries)
        with closing(encounter.meet(rows, base_rows)) as all_met:
            for met in all_met:
                if met.arrived or partial is not None:
                    yield conform(met.rows.select(columns.names), columns)
                elif met.rows.num_rows:
                    # Base rows that stay keep the dictionaries of their file.
                    yield pa.RecordBatch.from_arrays(
                        [met.rows.column(column.name) for column in base_schema], schema=base_schema
                    )
        self.counts.records = rows.records
        self.counts.merge = encounter.counts


def _rows_of(
    base: BaseFileReader, columns: pa.Schema, row_groups: Callable[[pq.ParquetFile], Sequence[int]] | None
) -> Iterator[pa.RecordBatch]:
    """Yield a base file's rows; of a file that has none of the columns, as many rows of nulls."""
    row_groups_read = None if row_groups is None else row_groups(base.parquet)
    # If the file lacks all wanted columns, its record key shows how many rows there are.
    lacks_all = not set(columns.names).intersection(base.stored_schema.names)
    columns_read = pa.schema([*columns, pa.field(RECORD_KEY, pa.string())]) if lacks_all else columns
    for batch in base.batches(
        columns_read, batch_rows=batch_rows(base.parquet, columns_read), row_groups=row_groups_read
    ):
        yield batch.select(columns.names) if lacks_all else batch


def _filtered(
    batches: Iterable[pa.RecordBatch], wanted: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches that ``wanted`` leaves, if any."""
    return (rows for rows in map(wanted, batches) if rows.num_rows)


@dataclass(frozen=True, slots=True)
class KeptEntries(LogSpec):
    """Entries of logs; none counts as deleted, so that deletes stay among the entries."""

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        return np.zeros(rows.num_rows, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class LaidEntries:
    """Entries with some of their columns only, merged by key, for a slice without base rows."""

    rows: pa.RecordBatch

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield the base rows as they were; a slice of this kind has none."""
        yield from ((batch, False) for batch in base)

    def arrivals(self) -> pa.RecordBatch:
        return self.rows

    @property
    def counts(self) -> MergeCounts:
        return MergeCounts(inserts=self.rows.num_rows, keys=self.rows.num_rows)


def parted(entries: pa.RecordBatch, ordering: tuple[str, ...], partition_path: str) -> tuple[pa.RecordBatch, Deletes]:
    """Return the rows among folded entries, and the deletes, marked rows included, as a delete block has them.

    Of ordered entries it leaves out deletes without an ordering value.
    """
    kind = kinds(entries)
    is_delete = (kind != ROW) & (kind != RESET) if ordering else kind != ROW
    rows, deleted = (entries.filter(pa.array(of_kind)) for of_kind in (kind == ROW, is_delete))
    values = tuple(deleted.column(name) for name in ordering)
    if any(value.null_count for value in values):
        raise UnsupportedTableError(
            f"A delete in the log files of partition {partition_path!r} has no value in one of the ordering fields "
            f"({', '.join(ordering)}), and no delete block has a place for that.",
            "Compact the table instead (HudiTable.compact).",
        )
    lacks_value = pa.array(np.full(deleted.num_rows, not ordering))
    return rows, Deletes(deleted.column(RECORD_KEY), _repeated(partition_path, deleted.num_rows), values, lacks_value)


def _repeated(partition_path: str, count: int) -> pa.StringArray:
    return pa.repeat(pa.scalar(partition_path, pa.string()), count)
