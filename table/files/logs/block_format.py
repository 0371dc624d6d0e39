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


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How the log files of one write look.

    Attributes:
        block_format: What rows are encoded as: ``parquet`` or ``avro``; None for ``parquet``, and ``avro`` where a
            string orders rows.
        block_bytes: Arrow bytes of rows after which a block ends.
        file_bytes: Bytes after which a log file ends.
        per_group: How many tasks append to one file group where its rows are in several.
    """

    block_format: str | None = None
    block_bytes: int = 256 * MIB
    file_bytes: int = GIB
    per_group: int = 8

    @property
    def data_format(self) -> BlockType:
        """What rows are encoded as where no ordering field forbids it."""
        return BlockType[(self.block_format or BlockType.PARQUET.name).upper()]


def safe_format(wished: BlockType, config: TableConfig, schema: pa.Schema) -> BlockType:
    """Return Avro where a string orders the table's rows, and the wished encoding elsewhere.

    Apache Hudi 1.2 misorders strings that it reads from a Parquet block.

    Args:
        wished: `BlockType.PARQUET` or `BlockType.AVRO`.
        config: The table's properties.
        schema: The table's data columns, canonical types.
    """
    return BlockType.AVRO if ordered_by(config, schema, pa.types.is_string) else wished


def ordered_by(config: TableConfig, schema: pa.Schema, kind: Callable[[pa.DataType], bool]) -> tuple[str, ...]:
    """Return the ordering fields whose types are of a kind; none where the later row wins.

    Args:
        config: The table's properties.
        schema: The table's data columns, canonical types.
        kind: Whether a type is of the kind.
    """
    if config.merge_mode == COMMIT_TIME_ORDERING:
        return ()
    return tuple(name for name in config.ordering_fields if name in schema.names and kind(schema.field(name).type))
