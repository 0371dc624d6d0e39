"""The Avro schema of records that pyhudi writes if a file group does not show another.

It has the fields of Apache Hudi 1.2, without their descriptions. Source: ``HoodieMetadata.avsc``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

_TEXT: Mapping[str, str] = {"type": "string", "avro.java.string": "String"}
_META = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
# The type of the value in each wrapper of bounds, in the order of the union.
_WRAPPED: Mapping[str, Any] = {
    "Boolean": "boolean",
    "Int": "int",
    "Long": "long",
    "Float": "float",
    "Double": "double",
    "Bytes": "bytes",
    "String": _TEXT,
    "Date": "int",
    "Decimal": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicros": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicros": "long",
    "LocalDate": "int",
}


@cache
def record_schema() -> str:
    """Return the schema of new records as JSON."""
    meta = [_or_null(f"_hoodie_{name}", "string") for name in _META]
    return _json(_record("HoodieMetadataRecord", [*meta, *_fields()], namespace="org.apache.hudi.avro.model"))


@lru_cache(maxsize=16)
def schema_of_commits(schema: str) -> str:
    """Return the schema of records as a commit states it, without the meta columns.

    By what the newest commit states, a compaction of Apache Hudi writes the base files of all file groups.
    """
    avro = json.loads(schema)
    return _json({**avro, "fields": [each for each in avro["fields"] if not each["name"].startswith("_hoodie_")]})


def _json(avro: Mapping[str, Any]) -> str:
    return json.dumps(avro, separators=(",", ":"))


def _fields() -> list[dict[str, Any]]:
    """Return the fields of a record: its key, its type, and one record for each kind of partition."""
    file_info = _record("HoodieMetadataFileInfo", [_field("size", "long"), _field("isDeleted", "boolean")])
    bloom_filter = [_field("type", _TEXT), _field("timestamp", _TEXT), _field("bloomFilter", "bytes")]
    bloom_filter.append(_field("isDeleted", "boolean"))
    of_secondary = [_field("isDeleted", "boolean")]
    return [
        _field("key", _TEXT),
        _field("type", "int"),
        {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": file_info, **_JAVA_TEXT}]},
        _or_null("BloomFilterMetadata", _record("HoodieMetadataBloomFilter", bloom_filter)),
        _or_null("ColumnStatsMetadata", _record("HoodieMetadataColumnStats", _column_stats())),
        _or_null("recordIndexMetadata", _record("HoodieRecordIndexInfo", _record_index())),
        _or_null("SecondaryIndexMetadata", _record("HoodieSecondaryIndexInfo", of_secondary)),
    ]


_JAVA_TEXT = {"avro.java.string": "String"}


def _column_stats() -> list[dict[str, Any]]:
    """Return the fields of the bounds of one column, each bound wrapped in a record that tells its type."""
    names = [f"{name}Wrapper" for name in _WRAPPED]
    wrappers = [_record(f"{name}Wrapper", [_field("value", avro)]) for name, avro in _WRAPPED.items()]
    array = {"type": "array", "items": ["null", *names]}
    wrappers.append(_record("ArrayWrapper", [_or_null("wrappedValues", array)]))
    value_type = _record("HoodieValueTypeInfo", [_field("typeOrdinal", "int"), _or_null("additionalInfo", _TEXT)])
    counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    return [
        _or_null("fileName", _TEXT),
        _or_null("columnName", _TEXT),
        {"name": "minValue", "type": ["null", *wrappers], "default": None},
        {"name": "maxValue", "type": ["null", *names, "ArrayWrapper"], "default": None},
        *(_or_null(name, "long") for name in counts),
        _field("isDeleted", "boolean"),
        {**_field("isTightBound", "boolean"), "default": False},
        _or_null("valueType", value_type),
    ]


def _record_index() -> list[dict[str, Any]]:
    """Return the fields of an entry of the record index: where a key is."""
    return [
        _or_null("partitionName", _TEXT),
        _or_null("fileIdHighBits", "long"),
        _or_null("fileIdLowBits", "long"),
        _or_null("fileIndex", "int"),
        _or_null("fileId", _TEXT),
        _or_null("instantTime", "long"),
        {**_field("fileIdEncoding", "int"), "default": 0},
        _or_null("position", "long"),
    ]


def _field(name: str, avro: Any) -> dict[str, Any]:
    return {"name": name, "type": avro}


def _or_null(name: str, avro: Any) -> dict[str, Any]:
    """Return a field that may be null, and is by default."""
    return {"name": name, "type": ["null", avro], "default": None}


def _record(name: str, fields: list[dict[str, Any]], **further: str) -> dict[str, Any]:
    return {"type": "record", "name": name, **further, "fields": fields}
