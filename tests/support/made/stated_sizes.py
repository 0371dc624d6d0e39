"""Writes that state the sizes of files which a test has changed, as a writer of such files states them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
from support.seams import read_seam

_WRITES = (".commit", ".deltacommit", ".replacecommit")


def state_sizes(table: Path) -> None:
    """Have a table's completed writes state the sizes that their files have now."""
    for file in (table / ".hoodie" / "timeline").glob("*_*"):
        if file.suffix in _WRITES:
            _restate(table, file)
    read_seam("written files that the process knows").clear()


def _restate(table: Path, file: Path) -> None:
    with file.open("rb") as stream:
        reader = fastavro.reader(stream)
        record: dict[str, Any] = dict(next(iter(reader)))  # type: ignore[arg-type]
    for stats in record["partitionToWriteStats"].values():
        for stat in stats:
            data = table / (stat["path"] or "")
            if data.is_file():
                stat["fileSizeInBytes"] = data.stat().st_size
    sink = io.BytesIO()
    fastavro.writer(sink, reader.writer_schema, [record], codec="null")  # type: ignore[arg-type]
    file.write_bytes(sink.getvalue())
