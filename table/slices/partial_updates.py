"""Which columns an entry of a log gives, and which it leaves to what it is laid over.

Source: Apache Hudi's ``PartialUpdateMode`` and ``PartialUpdateHandler``, and the blocks that ``MERGE INTO`` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from ..config import TableConfig
from ..config import property_keys as key
from ..files.logs.log_blocks import LogBlock
from ..files.logs.log_contents import columns_of

# The block of an entry, by its place among those that count; given where a block is partial.
BLOCK = "_pyhudi_block"


@dataclass(frozen=True, slots=True)
class PartialUpdates:
    """What of its columns an entry gives.

    Attributes:
        ignores_nulls: Whether a null leaves a column to the older row.
        unavailable: The text or bytes that do; None for none.
        columns: The columns of each block that counts, None for all, where some block has not all.
    """

    ignores_nulls: bool = False
    unavailable: str | None = None
    columns: tuple[frozenset[str] | None, ...] | None = None

    @classmethod
    def of(cls, config: TableConfig, blocks: Sequence[LogBlock]) -> PartialUpdates | None:
        """Return how the entries of some blocks update, None where each gives all columns."""
        mode = config.partial_update_mode
        columns = None
        if any(block.is_partial for block in blocks):
            columns = tuple(frozenset(columns_of(one).names) if one.is_partial else None for one in blocks)
        if mode is None and columns is None:
            return None
        unavailable = config.properties.get(key.UNAVAILABLE_VALUE) if mode == key.FILL_UNAVAILABLE else None
        return cls(mode == key.IGNORE_DEFAULTS, unavailable, columns)

    def given(self, rows: pa.RecordBatch | None, name: str, values: pa.Array) -> Mask | None:
        """Return which rows give a column, None where all do.

        Args:
            rows: Entries of logs with their blocks, or None for rows of a base file, which have all columns.
            name: The column.
            values: Its values.
        """
        found: Mask | None = None
        if self.ignores_nulls:
            found = mask(values.is_valid())
        elif self.unavailable is not None and (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
            found = ~mask(pc.equal(values, pa.scalar(self.unavailable).cast(values.type)))
        if rows is not None and self.columns is not None:
            has = np.array([columns is None or name in columns for columns in self.columns])
            present = has[rows.column(BLOCK).to_numpy(zero_copy_only=False)]
            found = present if found is None else found & present
        return None if found is None or found.all() else found
