"""What the base file and the log blocks of a file group of the metadata table say together, against a dict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.metadata.kinds import groups_of
from pyhudi.table.metadata.merging import SaidRecords, merged
from pyhudi.table.metadata.records import decode

Record = dict[str, Any]
LONG, TEXT, BYTES = "LongWrapper", "StringWrapper", "BytesWrapper"
WRAPPERS: list[Any] = [
    "null",
    *(
        {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}
        for name, kind in ((LONG, "long"), (TEXT, "string"), (BYTES, "bytes"))
    ),
]


def schema(*, with_kinds: bool = True) -> dict[str, Any]:
    """Return the parts of Apache Hudi's schema that merge; an older release has no types of values."""
    info = record("Info", size="long", isDeleted="boolean")
    kind = record("Kind", typeOrdinal="int", additionalInfo=["null", "string"])
    bounds: dict[str, Any] = {
        "fileName": "string",
        "minValue": WRAPPERS,
        "maxValue": ["null", LONG, TEXT, BYTES],
        "valueCount": ["null", "long"],
        "nullCount": ["null", "long"],
        "totalSize": ["null", "long"],
        "totalUncompressedSize": ["null", "long"],
        "isDeleted": "boolean",
        "isTightBound": "boolean",
    }
    stats = record("Bounds", **bounds, **({"valueType": ["null", kind]} if with_kinds else {}))
    return record(
        "Record",
        _hoodie_file_name=["null", "string"],
        key="string",
        type="int",
        filesystemMetadata=["null", {"type": "map", "values": info}],
        ColumnStatsMetadata=["null", stats],
    )


def record(name: str, **fields: Any) -> dict[str, Any]:
    named = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": "made", "fields": named}


NOW, THEN = schema(), schema(with_kinds=False)


def said(records: Mapping[str, Record], avro: dict[str, Any] = NOW) -> SaidRecords:
    values = []
    for key in sorted(records):
        stream = BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(avro), {"key": "", "type": 2, **records[key]})
        values.append(stream.getvalue())
    keys = pa.array([key.encode() for key in sorted(records)], pa.binary())
    return SaidRecords(Entries(keys, pa.array(values, pa.binary())), json.dumps(avro))


def deleted(keys: set[str]) -> SaidRecords:
    ordered = pa.array([key.encode() for key in sorted(keys)], pa.binary())
    return SaidRecords(Entries(ordered, pa.nulls(len(ordered), pa.binary())), deletes=True)


def left(parts: Sequence[SaidRecords], *, adds_up: bool = True) -> dict[str, Record]:
    found = merged(parts, adds_up=adds_up)
    return {} if found is None else {row["key"]: row for row in found.to_pylist()}


KEYS = st.sampled_from(["", "a", "b", "c=é"])
FILES = st.dictionaries(st.sampled_from(["f", "g", "h"]), st.tuples(st.integers(1, 9), st.booleans()), max_size=3)


@given(st.lists(st.one_of(st.dictionaries(KEYS, FILES, max_size=3), st.sets(KEYS)), min_size=1, max_size=5))
def test_files_add_up_until_a_delete(said_by: list[dict[str, dict[str, tuple[int, bool]]] | set[str]]) -> None:
    """A deleted file goes, one that comes again counts anew, and a size never falls."""
    parts, model = [], dict[str, dict[str, int]]()
    for part in said_by:
        if isinstance(part, set):
            parts.append(deleted(part))
            model = {key: files for key, files in model.items() if key not in part}
            continue
        infos = {
            key: {
                "filesystemMetadata": {name: {"size": size, "isDeleted": gone} for name, (size, gone) in said.items()}
            }
            for key, said in part.items()
        }
        parts.append(said(infos, THEN if len(parts) % 2 else NOW))
        for key, files in part.items():
            known = model.setdefault(key, {})
            for name, (size, gone) in files.items():
                known.pop(name, None) if gone else known.update({name: max(size, known.get(name, 0))})

    found = left(parts)

    sizes = {key: {name: info["size"] for name, info in row["filesystemMetadata"]} for key, row in found.items()}
    assert sizes == model


BOUND = st.one_of(
    st.tuples(st.just(LONG), st.integers(-5, 5)),
    st.tuples(st.just(BYTES), st.integers(-300, 300)),
)
BOUNDS = st.tuples(BOUND, st.booleans(), st.booleans())


@given(st.lists(st.one_of(st.dictionaries(KEYS, BOUNDS, max_size=3), st.sets(KEYS)), min_size=1, max_size=5))
def test_bounds_widen_unless_they_are_tight(said_by: list[Any]) -> None:
    """Decimals by their values, not by their bytes; where the types differ no bounds are left."""
    parts, model = [], dict[str, list[tuple[str, int | None]]]()
    for part in said_by:
        if isinstance(part, set):
            parts.append(deleted(part))
            model = {key: bounds for key, bounds in model.items() if key not in part}
            continue
        parts.append(said({key: {"type": 3, "ColumnStatsMetadata": stats(*values)} for key, values in part.items()}))
        for key, ((wrapper, value), is_tight, is_null) in part.items():
            kept = [] if is_tight else model.get(key, [])
            model[key] = [*kept, (wrapper, None if is_null else value)]

    merged_records = left(parts)

    assert merged_records.keys() == model.keys()
    for key, bounds in model.items():
        shown, values = merged_records[key]["ColumnStatsMetadata"], [value for _, value in bounds if value is not None]
        if len({wrapper for wrapper, value in bounds if value is not None}) > 1:
            assert shown is None
            continue
        assert shown["valueCount"] == len(bounds)
        assert [number(shown["minValue"]), number(shown["maxValue"])] == [
            min(values, default=None),
            max(values, default=None),
        ]


def stats(bound: tuple[str, int], is_tight: bool, is_null: bool) -> Record:
    wrapper, value = bound
    stored = value.to_bytes(2, "big", signed=True) if wrapper == BYTES else value
    wrapped = None if is_null else (f"made.{wrapper}", {"value": stored})
    counts = dict.fromkeys(("valueCount", "nullCount", "totalSize", "totalUncompressedSize"), 1)
    kind = {"typeOrdinal": 10 if wrapper == BYTES else 4, "additionalInfo": "5,2"}
    return {
        "fileName": "f",
        "minValue": wrapped,
        "maxValue": wrapped,
        **counts,
        "isDeleted": False,
        "isTightBound": is_tight,
        "valueType": kind,
    }


def number(bound: Record | None) -> int | None:
    if bound is None:
        return None
    value = next(value for value in bound.values() if value is not None)
    return int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else value


def test_of_other_records_the_newest_counts() -> None:
    """Once a key was deleted, what was said of it before counts no more."""
    parts = [
        said({key: {"type": 5, "_hoodie_file_name": "base"} for key in "abcd"}, THEN),
        deleted({"b", "c"}),
        said({key: {"type": 7} for key in "ac"}),
        deleted({"d", "e"}),
    ]

    assert {key: row["type"] for key, row in left(parts, adds_up=False).items()} == {"a": 7, "c": 7}


def test_bounds_of_a_deleted_file_are_left_out() -> None:
    """In the base file alone, and where a log block says that the file was deleted."""
    there, gone = stats((LONG, 1), False, False), {**stats((LONG, 1), False, True), "isDeleted": True}
    base = said({"a": {"ColumnStatsMetadata": there}, "b": {"ColumnStatsMetadata": gone}, "c": {}})
    log = said({"a": {"ColumnStatsMetadata": gone}, "d": {"ColumnStatsMetadata": there}})

    assert left([base]).keys() == {"a", "c"}
    assert left([base, log]).keys() == {"c", "d"}


def test_the_hash_of_a_key_names_its_file_group() -> None:
    """As Java takes absolute values and remainders: the least number has no absolute value."""
    keys = pa.array(["polygenelubricants", "a", "", "b$"])

    assert groups_of(keys, 10).tolist() == [8, 7, 0, 4]
    assert groups_of(keys, 1).tolist() == [0, 0, 0, 0]


def test_a_partition_of_thousands_of_files_is_read_like_one_of_few() -> None:
    """The files of short maps are read column by column, those of long maps one by one."""
    files = {f"file {place}": {"size": place + 1, "isDeleted": place % 7 == 0} for place in range(3000)}
    many = said(
        {"": {"filesystemMetadata": files}, "b": {"type": 3, "ColumnStatsMetadata": stats((TEXT, "x"), False, False)}}
    )

    (row, other) = decode(many.entries.values, many.schema).to_pylist()

    assert dict(row["filesystemMetadata"]) == files
    assert other["ColumnStatsMetadata"]["minValue"]["String"] == "x"
    assert len(left([many])[""]["filesystemMetadata"]) == sum(not info["isDeleted"] for info in files.values())
