"""The data files of an instant: for incoming rows, or for rows that a table service rewrites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ...index.bloom import filters_for
from ...storage.base import Storage
from ...table.arrow.spill import SpillWriter
from ...table.config.sort_order import SortOrder
from ...table.files.logs.block_format import LogSettings, safe_format
from ...table.files.names import WriteToken
from ...table.files.output import Output
from ...table.files.slice_rule import every_instant
from ...table.schema.columns import avro_schema
from ...writer.data_files import DataFiles, FileFormat, LogFormat, Publisher
from ...writer.slice_reader import SliceReader
from ..meeting.transaction import Transaction


@dataclass(frozen=True, slots=True)
class FileWork:
    """The data files of one instant: their folders, their format, and the columns of the table after it.

    `order` is the order of one write's base files; the order of the table wins over it. `counts` returns whether the
    blocks of an instant count in the log files that a service rewrites.
    """

    transaction: Transaction
    schema: pa.Schema
    output: Output
    logs: LogSettings = field(default_factory=LogSettings)
    order: SortOrder | None = None
    counts: Callable[[str], bool] = every_instant

    def files(self, token: WriteToken, publisher: Publisher) -> DataFiles:
        """Return the data files that a task makes under its token; `publisher` checks each before it appears."""
        work = self.transaction
        return DataFiles(work.storage, work.instant_time, token, work.aside, publisher)

    def slices(self, sees: Callable[[str], bool], open_spill: Callable[[], tuple[SpillWriter, Storage]]) -> SliceReader:
        """Return the reader of stored rows: of the instants that `sees` accepts.

        `open_spill` opens a file, in a folder of this host, for the rows of a merge that exceed the memory.
        """
        work = self.transaction
        return SliceReader(work.storage, work.config, self.schema, sees, self.output.memory, open_spill)

    def form(self, schema: pa.Schema | None = None) -> FileFormat:
        """Return the format of base files, with the order of rows and the filters; ``schema`` replaces the columns."""
        config, columns = self.transaction.config, self.schema if schema is None else schema
        text = avro_schema(columns, config.name, meta=True)
        table_order = config.sort_order
        order = self.order if table_order is None else table_order.among(columns.names)
        output = replace(self.output, statistics=self.transaction.bounded)
        return FileFormat(columns, text, output, order, filters_for(config, output))

    def log_format(self, *, partial: bool = False) -> LogFormat:
        """Return the format of log files; with ``partial`` for blocks that lack columns of the table."""
        logs = self.logs
        data_format = safe_format(logs.data_format, self.transaction.config, self.schema)
        return LogFormat(data_format, logs.block_bytes, logs.file_bytes, partial)
