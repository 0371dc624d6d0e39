"""The rows of a file group as blocks of log files, appended without reading the group.

Rows are folded as for a base file: of each key, the winning row or delete remains. Readers decide whether it wins
against the stored row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..errors import OlderRowError
from ..storage.base import Storage
from ..table.arrow.arrays import Mask
from ..table.arrow.batches import rechunk
from ..table.arrow.spill import SpillWriter
from ..table.files.base_file import file_schema
from ..table.files.file_group import FileSlice
from ..table.files.logs.delete_block import Deletes
from ..table.files.names import FileGroupId
from ..table.merging.meet import Encounter, Met, Rows
from ..table.merging.merger import MergeRules
from ..table.merging.row_spec import RowSpec
from ..table.merging.winners import fold
from ..table.schema.columns import ARRIVES, MOVED, RECORD_KEY, STAYS
from ..table.slices.hiding_deletes import HidingDeletes
from .data_files import DataFiles, FileFormat, LogFormat, LogOutput, by_blocks
from .known_keys import KnownKeys, StoredOrder, WholeRows
from .slice_reader import SliceReader
from .written_file import FileKind, WrittenFile

if TYPE_CHECKING:
    from ..table.merging.laying import PartialMerge


@dataclass(frozen=True, slots=True)
class Versions:
    """The numbers of one appender's log files in every file group; the last of `most` files grows without bound."""

    first: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True)
class LogWriter:
    """Appends log files to the file groups of one task, or of one commit.

    Attributes:
        memory: Arrow bytes of incoming rows that may be folded at once; `open_spill` opens a spill for more.
        laying: Joins partial rows of one key; None if the winner replaces the other row.
        known_keys: Looks up the stored rows of a partial update, and returns the rows to write; None for whole rows.
        stored: Reads the ordering values of the stored rows that deletes by key remove; None if they get none.
        slices: Reads deletes of log files for rows that say they are new; None if no rows say so.
    """

    files: DataFiles
    spec: RowSpec
    file_format: FileFormat
    log_format: LogFormat
    versions: Versions
    memory: int
    open_spill: Callable[[], tuple[SpillWriter, Storage]]
    laying: PartialMerge | None = None
    known_keys: KnownKeys | WholeRows | None = None
    stored: StoredOrder | None = None
    slices: SliceReader | None = None

    def path_of(self, group: FileGroupId, number: int = 0) -> str:
        """Return the path of one of this writer's log files in a file group; ``number`` counts them from 0."""
        return self.files.log_path(group, self.versions.first + number)

    def write(
        self, group: FileGroupId, file_slice: FileSlice | None, rows: Rows, sequence: str
    ) -> tuple[WrittenFile, ...]:
        """Append at least one row to a file group, and return its files; `file_slice` is None for a new group.

        `sequence` is as in `Arrivals`.
        """
        handle = LogHandle(self, group, file_slice, sequence)
        try:
            handle.append(rows)
            return handle.close()
        except BaseException:
            handle.discard()
            raise


class LogHandle:
    """The log files of one file group, open for rows."""

    def __init__(self, writer: LogWriter, group: FileGroupId, file_slice: FileSlice | None, sequence: str) -> None:
        self._writer = writer
        self._group = group
        self._file_slice = file_slice
        self._schema = file_schema(writer.file_format.schema)
        self._arrivals = writer.files.arrivals(group, sequence)
        self._open: LogOutput | None = None
        self._published: list[WrittenFile] = []
        self._dropped, self._outdone_key = 0, ""
        self._hiding: HidingDeletes | None = None

    def append(self, rows: Rows, *, held: bool = False) -> None:
        """Fold rows and append the result as blocks: rows first, then deletes.

        Deletes without an ordering value come before both, whether they win or not: they remove the rows of their keys
        in other appends of this write, each folded on its own. `held` says that memory holds all rows already.
        """
        writer, spec = self._writer, self._writer.spec
        memory = max(writer.memory, rows.nbytes) if held else writer.memory
        encounter = Encounter(
            _Entries(spec.columns, spec.ordering_fields, spec.deletes, spec.marker, spec.order),
            MergeRules(),
            memory,
            writer.open_spill,
            writer.files.where(self._group),
            join=None if writer.laying is None else writer.laying.together,
        )
        if spec.may_reset:
            resets = (batch.filter(pa.array(self._resets(batch))) for batch in rows.batches(spec.deciding))
            self._add_all_deletes(batch.take(pa.array(fold(batch.column(RECORD_KEY)))) for batch in rechunk(resets))
        # Without stored rows, as readers decide whether an entry wins against the stored row.
        with closing(encounter.meet(rows, iter(()))) as met:
            self._add_all_deletes(map(self._add_live, met))
        if self._open is not None:
            self._open.end_block()

    def close(self) -> tuple[WrittenFile, ...]:
        """Publish the open file, and return all files; rows that were dropped count in the last."""
        self._publish()
        if self._dropped:
            nothing = WrittenFile(self._group, FileKind.LOG, self._file_slice)
            last = self._published.pop() if self._published else nothing
            counts = replace(last.counts, dropped=self._dropped)
            self._published.append(replace(last, counts=counts, outdone=self._outdone_key))
        return tuple(self._published)

    def discard(self) -> None:
        """Give up the open file; published files stay."""
        if self._open is not None:
            self._open.discard()

    def _resets(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows are deletes without an ordering value, which remove a key whatever its stored row has."""
        spec = self._writer.spec
        resets = spec.unordered(rows, spec.deleted(rows))
        return np.zeros(rows.num_rows, dtype=np.bool_) if resets is None else resets

    def _add_live(self, met_rows: Met) -> pa.RecordBatch:
        """Append the rows of a batch that are no deletes, and return its deletes with an ordering value."""
        deleted = self._writer.spec.deleted(met_rows.rows)
        live = self._without_outdone(met_rows.rows.filter(pa.array(~deleted)) if deleted.any() else met_rows.rows)
        if self._writer.known_keys is None:
            self._add_rows(live)
        else:
            for rows in self._writer.known_keys.rows(self._file_slice, live, self._writer.files.where(self._group)):
                self._add_rows(rows)
        return met_rows.rows.filter(pa.array(deleted & ~self._resets(met_rows.rows)))

    def _without_outdone(self, live: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows without new rows that no reader would show, because a delete in the log files wins against them.

        Raises `OlderRowError` if such a row was to move here.
        """
        slices = self._writer.slices
        if slices is None or self._file_slice is None or not self._file_slice.logs:
            return live
        # Each row says whether it stays here, is inserted, or moved here.
        arrivals = live.column(ARRIVES).to_numpy()
        new = np.flatnonzero(arrivals != STAYS)
        if not len(new):
            return live
        if self._hiding is None:
            # The blocks are looked up once, as the rows of a file group come in many batches.
            self._hiding = slices.merged(self._file_slice).deletes
        outdone = new[self._hiding.outdone(live.take(pa.array(new)))]
        if not len(outdone):
            return live
        keys = live.column(RECORD_KEY)
        outdone_moves = outdone[arrivals[outdone] == MOVED]
        if len(outdone_moves):
            key = keys[int(outdone_moves[0])].as_py()  # one value, for the error
            raise self._older_row_error(key)
        self._dropped += len(outdone)
        self._outdone_key = self._outdone_key or keys[int(outdone[0])].as_py()  # one value, for the log
        is_kept = np.ones(live.num_rows, dtype=np.bool_)
        is_kept[outdone] = False
        return live.filter(pa.array(is_kept))

    def _older_row_error(self, key: str) -> OlderRowError:
        """Return the error of a row that would move to a key deleted with a greater ordering value."""
        return OlderRowError(
            f"A row of {self._writer.files.where(self._group)} was to get the record key {key!r}, which was deleted "
            "with a greater ordering value, so that readers would not show the row.",
            "Give the row an ordering value that is not less, or compact the table, which forgets the delete.",
        )

    def _add_all_deletes(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Append rows that are deletes, in blocks, with the stored ordering values if the writer reads these."""
        deletes = (self._deletes(rows) for rows in batches if rows.num_rows)
        for deletes_of_block in by_blocks(deletes, self._writer.log_format.block_bytes):
            stored = self._writer.stored
            ordered = (
                deletes_of_block
                if stored is None or self._file_slice is None
                else stored.of(self._file_slice, deletes_of_block)
            )
            self._open_file().add_deletes(ordered)

    def _add_rows(self, rows: pa.RecordBatch) -> None:
        """Append rows with their meta columns, in batches of about a block."""
        # A block ends behind the batch that fills it.
        step = max(1, rows.num_rows * self._writer.log_format.block_bytes // max(rows.nbytes, 1))
        parts = (rows.slice(start, step) for start in range(0, rows.num_rows, step))
        stamped = (self._arrivals.stamped(part, self._schema, self._group.file_id) for part in parts)
        for batch in chain.from_iterable(stamped):
            self._open_file().add_rows(batch)

    def _deletes(self, rows: pa.RecordBatch) -> Deletes:
        """Return rows as deletes; a delete without an ordering value of its own gets the default that always wins."""
        spec, count = self._writer.spec, rows.num_rows
        ordering = spec.ordering(rows)
        default = spec.unordered(rows, np.ones(count, dtype=np.bool_)) if ordering else np.ones(count, dtype=np.bool_)
        if default is None:
            # Every delete has a value of its own.
            default = np.zeros(count, dtype=np.bool_)
        paths = pa.repeat(pa.scalar(self._group.partition_path, pa.string()), count)
        return Deletes(rows.column(RECORD_KEY), paths, ordering, pa.array(default))

    def _open_file(self) -> LogOutput:
        """Return the log file to append to: the next file if the open file is full and there may be another."""
        if self._open is not None and self._open.full:
            most = self._writer.versions.most
            if most is None or len(self._published) + 1 < most:
                self._publish()
        if self._open is None:
            writer, version = self._writer, self._writer.versions.first + len(self._published)
            self._open = LogOutput(writer.files, self._group, version, writer.file_format, writer.log_format)
        return self._open

    def _publish(self) -> None:
        """Publish the open file, if there is one."""
        file = self._open
        if file is None:
            return
        self._published.append(file.publish(self._file_slice))
        self._open = None


@dataclass(frozen=True, slots=True)
class _Entries(RowSpec):
    """Incoming rows as entries of a log, among which deletes stay."""

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        return np.zeros(rows.num_rows, dtype=np.bool_)

    def unordered(self, rows: pa.RecordBatch, deletes: Mask) -> Mask | None:
        return RowSpec.unordered(self, rows, RowSpec.deleted(self, rows))
