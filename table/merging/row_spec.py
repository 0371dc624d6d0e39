"""The columns that the rows of one write have, and which of them decide which row wins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from ..schema.columns import POSITION, RECORD_KEY
from .deletes import IS_DELETED, DeleteMarker, deleted
from .winners import Positions


class Judged(Protocol):
    """The values by which incoming rows are compared with each other and with a base; `RowSpec` is that of a write."""

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The columns that decide which row wins, the most significant first; empty: the later row wins."""
        ...

    @property
    def deciding(self) -> list[str]: ...

    def ordering(self, rows: pa.RecordBatch) -> tuple[pa.Array, ...]:
        """Return the values of each ordering field; empty if the later row wins."""
        ...

    def stood(self, rows: pa.RecordBatch) -> Positions | None:
        """Return the positions that the rows had before a shuffle; None if they are in their order."""
        ...

    def deleted(self, rows: pa.RecordBatch) -> Mask: ...

    def unordered(self, rows: pa.RecordBatch, deletes: Mask) -> Mask | None:
        """Return which rows are deletes without an ordering value, which win against all rows before them."""
        ...

    def yielding(self, rows: pa.RecordBatch) -> Mask | None:
        """Return which rows are deletes that change nothing after a delete without an ordering value; None: none."""
        ...

    def decided(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return merged rows among which no delete yields any more: it has won, and counts behind any other delete."""
        ...


class DeleteOrder(Enum):
    """Which ordering values the deletes among the rows of a write have."""

    OWN = "their own, none of them null: a delete loses against a stored row with a greater value"
    STORED = "those of the stored rows that they remove; with a null among them, a delete has no value"
    NONE = "no delete has a value"


@dataclass(frozen=True, slots=True)
class RowSpec:
    """The columns of the rows of one write.

    Attributes:
        columns: The data columns that the write keeps, canonical types, and `POSITION` if a shuffle moved the rows.
        ordering_fields: Empty if the later row wins, and if the rows are deletes without ordering values.
        deletes: Whether every row is a delete.
        order: Which ordering values deletes have.
    """

    columns: pa.Schema
    ordering_fields: tuple[str, ...]
    deletes: bool
    marker: DeleteMarker | None = None
    order: DeleteOrder = DeleteOrder.OWN

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(RECORD_KEY, pa.string(), nullable=False), *self.columns])

    @property
    def deciding(self) -> list[str]:
        names = {*self.judges.names, POSITION}
        return [RECORD_KEY, *(name for name in self.columns.names if name in names)]

    @property
    def judges(self) -> pa.Schema:
        """The ordering fields, the delete flag and the marker's column, all nullable."""
        names = {*self.ordering_fields, IS_DELETED, *([self.marker.field] if self.marker else [])}
        return pa.schema([field.with_nullable(True) for field in self.columns if field.name in names])

    def ordering(self, rows: pa.RecordBatch) -> tuple[pa.Array, ...]:
        return tuple(rows.column(name) for name in self.ordering_fields)

    def stood(self, rows: pa.RecordBatch) -> Positions | None:
        return rows.column(POSITION).to_numpy() if POSITION in self.columns.names else None

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        return np.ones(rows.num_rows, dtype=np.bool_) if self.deletes else deleted(rows, self.marker)

    def unordered(self, rows: pa.RecordBatch, deletes: Mask) -> Mask | None:
        """Return which of the deletes have no ordering value.

        Apache Hudi represents a missing ordering value by the ``Integer`` 0, and therefore takes a 0 in a single
        ordering field of type int for a missing value (``BufferedRecord.isCommitTimeOrderingDelete``).
        """
        ordering = self.ordering(rows)
        if not ordering or not deletes.any():
            return None
        if self.order is DeleteOrder.NONE:
            return deletes
        absent = np.zeros(rows.num_rows, dtype=np.bool_)
        if self.order is DeleteOrder.STORED:
            for values in ordering:
                absent |= mask(values.is_null())
        elif not self._takes_zero:
            # Values of their own are not null, and none stands for a missing value.
            return None
        if self._takes_zero:
            absent |= mask(pc.equal(ordering[0], 0))
        return absent & deletes

    @property
    def may_reset(self) -> bool:
        """Whether deletes without an ordering value may be among rows that have a value."""
        # Judging columns besides the ordering fields are a flag or a marker of deletes.
        may_have_deletes = self.deletes or len(self.judges) > len(self.ordering_fields)
        return (
            bool(self.ordering_fields) and may_have_deletes and (self.order is not DeleteOrder.OWN or self._takes_zero)
        )

    @property
    def _takes_zero(self) -> bool:
        """Whether a 0 stands for no ordering value."""
        kinds = [self.columns.field(name).type for name in self.ordering_fields]
        return len(kinds) == 1 and bool(pa.types.is_int32(kinds[0]))

    def yielding(self, rows: pa.RecordBatch) -> Mask | None:
        """Return None: no row of a write yields to a delete without an ordering value."""
        return None

    def decided(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows
