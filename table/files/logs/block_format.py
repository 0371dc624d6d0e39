"""The encoding of rows in log blocks that Apache Hudi merges rightly, by the types of a table's ordering fields.

Source: what Apache Hudi 1.2.0 shows of log files with every type of ordering field (tests/interop/test_log_orders.py).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ...config import TableConfig
from ...config.property_keys import COMMIT_TIME_ORDERING
from .log_blocks import BlockType


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
