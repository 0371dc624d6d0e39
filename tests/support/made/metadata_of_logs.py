"""What the simulated metadata table of a table with log files says: bounds of rows in log files, and where keys are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyhudi import arrow
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.logs.log_contents import BlockContent, columns_of
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.latest_schema import latest_schema
from pyhudi.table.schema.columns import FILE_NAME, PARTITION_PATH, RECORD_KEY, with_meta
from pyhudi.table.table import open_table

from .metadata_records import ColumnBounds, Files, Keys
from .metadata_tables import bounds_of, indexed_columns


def with_log_files(path: str, files: Files) -> tuple[Files, list[ColumnBounds]]:
    """Return files with the rows of log files counted, and the bounds of base files and of rows in log files.

    As in Apache Hudi's, a log file of deletes has bounds without values. Of columns that a block of partial updates
    lacks there are none.
    """
    storage = open_storage(path)
    table = open_table(storage)
    schema = with_meta(latest_schema(table.config, table.timeline()) or pa.schema([]))
    logged = {at: _blocks(storage, one, schema) for at, one in enumerate(files.paths) if not one.endswith(".parquet")}
    counts = np.array(files.rows)
    for at, blocks in logged.items():
        counts[at] = sum(block.num_rows for block in blocks)
    by_footers = {bounds.column: bounds for bounds in bounds_of(path, files)}
    names = indexed_columns(schema)
    every = [_with_logs(by_footers.get(name), schema.field(name), len(files), logged) for name in names]
    return replace(files, rows=counts), every


def _blocks(storage: Storage, path: str, schema: pa.Schema) -> list[pa.Table]:
    """Return the rows of each data block of a log file, with those of some columns that it has."""
    block_tables = []
    for block in read_blocks(storage, path):
        if block.is_data:
            has = columns_of(block).names
            wanted = pa.schema([field for field in schema if field.name in has])
            block_tables.append(pa.Table.from_batches(BlockContent(storage, block).rows(wanted), wanted))
    return block_tables


def _with_logs(
    by_footers: ColumnBounds | None, field: pa.Field, count: int, logged: dict[int, list[pa.Table]]
) -> ColumnBounds:
    if by_footers is None:
        nothing = pa.nulls(count, field.type)
        by_footers = ColumnBounds(field.name, nothing, nothing, np.zeros(count, np.int64), np.zeros(count, np.bool_))
    least, greatest = by_footers.least.to_pylist(), by_footers.greatest.to_pylist()
    nulls, stated = np.array(by_footers.nulls), np.array(by_footers.stated)
    for at, blocks in logged.items():
        stated[at] = all(field.name in rows.column_names for rows in blocks)
        if stated[at] and blocks:
            values = pa.chunked_array([chunk for rows in blocks for chunk in rows[field.name].chunks], field.type)
            span = pc.min_max(values).as_py()
            least[at], greatest[at], nulls[at] = span["min"], span["max"], values.null_count
    return ColumnBounds(field.name, pa.array(least, field.type), pa.array(greatest, field.type), nulls, stated)


def keys_of_rows(path: str, files: Files) -> Keys | None:
    """Return the keys of all rows of a table, for a record index; None where file groups share a key."""
    rows = arrow.Table(path, threads=1).read([RECORD_KEY, PARTITION_PATH, FILE_NAME])
    first: dict[tuple[str, str], int] = {}
    for at, place in enumerate(zip(files.partitions.to_pylist(), files.file_ids, strict=True)):
        first.setdefault(place, at)
    homes: dict[str, int] = {}
    for key, partition, name in _rows(rows):
        at = first[partition, name.partition("_")[0]]
        if homes.setdefault(key, at) != at:
            return None
    return Keys(pa.array(homes, pa.string()), np.array([*homes.values()], np.int64))


def _rows(rows: pa.Table) -> Sequence[tuple[str, str, str]]:
    return [*zip(*(column.to_pylist() for column in rows.columns), strict=True)]
