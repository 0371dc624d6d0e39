"""Columns of the stored rows of file slices, for the comparison with incoming rows."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ..storage.base import Storage
from ..table.arrow.spill import SpillWriter
from ..table.arrow.string_order import in_order
from ..table.config import TableConfig
from ..table.files.file_group import FileSlice
from ..table.files.footers import row_groups_around
from ..table.schema.columns import RECORD_KEY
from ..table.slices.merged_slice import MergedSlice

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads the rows of file slices, with the blocks of the instants that `sees` accepts by their requested times."""

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    sees: Callable[[str], bool]
    memory: int
    open_spill: Callable[[], tuple[SpillWriter, Storage]]

    def merged(self, file_slice: FileSlice) -> MergedSlice:
        """Return a slice whose rows can be read, its log files merged in."""
        return MergedSlice(
            self.storage,
            self.config,
            file_slice,
            self.schema,
            self.sees,
            memory=self.memory,
            open_spill=self.open_spill,
        )

    def read(self, file_slice: FileSlice, columns: pa.Schema, keys: pa.StringArray) -> Generator[pa.RecordBatch]:
        """Yield the rows of a slice, without row groups whose bounds exclude all of the unique keys."""
        wanted = in_order(keys)

        def row_groups(parquet: pq.ParquetFile) -> list[int]:
            return row_groups_around(parquet, RECORD_KEY, wanted)

        return self.merged(file_slice).batches(columns, row_groups=row_groups)
