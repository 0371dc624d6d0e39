"""Arrow columns written and read as Spark's DDL writes them, NOT NULL at every depth included."""

from __future__ import annotations

import re

import pyarrow as pa
from pyhudi.table.schema.types import children, sql_name

_TOKEN = re.compile(r"\s*(\w+(?:\(\d+,\d+\))?|[<>:,])")
_FLAT = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def columns(text: str) -> pa.Schema:
    """Return the columns of ``a int, s struct<b:string not null>``."""
    words = _TOKEN.findall(text)
    fields = []
    while words:
        name = words.pop(0)
        fields.append(_field(name, words))
        if words:
            assert words.pop(0) == ",", text
    return pa.schema(fields)


def show(schema: pa.Schema) -> str:
    """Return the text from which `columns` makes the schema."""
    return ", ".join(f"{field.name} {_show(field)}" for field in schema)


def _field(name: str, words: list[str]) -> pa.Field:
    kind = _kind(words)
    required = words[:2] == ["not", "null"]
    del words[: 2 * required]
    return pa.field(name, kind, nullable=not required)


def _kind(words: list[str]) -> pa.DataType:
    word = words.pop(0)
    if word.startswith("decimal"):
        return pa.decimal128(*map(int, re.findall(r"\d+", word)))
    if word in _FLAT:
        return _FLAT[word]
    assert words.pop(0) == "<", word
    if word == "array":
        kind = pa.list_(_field("element", words))
    elif word == "map":
        assert words[:2] == ["string", ","]
        del words[:2]
        kind = pa.map_(pa.field("key", pa.string(), nullable=False), _field("value", words))
    else:
        fields = []
        while not fields or words[0] == ",":
            del words[: bool(fields)]
            name, _ = words.pop(0), words.pop(0)
            fields.append(_field(name, words))
        kind = pa.struct(fields)
    assert words.pop(0) == ">", word
    return kind


def _show(field: pa.Field) -> str:
    kind = field.type
    if pa.types.is_struct(kind):
        text = f"struct<{','.join(f'{one.name}:{_show(one)}' for one in children(kind))}>"
    elif pa.types.is_map(kind):
        text = f"map<string,{_show(kind.item_field)}>"
    elif pa.types.is_list(kind):
        text = f"array<{_show(kind.value_field)}>"
    else:
        text = sql_name(kind)
    return text if field.nullable else f"{text} not null"
