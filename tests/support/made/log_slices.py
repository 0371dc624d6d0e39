"""File slices made by hand: a base file and log files, block by block, and what a dict says that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
from pyhudi.storage.base import Storage
from pyhudi.table.arrow.spill import local_spills
from pyhudi.table.config import TableConfig
from pyhudi.table.files.base_file import BaseFileWriter, file_schema
from pyhudi.table.files.bloom_filter import BloomSettings
from pyhudi.table.files.file_group import BaseFile, FileSlice, LogFile
from pyhudi.table.files.logs.delete_block import Deletes
from pyhudi.table.files.logs.log_file import LogFileWriter
from pyhudi.table.files.names import FileGroupId, LogFileName
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import avro_schema, with_meta
from pyhudi.table.slices.merged_slice import MergedSlice

FILE_ID = "00000000-0000-0000-0000-000000000000-0"
BASE_TIME = "20260101000000000"


@dataclass(frozen=True)
class Rows:
    """A data block: each row a dict of the data columns; ``columns`` where it is partial."""

    rows: Sequence[dict[str, Any]]
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Gone:
    """Delete blocks: keys with their ordering values, None for none."""

    keys: Sequence[tuple[str, Any]]


class Slice:
    """One file slice of a table whose record key is the column ``id``."""

    def __init__(self, storage: Storage, schema: pa.Schema) -> None:
        self.storage = storage
        self.schema = schema
        self.base: BaseFile | None = None
        self.logs: list[LogFile] = []
        self._numbers = count(1)

    @property
    def file_slice(self) -> FileSlice:
        """The slice."""
        return FileSlice(FileGroupId("", FILE_ID), BASE_TIME, self.base, tuple(self.logs))

    def add_base(
        self, rows: Sequence[dict[str, Any]], *, row_group_bytes: int = 1 << 20, bloom: BloomSettings | None = None
    ) -> None:
        """Write the base file."""
        path = f"{FILE_ID}_0-0-0_{BASE_TIME}.parquet"
        sink = pa.BufferOutputStream()
        writer = BaseFileWriter(
            sink,
            file_schema(self.schema),
            self._avro(),
            output=Output(row_group_bytes=row_group_bytes),
            bloom=bloom,
        )
        for start in range(0, len(rows), 100):
            writer.write(self._batch(rows[start : start + 100], self.schema, BASE_TIME))
        writer.close()
        self.base = BaseFile(path, self._write(path, sink), FILE_ID, "0-0-0", BASE_TIME)

    def add_log(self, *blocks: Rows | Gone, ordering: Sequence[str] = ()) -> str:
        """Write a log file of a later instant, which is returned."""
        time = f"{int(BASE_TIME) + next(self._numbers)}"
        path = f".{FILE_ID}_{time}.log.1_0-0-0"
        sink = pa.BufferOutputStream()
        for block in blocks:
            partial = block.columns if isinstance(block, Rows) else None
            data = self.schema if partial is None else pa.schema([self.schema.field(name) for name in partial])
            log = LogFileWriter(
                sink,
                instant_time=time,
                schema=file_schema(data),
                avro_schema=avro_schema(data, "t", meta=True),
                partial=partial is not None,
            )
            if isinstance(block, Rows):
                log.add_rows(self._batch(block.rows, data, time))
            else:
                log.add_deletes(self._deletes(block, ordering))
            log.close()
        name = LogFileName.parse(path)
        assert name is not None
        self.logs.append(LogFile(path, self._write(path, sink), name))
        return time

    def merged(self, config: TableConfig, spills: Storage, *, memory: int = 1 << 30) -> MergedSlice:
        """Return the slice as its readers see it."""
        return MergedSlice(
            self.storage,
            config,
            self.file_slice,
            self.schema,
            lambda time: True,
            memory=memory,
            open_spill=local_spills(spills),
        )

    def _write(self, path: str, sink: pa.BufferOutputStream) -> int:
        body = sink.getvalue().to_pybytes()
        self.storage.write(path, body)
        return len(body)

    def _avro(self) -> str:
        return avro_schema(self.schema, "t", meta=True)

    def _batch(self, rows: Sequence[dict[str, Any]], data: pa.Schema, time: str) -> pa.RecordBatch:
        keys = [row["id"] for row in rows]
        meta = [
            [time] * len(rows),
            [f"{time}_{n}" for n in range(len(rows))],
            keys,
            [""] * len(rows),
            ["f"] * len(rows),
        ]
        columns = [*meta, *([row.get(field.name) for row in rows] for field in data)]
        plain = pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, with_meta(data), strict=True)],
            schema=with_meta(data),
        )
        return pa.RecordBatch.from_arrays(
            [
                plain.column(f.name) if plain.schema.field(f.name).type == f.type else plain.column(f.name).cast(f.type)
                for f in file_schema(data)
            ],
            schema=file_schema(data),
        )

    def _deletes(self, block: Gone, ordering: Sequence[str]) -> Deletes:
        keys = [key for key, _ in block.keys]
        values = [value if isinstance(value, tuple) or value is None else (value,) for _, value in block.keys]
        columns = tuple(
            pa.array([None if value is None else value[n] for value in values], self.schema.field(name).type)
            for n, name in enumerate(ordering)
        )
        return Deletes(pa.array(keys), pa.array([""] * len(keys)), columns, pa.array([one is None for one in values]))
