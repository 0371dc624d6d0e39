"""Partitions of a metadata table with other records than they had, written as Apache Hudi would have written them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.hfile.reader import HFile
from pyhudi.table.hfile.writer import HFileWriter
from pyhudi.table.metadata.kinds import groups_of
from pyhudi.table.metadata.metadata_table import FOLDER, MetadataPartition, MetadataTable
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table

# A record with its key, as `metadata_rows` shows it; maps are dicts.
Record = dict[str, Any]
Change = Callable[[list[Record]], Sequence[Record]]


def plant(table: Path, partition: str, change: Change, *, moved: bool = False) -> None:
    """Let a partition of a table's metadata table have what ``change`` makes of all of its records.

    Each file group gets one base file in place of its files. A key stays in its file group, and a new key goes to that
    of its hash, or with ``moved`` every key to the file group behind the right one.
    """
    storage = open_storage(str(table))
    metadata_partition = partition_of(storage, partition)
    file_ids = list(metadata_partition.slices)
    at_home: dict[str, str] = {}
    records: list[Record] = []
    for file_id in file_ids:
        some = [_plain(one) for part in metadata_partition.records_in(file_id) for one in part.to_pylist()]
        at_home |= {one["key"]: file_id for one in some}
        records += some
    by_group: dict[str, list[Record]] = {file_id: [] for file_id in file_ids}
    for record in change(records):
        key = record["key"]
        home = at_home.get(key) or file_ids[int(groups_of(pa.array([key]), len(file_ids))[0])]
        place = (file_ids.index(home) + moved) % len(file_ids)
        by_group[file_ids[place]].append(record)
    schema = schema_of(storage, metadata_partition)
    for file_id, some in by_group.items():
        _write(table, metadata_partition, file_id, schema, some)


def partition_of(storage: Storage, partition: str) -> MetadataPartition:
    """Return a partition of the metadata table of a table as it is now."""
    seen = SeenTable.now(open_table(storage))
    found = MetadataTable.of(seen.table, seen.timeline)
    assert found is not None
    return found.partition(partition)


def schema_of(storage: Storage, partition: MetadataPartition) -> str:
    """Return the Avro schema of the records of a partition, by the first file that has one."""
    for file_slice in partition.slices.values():
        if file_slice.base is not None:
            with storage.open_input(file_slice.base.path) as source:
                return HFile(source, file_slice.base.path).schema
        for log in file_slice.logs:
            for block in read_blocks(storage, log.path):
                if block.type != BlockType.DELETE and block.schema is not None:
                    return block.schema
    raise AssertionError(f"no file of {partition.name} names a schema")


def _plain(record: Record) -> Record:
    files = record.get("filesystemMetadata")
    return {**record, "filesystemMetadata": None if files is None else dict(files)}


def _write(table: Path, partition: MetadataPartition, file_id: str, schema: str, records: Sequence[Record]) -> None:
    file_slice = partition.slices[file_id]
    for path in file_slice.files:
        (table / path).unlink()
    ordered = sorted(records, key=lambda record: record["key"].encode())
    keys = pa.array([record["key"].encode() for record in ordered], pa.binary())
    values = pa.array([_Encoder.of(schema).encode({**record, "key": ""}) for record in ordered], pa.binary())
    name = f"{file_id}_0-0-0_{file_slice.base_time}.hfile"
    with (table / FOLDER / partition.name / name).open("wb") as stream:
        writer = HFileWriter(stream, schema)
        writer.add(Entries(keys, values))
        writer.close()


@dataclass(frozen=True)
class _Encoder:
    """Encodes records by one Avro schema; ``names`` has the records inside of it by their full names."""

    avro: Any
    parsed: Any
    names: Mapping[str, Any]

    @classmethod
    @cache
    def of(cls, schema: str) -> _Encoder:
        avro, names = json.loads(schema), dict[str, Any]()
        _name_types(avro, "", names)
        return cls(avro, fastavro.parse_schema(json.loads(schema)), names)

    def encode(self, record: Record) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, self.parsed, _as_avro(record, self.avro, "", self.names))
        return stream.getvalue()


def _name_types(avro: Any, namespace: str, names: dict[str, Any]) -> None:
    """Note the records inside a type by their full names."""
    if isinstance(avro, list):
        for branch in avro:
            _name_types(branch, namespace, names)
    elif isinstance(avro, dict) and avro["type"] == "record":
        namespace = avro.get("namespace", namespace)
        names[f"{namespace}.{avro['name']}"] = avro
        for field in avro["fields"]:
            _name_types(field["type"], namespace, names)
    elif isinstance(avro, dict):
        for inner in ("items", "values", "type"):
            _name_types(avro.get(inner, "null"), namespace, names)


def _as_avro(value: Any, avro: Any, namespace: str, names: Mapping[str, Any]) -> Any:
    """Return a value as fastavro writes it: a bound as the name and the value of the record that wraps it."""
    if isinstance(avro, list):
        return _of_union(value, avro, namespace, names)
    if isinstance(avro, str):
        known = names.get(avro if "." in avro else f"{namespace}.{avro}")
        return value if known is None else _as_avro(value, known, namespace, names)
    if avro["type"] == "record":
        namespace = avro.get("namespace", namespace)
        return {
            field["name"]: _as_avro(value[field["name"]], field["type"], namespace, names)
            for field in avro["fields"]
            if field["name"] in value
        }
    if avro["type"] == "map":
        return {key: _as_avro(one, avro["values"], namespace, names) for key, one in value.items()}
    return value


def _of_union(value: Any, avro: Sequence[Any], namespace: str, names: Mapping[str, Any]) -> Any:
    branches = [branch for branch in avro if branch != "null"]
    if value is None or len(branches) == 1:
        return None if value is None else _as_avro(value, branches[0], namespace, names)
    wrapped = [(name, bound) for name, bound in value.items() if bound is not None]
    if not wrapped:
        return None
    ((name, bound),) = wrapped
    full = next(one for one in names if one.endswith(f".{name}Wrapper"))
    return full, {"value": bound}
