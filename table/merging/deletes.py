"""Which rows are deletes by their own values: a flag, or a marker in a column.

Source: Apache Hudi's ``DeleteContext`` and ``RecordContext.isDeleteRecord``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask

IS_DELETED = "_hoodie_is_deleted"


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """The column and the text that mark a row as a delete, compared with Java's text of the column's value."""

    field: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}={self.value}"

    @staticmethod
    def fits(kind: pa.DataType) -> bool:
        """Return whether a column of a type may hold a marker."""
        return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))

    def marked(self, column: pa.Array) -> Mask:
        """Return which values of a column, of a type that fits, equal the marker; a null does not."""
        try:
            marker = pa.scalar(self.value).cast(column.type)
        except pa.ArrowInvalid:
            # No value of the column's type has this text.
            return np.zeros(len(column), dtype=np.bool_)
        if marker.cast(pa.string()).as_py() != self.value:  # one value: "01" is no integer's text
            return np.zeros(len(column), dtype=np.bool_)
        return mask(pc.equal(column, marker))


def deleted(rows: pa.RecordBatch, marker: DeleteMarker | None = None) -> Mask:
    """Return which rows are deletes, by the flag ``_hoodie_is_deleted`` or a marker; a null in either marks nothing."""
    is_delete = np.zeros(rows.num_rows, dtype=np.bool_)
    if IS_DELETED in rows.schema.names:
        is_delete |= mask(rows.column(IS_DELETED))
    if marker is not None and marker.field in rows.schema.names:
        is_delete |= marker.marked(rows.column(marker.field))
    return is_delete
