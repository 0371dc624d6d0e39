"""Record keys and partition paths of batches, as Apache Hudi's key generators make them.

Source: ``KeyGenUtils`` and the classes ``SimpleAvroKeyGenerator``, ``ComplexAvroKeyGenerator``,
``NonpartitionedAvroKeyGenerator``, ``TimestampBasedAvroKeyGenerator`` and ``CustomAvroKeyGenerator`` of Apache Hudi
1.2, and of 1.0.2 if tables of version 8 differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import MissingColumnError, NullKeyError, UnsupportedTableError
from ..arrow.arrays import plain
from ..config.key_types import KeyGeneratorType, PartitionType, choose_key_generator
from ..config.table_config import TableConfig
from ..schema.casts import fits_by_value
from ..schema.conform import conform_array
from ..schema.fields import find_field, values_of
from ..schema.types import is_text
from .partition_paths import check_safe, format_segment, parse_partition_path
from .time_partitions import TimeOptions, TimePartitions
from .values import PARTITION, RECORD_KEY, KeyColumn


class GeneratedKeys:
    """Numbers the rows of one task of one write: ``<requested instant time>_<Spark partition>_<row>``.

    Attempts of the same task make the same keys, and Spark commits only one attempt; no other task makes them.
    """

    def __init__(self, instant_time: str, partition: int) -> None:
        self._prefix = f"{instant_time}_{partition}"
        self._taken = 0

    def take(self, count: int) -> pa.StringArray:
        """Return the keys of the next rows."""
        numbers = pa.array(np.arange(self._taken, self._taken + count)).cast(pa.string())
        self._taken += count
        return pc.binary_join_element_wise(self._prefix, numbers, "_")


NULL_KEY = "__null__"
EMPTY_KEY = "__empty__"

_OF_ONE_FIELD = {KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP}

KeyPart = tuple[str, pa.StringArray]
"""A field of composite record keys, and its text in each of n keys."""

Codes = np.ndarray[Any, np.dtype[np.int64]]


class KeyGenerator:
    """Makes the record keys and partition paths of batches.

    With a table's schema, values are first cast to its types, so that a decimal of fewer digits, or text in a column of
    whole numbers, makes the same key as the table's own value.
    """

    def __init__(self, config: TableConfig, schema: pa.Schema | None = None) -> None:
        self._config = config
        self._schema = schema
        self._kind = config.key_generator
        self._fields = config.record_key_fields
        # If the table does not note it, keys are bare values, as Apache Hudi 1.0.2 writes them.
        self._names_field = bool(config.names_key_field)
        self._partitions = dict(zip(config.partition_fields, config.partition_types, strict=True))
        if self._kind is KeyGeneratorType.NON_PARTITION:
            self._partitions = {}
        self._made_times: TimePartitions | None = None
        _check_fields(config.name, self._kind, self._fields, tuple(self._partitions))

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that cannot make keys or paths, before there are rows."""
        for role, fields in ((RECORD_KEY, self._fields), (PARTITION, self._partitions)):
            for field in fields:
                column = KeyColumn(field, role)
                self._check_column(schema, column)
                stored = self._stored_field(column)
                if role == RECORD_KEY and stored is not None:
                    column.check_stored_type(stored.type)

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row; raises as `composed`."""
        return self.composed(batch)[0]

    def composed(self, batch: pa.RecordBatch) -> tuple[pa.StringArray, list[KeyPart]]:
        """Return the record key of every row, and its parts; no parts if a key is the bare value of its one field.

        Raises NullKeyError if a key, or every part of a composite key, is null or empty.
        """
        parts = self.parts(batch)
        if len(parts) == 1 and not self._names_field:
            return parts[0][1], []
        joined: list[pa.Array | str] = []
        for position, (field, text) in enumerate(parts):
            joined += [f"{',' if position else ''}{field}:", text]
        return pc.binary_join_element_wise(*joined, ""), parts

    def parts(self, batch: pa.RecordBatch) -> list[KeyPart]:
        """Return what the record key of every row is made of; raises as `composed`."""
        if not self._fields:
            raise UnsupportedTableError(
                f"Table {self._config.name!r} has no record key fields, so that its rows have no keys of their own.",
                "Insert rows, or delete rows as they were read from the table, with their meta columns.",
            )
        texts = [text for _, text in self.texts(batch, self._fields)]
        blank = _is_blank(texts[0])
        for text in texts[1:]:
            blank = pc.and_(blank, _is_blank(text))
        if pc.any(blank, min_count=0).as_py():  # O(1)
            raise self._null_key(batch, blank)
        return [(field, _without_blanks(text)) for field, text in zip(self._fields, texts, strict=True)]

    def texts(self, batch: pa.RecordBatch, fields: Iterable[str]) -> list[KeyPart]:
        """Return the texts of some key columns, as keys have them but for nulls and empty texts.

        Raises DataError for texts that are not valid UTF-8.
        """
        texts = []
        for column in (KeyColumn(field, RECORD_KEY) for field in fields):
            values = self._values(batch, column)
            if is_text(values.type):
                column.check_text(values)
            texts.append((column.field, column.texts(values)))
        return texts

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row, each path once in the dictionary."""
        # The code of a row is the position of its path among `paths`.
        codes: Codes = np.zeros(batch.num_rows, dtype=np.int64)
        paths = [""]
        for position, field in enumerate(self._partitions):
            column = KeyColumn(field, PARTITION)
            column_codes, segments = self._segments(self._values(batch, column), column)
            if position == 0:
                codes, paths = column_codes, segments
                continue
            # Combining two columns at a time keeps the codes below the square of the batch's rows.
            pairs, codes = np.unique(codes * max(len(segments), 1) + column_codes, return_inverse=True)
            paths = [f"{paths[pair // len(segments)]}/{segments[pair % len(segments)]}" for pair in pairs.tolist()]
        return _dictionary(codes, paths)

    def _segments(self, values: pa.Array, column: KeyColumn) -> tuple[Codes, list[str]]:
        """Return the parts of paths that a column makes, and for each row the position of its part among them.

        The positions come first; two values may make the same part.
        """
        field = column.field
        if self._partitions[field] is PartitionType.TIMESTAMP:
            column.check_text(values)
            encoded = self._times.paths(values, field)
            texts = encoded.dictionary.to_pylist()  # O(distinct paths)
        else:
            encoded = values.dictionary_encode(null_encoding="encode")
            column.check_text(encoded.dictionary)
            texts = column.texts(encoded.dictionary).to_pylist()  # O(distinct values)
        for text in texts:
            check_safe(text, field, self._config)
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, [format_segment(text, field, self._config) for text in texts]

    @property
    def _times(self) -> TimePartitions:
        """Made at first use, because the time options that it needs may be absent."""
        if self._made_times is None:
            self._made_times = TimeOptions(self._config.time_options, self._config.name).partitions()
        return self._made_times

    def _values(self, batch: pa.RecordBatch, column: KeyColumn) -> pa.Array:
        """Return a key column's values, cast to the table's type if the table has the column."""
        self._check_column(batch.schema, column)
        values = values_of(batch, column.field)
        stored = self._stored_field(column)
        if stored is None:
            return plain(values)
        # The field is nullable here: the key's own rules judge nulls. Its dotted name is for errors.
        return conform_array(values, pa.field(column.field, stored.type), by_value=True)

    def _stored_field(self, column: KeyColumn) -> pa.Field | None:
        """Return the table's field for a key column; None without a schema, or if it has no such field."""
        return None if self._schema is None else find_field(self._schema, column.field)

    def _check_column(self, schema: pa.Schema, column: KeyColumn) -> None:
        """Raise MissingColumnError or UnsupportedTypeError for a column of which no keys or paths can be made."""
        field = find_field(schema, column.field)
        if field is None:
            raise MissingColumnError(
                f"The {column.role} column {column.field!r} is not among the columns "
                f"{', '.join(map(repr, schema.names))}.",
                "Add the column, or correct the case of its name.",
            )
        kind, stored = field.type, self._stored_field(column)
        if stored is not None and fits_by_value(kind.value_type if pa.types.is_dictionary(kind) else kind, stored.type):
            kind = stored.type
        if column.role == PARTITION and self._partitions[column.field] is PartitionType.TIMESTAMP:
            self._times.check_type(kind, column.field)
        else:
            column.check_type(kind)

    def _null_key(self, batch: pa.RecordBatch, blank: pa.BooleanArray) -> NullKeyError:
        """Return the error for the first row whose key is blank, with its values in the other key columns."""
        row, count = pc.index(blank, True).as_py(), pc.sum(blank).as_py()  # O(1)
        shown_fields = [
            f for f in dict.fromkeys((*self._fields, *self._partitions)) if find_field(batch.schema, f) is not None
        ]
        context = ", ".join(f"{field}={values_of(batch, field)[row].as_py()!r}" for field in shown_fields)  # O(fields)
        names = ", ".join(repr(field) for field in self._fields)
        noun = "column" if len(self._fields) == 1 else "columns"
        return NullKeyError(
            f"The record key {noun} {names} {'is' if len(self._fields) == 1 else 'are all'} null or empty in "
            f"{count} of {batch.num_rows} rows of one batch; the first is row {row} of it ({context}).",
            "Fill the key before writing, or drop those rows.",
        )


def _check_fields(
    table: str, kind: KeyGeneratorType, record_keys: tuple[str, ...], partitions: tuple[str, ...]
) -> None:
    """Raise UnsupportedTableError if a key generator of single fields has several."""
    if kind in _OF_ONE_FIELD and (len(record_keys) > 1 or len(partitions) > 1):
        raise UnsupportedTableError(
            f"Table {table!r} has the key generator {kind.value}, which takes one record key field and one partition "
            f"field, and the fields {', '.join((*record_keys, *partitions))}.",
            "Make the table with the key generator COMPLEX or CUSTOM.",
        )


def _is_blank(text: pa.StringArray) -> pa.BooleanArray:
    """Return which texts are null or empty."""
    return pc.fill_null(pc.equal(text, ""), True)


def _without_blanks(text: pa.StringArray) -> pa.StringArray:
    """Return the parts of a composite key with Hudi's words for null and empty parts; values are not escaped."""
    empty = pc.equal(text, "")
    if pc.any(empty).as_py():  # O(1)
        text = pc.if_else(empty, EMPTY_KEY, text)
    return pc.fill_null(text, NULL_KEY) if text.null_count else text


def _dictionary(codes: Codes, paths: list[str]) -> pa.DictionaryArray:
    """Return the path of each row by its code, which is a position in ``paths``.

    Values with the same folder (null, "" and Hive's default) share one entry of the dictionary.
    """
    unique = {path: position for position, path in enumerate(dict.fromkeys(paths))}
    if len(unique) < len(paths):
        codes = np.array([unique[path] for path in paths], dtype=np.int64)[codes]
    indices = pa.array(codes.astype(np.int32), pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(unique), pa.string()))


__all__ = ["KeyGenerator", "KeyGeneratorType", "KeyPart", "choose_key_generator", "parse_partition_path"]
