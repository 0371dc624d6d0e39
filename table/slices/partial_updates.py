"""Which columns an entry of a log gives, and which keep the value of the older row.

Source: Apache Hudi's ``PartialUpdateMode`` and ``PartialUpdateHandler``, and the blocks that ``MERGE INTO`` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from ..arrow.batches import concat
from ..config import TableConfig
from ..config import property_keys as key
from ..files.logs.log_blocks import LogBlock
from ..files.logs.log_contents import columns_of
from ..merging.overlay import after_resets, merged_partially
from ..merging.row_spec import Judged

# The number of an entry's block among those that count; a column of entries if a block is partial.
BLOCK = "_pyhudi_block"


@dataclass(frozen=True, slots=True)
class PartialUpdates:
    """Which of its columns an entry gives.

    Attributes:
        ignores_nulls: Whether a null leaves a column to the older row.
        unavailable: The text or bytes that leave a column to the older row; None for none.
        columns: The columns of each block that counts, None for a block with all of them. None if all blocks have all.
        until_then: The table's own mode, for entries before the first such block. From that block on Apache Hudi
            forgets the mode, and columns merged until then count as given.
    """

    ignores_nulls: bool = False
    unavailable: str | None = None
    columns: tuple[frozenset[str] | None, ...] | None = None
    until_then: PartialUpdates | None = None

    @classmethod
    def of(cls, config: TableConfig, blocks: Sequence[LogBlock]) -> PartialUpdates | None:
        """Return how the entries of some blocks update, None if each gives all columns."""
        mode = config.partial_update_mode
        by_mode = None
        if mode is not None:
            by_mode = cls(mode == key.IGNORE_DEFAULTS, config.unavailable_value)
        if not any(block.is_partial for block in blocks):
            return by_mode
        columns = tuple(frozenset(columns_of(block).names) if block.is_partial else None for block in blocks)
        return cls(columns=columns, until_then=by_mode)

    def begun(self, spec: Judged, entries: pa.RecordBatch) -> pa.RecordBatch:
        """Return entries in the order of the logs, with those that `until_then` governs merged already.

        ``spec`` tells how entries are compared.
        """
        if self.until_then is None or self.columns is None:
            return entries
        first_partial = next(number for number, names in enumerate(self.columns) if names is not None)
        early = entries.column(BLOCK).to_numpy(zero_copy_only=False) < first_partial
        if not early.any():
            return entries
        first_entries = entries.filter(pa.array(early))
        begun = merged_partially(spec, first_entries, self.until_then.given)
        return concat([after_resets(spec, first_entries, begun), entries.filter(pa.array(~early))])

    def given(self, rows: pa.RecordBatch | None, name: str, values: pa.Array) -> Mask | None:
        """Return which rows give a column, None if all do; ``rows`` is None for rows of a base file."""
        gives: Mask | None = None
        if self.ignores_nulls:
            gives = mask(values.is_valid())
        elif self.unavailable is not None and (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
            gives = ~mask(pc.equal(values, pa.scalar(self.unavailable).cast(values.type)))
        if rows is not None and self.columns is not None:
            has = np.array([columns is None or name in columns for columns in self.columns])
            present = has[rows.column(BLOCK).to_numpy(zero_copy_only=False)]
            gives = present if gives is None else gives & present
        return None if gives is None or gives.all() else gives

    def complete(self, rows: pa.RecordBatch) -> Mask | None:
        """Return which entries give all columns of the table; None if a value decides that, not the block."""
        if self.columns is None:
            return None
        is_whole = np.array([columns is None for columns in self.columns])
        gives_all: Mask = is_whole[rows.column(BLOCK).to_numpy(zero_copy_only=False)]
        return gives_all
