"""The record keys of rows that have given values in the columns of the key."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...table.config import TableConfig
from ...table.keys.generator import KeyGenerator
from ...table.keys.partition_paths import HIVE_DEFAULT_PARTITION
from ..pruning import FIRST_GREGORIAN, keeps_its_spelling, spellings
from .sought_keys import SoughtKeys


def key_columns(config: TableConfig, schema: pa.Schema, known: Collection[str]) -> list[str] | None:
    """Return the columns whose values make the record keys of rows, and those of its partitions that are known.

    None where the values of the columns ``known`` make no certain keys: writers spell times, floats and fractions in
    several ways.
    """
    fields = config.record_key_fields
    if not fields or config.generates_keys or config.names_key_field is None:
        return None
    if not all(name in known and _is_certain(schema, name) for name in fields):
        return None
    partitions = [name for name in config.partition_fields if name in known and _is_certain(schema, name)]
    return list(dict.fromkeys([*fields, *partitions]))


def keys_of_values(
    config: TableConfig, schema: pa.Schema, values: pa.Table, *, anywhere: bool = False
) -> SoughtKeys | None:
    """Return the record keys of rows with some values in `key_columns`, none null.

    None where a value is spelt in several ways, such as an empty text or a day before 1582-10-15. ``anywhere`` has the
    keys looked for in all partitions.
    """
    kept = pa.schema([schema.field(name) for name in values.column_names])
    rows = values.cast(pa.schema([field.with_nullable(True) for field in kept])).combine_chunks()
    if any(_has_strange(rows.column(name)) for name in values.column_names):
        return None
    batches = rows.select(_fields(config)).to_batches()
    ways = [KeyGenerator(way, schema) for way in spellings(config)]
    keys = [plain_keys(way, batches) for way in ways]
    names = [] if anywhere else [name for name in config.partition_fields if name in values.column_names]
    places = pa.concat_tables([rows.select(names)] * len(ways)) if names else None
    return SoughtKeys.of(pa.chunked_array([key for found in keys for key in found], pa.string()), places)


def plain_keys(generator: KeyGenerator, batches: Sequence[pa.RecordBatch]) -> list[pa.StringArray]:
    return [generator.record_keys(batch) for batch in batches]


def _fields(config: TableConfig) -> list[str]:
    return list(dict.fromkeys(config.record_key_fields))


def _is_certain(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and keeps_its_spelling(schema.field(name).type)


def _has_strange(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_string(kind):
        odd = pc.is_in(column, value_set=pa.array(["", HIVE_DEFAULT_PARTITION]))
    elif pa.types.is_date(kind):
        odd = pc.less(column, pa.scalar(FIRST_GREGORIAN, pa.date32()))
    else:
        return False
    return bool(pc.any(odd, min_count=0).as_py())  # O(1)
