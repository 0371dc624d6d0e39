"""What the rows of one write hold, and by which of their columns they are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from ..schema.columns import POSITION, RECORD_KEY
from .deletes import IS_DELETED, DeleteMarker, deleted
from .winners import Positions


class Judged(Protocol):
    """What incoming rows hold, by which they are held against one another and against a base.

    `RowSpec` is the rows of a write; its methods say what each of these means.
    """

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The columns that decide who wins, the first one first; none for the later row."""
        ...

    @property
    def deciding(self) -> list[str]:
        """All columns by which rows are judged, the record key first."""
        ...

    def ordering(self, rows: pa.RecordBatch) -> tuple[pa.Array, ...]:
        """Return the values of each ordering field; none where the later row wins."""
        ...

    def stood(self, rows: pa.RecordBatch) -> Positions | None:
        """Return where the rows stood before they were moved; None where they stand in their order."""
        ...

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows are deletes."""
        ...

    def unordered(self, rows: pa.RecordBatch, deletes: Mask) -> Mask | None:
        """Return which of the rows are deletes without an ordering value; None for none."""
        ...

    def yielding(self, rows: pa.RecordBatch) -> Mask | None:
        """Return which of the rows are deletes that change nothing where their key is deleted so; None for none."""
        ...


@dataclass(frozen=True, slots=True)
class RowSpec:
    """What the rows of one write hold.

    Attributes:
        columns: The data columns that are kept of each row, canonical types, and `POSITION` where rows were moved.
        ordering_fields: The columns that decide who wins, the first one first; none for the later row.
        deletes: True where every row is a delete, whatever its ordering values.
        marker: The value of a column by which rows are deletes, beside the flag ``_hoodie_is_deleted``.
    """

    columns: pa.Schema
    ordering_fields: tuple[str, ...]
    deletes: bool
    marker: DeleteMarker | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of keyed rows: the record key, then the columns."""
        return pa.schema([pa.field(RECORD_KEY, pa.string(), nullable=False), *self.columns])

    @property
    def deciding(self) -> list[str]:
        """The columns by which rows are held against one another: the record key, the judges, and where rows stood."""
        names = {*self.judges.names, POSITION}
        return [RECORD_KEY, *(name for name in self.columns.names if name in names)]

    @property
    def judges(self) -> pa.Schema:
        """The columns by which rows are judged: the ordering fields, the flag and the marker's, all nullable."""
        names = {*self.ordering_fields, IS_DELETED, *([self.marker.field] if self.marker else [])}
        return pa.schema([field.with_nullable(True) for field in self.columns if field.name in names])

    def ordering(self, rows: pa.RecordBatch) -> tuple[pa.Array, ...]:
        """Return the values of each ordering field; none where the later row wins."""
        return () if self.deletes else tuple(rows.column(name) for name in self.ordering_fields)

    def stood(self, rows: pa.RecordBatch) -> Positions | None:
        """Return where the rows stood before they were moved; None where they stand in their order."""
        return rows.column(POSITION).to_numpy() if POSITION in self.columns.names else None

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows are deletes."""
        return np.ones(rows.num_rows, dtype=np.bool_) if self.deletes else deleted(rows, self.marker)

    def unordered(self, rows: pa.RecordBatch, deletes: Mask) -> Mask | None:
        """Return which of the rows are deletes without an ordering value, which win against all before them.

        Apache Hudi's stand-in for a missing ordering value is the ``Integer`` 0, and it takes a 0 in a single ordering
        field of type int for it (``BufferedRecord.isCommitTimeOrderingDelete``).

        Args:
            rows: Rows with the ordering fields.
            deletes: Which of them are deletes.
        """
        ordering = self.ordering(rows)
        if len(ordering) != 1 or not pa.types.is_int32(ordering[0].type) or not deletes.any():
            return None
        return mask(pc.equal(ordering[0], 0)) & deletes

    @property
    def may_reset(self) -> bool:
        """Whether there may be deletes without an ordering value among rows that have one."""
        kinds = [one.type for one in self.columns if one.name in self.ordering_fields]
        tells = len(self.judges) > len(self.ordering_fields)
        return not self.deletes and tells and len(kinds) == 1 and bool(pa.types.is_int32(kinds[0]))

    def yielding(self, rows: pa.RecordBatch) -> Mask | None:
        """Return which of the rows yield to a delete without an ordering value: none of those that a write brings."""
        return None
