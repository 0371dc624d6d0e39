"""What is in the blocks of log files: rows and deletes, in the types that the table has now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from ....errors import CorruptInstantError, PyHudiError, UnsupportedTableError
from ....storage.base import Storage, storage_errors
from ...schema.avro import parse_avro
from ...schema.fields import find_field
from ..base_file import BaseFileReader
from . import delete_block
from .delete_block import Deletes, OldVersionError
from .log_blocks import BlockType, LogBlock, damaged
from .log_file import open_log

__all__ = ["Deletes", "columns_of", "deletes_of", "rows_of"]


def columns_of(block: LogBlock) -> pa.Schema:
    """Return the columns of the rows in a data block, meta columns among them; of a delete block those of its table.

    Raises:
        CorruptFileError: The block names no schema, or one that is none.
        UnsupportedTypeError: A column has a type that pyhudi does not read.
    """
    if block.schema is None:
        raise damaged(block, "it says nothing of its columns")
    try:
        return pa.schema(parse_avro(block.schema, block.shown))
    except CorruptInstantError as error:
        raise damaged(block, error.what) from error


def rows_of(
    storage: Storage,
    block: LogBlock,
    schema: pa.Schema,
    *,
    batch_rows: int = 65_536,
    plain: Collection[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data block with exactly the columns of ``schema``.

    Columns that the block lacks are null; where it is partial they may be null even where the table's are not, and
    `columns_of` tells which they are.

    Args:
        storage: Rooted at the table.
        block: A data block.
        schema: Wanted columns, canonical types, meta columns may be among them.
        batch_rows: Rows of one batch at most.
        plain: As for `BaseFileReader`: None for plain strings, else what is not wanted as the file's dictionaries.

    Raises:
        CorruptFileError: The content is damaged.
        UnsupportedTableError: The content is of a kind that pyhudi does not read.
        SchemaMismatchError: A value has no place in its column.
    """
    if block.is_partial:
        present = set(columns_of(block).names)
        schema = pa.schema([field.with_nullable(field.nullable or field.name not in present) for field in schema])
    if block.type == BlockType.PARQUET:
        part = (block.content_offset, block.content_size)
        with BaseFileReader(storage, block.path, plain=plain, part=part, shown=block.shown) as reader:
            yield from reader.batches(schema, batch_rows=batch_rows)
        return
    raise UnsupportedTableError(
        f"{block.shown[:1].upper()}{block.shown[1:]} is of the type {block.type.name}, which pyhudi does not read.",
        "Compact the table with Apache Hudi, then run this again.",
    )


def deletes_of(storage: Storage, block: LogBlock, ordering: Sequence[pa.Field] = ()) -> Deletes:
    """Return the deletes of a delete block.

    Args:
        storage: Rooted at the table.
        block: A delete block.
        ordering: The table's ordering fields, as it has them now; none where deletes ask for no order.

    Raises:
        CorruptFileError: The content is damaged.
        UnsupportedTableError: An old release wrote it.
        SchemaMismatchError: An ordering value has no place in its field's type.
    """
    written = [field.type for field in ordering]
    if ordering and block.schema is not None:
        columns = columns_of(block)
        known = [find_field(columns, field.name) for field in ordering]
        written = [now.type if then is None else then.type for then, now in zip(known, ordering, strict=True)]
    try:
        return delete_block.decode(_content(storage, block), written, ordering)
    except OldVersionError as error:
        raise UnsupportedTableError(
            f"The content of {block.shown} is of version {error}: objects as Java keeps them, which pyhudi does not "
            "read.",
            "Compact the table with Apache Hudi, then run this again.",
        ) from error
    except PyHudiError:
        raise
    except Exception as error:
        # Damaged bytes make the parser fail in every way that Python knows.
        raise damaged(block, f"{type(error).__name__}: {error}") from error


def _content(storage: Storage, block: LogBlock) -> bytes:
    with storage_errors("read", block.path), open_log(storage, block.path) as source:
        source.seek(block.content_offset)
        return bytes(source.read(block.content_size))
