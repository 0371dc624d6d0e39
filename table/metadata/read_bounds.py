"""The bounds of columns in data files that exist: by footers if these say all that is needed, else by rows.

Parquet for Java states no bounds of row groups with NaN, and Parquet C++ states bounds of the other numbers in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...storage.base import Storage
from ..files.base_file import BaseFileReader
from ..files.column_bounds import BoundsOfRows, ColumnBounds
from ..files.footer_bounds import column_bounds
from ..files.logs.log_contents import BlockContent, columns_of
from ..files.logs.log_file import read_blocks
from ..files.old_days import has_old_days, is_old, widened_moments

_LEAVES_OUT_NAN = "parquet-mr"


def bounds_of_base_file(storage: Storage, path: str, columns: Sequence[pa.Field]) -> tuple[int, list[ColumnBounds]]:
    """Return how many rows a base file has, and the bounds of some columns of canonical types, in the columns' order.

    A column that the file lacks has no bounds, and a null for each row. Bounds come from the footer, or from the rows
    if the footer lacks them or may leave out NaN, or if the file has the column in another type or old days. Those of
    old moments come from the footer, and are wider. ``path`` is relative to the table's root. Raises the errors of
    `BaseFileReader`.
    """
    with BaseFileReader(storage, path) as reader:
        footer, stored = reader.parquet.metadata, reader.stored_schema
        stated = {bounds.column: bounds for bounds in column_bounds(footer, {field.name for field in columns})}
        is_old_file = has_old_days(footer.metadata or {})
        # Other writers leave NaN out of the bounds of floats, so that the rows have to tell.
        by_java = str(footer.created_by or "").startswith(_LEAVES_OUT_NAN)
        bounds_by_column = {
            # No row with an old moment can be read, and Apache Hudi takes a column without bounds for one of nulls.
            field.name: _with_widened(field.type, stated[field.name]) if is_old_file else stated[field.name]
            for field in columns
            if field.name in stated
            and stored.field(field.name).type == field.type
            and (by_java or not pa.types.is_floating(field.type))
            and not (is_old_file and pa.types.is_date32(field.type) and _is_old(field.type, stated[field.name]))
            and stated[field.name].says_all(reader.rows)
        }
        unstated = [field for field in columns if field.name in stored.names and field.name not in bounds_by_column]
        if unstated:
            bounds_by_column |= _bounds_by_column(unstated, reader.batches(pa.schema(unstated)))
        all_bounds = []
        for field in columns:
            bounds = bounds_by_column.get(field.name, ColumnBounds(field.name, None, None, reader.rows))
            sizes = stated.get(field.name, bounds)
            all_bounds.append(bounds._replace(size=sizes.size, uncompressed=sizes.uncompressed))
        return reader.rows, all_bounds


def bounds_of_log_file(
    storage: Storage, path: str, columns: Sequence[pa.Field]
) -> tuple[int, list[ColumnBounds], bool]:
    """Return how many rows the data blocks of a log file have, their bounds, and whether blocks leave out some columns.

    A column that no block has gets bounds that are unknown, like its nulls. Raises the errors of `read_blocks` and
    `BlockContent`.
    """
    unknown_bounds = {field.name: ColumnBounds(field.name, None, None, None) for field in columns}
    rows, collected, is_partial = 0, BoundsOfRows(columns), False
    for block in read_blocks(storage, path):
        if not block.is_data:
            continue
        column_names = set(columns_of(block).names)
        wanted = [field for field in columns if field.name in column_names]
        is_partial |= block.is_partial or len(wanted) < len(columns)
        content = BlockContent(storage, block)
        rows += content.count()
        for batch in content.rows(pa.schema(wanted)) if wanted else ():
            collected.add(batch)
    bounds_by_column = {bounds.column: bounds for bounds in collected.bounds()}
    if not rows:
        # A column without rows has no nulls.
        unknown_bounds = {name: bounds._replace(nulls=0) for name, bounds in unknown_bounds.items()}
    return rows, [bounds_by_column.get(name, bounds) for name, bounds in unknown_bounds.items()], is_partial


def _is_old(kind: pa.DataType, bounds: ColumnBounds) -> bool:
    """Return whether the least value of a column, as its bounds state it, may have another number in the rows."""
    return bounds.least is not None and is_old(kind, int.from_bytes(bounds.least, "little", signed=True))


def _with_widened(kind: pa.DataType, bounds: ColumnBounds) -> ColumnBounds:
    """Return the bounds of a column in a file of the old calendar, wider if it has old moments."""
    if not (pa.types.is_timestamp(kind) and _is_old(kind, bounds)):
        return bounds
    stated_least, stated_greatest = (
        pa.array(np.frombuffer(bound or b"", "<i8")) for bound in (bounds.least, bounds.greatest)
    )
    least, greatest = widened_moments(stated_least, stated_greatest, kind.unit)
    return bounds._replace(least=least.to_numpy().tobytes(), greatest=greatest.to_numpy().tobytes())


def _bounds_by_column(columns: Sequence[pa.Field], batches: Iterator[pa.RecordBatch]) -> dict[str, ColumnBounds]:
    """Return the bounds of columns by their names, computed from rows."""
    collected = BoundsOfRows(columns)
    for batch in batches:
        collected.add(batch)
    return {field.name: ColumnBounds(field.name, None, None, 0) for field in columns} | {
        bounds.column: bounds for bounds in collected.bounds()
    }
