"""The bounds of a base file's columns as its Parquet footer states them, if it does.

Parquet C++ states none of row groups whose least and greatest texts have more than 4 KiB, and pyarrow before 21 reads a
missing greatest text, or binary value, as an empty one. Of floating point numbers it leaves NaN out.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...storage.kept import keep
from .column_bounds import DECIMAL, OCTETS, PLAIN, TEXT, ColumnBounds, bounds_of_values, united, widened

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# If a text has so many bytes, a footer may lack bounds.
_LONG = 2048

PartBounds = Mapping[str, ColumnBounds]
"""What is known of the columns of one row group."""


class Leaf(NamedTuple):
    """A column of a Parquet file that is not nested.

    Attributes:
        number: Its position among the columns.
        encoding: How its bounds are spelled.
        width: Of a decimal that is stored as a number, the bytes of that number; 0 for all others.
    """

    number: int
    path: str
    encoding: str
    width: int


# Of files that this process wrote, by their Arrow schema and the columns that have bounds. pyarrow ties a footer to its
# Parquet schema once a caller reads that, and both stay in memory until Python looks for cycles.
_LEAVES: dict[tuple[pa.Schema, tuple[str, ...]], tuple[Leaf, ...]] = {}
_MOST_SCHEMAS = 64


def column_bounds(
    footer: pq.FileMetaData,
    columns: Collection[str],
    own: Sequence[PartBounds] = (),
    written: pa.Schema | None = None,
) -> tuple[ColumnBounds, ...]:
    """Return the bounds of some columns that are not nested, short enough for a task's message.

    Args:
        columns: Names of columns; those that are nested, or that the footer lacks, get no bounds.
        own: Of each row group the bounds that its writer knows, which count in place of the footer's.
        written: The Arrow schema of which pyhudi wrote the file; None for a file of any writer.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return tuple(_bounds(leaf, groups, own) for leaf in _leaves(footer, columns, written))


def _leaves(footer: pq.FileMetaData, columns: Collection[str], written_schema: pa.Schema | None) -> tuple[Leaf, ...]:
    """Return where a footer has the columns; the same for all files that this process wrote with ``written_schema``.

    ``written_schema`` is None for a file of any writer, whose footer is read each time.
    """
    if written_schema is None:
        return _leaves_in_footer(footer, columns)
    key = (written_schema, tuple(columns))
    leaves = _LEAVES.get(key)
    if leaves is None:
        leaves = _leaves_in_footer(footer, columns)
        keep(_LEAVES, key, leaves, _MOST_SCHEMAS)
    # Another thread may have dropped them from the kept leaves meanwhile.
    return leaves


def _leaves_in_footer(footer: pq.FileMetaData, columns: Collection[str]) -> tuple[Leaf, ...]:
    """Return position, name, and the encoding and width of bounds, of those columns that the footer's schema has.

    Columns inside nested columns have paths such as ``a.b``, and so are not among ``columns``.
    """
    schema = footer.schema
    flat = ((number, schema.column(number)) for number in range(len(schema)))
    return tuple(
        Leaf(number, column.path, _bound_encoding(column), _bound_width(column))
        for number, column in flat
        if column.path in columns
    )


def unstated(rows: pa.Table, columns: Collection[str]) -> PartBounds:
    """Return, by name, bounds of the columns of a row group for which its footer states none, or none in Spark's order.

    ``rows`` are those of the row group. Floating-point numbers are among the columns, as Spark orders NaN, which the
    footer leaves out.
    """
    bounds_by_column = {}
    for name in columns:
        if name in rows.column_names and not pa.types.is_nested(rows.schema.field(name).type):
            values = rows.column(name)
            if pa.types.is_floating(values.type) or _may_be_missing(values):
                bounds_by_column[name] = bounds_of_values(name, values)
    return bounds_by_column


def _may_be_missing(values: pa.ChunkedArray) -> bool:
    """Return whether Parquet may leave out a bound of these texts: the longest is empty, or nearly too long."""
    kind = values.type
    texts = values.unify_dictionaries().chunk(0).dictionary if pa.types.is_dictionary(kind) else values
    if not (pa.types.is_string(texts.type) or pa.types.is_binary(texts.type)):
        return False
    longest = pc.max(pc.binary_length(texts)).as_py()  # one value a row group
    return longest is not None and (longest == 0 or longest >= _LONG)


def _bounds(leaf: Leaf, groups: Sequence[Any], unstated_bounds: Sequence[PartBounds]) -> ColumnBounds:
    """Return the bounds of a column over all row groups, those of a group from ``unstated_bounds`` if it has them."""
    parts = []
    for number, group in enumerate(groups):
        chunk = group.column(leaf.number)
        bounds = unstated_bounds[number].get(leaf.path) if unstated_bounds else None
        bounds = _bounds_in_footer(leaf, chunk) if bounds is None else bounds
        parts.append(bounds._replace(size=chunk.total_compressed_size, uncompressed=chunk.total_uncompressed_size))
    if not parts:
        return ColumnBounds(leaf.path, None, None, 0)
    return widened(united(parts, [group.num_rows for group in groups], leaf.encoding), leaf.encoding)


def _bounds_in_footer(leaf: Leaf, chunk: Any) -> ColumnBounds:
    """Return the bounds and the nulls that the footer states of a column chunk; None for what it does not state."""
    stated = chunk.statistics if chunk.is_stats_set else None
    if stated is None:
        return ColumnBounds(leaf.path, None, None, None)
    nulls = stated.null_count if stated.has_null_count else None
    if not stated.has_min_max:
        return ColumnBounds(leaf.path, None, None, nulls)
    # An empty greatest text may be a missing bound, which pyarrow before 21 reads so.
    least, greatest = _encoded_bound(stated.min_raw, leaf), _encoded_bound(stated.max_raw, leaf)
    return ColumnBounds(leaf.path, least, (greatest or None) if leaf.encoding in (TEXT, OCTETS) else greatest, nulls)


def _bound_encoding(column: Any) -> str:
    """Return the encoding that bounds of a column get, by the logical and physical types in its Parquet schema."""
    kind = column.logical_type.type
    if kind == "DECIMAL":
        return DECIMAL
    return PLAIN.get(column.physical_type, TEXT if kind == "STRING" else OCTETS)


def _bound_width(column: Any) -> int:
    """Return how many bytes a decimal takes that Parquet stores as a number; 0 for any other column."""
    is_number = _bound_encoding(column) == DECIMAL and column.physical_type in PLAIN
    return struct.calcsize(PLAIN[column.physical_type]) if is_number else 0


def _encoded_bound(value: Any, leaf: Leaf) -> bytes:
    """Return a bound's bytes in the column's encoding, from the value that pyarrow makes of it."""
    if leaf.width:
        return int(value).to_bytes(leaf.width, "big", signed=True)
    if leaf.encoding in PLAIN.values():
        return struct.pack(leaf.encoding, value)
    return value.encode() if isinstance(value, str) else bytes(value)
