"""The Avro schema of a metadata table's records, in the form that decodes them column by column.

Each file names the schema of its values, as the release had it that wrote the file. Bounds of columns are wrapped in
records, whose type says the type of the value; here a bound becomes a struct with a field for each type. Source:
``HoodieMetadata.avsc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...storage.bounds import parse_json

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Mapping[str, pa.DataType] = {
    "date": pa.date32(),
    "time-micros": pa.time64("us"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
}
META = "_hoodie_"


class RecordSchema:
    """One schema: ``avro`` without references to other types, and ``columns`` without meta columns."""

    def __init__(self, text: str) -> None:
        self._types: dict[str, Any] = {}
        self.avro: dict[str, Any] = self._plain(parse_json(text))
        if self.avro.get("type") != "record":
            raise ValueError("for its schema is no record's")
        self.fields = pa.schema([pa.field(field["name"], arrow_type(field["type"])) for field in self.avro["fields"]])

    @property
    def columns(self) -> pa.Schema:
        return pa.schema([field for field in self.fields if not field.name.startswith(META)])

    def _plain(self, avro: Any, namespace: str = "") -> Any:
        """Return an Avro type, as parsed JSON, with the definitions of the types that it names in place of their names.

        Names without a dot belong to ``namespace``, that of the record around the type. KeyError for an unknown name.
        """
        if isinstance(avro, list):
            return [self._plain(branch, namespace) for branch in avro]
        if isinstance(avro, str):
            if avro in _PRIMITIVES or avro == "null":
                return avro
            return self._types[avro if "." in avro else _full_name(namespace, avro)]
        base = avro["type"]
        if base == "record":
            return self._record(avro, avro.get("namespace", namespace))
        if base == "array":
            return {"type": "array", "items": self._plain(avro["items"], namespace)}
        if base == "map":
            return {"type": "map", "values": self._plain(avro["values"], namespace)}
        if _logical(avro) is not None:
            return avro
        return self._plain(base, namespace)

    def _record(self, avro: Mapping[str, Any], namespace: str) -> dict[str, Any]:
        """Return a record type with the types that its fields name, and remember it by its own name."""
        fields = [{"name": field["name"], "type": self._plain(field["type"], namespace)} for field in avro["fields"]]
        if not fields:
            raise ValueError("for its schema has a record without fields")
        record = {"type": "record", "name": avro["name"], "fields": fields}
        self._types[_full_name(namespace, avro["name"])] = record
        return record


def _logical(avro: Mapping[str, Any]) -> pa.DataType | None:
    """Return the Arrow type of a logical type; None for a type that is none."""
    if avro.get("logicalType") == "decimal":
        return pa.decimal128(avro["precision"], avro.get("scale", 0))
    return _LOGICAL.get(avro.get("logicalType", ""))


def _full_name(namespace: str, name: str) -> str:
    return f"{namespace}.{name}" if namespace else name


def types_in(avro: list[Any]) -> list[Any]:
    """Return the types of a union but null."""
    return [branch for branch in avro if branch != "null"]


def wrapped_name(wrapper: Mapping[str, Any]) -> str:
    """Return the name of a type of bounds, such as ``Long``."""
    return str(wrapper["name"]).removesuffix("Wrapper")


def arrow_type(avro: Any) -> pa.DataType:
    """Return the Arrow type of a type without references."""
    if isinstance(avro, list):
        types = types_in(avro)
        if len(types) == 1:
            return arrow_type(types[0])
        return pa.struct(
            [pa.field(wrapped_name(wrapper), arrow_type(wrapper["fields"][0]["type"])) for wrapper in types]
        )
    if isinstance(avro, str):
        return _PRIMITIVES[avro]
    if avro["type"] == "record":
        return pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in avro["fields"]])
    if avro["type"] == "array":
        return pa.list_(arrow_type(avro["items"]))
    logical = _logical(avro)
    if logical is not None:
        return logical
    return pa.map_(pa.string(), pa.field("value", arrow_type(avro["values"])))
