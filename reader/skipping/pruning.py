"""The partitions, buckets and record keys in which a query can find rows; values in, decisions out."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import TableConfigError, UnsupportedTableError
from ...storage.base import split
from ...table.config import TableConfig
from ...table.config import property_keys as key
from ...table.config.key_types import KeyGeneratorType
from ...table.files.file_group import DataFile
from ...table.files.names import FileGroupId
from ...table.keys.generator import KeyGenerator, parse_partition_path
from ...table.keys.partition_paths import HIVE_DEFAULT_PARTITION
from ...table.schema.columns import RECORD_KEY
from .predicates import (
    NULLS,
    AnyOf,
    Compare,
    OnColumn,
    OneOf,
    OnExpression,
    Predicate,
    Span,
    columns_of,
    comparable,
    may_match_all,
)

if TYPE_CHECKING:
    from ...table.buckets.numbers import BucketNumbers

MAX_KEYS = 10_000
FIRST_GREGORIAN = datetime.date(1582, 10, 15)


@dataclass(frozen=True, slots=True)
class Pruning:
    """Derives partitions and record keys from conjuncts; ``schema`` is canonical, meta columns may be in it."""

    config: TableConfig
    schema: pa.Schema
    predicates: Sequence[Predicate]

    def partition_may_match(self, path: str) -> bool:
        """Return False only if certainly no row of a partition satisfies every predicate."""
        values = parse_partition_path(path, self.config)
        if values is None:
            return True
        field_spans = [
            [(field, span) for span in _spans(text, self.schema.field(field).type)]
            for field, text in values.items()
            if field in self.schema.names
        ]
        # A text in a path may have several meanings, so the rows may have any combination of these.
        return any(may_match_all(self.predicates, dict(spans), self.schema) for spans in product(*field_spans))

    def file_may_match(self, numbers: Callable[[], BucketNumbers]) -> Callable[[DataFile], bool]:
        """Return a test of the files that the index assigns to the keys that the predicates allow.

        ``numbers`` returns the numbers of buckets at the moment that the query shows; called only if they matter.
        """
        from ...index.registry import has_buckets, placing_index_for  # noqa: PLC0415 (the task of a read needs no index)

        try:
            keys = self.hashed_keys() if has_buckets(self.config) else None
            index = None if keys is None else placing_index_for(self.config, numbers())
            if keys is None or index is None:
                return lambda file: True
            holds_none = index.prunes(keys)
        except (UnsupportedTableError, TableConfigError):
            # A table can be read without the index and the key generator that write it.
            return lambda file: True
        return lambda file: not holds_none(FileGroupId(split(file.path)[0], file.file_id))

    def hashed_keys(self) -> pa.StringArray | None:
        """Return record keys whose buckets hold all rows that the predicates allow; None for any bucket.

        Columns whose values have more than one spelling in a record key (timestamps, binaries, floats, fractions) fix
        nothing. A text in another column of the key matters: one with ``,id:`` inside is parsed as a value of ``id``.
        """
        return self._spelled_keys(self.bucket_columns())

    def wanted_keys(self) -> pa.StringArray | None:
        """Return every record key of the rows that the predicates allow; None for any key."""
        keys = self._allowed_values(RECORD_KEY)
        if keys is not None:
            # A predicate on the meta column of record keys names the keys themselves.
            return pa.array(keys, pa.string()) if len(keys) <= MAX_KEYS else None
        return self._spelled_keys(self.config.record_key_fields)

    def safe_before_merging(self) -> list[Predicate]:
        """Return the predicates that may filter rows of a base file before the logs of its slice are merged.

        These are on columns that have one value in all rows of a key. For others the base row matters even if it fails
        the predicate: it may beat a log entry, it completes partial updates, and an entry replaces only the first copy
        of its key.
        """
        fixed_columns = filter(self._is_fixed_by_key, self.config.record_key_fields)
        safe_columns = {RECORD_KEY, *fixed_columns}
        return [predicate for predicate in self.predicates if columns_of(predicate) <= safe_columns]

    def _spelled_keys(self, columns: Sequence[str]) -> pa.StringArray | None:
        """Return the record keys of all combinations of allowed values of some key columns, by each spelling.

        None if a column may have any value, or there are more than `MAX_KEYS`.
        """
        config, schema = self.config, self.schema
        allowed = [self._allowed_values(field) for field in columns]
        if not allowed or config.names_key_field is None or any(values is None for values in allowed):
            return None
        lists = [values for values in allowed if values is not None]
        if math.prod(map(len, lists)) > MAX_KEYS:
            return None
        combinations = list(product(*lists))
        if not combinations:
            return pa.array([], pa.string())
        fields = [schema.field(name).with_nullable(True) for name in config.record_key_fields]
        by_column = dict(zip(columns, zip(*combinations, strict=True), strict=True))
        # The other columns of the key do not decide, so that they may be null.
        unknown_values = (None,) * len(combinations)
        arrays = [pa.array(by_column.get(field.name, unknown_values), field.type) for field in fields]
        batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        return pa.concat_arrays([KeyGenerator(spelling, schema).record_keys(batch) for spelling in spellings(config)])

    def _is_fixed_by_key(self, field: str) -> bool:
        """Return whether two values of a key column never make one record key."""
        if len(self.config.record_key_fields) == 1:
            return field in self.schema.names and has_one_spelling(self.schema.field(field).type)
        return all(map(self._is_spelt_plainly, self.config.record_key_fields))

    def bucket_columns(self) -> list[str]:
        """Return the columns of the key whose values decide the bucket."""
        fields = self.config.record_key_fields
        hashed = self.config.hash_fields or fields
        if any(mark in name for name in fields for mark in ",:"):
            # Hudi's key parser finds no field of such a name, so the whole key is hashed.
            return list(fields)
        return [name for name in fields if name in hashed or not self._is_spelt_plainly(name)]

    def _is_spelt_plainly(self, field: str) -> bool:
        """Return whether no value of a column holds a separator of a record key's parts."""
        if field not in self.schema.names:
            return False
        kind = self.schema.field(field).type
        return has_one_spelling(kind) and not pa.types.is_string(kind)

    def _allowed_values(self, field: str) -> list[Any] | None:
        """Return the values that a key column may have, as Python gives them to Arrow; None for any."""
        if field not in self.schema.names or not keeps_its_spelling(self.schema.field(field).type):
            return None
        kind = self.schema.field(field).type
        allowed: list[Any] | None = None
        for predicate in self.predicates:
            values = (
                self._values_of_any(field, predicate) if isinstance(predicate, AnyOf) else _values_of(field, predicate)
            )
            if values is None or any(_is_spelt_otherwise(value) or comparable(value, kind) is None for value in values):
                # The predicate allows any value, or values whose keys are unknown.
                continue
            unique = [value for value in dict.fromkeys(values) if can_hold(kind, value)]
            allowed = unique if allowed is None else [value for value in allowed if value in unique]
        return allowed

    def _values_of_any(self, field: str, predicate: AnyOf) -> tuple[Any, ...] | None:
        """Return the values of a key column that any of the alternatives allows; None if one allows any value."""
        allowed: list[Any] = []
        for alternative in predicate.alternatives:
            values = replace(self, predicates=alternative)._allowed_values(field)
            if values is None:
                return None
            allowed += values
        return tuple(allowed)


def partition_values(path: str, config: TableConfig, schema: pa.Schema) -> dict[str, Any] | None:
    """Return the values that all rows of a partition have, as `comparable` gives them, null as None.

    Columns whose value the path does not tell are absent; the result is None if it tells none.
    """
    texts = parse_partition_path(path, config)
    if texts is None:
        return None
    of_columns = {name: text for name, text in texts.items() if name in schema.names}
    values = {
        name: None if text is None else _parse_path_text(text, schema.field(name).type)
        for name, text in of_columns.items()
    }
    return {name: value for name, value in values.items() if value is not None or of_columns[name] is None}


def spellings(config: TableConfig) -> list[TableConfig]:
    """Return a table's configuration for each spelling of the record keys of a single field.

    The noted spelling is that of later writes: a table with the note may hold rows of releases that used the other.
    """
    is_noted = config.names_key_field is not None and key.COMPLEX_KEY_ENCODING in config.properties
    if not is_noted or config.key_generator is not KeyGeneratorType.COMPLEX or len(config.record_key_fields) != 1:
        return [config]
    return [config.with_key_field(named) for named in (True, False)]


def _values_of(field: str, predicate: OnColumn | OnExpression) -> tuple[Any, ...] | None:
    """Return the values that a predicate allows a column; None if it allows others, too, or is of another column."""
    if predicate.column == field and isinstance(predicate, Compare) and predicate.op == "=":
        return (predicate.value,)
    if predicate.column == field and isinstance(predicate, OneOf):
        return tuple(value for value in predicate.values if value is not None)
    return None


def _is_spelt_otherwise(value: Any) -> bool:
    """Return whether writers may spell a value like no other of its type: an empty text, a day before 1582-10-15."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value < FIRST_GREGORIAN
    return isinstance(value, str) and value == ""


def has_one_spelling(kind: pa.DataType) -> bool:
    """Return whether all writers spell each value of a type alike in a record key."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_boolean(kind)
        or types.is_date(kind)
        or types.is_decimal(kind)
    )


def keeps_its_spelling(kind: pa.DataType) -> bool:
    """Return whether a value's record key never changes: widening a decimal's scale changes its keys."""
    return has_one_spelling(kind) and not (pa.types.is_decimal(kind) and kind.scale > 0)


def can_hold(kind: pa.DataType, value: Any) -> bool:
    """Return whether Arrow can store a value in a type."""
    try:
        pa.array([value], kind)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return False
    return True


def _spans(text: str | None, kind: pa.DataType) -> list[Span]:
    """Return the possible spans of a partition's text; several if it is ambiguous."""
    if text is None:
        default = [NULLS]
        # Writers put empty texts, and texts that spell the name of the null partition, into that partition too.
        if pa.types.is_string(kind):
            default += [_span_of_value(""), _span_of_value(HIVE_DEFAULT_PARTITION)]
        return default
    value = _parse_path_text(text, kind)
    return [Span() if value is None else _span_of_value(value)]


def _span_of_value(value: Any) -> Span:
    """Return the span of rows that all have a value."""
    return Span(value, value, nulls=False)


def _parse_path_text(text: str, kind: pa.DataType) -> Any:
    """Return the value of a text in a path as `comparable` gives it; None if it has none."""
    types = pa.types
    try:
        if types.is_integer(kind):
            return int(text)
        if types.is_string(kind):
            return text
        if types.is_boolean(kind):
            return {"true": True, "false": False}.get(text)
        if types.is_date(kind):
            return pa.scalar(text).cast(kind).value
        if types.is_timestamp(kind):
            # For other units, writers do not agree on the unit in the path.
            return int(text) if kind.unit == "us" else None
        if types.is_decimal(kind):
            return Decimal(text)
    except (ValueError, InvalidOperation, pa.ArrowInvalid):
        return None
    return None
