"""Reading one split: pieces of base files in, record batches of exactly the requested columns out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..errors import CorruptFileError
from ..storage.base import Storage
from ..table.base_file import RECORD_KEY, BaseFileReader
from .plan import Piece, Split
from .predicates import Predicate
from .statistics import leaves_of, matching_row_groups

BATCH_BYTES = 16 << 20
MAX_BATCH_ROWS = 65_536
MIN_BATCH_ROWS = 1_024


def scan(
    storage: Storage, split: Split, schema: pa.Schema, predicates: Sequence[Predicate], table_schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split.

    Args:
        storage: Rooted at the table.
        split: What to read.
        schema: The columns wanted, with the types and nullability wanted; those a file lacks are null.
        predicates: Conjuncts; row groups in which no row satisfies them all are left out, other rows are not.
        table_schema: The table's columns, canonical.

    Raises:
        CorruptFileError: A base file cannot be read; it is named with its partition and table.
    """
    for piece in split.pieces:
        try:
            yield from _scan_piece(storage, piece, schema, predicates, table_schema)
        except CorruptFileError as error:
            raise CorruptFileError(
                f"Reading partition {piece.partition_path!r} of the table {storage.path}: {error.what}", error.todo
            ) from error


def _scan_piece(
    storage: Storage, piece: Piece, schema: pa.Schema, predicates: Sequence[Predicate], table_schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    with BaseFileReader(storage, piece.path) as reader:
        matching = matching_row_groups(reader.parquet, predicates, table_schema)
        groups = [number for number in matching if piece.row_groups is None or number in piece.row_groups]
        if not groups:
            return
        # A read of columns that the file lacks needs one that it has, to know how many rows there are.
        present = set(reader.parquet.schema_arrow.names)
        extra = [] if present.intersection(schema.names) else [pa.field(RECORD_KEY, pa.string())]
        asked = pa.schema([*schema, *extra])
        for batch in reader.batches(asked, batch_rows=_batch_rows(reader, asked), row_groups=groups):
            yield batch.select(schema.names) if extra else batch


def _batch_rows(reader: BaseFileReader, schema: pa.Schema) -> int:
    """Return how many rows make about `BATCH_BYTES`, going by what the footer says of the columns' size."""
    metadata = reader.parquet.metadata
    leaves = leaves_of(reader.parquet, schema.names)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    size = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    rows: int = BATCH_BYTES * max(metadata.num_rows, 1) // max(size, 1)
    return max(MIN_BATCH_ROWS, min(MAX_BATCH_ROWS, rows))
