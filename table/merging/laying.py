"""Rows of a write that leave some of their values to others of their key: put together, then laid over base rows.

Apache Hudi puts the rows of one write together in whatever order its shuffle brings them. Here it is that of their
ordering values, and of their places where these are equal, so that no distribution of the rows gives another result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import KeyNotFoundError
from ..schema.columns import RECORD_KEY
from .key_codes import key_codes
from .overlay import Given, Overlay, merged_partially
from .row_spec import RowSpec
from .winners import joint_ranks, since_reset


@dataclass(frozen=True, slots=True)
class PartialMerge:
    """How the rows of one write are put together.

    Attributes:
        spec: What they hold.
        given: Tells which rows give a column.
        columns: The record key and the data columns of the table, some of which the rows may lack.
        known_only: Whether a row needs one that is there, because it holds some of the columns only.
    """

    spec: RowSpec
    given: Given
    columns: tuple[str, ...]
    known_only: bool = False

    def together(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row for each key, put together of all that its rows give; a delete where the key is gone.

        Args:
            rows: At least one, with all rows of each key.

        Raises:
            KeyNotFoundError: A row with some of the columns comes after the delete of its key.
        """
        chains = self._in_order(rows)
        if chains is None:
            return rows
        laid = merged_partially(self.spec, chains, self.given)
        if self.known_only:
            self._check_none_revived(chains, laid)
        return laid

    def over(self, rows: pa.RecordBatch) -> Overlay:
        """Return what lays rows, one of each key, over base rows: over every row of their keys."""
        return Overlay(self.spec, rows, self.given, list(self.columns), first_alone=False)

    def _in_order(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return rows in the order in which those of one key are laid over each other; None where keys differ."""
        stood = self.spec.stood(rows)
        if stood is not None:
            rows = rows.take(pa.array(np.argsort(stood, kind="stable")))
        code = key_codes(rows.column(RECORD_KEY))
        if code is None:
            return None
        ordering = self.spec.ordering(rows)
        if not ordering:
            return rows
        resets = self.spec.unordered(rows, self.spec.deleted(rows))
        order = np.lexsort([joint_ranks(ordering, rows.num_rows), *since_reset(code, resets, None)])
        return rows.take(pa.array(order))

    def _check_none_revived(self, rows: pa.RecordBatch, laid: pa.RecordBatch) -> None:
        gone = self.spec.deleted(rows)
        if not gone.any():
            return
        live = laid.column(RECORD_KEY).filter(pa.array(~self.spec.deleted(laid)))
        revived = live.filter(pc.is_in(live, value_set=rows.column(RECORD_KEY).filter(pa.array(gone))))
        if len(revived):
            key = revived[0].as_py()  # one value, for the error
            raise KeyNotFoundError(
                f"The record key {key!r} is deleted by a row of this write, and another row, which holds some of the "
                "columns only, comes after the delete.",
                "Write whole rows of such keys, or the delete in a write of its own.",
            )
