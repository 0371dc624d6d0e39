"""What is in the blocks of log files: rows and deletes, in the types that the table has now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from ....errors import CorruptFileError, CorruptInstantError, PyHudiError, UnsupportedTableError
from ....storage.base import Storage, storage_errors
from ...schema.avro import parse_avro
from ...schema.conform import conform
from ...schema.fields import find_field
from ..base_file import BaseFileReader
from . import avro_rows, block_checksum, delete_block
from .delete_block import Deletes, OldVersionError
from .log_blocks import BlockType, LogBlock, damaged
from .log_file import open_log

# Enough for a content's version, its length or its number of rows, and the number of deletes.
_FIRST_BYTES = 32

__all__ = ["BlockContent", "Deletes", "columns_of"]


def columns_of(block: LogBlock) -> pa.Schema:
    """Return the columns of a data block's rows, or of a delete block's table, meta columns included."""
    if block.schema is None:
        raise damaged(block, "it says nothing of its columns")
    try:
        return pa.schema(parse_avro(block.schema, block.shown))
    except CorruptInstantError as error:
        raise damaged(block, error.what) from error


@dataclass(frozen=True, slots=True)
class BlockContent:
    """The content of a data or delete block; `CorruptFileError` if damaged, `UnsupportedTableError` by its kind.

    ``source`` is the log file if it is open already: the content is read from it, and it stays open.
    """

    storage: Storage
    block: LogBlock
    source: Any = None

    def rows(
        self, schema: pa.Schema, *, batch_rows: int = 65_536, plain: Collection[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a data block with exactly the columns of ``schema``; columns that the block lacks are null.

        Of a partial block such nulls appear even in columns that are not nullable in the table. ``plain`` as for
        `BaseFileReader`, but None gives plain strings.
        """
        block = self.block
        if block.is_partial:
            present = set(columns_of(block).names)
            schema = pa.schema([field.with_nullable(field.nullable or field.name not in present) for field in schema])
        if block.type == BlockType.PARQUET:
            with self._parquet(plain) as reader:
                yield from reader.batches(schema, batch_rows=batch_rows)
            return
        if block.type != BlockType.AVRO:
            raise _unsupported(block)
        with repairable(self.storage, block.path):
            for batch in self._avro_rows(schema.names):
                conformed = conform(batch, schema, fill_missing=True)
                yield from (conformed.slice(at, batch_rows) for at in range(0, conformed.num_rows, batch_rows))

    def count(self) -> int:
        """Return how many rows or deletes the block says that it has, which costs one small read."""
        block = self.block
        if block.type == BlockType.PARQUET:
            with self._parquet(None) as reader:
                return reader.rows
        if block.type not in (BlockType.AVRO, BlockType.DELETE):
            raise _unsupported(block)
        with self._opened() as source:
            content = source.read(min(_FIRST_BYTES, block.content_size))
        with repairable(self.storage, block.path), _parsing(block):
            count = delete_block.count if block.type == BlockType.DELETE else avro_rows.count
            return count(content, block.content_size)

    def deletes(self, ordering: Sequence[pa.Field] = ()) -> Deletes:
        """Return a delete block's deletes with the values of ``ordering``, the fields as the table has them now.

        A block that says nothing of a field's type counts as written in the type of now.
        """
        block = self.block
        written_types = [field.type for field in ordering]
        if ordering and block.schema is not None:
            columns = columns_of(block)
            fields = [find_field(columns, field.name) for field in ordering]
            written_types = [
                field_now.type if field_then is None else field_then.type
                for field_then, field_now in zip(fields, ordering, strict=True)
            ]
        with self._opened() as source:
            check = block_checksum.BlockCheck(block, source.read)
            content = check.read(block.content_size)
        with repairable(self.storage, block.path), _parsing(block):
            check.end()
            return delete_block.decode(content, written_types, ordering)

    def _avro_rows(self, names: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield the columns of an Avro block's rows that have these names, and check its checksum at the end."""
        block, columns = self.block, columns_of(self.block)
        with self._opened() as source, _parsing(block):
            check = block_checksum.BlockCheck(block, source.read)
            yield from avro_rows.decode(check.read, block.content_size, block.schema or "", columns, names)
            check.end()

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the log file, unless a source is given, and go to the block's content."""
        path = self.block.path
        with storage_errors("read", path), ExitStack() as opened:
            source = self.source or opened.enter_context(open_log(self.storage, path))
            source.seek(self.block.content_offset)
            yield source

    @contextmanager
    def _parquet(self, plain: Collection[str] | None) -> Iterator[BaseFileReader]:
        """Open a Parquet block as a base file's reader opens a file."""
        block = self.block
        part = (block.content_offset, block.content_size)
        check = partial(block_checksum.check_parquet, block)
        with (
            repairable(self.storage, block.path),
            BaseFileReader(
                self.storage, block.path, plain=plain, part=part, shown=block.shown, check_footer=check
            ) as reader,
        ):
            yield reader


@contextmanager
def repairable(storage: Storage, path: str) -> Iterator[None]:
    """Let errors about a damaged log file end with the call that gives up the rows that cannot be read."""
    try:
        yield
    except CorruptFileError as error:
        call = f"HudiTable(spark, {storage.path!r}).repair(accept_loss=[{path!r}])"
        todo = f"Restore the file from a backup. If you have none, give up the rows that cannot be read: {call}"
        raise CorruptFileError(error.what, todo) from error


@contextmanager
def _parsing(block: LogBlock) -> Iterator[None]:
    """Turn any error that a parser raises on damaged bytes into an error of pyhudi."""
    try:
        yield
    except (PyHudiError, MemoryError, OSError):
        # These have words of their own, or say nothing of the bytes.
        raise
    except OldVersionError as error:
        raise UnsupportedTableError(
            f"The content of {block.shown} is of version {error}: objects as Java keeps them, which pyhudi does not "
            "read.",
            "Compact the table with Apache Hudi, then run this again.",
        ) from error
    except Exception as error:
        raise damaged(block, f"{type(error).__name__}: {error}") from error


def _unsupported(block: LogBlock) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{block.shown[:1].upper()}{block.shown[1:]} is of the type {block.type.name}, which pyhudi does not read.",
        "Compact the table with Apache Hudi, then run this again.",
    )
