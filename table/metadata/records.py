"""Values of HFiles as columns: each a record of a metadata table, in Avro's encoding without a container."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import struct_array
from ..files.logs.avro_bytes import slices
from ..files.logs.avro_columns import AvroPositions, TooManyError
from ..files.logs.avro_records import decoded
from .avro_schema import RecordSchema, types_in, wrapped_name

_CHUNK_ROWS = 16_384
# Bytes of a value with a long map, and how many such values are decoded sooner together than one by one.
_LONG = 1 << 10
_MANY = 100


@cache
def schema_of(text: str) -> RecordSchema:
    """Return the schema of a file's values; each release has one, so that a process meets a few."""
    return RecordSchema(text)


def decode(values: pa.BinaryArray, text: str) -> pa.StructArray:
    """Return the records of some values, without their meta columns; ValueError if a value is none."""
    schema = schema_of(text)
    long = _long(values)
    if long.any():
        long_values = values.filter(pa.array(long))
        parts = [
            _in_chunks(values.filter(pa.array(~long)), schema),
            _one_by_one(b"".join(long_values.to_pylist()), len(long_values), schema),  # O(partitions of the table)
        ]
        # Where each decoded record was among the values.
        order = np.concatenate((np.flatnonzero(~long), np.flatnonzero(long)))
        return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))
    return _in_chunks(values, schema)


def _in_chunks(values: pa.BinaryArray, schema: RecordSchema) -> pa.StructArray:
    """Return the records of values, some thousand of them decoded at a time."""
    parts = [_decoded(values[at : at + _CHUNK_ROWS], schema) for at in range(0, len(values), _CHUNK_ROWS)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.struct(list(schema.columns)))


def _long(values: pa.BinaryArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which values are far longer than most others, and so better decoded one by one.

    Decoded column by column, the longest map takes a step for each of its entries, which pays if many values have as
    many.
    """
    sizes = pc.binary_length(values).to_numpy(zero_copy_only=False)
    usual = np.partition(sizes, -_MANY)[-_MANY] if len(sizes) > _MANY else 0
    return np.asarray(sizes > max(2 * usual, _LONG))


def _decoded(values: pa.BinaryArray, schema: RecordSchema) -> pa.StructArray:
    """Return records decoded column by column, or one by one if a map has too many entries.

    ValueError if a value is damaged.
    """
    encoded = slices(values)
    ends = np.cumsum(encoded.lengths)
    rows = AvroPositions(encoded.data, ends - encoded.lengths, ends)
    wanted = set(schema.columns.names)
    try:
        decoded_columns = [
            rows.read(avro["type"], field, wanted=field.name in wanted)
            for avro, field in zip(schema.avro["fields"], schema.fields, strict=True)
        ]
    except TooManyError:
        return _one_by_one(encoded.data.tobytes(), len(values), schema)
    if (rows.at != ends).any():
        raise ValueError("for a value in it does not end where it says")
    columns = [column for column in decoded_columns if column is not None]
    return struct_array(pa.struct(list(schema.columns)), len(values), None, columns)


def _one_by_one(data: bytes, count: int, schema: RecordSchema) -> pa.StructArray:
    """Return records with very long maps; the metadata table has one for each partition of the table."""
    avro = _Entries().record(schema.avro)
    parts = [pa.array(records, pa.struct(list(schema.fields))) for records in decoded(avro, count, data)]
    records: pa.StructArray = pa.concat_arrays(parts)
    columns = [records.field(name) for name in schema.columns.names]
    return struct_array(pa.struct(list(schema.columns)), count, None, columns)


class _Entries:
    """Turns a record's schema into a schema that fastavro decodes as Arrow needs it.

    Maps become lists of entries, as fastavro makes dicts of maps, which Arrow takes for structs; bounds become records
    with a field that has the name of their type.
    """

    def __init__(self) -> None:
        self._count = 0

    def record(self, avro: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's schema for fastavro, under a name of its own."""
        fields = [{"name": field["name"], "type": self._type(field["type"])} for field in avro["fields"]]
        return self._named(fields)

    def _named(self, fields: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a record of some fields; fastavro wants a new name for each."""
        self._count += 1
        return {"type": "record", "name": f"record_{self._count}", "fields": fields}

    def _type(self, avro: Any) -> Any:
        """Return a type for fastavro: maps as lists of entries, and bounds as unions of named wrappers."""
        if isinstance(avro, list):
            if len(types_in(avro)) > 1:
                return [branch if branch == "null" else self._wrapper(branch) for branch in avro]
            return [self._type(branch) for branch in avro]
        if isinstance(avro, str) or "logicalType" in avro:
            return avro
        if avro["type"] == "record":
            return self.record(avro)
        if avro["type"] == "array":
            return {"type": "array", "items": self._type(avro["items"])}
        pair = [{"name": "key", "type": "string"}, {"name": "value", "type": self._type(avro["values"])}]
        return {"type": "array", "items": self._named(pair)}

    def _wrapper(self, avro: Mapping[str, Any]) -> dict[str, Any]:
        return self._named([{"name": wrapped_name(avro), "type": self._type(avro["fields"][0]["type"])}])
