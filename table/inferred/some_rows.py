"""Some rows of a file slice, for callers that look at a table's rows without reading them all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from ...storage.base import Storage
from ..files.base_file import open_base
from ..files.file_group import DataFile, FileSlice
from ..files.logs.log_contents import BlockContent
from ..files.logs.whole_log import read_log


def some_rows(storage: Storage, file_slice: FileSlice, schema: pa.Schema) -> Iterator[tuple[DataFile, pa.RecordBatch]]:
    """Yield one batch of the base file and one of the newest log file, each with its file."""
    if file_slice.base is not None:
        with open_base(storage, file_slice.base) as reader:
            for rows in islice(reader.batches(schema), 1):
                yield file_slice.base, rows
    for log in file_slice.logs[-1:]:
        # Partial rows hold their key, but may lack the columns of which it was made.
        blocks = (block for block in read_log(storage, log) if block.is_data and not block.is_partial)
        for block in islice(blocks, 1):
            for rows in islice(BlockContent(storage, block).rows(schema), 1):
                yield log, rows
