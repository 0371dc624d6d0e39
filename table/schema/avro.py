"""Avro schemas of a table's rows, written and read as Apache Hudi does through Spark.

Source: Spark's ``SchemaConverters``, Hudi's ``HoodieSchemaConversionUtils`` and
``AvroSchemaUtils.getAvroRecordQualifiedName``; the Avro specification 1.11.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import CorruptInstantError, UnsupportedTypeError
from ...storage.bounds import parse_json
from .types import MAX_DECIMAL_PRECISION, children, decimal_bytes

_MASK = "__"
_MOST_FIELDS = 50_000
_LAST_CHAR = 0xFFFF
_DEEPEST = 64
_NOT_FIRST = re.compile("[^A-Za-z_]")
_NOT_IN_NAME = re.compile("[^A-Za-z0-9_]")

_PRIMITIVES = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "bytes",
}
_LOGICAL = {
    pa.date32(): ("int", "date"),
    pa.timestamp("us", "UTC"): ("long", "timestamp-micros"),
    pa.timestamp("us"): ("long", "local-timestamp-micros"),
    pa.timestamp("ms", "UTC"): ("long", "timestamp-millis"),
    pa.timestamp("ms"): ("long", "local-timestamp-millis"),
}
_ARROW_OF = {avro: arrow for arrow, avro in _PRIMITIVES.items()}
_ARROW_OF_LOGICAL = {avro: arrow for arrow, avro in _LOGICAL.items()} | {("string", "uuid"): pa.string()}


def sanitise_name(name: str) -> str:
    """Return a table's name as an Avro name: each forbidden character becomes two underscores."""
    return _NOT_IN_NAME.sub(_MASK, _NOT_FIRST.sub(_MASK, name[:1]) + name[1:])


def is_avro_name(name: str) -> bool:
    """Return whether Apache Hudi, and Java's Avro, accept a column's name.

    They take letters of any script, if Java has them in one ``char``: those up to U+FFFF.
    """
    initial, following = name[:1], name[1:]
    if any(ord(character) > _LAST_CHAR for character in name):
        return False
    return (initial == "_" or initial.isalpha()) and all(c == "_" or c.isalpha() or c.isdecimal() for c in following)


def format_avro(fields: Iterable[pa.Field], table_name: str, docs: Iterable[str] = ()) -> str:
    """Return Avro JSON as Java writes it; fields named in ``docs`` get an empty ``doc``, as Hudi's meta columns do."""
    name = sanitise_name(table_name)
    record = _record(fields, f"{name}_record", f"hoodie.{name}", frozenset(docs))
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def parse_avro(text: str, where: str) -> list[pa.Field]:
    """Return the fields of an Avro record schema, meta columns included; CorruptInstantError if it is none."""
    try:
        schema = parse_json(text)
        if schema["type"] != "record":
            raise TypeError(f"{schema['type']!r} is not a record")
        return _Reader(where).fields(schema, _TypePath())
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptInstantError(
            f"The Avro schema of {where} cannot be read ({type(error).__name__}: {error}).",
            "Look at the newest completed instants, and roll back the instant that wrote it.",
        ) from error


def _record(fields: Iterable[pa.Field], name: str, namespace: str, docs: frozenset[str]) -> dict[str, Any]:
    """Return the Avro record of some columns; columns that may be null are so by default."""
    columns = []
    for field in fields:
        avro: dict[str, Any] = {"name": field.name, "type": _nullable(field, field.name, f"{namespace}.{name}")}
        if field.name in docs:
            avro["doc"] = ""
        if field.nullable:
            avro["default"] = None
        columns.append(avro)
    return {"type": "record", "name": name, "namespace": namespace, "fields": columns}


def _nullable(field: pa.Field, name: str, namespace: str) -> Any:
    """Return the Avro type of a field; a union with null if it may be null."""
    avro = _type(field.type, name, namespace)
    return ["null", avro] if field.nullable else avro


def _type(kind: pa.DataType, name: str, namespace: str) -> Any:
    """Return the Avro type of the Arrow type of a column, as JSON; UnsupportedTypeError if it has none.

    Records and fixed types inside it have names made of ``name``, the column's, in ``namespace``, that of the record
    around it.
    """
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if kind in _LOGICAL:
        base, logical = _LOGICAL[kind]
        return {"type": base, "logicalType": logical}
    if pa.types.is_decimal128(kind):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, name, namespace)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _nullable(kind.item_field, name, namespace)}
    if pa.types.is_struct(kind):
        return _record(children(kind), name, namespace, frozenset())
    raise UnsupportedTypeError(f"Column {name!r} has type {kind}, which has no Avro form.", "Cast the column.")


@dataclass(frozen=True, slots=True)
class _TypePath:
    """Where a type is used: the namespace of short names there, and the column's dotted path ("" for the top)."""

    namespace: str = ""
    path: str = ""

    def inside(self, name: str) -> _TypePath:
        """Return the path of a type inside this type."""
        return _TypePath(self.namespace, f"{self.path}.{name}" if self.path else name)


class _Reader:
    """Reads one schema; after the definition of a named type, its name may replace it."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._known_types: dict[str, dict[str, Any]] = {}
        self._enclosing: list[str] = []
        self._fields = 0

    def fields(self, record: dict[str, Any], type_path: _TypePath) -> list[pa.Field]:
        """Return the fields of a record; UnsupportedTypeError for types, and for a record inside itself."""
        full = self._remember(record, type_path.namespace)
        if full in self._enclosing:
            raise self._unsupported(type_path, f"the record {full} inside itself")
        self._enclosing.append(full)
        # Each use of a record's name repeats the whole record, so a short text may describe millions of fields.
        self._fields += len(record["fields"])
        if self._fields > _MOST_FIELDS or len(self._enclosing) > _DEEPEST:
            raise ValueError(f"it has more than {_MOST_FIELDS} fields, or more than {_DEEPEST} records inside another")
        inner_path = _TypePath(full.rpartition(".")[0], type_path.path)
        fields = []
        for field in record["fields"]:
            kind, nullable = self._union(field["type"], inner_path.inside(field["name"]))
            fields.append(pa.field(field["name"], kind, nullable=nullable))
        self._enclosing.pop()
        return fields

    def _remember(self, definition: dict[str, Any], namespace: str) -> str:
        """Keep a named type for later references, and return its full name."""
        name = definition["name"]
        full = name if "." in name else f"{definition.get('namespace', namespace)}.{name}".lstrip(".")
        self._known_types[full] = {**definition, "name": full}
        return str(full)

    def _union(self, avro: Any, type_path: _TypePath) -> tuple[pa.DataType, bool]:
        """Return the type of a union of one type and null, or of a type alone, and whether it may be null."""
        if not isinstance(avro, list):
            return self._type_of(avro, type_path), False
        branches = [branch for branch in avro if branch != "null"]
        if len(branches) != 1 or len(avro) > 2:
            raise self._unsupported(type_path, f"the union {json.dumps(avro)}")
        return self._type_of(branches[0], type_path), len(avro) > 1

    def _type_of(self, avro: Any, type_path: _TypePath) -> pa.DataType:
        """Return the Arrow type of an Avro type that is no union, given as parsed JSON; raise if Hudi has none.

        ``type_path`` says where the type is used: in errors, and to find names without a namespace.
        """
        if isinstance(avro, str):
            return self._by_name(avro, type_path)
        base = avro["type"]
        if not isinstance(base, str):
            return self._type_of(base, type_path)
        logical = avro.get("logicalType")
        if logical == "decimal" and base in ("fixed", "bytes"):
            return self._decimal(avro, type_path)
        if base == "record":
            return pa.struct(self.fields(avro, type_path))
        if base == "array":
            kind, nullable = self._union(avro["items"], type_path.inside("element"))
            return pa.list_(pa.field("element", kind, nullable=nullable))
        if base == "map":
            kind, nullable = self._union(avro["values"], type_path.inside("value"))
            return pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", kind, nullable=nullable))
        if base in ("enum", "fixed"):
            raise self._unsupported(type_path, f"the Avro type {base}")
        if logical is not None:
            if (base, logical) not in _ARROW_OF_LOGICAL:
                raise self._unsupported(type_path, f"the Avro type {base} ({logical})")
            return _ARROW_OF_LOGICAL[base, logical]
        return self._by_name(base, type_path)

    def _by_name(self, name: str, type_path: _TypePath) -> pa.DataType:
        """Return the Arrow type of a primitive, or of a type that was defined before."""
        if name in _ARROW_OF:
            return _ARROW_OF[name]
        full = name if "." in name or not type_path.namespace else f"{type_path.namespace}.{name}"
        if full in self._known_types:
            return self._type_of(self._known_types[full], type_path)
        raise self._unsupported(type_path, f"the Avro type {name!r}")

    def _decimal(self, avro: dict[str, Any], type_path: _TypePath) -> pa.DataType:
        """Return the Arrow type of a decimal."""
        if avro["type"] == "fixed":
            # A later column may refer to it by its name.
            self._remember(avro, type_path.namespace)
        precision, scale = int(avro["precision"]), int(avro.get("scale", 0))
        if precision > MAX_DECIMAL_PRECISION or not 0 <= scale <= precision:
            raise self._unsupported(type_path, f"a decimal of {precision} digits with scale {scale}")
        return pa.decimal128(precision, scale)

    def _unsupported(self, type_path: _TypePath, what: str) -> UnsupportedTypeError:
        return UnsupportedTypeError(
            f"Column {type_path.path!r} in the schema of {self._where} has {what}, which pyhudi does not read.",
            "Use Apache Hudi for this table.",
        )
