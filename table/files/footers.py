"""What a Parquet footer tells of the size of columns, and of the texts in them."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..arrow.arrays import span_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_BYTES = 16 << 20
MAX_BATCH_ROWS = 65_536
MIN_BATCH_ROWS = 1_024


def leaves_of(parquet: pq.ParquetFile, columns: Container[str]) -> list[int]:
    """Return the numbers of the Parquet columns that these columns have, nested columns included."""
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


def has_no_nulls(parquet: pq.ParquetFile, group: int, columns: Collection[str]) -> bool:
    """Return whether a row group certainly has a value in each row of some columns of numbers or texts."""
    chunks = (parquet.metadata.row_group(group).column(leaf) for leaf in leaves_of(parquet, columns))
    statistics = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    # A column that the file lacks has no chunk, and a nested column may have several.
    return len(statistics) == len(columns) and all(
        stated is not None and stated.has_null_count and not stated.null_count for stated in statistics
    )


def text_bounds(parquet: pq.ParquetFile, column: str) -> list[tuple[str | None, str | None]]:
    """Return the least and greatest text of a top-level string column, a pair for each row group; None if unknown."""
    leaves = leaves_of(parquet, (column,))
    groups = (parquet.metadata.row_group(number) for number in range(parquet.num_row_groups))
    bounds: list[tuple[str | None, str | None]] = []
    for group in groups:
        chunk = group.column(leaves[0]) if len(leaves) == 1 else None
        statistics = chunk.statistics if chunk is not None and chunk.is_stats_set else None
        if statistics is None or not statistics.has_min_max:
            bounds.append((None, None))
        else:
            bounds.append((text_bound(statistics.min_raw), greatest_text(statistics.max_raw)))
    return bounds


def row_groups_around(parquet: pq.ParquetFile, column: str, texts: pa.StringArray) -> list[int]:
    """Return the row groups whose bounds admit one of some texts, which come in the order of their bytes."""
    spans = (span_of(texts, *bounds) for bounds in text_bounds(parquet, column))
    return [number for number, (start, end) in enumerate(spans) if start < end]


def text_bound(raw: Any) -> str | None:
    """Return a bound of a string column; None if a writer cut it inside a character."""
    if isinstance(raw, str):
        return raw
    try:
        return str(bytes(raw), "utf-8")
    except UnicodeDecodeError:
        return None


def greatest_text(raw: Any) -> str | None:
    """Return the upper bound of a string column; None for an empty bound, which may mean that there is none.

    Parquet C++ writes no bound of more than 4 KiB, and pyarrow before 21 reads a missing bound beside a present bound
    as empty. An empty lower bound is never wrong: no text is less.
    """
    return text_bound(raw) or None
