"""Whether file groups hold the keys of rows with some of the columns, before these are appended to their log files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..storage.base import Storage
from ..table.arrow.spill import SpillWriter
from ..table.config import TableConfig
from ..table.files.file_group import FileSlice
from ..table.merging.key_probe import KeyProbe
from ..table.merging.merger import check_known
from ..table.schema.columns import RECORD_KEY
from ..table.slices.merged_slice import MergedSlice


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Looks keys up in the slices that rows are appended to.

    Attributes:
        storage: Rooted at the table.
        config: The table's properties, by which log files are merged.
        schema: The table's data columns.
        sees: Returns whether the log blocks of an instant, given its requested time, count.
        memory: Arrow bytes of log entries that may be merged at once.
        open_spill: Opens a spill for what is beyond memory, with the storage that reads it back.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    sees: Callable[[str], bool]
    memory: int
    open_spill: Callable[[], tuple[SpillWriter, Storage]]

    def check(self, piece: FileSlice | None, keys: pa.Array, where: str) -> None:
        """Refuse keys of which the slice shows no row.

        Args:
            piece: The slice; None for a new file group.
            keys: No two alike.
            where: The file group, for messages.

        Raises:
            KeyNotFoundError: There are some.
        """
        known = np.zeros(len(keys), dtype=np.bool_)
        if piece is not None and len(keys):
            probe = KeyProbe.over(keys)
            merged = MergedSlice(
                self.storage,
                self.config,
                piece,
                self.schema,
                self.sees,
                memory=self.memory,
                open_spill=self.open_spill,
            )
            with closing(merged.batches(pa.schema([pa.field(RECORD_KEY, pa.string())]))) as batches:
                for batch in batches:
                    found = probe.find(batch.column(RECORD_KEY))
                    known[found[found >= 0]] = True
        check_known(keys.filter(pa.array(~known)), where)
