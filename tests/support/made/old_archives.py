"""The archive of table version 6, read from its bytes alone, and turned back into the timeline that it came from."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import fastavro

_NAME = re.compile(r"\.commits_\.archive\.(\d+)_1-0-1")
# What says whose state a record is.
_OF_THE_STATE = {"commitTime", "actionType", "actionState", "stateTransitionTime", "version"}
# The fields whose files are Avro; those of writes are JSON.
_IN_AVRO = {
    "hoodieCleanerPlan",
    "hoodieCleanMetadata",
    "hoodieCompactionPlan",
    "hoodieRequestedReplaceMetadata",
    "hoodieRollbackMetadata",
}

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """One block: its schema, which is its only header, and its records."""

    schema: dict[str, Any]
    records: list[Record]


def archive_files(folder: Path) -> list[Path]:
    """Return the files of an archive, the oldest first."""
    found = {int(match[1]): path for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))}
    return [found[number] for number in sorted(found)]


def blocks_of(data: bytes) -> Iterator[Block]:
    """Yield the blocks of a file; whatever is not as Apache Hudi writes it is an assertion."""
    at = 0
    while at < len(data):
        assert data[at : at + 6] == b"#HUDI#"
        length, version, kind, headers, header, size = struct.unpack_from(">qiiiii", data, at + 6)
        assert (version, kind, headers, header) == (1, 3, 1, 2), "an Avro block with a schema"
        start = at + 6 + 28
        schema = json.loads(data[start : start + size])
        (content_size,) = struct.unpack_from(">q", data, start + size)
        content = data[start + size + 8 : start + size + 8 + content_size]
        end = at + 14 + length
        assert data[end - 12 : end] == struct.pack(">iq", 0, end - at - 8)
        assert start + size + 8 + content_size == end - 12
        yield Block(schema, list(_records(schema, content)))
        at = end


def records_of(folder: Path) -> list[Record]:
    """Return all records of an archive in their order."""
    return [
        record for path in archive_files(folder) for block in blocks_of(path.read_bytes()) for record in block.records
    ]


def body_of(record: Record) -> dict[str, Any]:
    """Return the field and the value that a record has beside whose state it is: one or none."""
    return {name: value for name, value in record.items() if value is not None and name not in _OF_THE_STATE}


def put_back(table: Path, archive: Path, *, plans_again: bool) -> list[Record]:
    """Move the records of an archive back into the files from which they came, with the times that these had.

    The inflight file of a clean has the plan again, as 0.15 makes it, or is empty, as 1.2 does.
    """
    schema = next(blocks_of(archive_files(archive)[0].read_bytes())).schema
    records = records_of(archive)
    for record in records:
        path = table / ".hoodie" / _file_name(record)
        is_empty = record["actionType"] == "clean" and record["actionState"] == "INFLIGHT" and not plans_again
        path.write_bytes(b"" if is_empty else _file_of(record, schema))
        made = datetime.strptime(f"{record['stateTransitionTime']}000", "%Y%m%d%H%M%S%f").replace(tzinfo=timezone.utc)
        os.utime(path, (made.timestamp(), made.timestamp()))
    shutil.rmtree(archive)
    return records


def _file_name(record: Record) -> str:
    time, action, state = record["commitTime"], record["actionType"], record["actionState"].lower()
    if state == "completed":
        return f"{time}.{action}"
    return f"{time}.inflight" if (action, state) == ("commit", "inflight") else f"{time}.{action}.{state}"


def _file_of(record: Record, schema: dict[str, Any]) -> bytes:
    if record["actionType"] in {"commit", "deltacommit"} and record["actionState"] == "REQUESTED":
        # 0.15 archives an empty commit for it.
        return b""
    for name, value in body_of(record).items():
        if name not in _IN_AVRO:
            return json.dumps(value, indent=2).encode()
        field = next(one for one in schema["fields"] if one["name"] == name)
        stream = io.BytesIO()
        fastavro.writer(stream, {"namespace": schema["namespace"], **field["type"][1]}, [value])
        return stream.getvalue()
    return b""


def _records(schema: dict[str, Any], content: bytes) -> Iterator[Record]:
    version, count = struct.unpack_from(">ii", content)
    assert version == 3
    at, parsed = 8, fastavro.parse_schema(schema)
    for _ in range(count):
        (length,) = struct.unpack_from(">i", content, at)
        stream = io.BytesIO(content[at + 4 : at + 4 + length])
        record = fastavro.schemaless_reader(stream, parsed, None)
        assert stream.tell() == length
        assert isinstance(record, dict)
        yield record
        at += 4 + length
    assert at == len(content)
