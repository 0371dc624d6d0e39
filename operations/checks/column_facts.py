"""What the columns of one data file hold: bounds and nulls, by its footer, or by its rows if the footer lacks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.arrays import plain
from ...table.files.base_file import BaseFileReader
from ...table.files.file_group import BaseFile, LogFile
from ...table.files.logs.log_blocks import BlockType
from ...table.files.logs.log_contents import BlockContent, columns_of
from ...table.files.logs.log_scan import effective_blocks
from ...table.files.logs.whole_log import read_log
from ...table.files.old_days import has_old_days, is_old
from .subject import Subject

# A writer may have cut a text of more bytes in a footer.
_CUT_TEXT = 63
_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What one column of a file holds; the bounds are of the type that the column has in the table.

    ``least`` and ``greatest`` are null if all values are null, and NaN counts in neither.
    """

    rows: int
    nulls: int
    least: pa.Scalar
    greatest: pa.Scalar


Facts = Mapping[str, ColumnFacts]
# An expression, applied to the values of a column.
Change = Callable[[pa.Array], pa.Array]


def facts_of_base(subject: Subject, file: BaseFile, wanted: pa.Schema, change: Change | None = None) -> Facts:
    """Return the facts of the wanted columns that a base file has, from its footer or, if that lacks some, its rows.

    With ``change`` they are the facts of changed values, which no footer has.
    """
    with BaseFileReader(subject.storage, file.path) as reader:
        present = pa.schema([field for field in wanted if field.name in reader.stored_schema.names])
        by_footer = {field.name: _by_footer(reader, field) for field in present if change is None}
        stated = {name: facts for name, facts in by_footer.items() if facts is not None}
        unstated = pa.schema([field for field in present if field.name not in stated])
        if not len(unstated):
            return stated
        return {**stated, **facts_of_rows(reader.batches(unstated), unstated, change)}


def facts_of_log(subject: Subject, log: LogFile, wanted: pa.Schema, change: Change | None = None) -> Facts:
    """Return the facts of the wanted columns that a log file's rows have, after ``change`` if there is one.

    There are none for a log file of deletes.
    """
    counts = subject.table.format.slices.counting(subject.timeline)
    storage = subject.storage
    merged: dict[str, ColumnFacts] = {}
    for block in effective_blocks([read_log(storage, log)], counts):
        if block.type == BlockType.DELETE:
            continue
        names = columns_of(block).names
        present = pa.schema([field for field in wanted if field.name in names])
        for name, facts in facts_of_rows(BlockContent(storage, block).rows(present), present, change).items():
            merged[name] = _joined_facts(merged[name], facts) if name in merged else facts
    return merged


def facts_of_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, change: Change | None = None) -> Facts:
    """Return the facts of each column of a schema, after ``change`` if there is one."""
    by_column: dict[str, ColumnFacts] = {}
    for rows in batches:
        for field in schema:
            column = plain(rows.column(field.name))
            column = column if change is None else change(column)
            span = pc.min_max(column)
            facts = ColumnFacts(len(column), column.null_count, span["min"], span["max"])
            by_column[field.name] = _joined_facts(by_column[field.name], facts) if field.name in by_column else facts
    for field in schema:
        nothing = pa.scalar(None, field.type)
        by_column.setdefault(field.name, ColumnFacts(0, 0, nothing, nothing))
    return by_column


def _joined_facts(facts: ColumnFacts, other_facts: ColumnFacts) -> ColumnFacts:
    """Return the facts of two parts of a column as the facts of both."""
    least = pc.min_element_wise(facts.least, other_facts.least)
    return ColumnFacts(
        facts.rows + other_facts.rows,
        facts.nulls + other_facts.nulls,
        least,
        pc.max_element_wise(facts.greatest, other_facts.greatest),
    )


def _by_footer(reader: BaseFileReader, field: pa.Field) -> ColumnFacts | None:
    """Return what a footer states of a column; None if it lacks a part of it, may have cut a bound, or has old days.

    ``reader`` has the file open, and ``field`` has the column's type in the table, to which the bounds are cast. Upon
    None the caller reads the rows.
    """
    metadata: Any = reader.parquet.metadata
    # A nested column has several leaves, or one with a longer path.
    leaves = [leaf for leaf in range(metadata.num_columns) if metadata.schema.column(leaf).path == field.name]
    stored = reader.stored_schema.field(field.name).type
    # Parquet stores unsigned numbers as signed numbers, so the bounds of large numbers would be negative here.
    if len(leaves) != 1 or pa.types.is_unsigned_integer(stored):
        return None
    if stored != field.type and not (pa.types.is_primitive(stored) and pa.types.is_primitive(field.type)):
        # Numbers and texts have different orders.
        return None
    chunks = [metadata.row_group(number).column(leaves[0]) for number in range(metadata.num_row_groups)]
    stated: list[tuple[int, Any]] = [
        (chunk.num_values, chunk.statistics if chunk.is_stats_set else None) for chunk in chunks
    ]
    if any(statistics is None or not statistics.has_null_count for _, statistics in stated):
        return None
    with_values = [statistics for rows, statistics in stated if statistics.null_count < rows]
    if not all(statistics.has_min_max for statistics in with_values):
        return None
    physical = metadata.schema.column(leaves[0]).physical_type
    least = [_value(statistics.min_raw, physical, stored) for statistics in with_values]
    greatest = [_value(statistics.max_raw, physical, stored) for statistics in with_values]
    if None in least or None in greatest:
        return None
    if any(is_old(stored, value) for value in least) and has_old_days(metadata.metadata or {}):
        return None
    try:
        footer_type = _type_in_footer(physical, stored)
        spans = [pc.min_max(pa.array(values, footer_type).cast(stored)) for values in (least, greatest)]
        bounds = spans[0]["min"].cast(field.type), spans[1]["max"].cast(field.type)
    except pa.ArrowException:
        return None
    return ColumnFacts(metadata.num_rows, sum(statistics.null_count for _, statistics in stated), *bounds)


def _type_in_footer(physical: str, stored: pa.DataType) -> pa.DataType:
    """Return the type of a footer's values before they are cast to the column's type."""
    return stored if pa.types.is_decimal(stored) or physical not in _PLAIN else _PLAIN[physical]


def _value(raw: Any, physical: str, stored: pa.DataType) -> Any:
    """Return a bound of a footer as a Python value; None if it may be inexact.

    ``physical`` is its Parquet type, and ``stored`` the Arrow type of the column in the file.
    """
    if pa.types.is_decimal(stored):
        return Decimal(raw).scaleb(-stored.scale) if isinstance(raw, int) else None
    if physical in _PLAIN:
        return raw
    # An empty greatest text may mean that there is no bound: see `greatest_text` in footers.py.
    is_text = pa.types.is_string(stored) and isinstance(raw, str)
    return raw if is_text and 0 < len(raw.encode()) <= _CUT_TEXT else None
