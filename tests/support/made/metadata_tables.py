"""Metadata tables without Java: what Apache Hudi 1.2 would write for a table of version 9 or 8 that is there.

Of version 8 there are bounds of numbers, texts and booleans alone, since it spells others in another way.

``simulate`` takes the files from a listing and the bounds from footers, or both from its caller, so that a table may
have 40,000 files of which none is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import time as clock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import TableConfig
from pyhudi.table.config.java_properties import format_properties
from pyhudi.table.config.property_keys import METADATA_PARTITIONS
from pyhudi.table.files.column_bounds import ColumnBounds as StatedBounds
from pyhudi.table.files.file_group import BaseFile
from pyhudi.table.files.logs.log_blocks import BlockHead, BlockType, Header
from pyhudi.table.files.names import BaseFileName, LogFileName, WriteToken
from pyhudi.table.files.partitions import metafile_of
from pyhudi.table.hfile.blocks import Compression
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.hfile.writer import HFileWriter
from pyhudi.table.latest_schema import latest_schema
from pyhudi.table.metadata.bounds_of_files import BoundsOfColumn
from pyhudi.table.metadata.encoding import Records, joined
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, groups_of
from pyhudi.table.metadata.metadata_table import FOLDER
from pyhudi.table.metadata.new_files import metadata_properties
from pyhudi.table.metadata.read_bounds import bounds_of_base_file
from pyhudi.table.schema.columns import with_meta
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import format_time
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata, CompactionPlan, WriteStat
from pyhudi.timeline.timeline import Timeline

from .metadata_records import (
    ColumnBounds,
    Files,
    Keys,
    record_places,
    records_of_bounds,
    records_of_files,
    records_of_partition_bounds,
    schema_of_1_2,
)

FILE_GROUPS: Mapping[str, int] = {FILES: 1, COLUMN_STATS: 2, PARTITION_STATS: 1, RECORD_INDEX: 10}
"""How many file groups Apache Hudi 1.2 gives each partition of the metadata table."""

_PREFIXES = {
    FILES: "files",
    COLUMN_STATS: "col-stats",
    PARTITION_STATS: "partition-stats",
    RECORD_INDEX: "record-index",
}
_META = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_TOKEN = WriteToken(0, 0, 0)
_PIECE = 500_000
# From this version on bounds say the types of their values.
_TYPED = 9
_EMPTY_DELETES = (3).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\x00"


@dataclass(frozen=True)
class How:
    """How a metadata table comes to be.

    Attributes:
        file_groups: How many file groups each partition has.
        logged: The instants of the table that came after the metadata table, which has them in log files.
        only: The partitions to write; None for all that there is something for.
    """

    file_groups: Mapping[str, int] = field(default_factory=dict)
    compression: Compression = Compression.GZIP
    logged: Sequence[str] = ()
    only: Sequence[str] | None = None

    def count(self, partition: str) -> int:
        return {**FILE_GROUPS, **self.file_groups}[partition]


def simulate(
    path: str,
    files: Files | None = None,
    bounds: Sequence[ColumnBounds] | None = None,
    keys: Keys | None = None,
    how: How | None = None,
) -> None:
    """Write the metadata table of a table, and name it in the table's properties.

    ``files`` are all by default that a listing shows, and ``bounds`` those of footers. A record index is made of
    ``keys``, such as those of `keys_of`.
    """
    how = how or How()
    storage = open_storage(path)
    files = files_of(path) if files is None else files
    bounds = bounds_of(path, files) if bounds is None else bounds
    table = open_table(storage)
    writer = _Writer(storage, files, bounds, keys, how, table.config.version)
    writer.write(table.timeline())
    _name_in_table(storage, writer.partitions, [each.column for each in bounds], table.config.version)


def simulate_compaction(path: str, *, completes: bool = True) -> str:
    """Merge the list of files in a metadata table into a base file, or plan that alone; return the instant's time."""
    storage = open_storage(path)
    table, files = open_table(storage), files_of(path)
    writer = _Writer(storage, files, [], None, How(), table.config.version)
    time, completion_time = (format_time(int(clock() * 1000) + later, table.config.timezone) for later in (0, 1))
    folder = f"{FOLDER}/.hoodie/timeline"
    storage.write(f"{folder}/{time}.compaction.requested", encode(CompactionPlan()))
    if completes:
        storage.write(f"{folder}/{time}.compaction.inflight", b"")
        for group, entries in writer._entries(FILES, np.arange(len(files.times))):
            writer._base(FILES, group, time, entries)
        storage.write(f"{folder}/{time}_{completion_time}.commit", encode(CommitMetadata(operation_type="COMPACT")))
    return time


def files_of(path: str) -> Files:
    """Return all files that a listing shows, those of replaced file groups too, with the rows of base files."""
    storage = open_storage(path)
    view = SeenTable.now(open_table(storage)).view
    listed, newest = [], []
    for partition in view.partitions():
        shown = {file.path for file_slice in view.slices(partition).values() for file in file_slice.data_files}
        for group in (*view.groups(partition).values(), *view.replaced_groups(partition).values()):
            files = [file for file_slice in group.slices for file in file_slice.data_files]
            listed += files
            newest += [file.path in shown for file in files]
    rows = [_footer(storage, file.path).num_rows if isinstance(file, BaseFile) else 0 for file in listed]
    return Files(
        pa.array([file.path.rpartition("/")[0] for file in listed], pa.string()),
        pa.array([file.path.rpartition("/")[2] for file in listed], pa.string()),
        np.array([file.size for file in listed], dtype=np.int64),
        np.array(rows, dtype=np.int64),
        np.array(newest, dtype=np.bool_),
    )


def _footer(storage: Storage, path: str) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(storage.read(path)))


def bounds_of(path: str, files: Files, columns: Sequence[str] | None = None) -> list[ColumnBounds]:
    """Return the bounds of base files, of some columns or of all that can have any; log files have none."""
    storage = open_storage(path)
    schema = latest_schema(open_table(storage).config, open_table(storage).timeline()) or pa.schema([])
    fields = [with_meta(schema).field(name) for name in indexed_columns(schema, columns)]
    nothing = [StatedBounds(field.name, None, None, 0) for field in fields]
    in_base = np.array([one.endswith(".parquet") for one in files.paths], np.bool_)
    read = [
        bounds_of_base_file(storage, one, fields)[1] if one.endswith(".parquet") else nothing for one in files.paths
    ]
    found = (BoundsOfColumn.of(field, [each[at] for each in read]) for at, field in enumerate(fields))
    return [ColumnBounds(each.column, each.least, each.greatest, each.nulls, in_base) for each in found]


def indexed_columns(schema: pa.Schema, columns: Sequence[str] | None = None) -> list[str]:
    """Return the columns of which Apache Hudi keeps bounds, or those of them that are named."""
    flat = [field.name for field in schema if not pa.types.is_nested(field.type)]
    names = [*_META, *(name for name in flat if not name.startswith("_hoodie"))] if len(schema) else []
    return [name for name in names if columns is None or name in columns]


def keys_of(path: str, files: Files) -> Keys:
    """Return the keys of the rows of the newest base file of each file group, for a record index."""
    newest: dict[tuple[str, str], int] = {}
    places = [*zip(files.partitions.to_pylist(), files.names.to_pylist(), strict=True)]
    storage = open_storage(path)
    for at, (folder, name) in enumerate(places):
        if name.endswith(".parquet") and (files.newest is None or files.newest[at]):
            group = (folder, files.file_ids[at])
            if group not in newest or files.times[newest[group]] < files.times[at]:
                newest[group] = at
    parts = [(_keys_in(storage, files.paths[at]), at) for at in newest.values()]
    return Keys(
        pa.concat_arrays([keys for keys, _ in parts]),
        np.repeat([at for _, at in parts], [len(keys) for keys, _ in parts]).astype(np.int64),
    )


def _keys_in(storage: Storage, path: str) -> pa.StringArray:
    rows = pq.read_table(pa.BufferReader(storage.read(path)), columns=["_hoodie_record_key"])
    return rows[0].combine_chunks()


@dataclass
class _Writer:
    storage: Storage
    files: Files
    bounds: Sequence[ColumnBounds]
    keys: Keys | None
    how: How
    version: int
    newest_write: str = ""

    @property
    def partitions(self) -> list[str]:
        given = {FILES: True, COLUMN_STATS: bool(self.bounds), RECORD_INDEX: self.keys is not None}
        given[PARTITION_STATS] = given[COLUMN_STATS] and self.files.partitions.unique().to_pylist() != [""]
        asked = given if self.how.only is None else self.how.only
        return [name for name in _PREFIXES if given[name] and name in asked]

    def write(self, timeline: Timeline) -> None:
        self.storage.write(f"{FOLDER}/.hoodie/hoodie.properties", self._properties())
        of_writes = np.array(self.files.times)
        at_first = np.flatnonzero(~np.isin(of_writes, list(self.how.logged)))
        writes = {write.requested_time: write for write in timeline.writes}
        self.newest_write = max(writes, default="")
        before = [write.visible_since for time, write in writes.items() if time not in self.how.logged]
        begun = max(before, default=min(self.how.logged, default="20260101000000000"))
        for number, partition in enumerate(self.partitions):
            beginning = f"{number:017d}"
            metafile = format_properties({"commitTime": beginning, "partitionDepth": "1"}, "partition metadata")
            self.storage.write(metafile_of(f"{FOLDER}/{partition}"), metafile)
            for group in range(self.how.count(partition)):
                self._log(partition, group, beginning, BlockType.DELETE, _EMPTY_DELETES)
            for group, entries in self._entries(partition, at_first):
                self._base(partition, group, beginning, entries)
            self._instant(beginning, begun, [partition])
        for time in self.how.logged:
            for partition in self.partitions:
                for group, entries in self._entries(partition, np.flatnonzero(of_writes == time), time):
                    self._log(partition, group, time, BlockType.HFILE, self._hfile(entries))
            # It completes here before it completes in the table.
            completed = int(writes[time].visible_since) - 1
            self._instant(time, f"{completed:017d}", self.partitions)

    def _entries(
        self, partition: str, at: np.ndarray[Any, Any], until: str = ""
    ) -> Iterator[tuple[int, list[Entries]]]:
        """Yield the file groups that have records of some files, and these."""
        count = self.how.count(partition)
        if partition == RECORD_INDEX:
            yield from self._entries_of_keys(at, count)
            return
        if not len(at) and partition != FILES:
            return
        if partition == FILES:
            records = records_of_files(self.files.take(at))
        elif partition == COLUMN_STATS:
            records = self._records_of_bounds(records_of_bounds, at)
        else:
            at = self._shown(at, until)
            if not len(at):
                return
            records = self._records_of_bounds(records_of_partition_bounds, at)
        for group, entries in records.by_group(count).items():
            yield group, [entries]

    def _records_of_bounds(self, made: Callable[..., Records], at: np.ndarray[Any, Any]) -> Records:
        files, typed = self.files.take(at), self.version >= _TYPED
        return joined([made(files, each.take(at), typed=typed) for each in self.bounds])

    def _shown(self, at: np.ndarray[Any, Any], until: str) -> np.ndarray[Any, Any]:
        """Return the newest files, up to an instant, of the partitions that some files are in."""
        paths, times = np.array(self.files.partitions.to_pylist()), np.array(self.files.times)
        if until:
            at = np.flatnonzero(np.isin(paths, np.unique(paths[at])) & (times <= until))
        # What a later write made older was the newest before, and is so again once that write is undone.
        is_now = until == self.newest_write if until else not self.how.logged
        if self.files.newest is not None and is_now:
            return at[self.files.newest[at]]
        ids, names = np.array(self.files.file_ids), np.array(self.files.names.to_pylist())
        begun = np.where(np.char.startswith(names, "."), "", times)
        table = pa.table({"path": paths[at], "id": ids[at], "begun": begun[at]})
        newest = table.group_by(["path", "id"]).aggregate([("begun", "max")])
        begins = {(row["path"], row["id"]): row["begun_max"] for row in newest.to_pylist()}
        return np.array([one for one in at if times[one] >= begins[paths[one], ids[one]]], dtype=np.int64)

    def _entries_of_keys(self, at: np.ndarray[Any, Any], count: int) -> Iterator[tuple[int, list[Entries]]]:
        assert self.keys is not None
        encoded = record_places(self.files)
        chosen = np.isin(self.keys.files, at)
        groups = groups_of(self.keys.keys, count)
        for group in range(count):
            rows = np.flatnonzero(chosen & (groups == group))
            if not len(rows):
                continue
            keys = self.keys.take(rows)
            order = np.asarray(pa.compute.sort_indices(keys.keys.cast(pa.binary())))
            pieces = (keys.take(order[begin : begin + _PIECE]) for begin in range(0, len(order), _PIECE))
            yield group, [_plain(encoded(piece)) for piece in pieces]

    def _base(self, partition: str, group: int, time: str, entries: list[Entries]) -> None:
        name = BaseFileName(_file_id(partition, group), _TOKEN, time, ".hfile").format()
        self.storage.write(f"{FOLDER}/{partition}/{name}", self._hfile(entries), durable=False)

    def _log(self, partition: str, group: int, time: str, kind: BlockType, content: bytes) -> None:
        headers = {Header.INSTANT_TIME: time}
        if kind == BlockType.HFILE:
            headers[Header.SCHEMA] = schema_of_1_2()
        data = b"".join(BlockHead(kind, headers).framed([content]))
        name = LogFileName(_file_id(partition, group), time, 1, _TOKEN).format()
        self.storage.write(f"{FOLDER}/{partition}/{name}", data, durable=False)

    def _hfile(self, entries: list[Entries]) -> bytes:
        stream = pa.BufferOutputStream()
        file = HFileWriter(stream, schema_of_1_2(), compression=self.how.compression)
        for part in entries:
            file.add(part)
        file.close()
        return stream.getvalue().to_pybytes()

    def _instant(self, time: str, completed: str, partitions: Sequence[str]) -> None:
        folder = f"{FOLDER}/.hoodie/timeline"
        plain = json.loads(schema_of_1_2())
        plain["fields"] = [each for each in plain["fields"] if not each["name"].startswith("_hoodie")]
        body = CommitMetadata(
            # Of each partition the first file group alone; readers ask which partitions an instant wrote.
            partition_to_write_stats={
                name: [WriteStat(file_id=_file_id(name, 0), partition_path=name)] for name in partitions
            },
            extra_metadata={"schema": json.dumps(plain)},
            operation_type="UPSERT_PREPPED",
        )
        for state in ("requested", "inflight"):
            self.storage.write(f"{folder}/{time}.deltacommit.{state}", b"", durable=False)
        self.storage.write(f"{folder}/{time}_{completed}.deltacommit", encode(body), durable=False)

    def _properties(self) -> bytes:
        config = TableConfig.parse(self.storage.read(".hoodie/hoodie.properties"), "hoodie.properties")
        return metadata_properties(config)


def _plain(records: Records) -> Entries:
    return Entries(records.keys.cast(pa.binary()), records.values)


def _file_id(partition: str, group: int) -> str:
    return f"{_PREFIXES[partition]}-{group:04d}-0"


def _name_in_table(storage: Storage, partitions: Sequence[str], columns: Sequence[str], version: int) -> None:
    """Define the indexes, and name the partitions in the table's properties."""
    definitions: dict[str, object] = {}
    if COLUMN_STATS in partitions:
        definitions[COLUMN_STATS] = _definition(
            COLUMN_STATS, COLUMN_STATS, columns, "V2" if version >= _TYPED else "V1", {}
        )
    if RECORD_INDEX in partitions:
        definitions[RECORD_INDEX] = _definition(RECORD_INDEX, "", (), "V1", {"isPartitioned": "false"})
    storage.write(".hoodie/.index_defs/index.json", json.dumps({"indexDefinitions": definitions}).encode())
    config = TableConfig.parse(storage.read(".hoodie/hoodie.properties"), "hoodie.properties")
    named = {METADATA_PARTITIONS: ",".join(sorted(partitions)), "hoodie.table.metadata.partitions.inflight": ""}
    named["hoodie.table.index.defs.path"] = ".hoodie/.index_defs/index.json"
    storage.write(".hoodie/hoodie.properties", config.with_changes(named).encode())


def _definition(
    name: str, function: str, columns: Sequence[str], version: str, options: Mapping[str, str]
) -> dict[str, object]:
    return {
        "indexName": name,
        "indexType": name,
        "indexFunction": function,
        "sourceFields": list(columns),
        "indexOptions": dict(options),
        "version": version,
    }
