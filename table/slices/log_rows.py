"""The rows and deletes of a file slice's log blocks, in the order of the logs, to be merged with its base file.

Rules of ``BufferedRecordMergerFactory`` and ``DeleteContext`` in Apache Hudi 1.2: the entries of the logs are folded
one after another, and the result meets the base row once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import Storage
from ..arrow.arrays import Mask, mask
from ..arrow.batches import rechunk, within
from ..files.logs.log_blocks import BlockType, LogBlock
from ..files.logs.log_contents import BlockContent
from ..merging.deletes import IS_DELETED, DeleteMarker, deleted
from ..merging.meet import FOLDING_BYTES
from ..merging.row_spec import RowSpec
from ..merging.winners import Positions
from ..schema.columns import OPERATION_COLUMN, RECORD_KEY
from .partial_updates import BLOCK

# The column that holds an entry's kind, and its values.
KIND = "_pyhudi_kind"
ROW, DELETED_ROW, DELETE, RESET = range(4)

_OWN = {column.name: column for column in (pa.field(KIND, pa.int8(), nullable=False), pa.field(BLOCK, pa.int32()))}
_GONE = ["D", "-U"]


@dataclass(frozen=True, slots=True)
class LogSpec:
    """How entries of logs are compared; without ordering fields the later entry wins."""

    ordering_fields: tuple[str, ...]

    @property
    def deciding(self) -> list[str]:
        """The columns that decide between entries: the record key, the ordering fields, the kind."""
        return list(dict.fromkeys([RECORD_KEY, *self.ordering_fields, KIND]))

    def ordering(self, rows: pa.RecordBatch) -> tuple[pa.Array, ...]:
        return tuple(rows.column(name) for name in self.ordering_fields)

    def stood(self, rows: pa.RecordBatch) -> Positions | None:
        """Return None: the entries come in the order of the logs."""
        return None

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        is_delete: Mask = kinds(rows) != ROW
        return is_delete

    def unordered(self, rows: pa.RecordBatch, deletes: Mask) -> Mask | None:
        """Return which entries are deletes without an ordering value."""
        is_reset = kinds(rows) == RESET
        return is_reset if self.ordering_fields and is_reset.any() else None

    def yielding(self, rows: pa.RecordBatch) -> Mask | None:
        """Return which entries come from delete blocks, with an ordering value.

        Apache Hudi ignores such an entry, but not a row, if its key was deleted without an ordering value before.
        """
        in_delete_block = kinds(rows) == DELETE
        return in_delete_block if self.ordering_fields and in_delete_block.any() else None

    def decided(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return merged entries whose deletes, those of delete blocks too, count as those of rows do."""
        kind = kinds(rows)
        standing = pa.array(np.where(kind == DELETE, DELETED_ROW, kind).astype(np.int8))
        columns = [standing if name == KIND else rows.column(name) for name in rows.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


@dataclass(slots=True)
class LogRows:
    """The entries of the effective log blocks of one slice, in the nullable columns of ``schema``.

    ``table_schema`` is the whole table's: a column that marks rows as deletes may be missing from ``schema``. If
    ``numbered``, entries have the number of their block as a column. ``records`` counts the entries of the last pass.
    """

    storage: Storage
    blocks: Sequence[LogBlock]
    schema: pa.Schema
    table_schema: pa.Schema
    ordering_fields: tuple[str, ...]
    marker: DeleteMarker | None = None
    numbered: bool = False
    records: int = 0
    _row_bytes: float = field(default=0.0, init=False)

    @property
    def nbytes(self) -> int:
        """About the bytes of all entries and their merging: the widest row read so far, times their number."""
        rows = sum(batch.num_rows for batch in self.batches([RECORD_KEY]))
        return int(rows * self._row_bytes) + 1

    def within(self, nbytes: int) -> list[pa.RecordBatch] | None:
        """Return all entries, None if they and their merging take more bytes than that."""
        return within(self._measured(), nbytes, self._bytes_taken)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all entries with the named columns, or all and their kind; may be called again."""
        all_names = [*self.schema.names, KIND, *([BLOCK] if self.numbered else [])]
        names = all_names if columns is None else list(columns)
        columns_read = pa.schema([self._field(name) for name in names])
        self.records = 0
        for number, block in enumerate(self.blocks):
            read_block = self._deletes if block.type is BlockType.DELETE else self._entries_of_rows
            for batch in read_block(block, columns_read, number):
                self.records += batch.num_rows
                yield batch

    def resets(self) -> Iterator[pa.StringArray]:
        """Yield the keys of deletes without an ordering value, each array's once; none if the later entry wins."""
        wanted = pa.schema([self._field(RECORD_KEY), self._field(KIND)])
        if self.ordering_fields:
            batches_of_blocks = (
                (self._deletes if block.type is BlockType.DELETE else self._entries_of_rows)(block, wanted, number)
                for number, block in enumerate(self.blocks)
                if self.may_delete(block)
            )
            entries = chain.from_iterable(batches_of_blocks)
            for batch in rechunk(rows.filter(pa.array(kinds(rows) == RESET)) for rows in entries):
                yield batch.column(RECORD_KEY).unique()

    def may_delete(self, block: LogBlock) -> bool:
        """Return whether entries of a block may be deletes."""
        flagged = IS_DELETED in self.table_schema.names or self.marker is not None
        return block.type is BlockType.DELETE or flagged or OPERATION_COLUMN in (block.schema or "")

    def _measured(self) -> Iterator[pa.RecordBatch]:
        """Yield all entries, and note how many bytes the widest row takes."""
        for batch in self.batches():
            if batch.num_rows:
                self._row_bytes = max(self._row_bytes, self._bytes_taken(batch) / batch.num_rows)
            yield batch

    def _bytes_taken(self, rows: pa.RecordBatch) -> int:
        """Return how many bytes of memory a batch takes while it is merged."""
        deciding = rows.select(LogSpec(self.ordering_fields).deciding)
        nbytes: int = rows.nbytes + deciding.nbytes + FOLDING_BYTES * rows.num_rows
        return nbytes

    def _field(self, name: str) -> pa.Field:
        """Return a column of entries, which may be null."""
        return _OWN.get(name) or self.schema.field(name).with_nullable(True)

    def _entries_of_rows(self, block: LogBlock, wanted: pa.Schema, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a data block, with their kind and the number of their block if these are wanted."""
        judges = self._columns_of_deletes(block) if KIND in wanted.names else []
        data = [column for column in wanted if column.name not in _OWN]
        read_columns = pa.schema([*data, *(field for field in judges if field.name not in wanted.names)])
        for batch in BlockContent(self.storage, block).rows(read_columns):
            added = {BLOCK: pa.array(np.full(batch.num_rows, number, np.int32))}
            if KIND in wanted.names:
                added[KIND] = self._kinds_of(batch)
            columns = [added[name] if name in _OWN else batch.column(name) for name in wanted.names]
            yield pa.RecordBatch.from_arrays(columns, schema=wanted)

    def _deletes(self, block: LogBlock, wanted: pa.Schema, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the entries of a delete block; columns that it lacks are null."""
        deletes = BlockContent(self.storage, block).deletes([self.schema.field(name) for name in self.ordering_fields])
        count = len(deletes)
        columns_by_name = dict(zip(self.ordering_fields, deletes.ordering, strict=True)) | {RECORD_KEY: deletes.keys}
        columns_by_name[BLOCK] = pa.array(np.full(count, number, np.int32))
        columns_by_name[KIND] = pa.array(np.where(mask(deletes.default), RESET, DELETE).astype(np.int8))
        columns = [
            columns_by_name[column.name] if column.name in columns_by_name else pa.nulls(count, column.type)
            for column in wanted
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)

    def _columns_of_deletes(self, block: LogBlock) -> list[pa.Field]:
        """Return the columns of a block's rows that tell which of them are deletes, and how they are ordered."""
        # The table may lack a column of these, as Apache Hudi's flag of deletes is optional.
        table = self.table_schema
        names = [IS_DELETED, *self.ordering_fields, *([self.marker.field] if self.marker else [])]
        judges = [table.field(name).with_nullable(True) for name in dict.fromkeys(names) if name in table.names]
        if OPERATION_COLUMN in (block.schema or ""):
            judges.append(pa.field(OPERATION_COLUMN, pa.string()))
        return judges

    def _kinds_of(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the kind of each row of a data block."""
        is_deleted = deleted(rows, self.marker)
        if OPERATION_COLUMN in rows.schema.names:
            is_deleted |= mask(pc.is_in(rows.column(OPERATION_COLUMN), pa.array(_GONE)))
        if not is_deleted.any():
            # Zero is `ROW`.
            return pa.array(np.zeros(rows.num_rows, np.int8))
        kind = np.where(is_deleted, DELETED_ROW, ROW).astype(np.int8)
        if self.ordering_fields:
            spec = RowSpec(rows.schema, self.ordering_fields, deletes=False)
            unordered = spec.unordered(rows, is_deleted)
            if unordered is not None:
                kind[unordered] = RESET
            # A missing value means none, as does the value that stands for none.
            kind[is_deleted & _without_value(rows, self.ordering_fields)] = RESET
        return pa.array(kind)


def kinds(rows: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Return the kind of each entry."""
    values: np.ndarray[Any, np.dtype[np.int8]] = rows.column(KIND).to_numpy(zero_copy_only=False)
    return values


def _without_value(rows: pa.RecordBatch, ordering: tuple[str, ...]) -> Mask:
    """Return which rows have no value in any ordering field; Apache Hudi treats this as its default value, too."""
    lacks_values = np.ones(rows.num_rows, dtype=np.bool_)
    for name in ordering:
        lacks_values &= mask(rows.column(name).is_null())
    return lacks_values
