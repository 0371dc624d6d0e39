"""Some columns of the rows of file slices, for whoever holds a write's rows against those that are there."""

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
    """Reads the rows of file slices.

    Attributes:
        storage: Rooted at the table.
        config: The table's properties.
        schema: The table's data columns after the write.
        sees: Returns whether the blocks of an instant, given its requested time, may be seen.
        memory: Bytes that the entries of log files may take.
        open_spill: Opens a spill for more, with the storage that reads it back.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    sees: Callable[[str], bool]
    memory: int
    open_spill: Callable[[], tuple[SpillWriter, Storage]]

    def merged(self, file_slice: FileSlice) -> MergedSlice:
        """Return a slice whose base file and log files are read as one."""
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
        """Yield the rows of a slice, less those of row groups between whose bounds none of the keys lies.

        Args:
            file_slice: The slice.
            columns: Which columns.
            keys: Unique record keys.

        Raises:
            CorruptFileError: A file cannot be read.
        """
        wanted = in_order(keys)

        def row_groups(parquet: pq.ParquetFile) -> list[int]:
            return row_groups_around(parquet, RECORD_KEY, wanted)

        return self.merged(file_slice).batches(columns, row_groups=row_groups)
