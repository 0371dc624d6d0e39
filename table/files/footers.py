"""What a Parquet footer tells of the size of columns."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_BYTES = 16 << 20
MAX_BATCH_ROWS = 65_536
MIN_BATCH_ROWS = 1_024


def leaves_of(parquet: pq.ParquetFile, columns: Container[str]) -> list[int]:
    """Return the numbers of the leaves that lie in the given columns."""
    schema = parquet.schema
    return [number for number in range(len(schema)) if schema.column(number).path.partition(".")[0] in columns]


def batch_rows(parquet: pq.ParquetFile, schema: pa.Schema) -> int:
    """Return how many rows make about `BATCH_BYTES`, going by what the footer says of the columns' size."""
    metadata = parquet.metadata
    leaves = leaves_of(parquet, schema.names)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    size = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    rows: int = BATCH_BYTES * max(metadata.num_rows, 1) // max(size, 1)
    return max(MIN_BATCH_ROWS, min(MAX_BATCH_ROWS, rows))
