"""Partial rows of a write: the rows of one key merged into one row, which is then laid over base rows.

Apache Hudi merges the rows of one write in whatever order its shuffle brings them. pyhudi merges them in the order of
their ordering values, ties in the order of their positions, so that the result does not depend on the distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import KeyNotFoundError
from ..schema.columns import RECORD_KEY
from .key_codes import key_codes
from .overlay import Given, Overlay, after_resets, merged_partially
from .row_spec import RowSpec
from .winners import joint_ranks, since_reset


@dataclass(frozen=True, slots=True)
class PartialMerge:
    """How the partial rows of one write are merged.

    Attributes:
        given: Tells which rows give a column.
        columns: The record key and the data columns of the table, some of which the rows may lack.
        known_only: Whether the table must have a row of each key, because the incoming rows lack columns.
    """

    spec: RowSpec
    given: Given
    columns: tuple[str, ...]
    known_only: bool = False

    def together(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row for each key, with all values that its rows give; a delete if the key is gone.

        Deletes without an ordering value come in front, because they take base rows away. Raises KeyNotFoundError if
        a row that lacks columns comes after the delete of its key.
        """
        chains = self._in_order(rows)
        if chains is None:
            return rows
        laid = merged_partially(self.spec, chains, self.given)
        if self.known_only:
            self._check_none_revived(chains, laid)
        return after_resets(self.spec, chains, laid)

    def over(self, rows: pa.RecordBatch) -> Overlay:
        """Return the merged rows ready to be laid over base rows."""
        return Overlay(self.spec, rows, self.given, list(self.columns))

    def _in_order(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the rows in the order in which they are laid over each other; None if all keys differ.

        Rows of a key come in the order of their ordering values. A row without one, such as a delete, comes after all
        rows before it, so ordering values count only between two such rows.
        """
        stood = self.spec.stood(rows)
        if stood is not None:
            rows = rows.take(pa.array(np.argsort(stood, kind="stable")))
        code = key_codes(rows.column(RECORD_KEY))
        if code is None:
            # No row is laid over another.
            return None
        ordering = self.spec.ordering(rows)
        if not ordering:
            return rows
        resets = self.spec.unordered(rows, self.spec.deleted(rows))
        order = np.lexsort([joint_ranks(ordering, rows.num_rows), *since_reset(code, resets, None)])
        return rows.take(pa.array(order))

    def _check_none_revived(self, rows: pa.RecordBatch, laid: pa.RecordBatch) -> None:
        """Raise KeyNotFoundError if a row that lacks columns brings back a key that the write deletes."""
        is_deleted = self.spec.deleted(rows)
        if not is_deleted.any():
            return
        live = laid.column(RECORD_KEY).filter(pa.array(~self.spec.deleted(laid)))
        revived = live.filter(pc.is_in(live, value_set=rows.column(RECORD_KEY).filter(pa.array(is_deleted))))
        if len(revived):
            key = revived[0].as_py()  # one value, for the error
            raise KeyNotFoundError(
                f"The record key {key!r} is deleted by a row of this write, and another row, which holds some of the "
                "columns only, comes after the delete.",
                "Write whole rows of such keys, or the delete in a write of its own.",
            )
