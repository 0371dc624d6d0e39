"""How log files look, and the encoding of rows in them that Apache Hudi merges rightly, by the ordering fields.

Source: what Apache Hudi 1.2.0 shows of log files with every type of ordering field (tests/interop/test_log_orders.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ...config import TableConfig
from ...config.property_keys import COMMIT_TIME_ORDERING
from ..output import GIB, MIB
from .log_blocks import BlockType

# The most digits of a decimal in a delete block: behind the point, and before it.
_DIGITS, _WHOLE_DIGITS = 15, 23


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How the log files of one write look.

    A ``block_format`` of None is ``parquet``, and ``avro`` if a string orders rows. A block ends after
    ``block_bytes`` in Arrow. ``per_group`` tasks append to one file group whose rows are in several tasks.
    """

    block_format: str | None = None
    block_bytes: int = 256 * MIB
    file_bytes: int = GIB
    per_group: int = 8

    @property
    def data_format(self) -> BlockType:
        """The encoding of rows if no ordering field forbids it."""
        return BlockType[(self.block_format or BlockType.PARQUET.name).upper()]


def safe_format(wished: BlockType, config: TableConfig, schema: pa.Schema) -> BlockType:
    """Return Avro if a string orders rows, which Apache Hudi 1.2 misorders from Parquet blocks, else ``wished``."""
    return BlockType.AVRO if ordered_by(config, schema, pa.types.is_string) else wished


def ordered_by(config: TableConfig, schema: pa.Schema, kind: Callable[[pa.DataType], bool]) -> tuple[str, ...]:
    """Return the ordering fields for whose types ``kind`` is true; none if the later row wins."""
    if config.merge_mode == COMMIT_TIME_ORDERING:
        return ()
    return tuple(name for name in config.ordering_fields if name in schema.names and kind(schema.field(name).type))


def delete_order(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Return the ordering fields, if every reader of the table reads their values in delete blocks.

    Else none: deletes then have no ordering value.
    """
    fields = ordered_by(config, schema, lambda _: True)
    decimals = [schema.field(name).type for name in ordered_by(config, schema, pa.types.is_decimal)]
    # Apache Hudi 1.0.2, which reads some tables, fails on decimals there and has no place for several values.
    unread = not config.orders_every_delete and (len(fields) > 1 or bool(decimals))
    too_long = any(max(kind.scale - _DIGITS, kind.precision - kind.scale - _WHOLE_DIGITS) > 0 for kind in decimals)
    return () if unread or too_long or len(fields) < len(config.ordering_fields) else fields
