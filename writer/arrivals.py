"""Incoming rows in the form of stored rows: with their meta columns in front."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..table.files.base_file import constant
from ..table.schema.columns import META_COLUMNS, RECORD_KEY

ARRIVAL_ROWS = 65_536


@dataclass(slots=True)
class Arrivals:
    """Makes incoming rows of one file group rows of an instant; `sequence` is part of ``_hoodie_commit_seqno``."""

    instant_time: str
    sequence: str
    partition_path: str
    arrived: int = 0

    def stamped(self, rows: pa.RecordBatch, schema: pa.Schema, file_name: str) -> Iterator[pa.RecordBatch]:
        """Yield rows with their meta columns in front, in the columns of a file's ``schema``."""
        for start in range(0, rows.num_rows, ARRIVAL_ROWS):
            batch = rows.slice(start, ARRIVAL_ROWS)
            count = batch.num_rows
            numbers = pa.array(np.arange(self.arrived, self.arrived + count)).cast(pa.string())
            self.arrived += count
            meta = [
                constant(self.instant_time, count),
                pc.binary_join_element_wise(f"{self.instant_time}_{self.sequence}", numbers, "_"),
                batch.column(RECORD_KEY),
                constant(self.partition_path, count),
                constant(file_name, count),
            ]
            data = [encoded_as(batch.column(column.name), column.type) for column in list(schema)[len(META_COLUMNS) :]]
            yield pa.RecordBatch.from_arrays([*meta, *data], schema=schema)


def encoded_as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column dictionary-encoded if the wanted type is, else as it is."""
    if pa.types.is_dictionary(wanted) and not pa.types.is_dictionary(column.type):
        return column.dictionary_encode()
    return column
