"""The record keys of rows with given values in the columns of the key, and the values of rows with given keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from ...index.key_parser import KeyParser, parse_record_keys
from ...index.registry import has_buckets
from ...table.arrow.arrays import plain
from ...table.config import TableConfig
from ...table.keys.generator import KeyGenerator
from ...table.keys.partition_paths import HIVE_DEFAULT_PARTITION
from ..skipping.pruning import FIRST_GREGORIAN, Pruning, keeps_its_spelling, spellings
from .sought_keys import SoughtKeys

_COMPOSITE = 2


def key_columns(config: TableConfig, schema: pa.Schema, with_values: Collection[str]) -> list[str] | None:
    """Return the columns whose values make the record keys of rows, and the partition columns that have values.

    ``with_values`` are the columns that have values. None if these make no certain keys, as writers spell times, floats
    and fractions in several ways.
    """
    fields = config.record_key_fields
    if not fields or config.generates_keys or config.names_key_field is None:
        return None
    return _certain_columns(config, schema, with_values, fields)


def hashed_columns(config: TableConfig, schema: pa.Schema, with_values: Collection[str]) -> list[str] | None:
    """Return the columns of a composite key whose values make the bucket, and the partition columns that have values.

    ``with_values`` are the columns that have values. None if these make no certain bucket.
    """
    if not has_buckets(config) or config.names_key_field is None or len(config.record_key_fields) < _COMPOSITE:
        return None
    fields = Pruning(config, schema, ()).bucket_columns()
    return _certain_columns(config, schema, with_values, fields)


def keys_of_values(
    config: TableConfig, schema: pa.Schema, values: pa.Table, *, anywhere: bool = False
) -> SoughtKeys | None:
    """Return the record keys of rows with some values in `key_columns` or `hashed_columns`, none null.

    None if a value is spelt in several ways, such as an empty text or a day before 1582-10-15. ``anywhere`` has the
    keys looked for in all partitions.
    """
    given_columns = tuple(name for name in config.record_key_fields if name in values.column_names)
    by = () if len(given_columns) == len(config.record_key_fields) else given_columns
    value_schema = pa.schema([schema.field(name) for name in values.column_names])
    rows = values.cast(pa.schema([field.with_nullable(True) for field in value_schema])).combine_chunks()
    if any(_has_ambiguous_values(rows.column(name)) for name in values.column_names):
        return None
    key_spellings = spellings(config)
    keys = [keys_by(way, schema, batch, given_columns) for way in key_spellings for batch in rows.to_batches()]
    names = [] if anywhere else [name for name in config.partition_fields if name in values.column_names]
    # Each spelling makes a key of every row, for the same partitions.
    places = pa.concat_tables([rows.select(names)] * len(key_spellings)) if names else None
    return SoughtKeys.of(pa.chunked_array(keys, pa.string()), places, by)


def keys_by(config: TableConfig, schema: pa.Schema, rows: pa.RecordBatch, by: Sequence[str]) -> pa.StringArray:
    """Return the record keys of rows as if the key's columns other than ``by``, of numbers or days, were zero.

    So rows have equal texts if they agree in ``by``.
    """
    fields = [schema.field(name).with_nullable(True) for name in config.record_key_fields]
    columns = [
        plain(rows.column(field.name)) if field.name in by else _all_zero(rows.num_rows, field.type) for field in fields
    ]
    return KeyGenerator(config, schema).record_keys(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))


def number_columns(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns of a record key of whole numbers, each of which has a single spelling; else none."""
    fields = config.record_key_fields
    columns = key_columns(config, schema, fields)
    return fields if columns and all(pa.types.is_integer(schema.field(name).type) for name in fields) else ()


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """The numbers that rows of some record keys have in fields of the key; they are cheaper to find than the keys."""

    schema: pa.Schema
    numbers: tuple[pa.Array, ...]

    @classmethod
    def of(cls, fields: Iterable[pa.Field], keys: pa.StringArray) -> KeyNumbers | None:
        """Return the numbers of keys in fields by `number_columns`; None if no field has a number for each key."""
        by_field: dict[pa.Field, pa.Array] = {}
        for field in fields:
            values = plain(parse_record_keys(keys, [field.name], KeyParser.RELEASE_1).flatten())
            with suppress(pa.ArrowInvalid):
                numbers = values.cast(field.type)
                if len(numbers) == len(keys) and not numbers.null_count:
                    by_field[field] = pc.unique(numbers)
        return cls(pa.schema(list(by_field)), tuple(by_field.values())) if by_field else None

    def mask(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the rows that have one of its numbers, or null, in each field."""
        masks = []
        for name, numbers in zip(self.schema.names, self.numbers, strict=True):
            column = plain(rows.column(name))
            matches = pc.is_in(column, value_set=numbers)
            masks.append(pc.or_(matches, column.is_null()) if column.null_count else matches)
        return reduce(pc.and_, masks)


def _all_zero(count: int, kind: pa.DataType) -> pa.Array:
    """Return a column of zeros of a type of numbers or days."""
    zero = pa.scalar(Decimal(0), kind) if pa.types.is_decimal(kind) else pa.scalar(0, pa.int32()).cast(kind)
    return pa.repeat(zero, count)


def _certain_columns(
    config: TableConfig, schema: pa.Schema, with_values: Collection[str], fields: Sequence[str]
) -> list[str] | None:
    """Return some columns with the partition columns of certain spelling.

    None if one of the first is not among ``with_values``, or has no certain spelling.
    """
    if not all(name in with_values and _is_certain(schema, name) for name in fields):
        return None
    partitions = [name for name in config.partition_fields if name in with_values and _is_certain(schema, name)]
    return list(dict.fromkeys([*fields, *partitions]))


def _is_certain(schema: pa.Schema, name: str) -> bool:
    """Return whether all writers spell the values of a column alike."""
    return name in schema.names and keeps_its_spelling(schema.field(name).type)


def _has_ambiguous_values(column: pa.ChunkedArray) -> bool:
    """Return whether a value is spelt in several ways: an empty text, the text of null, or a day before 1582-10-15."""
    kind = column.type
    if pa.types.is_string(kind):
        is_ambiguous = pc.is_in(column, value_set=pa.array(["", HIVE_DEFAULT_PARTITION]))
    elif pa.types.is_date(kind):
        is_ambiguous = pc.less(column, pa.scalar(FIRST_GREGORIAN, pa.date32()))
    else:
        return False
    return bool(pc.any(is_ambiguous, min_count=0).as_py())  # O(1)
