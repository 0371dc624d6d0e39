"""The rows of one new base file as they are written: kept ones as they were, arriving ones as rows of this instant."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..table.files.base_file import BaseFileReader, BaseFileWriter, constant, file_schema
from ..table.files.bloom_filter import BloomSettings
from ..table.schema.columns import FILE_NAME
from .arrivals import Arrivals, encoded_as
from .sort import RowSorter


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How base files of one write look.

    Attributes:
        schema: The table's data columns, canonical types.
        avro_schema: The Avro schema with meta columns, JSON, for the footer.
        compression: Parquet codec.
        row_group_bytes: Arrow bytes of one row group.
        sort_columns: Columns that the rows of a file are sorted by; none for the order in which they come.
        bloom: What kind of bloom filter each file gets; None for none.
        stamped: Whether files say that their rows are where the table's index has them.
    """

    schema: pa.Schema
    avro_schema: str
    compression: str
    row_group_bytes: int
    sort_columns: tuple[str, ...] = ()
    bloom: BloomSettings | None = None
    stamped: bool = True


class BaseOutput:
    """The rows of one new base file, with their meta columns set, sorted where they are to be.

    Args:
        form: How the file looks.
        name: The file's name.
        stream: Where its bytes go.
        dictionaries: Columns that are written as they come encoded.
        arrivals: What is said of rows of this instant; None where there are none.
        sorter: Brings the rows into order; None where they are written as they come.
        previous: The open file whose rows are kept; None for none.
    """

    def __init__(
        self,
        form: FileFormat,
        name: str,
        stream: object,
        dictionaries: frozenset[str],
        *,
        arrivals: Arrivals | None = None,
        sorter: RowSorter | None = None,
        previous: BaseFileReader | None = None,
    ) -> None:
        self._schema = file_schema(form.schema, dictionaries)
        self._name = name
        self._arrivals = arrivals
        self._sorter = sorter
        self.file = BaseFileWriter(
            stream,
            self._schema,
            form.avro_schema,
            compression=form.compression,
            row_group_bytes=form.row_group_bytes,
            bloom=form.bloom,
            stamped=form.stamped,
            # Rows that are sorted are no longer told apart.
            previous=None if sorter is not None else previous,
        )

    def close(self) -> None:
        """Finish the file."""
        if self._sorter is not None:
            for batch in self._sorter.batches():
                self.file.write(batch)
        self.file.close()

    def abandon(self) -> None:
        """Give up what is not finished; the file is no whole one then."""
        if self._sorter is not None:
            self._sorter.discard()
        self.file.abandon()

    def keep(self, batch: pa.RecordBatch) -> None:
        """Copy base rows: all stays as it was, but for the name of the file they are in now."""
        columns = [
            constant(self._name, batch.num_rows)
            if one.name == FILE_NAME
            else encoded_as(batch.column(one.name), one.type)
            for one in self._schema
        ]
        self._add(pa.RecordBatch.from_arrays(columns, schema=self._schema), kept=True)

    def arrive(self, rows: pa.RecordBatch) -> None:
        """Add incoming rows as rows of this instant."""
        said = self._arrivals
        if said is None:
            raise ValueError("no instant is said of which rows could arrive")
        for batch in said.stamped(rows, self._schema, self._name):
            self._add(batch, kept=False)

    def _add(self, batch: pa.RecordBatch, *, kept: bool) -> None:
        if self._sorter is None:
            self.file.write(batch, kept=kept)
        else:
            self._sorter.add(batch)
