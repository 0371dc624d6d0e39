"""A table that pyhudi and Apache Hudi write by turns, and the rows that it must hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from interop.readers import read_hudi_rs
from interop.scenarios import BUCKETS
from interop.writer import write_without_spark
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL
from support.rules.health import errors

VERSION = "hoodie.write.table.version"
OPERATION = "hoodie.datasource.write.operation"
BY = "hoodie.datasource.write.precombine.field"
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("value", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
OPTIONS = {
    **{key: value for key, value in SMALL.items() if key != "hoodie.table.ordering.fields"},
    BY: "ts",
    BUCKETS: "2",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
}
UPKEPT = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}
BASE = ", ".join(f"k{n} 10" for n in range(12))
COLUMNS = ("p", "id", "ts", "value")


@dataclass
class Both:
    """A table that both write, and what it must hold."""

    path: Path
    apache: ApacheHudi
    options: Mapping[str, str]
    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    writes: int = 0

    @property
    def by_time(self) -> bool:
        """Whether greater ordering values win."""
        return BY in self.options

    def ours(self, rows: str, operation: str = "upsert", **more: str) -> str:
        """Have pyhudi write rows, and return the instant."""
        return write_without_spark(self.path, self._taken(rows, operation), self._asked(operation, more)).instant

    def theirs(self, rows: str, operation: str = "upsert", **more: str) -> None:
        """Have Apache Hudi write rows."""
        self.apache.write(self.path, self._taken(rows, operation), self._asked(operation, more))

    def compaction(self, op: str) -> None:
        """Have Apache Hudi plan a compaction, or carry one out; its procedure takes these from options alone."""
        keys = ("hoodie.datasource.write.recordkey.field=id", "hoodie.datasource.write.precombine.field=ts")
        options = ",".join((*keys, "hoodie.compact.inline.max.delta.commits=1", "hoodie.metadata.enable=false"))
        self.apache.sql(f"call run_compaction(op => '{op}', path => '{self.path}', options => '{options}')")

    def check(self) -> None:
        """Hold all readers against the dict, and the table's files against the format."""
        wanted = sorted(("ab"[int(key[1:]) % 2], key, *self.held[key]) for key in self.held)
        rows_by_reader = {
            "Apache Hudi": self.apache.read(self.path),
            "pyhudi": read_without_spark(self.path),
            "hudi-rs": read_hudi_rs(self.path),
        }
        for reader, rows in rows_by_reader.items():
            assert tuples(rows) == wanted, reader
        assert errors(self.path) == []

    def _taken(self, text: str, operation: str) -> pa.Table:
        """Return rows that are written as ``key ts``, or ``-key ts`` for deletes, having told the dict of them."""
        self.writes += 1
        rows = []
        for one in text.split(","):
            name, ts = one.split()
            key, gone = name.lstrip("-"), name.startswith("-")
            rows.append(dict(zip(SCHEMA.names, (key, "ab"[int(key[1:]) % 2], int(ts), self.writes, gone), strict=True)))
            if operation == "delete":
                self.held.pop(key, None)
            elif not self.by_time or int(ts) >= self.held.get(key, (0,))[0]:
                self.held.pop(key, None)
                self.held |= {} if gone else {key: (int(ts), self.writes)}
        return pa.Table.from_pylist(rows, SCHEMA)

    def _asked(self, operation: str, more: Mapping[str, str]) -> dict[str, str]:
        return {**self.options, OPERATION: operation, **{name.replace("__", "."): text for name, text in more.items()}}


def tuples(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(rows.column(name).to_pylist() for name in COLUMNS), strict=True))


def write_defaults_by_turns(path: Path, theirs: ApacheHudi, key: str, **asked: str) -> None:
    """Make a table with Apache Hudi's defaults and two partition columns, have both write it, and check its rows.

    Args:
        key: One of the keys, which may look like one with the name of its column.
        asked: Further options of Apache Hudi's writes.
    """
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p,q",
        BY: "ts",
    }
    written: dict[str, int] = {}

    def rows(*keys: str, ts: int) -> pa.Table:
        written.update(dict.fromkeys(keys, ts))
        count = len(keys)
        return pa.table({"id": keys, "p": ["a"] * count, "q": ["b"] * count, "ts": pa.array([ts] * count, pa.int64())})

    theirs.write(path, rows("k1", key, "k3", ts=1), {**options, **asked})
    assert "files" in properties(path)["hoodie.table.metadata.partitions"]
    write_without_spark(path, rows("k1", key, "k4", ts=2), options)
    theirs.write(path, rows(key, "k4", "k5", ts=3), {**options, **asked})
    write_without_spark(path, rows("k5", "k3", ts=4), options)

    for found in (theirs.read(path), read_without_spark(path), read_hudi_rs(path)):
        assert dict(zip(found.column("id").to_pylist(), found.column("ts").to_pylist(), strict=True)) == written
        assert found.num_rows == len(written)
    assert errors(path) == []
