"""The rows that a user gives, as batches that a write may read once, or again for each attempt."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

import pyarrow as pa

from ..errors import DuplicateColumnError, InvalidOptionError
from ..methods.pandas_rows import is_pandas, table_of_pandas
from ..storage import open_storage
from ..storage.base import Storage
from ..table.arrow.spill import SpillReader, SpillWriter
from ..table.files.output import MIB

# Rows that can be read only once wait in memory up to so many bytes, and beyond that on disk.
_IN_MEMORY = 64 * MIB
_TODO = (
    "Give an Arrow table, a DataFrame of Polars or pandas, a relation of DuckDB, a dataset of pyarrow, or an iterator "
    "of record batches."
)


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows as a user gives them.

    Attributes:
        schema: Their columns; None for an iterator without a batch, which has no rows of any columns.
        open: Returns the batches, from the first row on.
        nbytes: The bytes of all rows; None if that is not known before they came.
        once: Whether a second call of ``open`` does not return all rows.
    """

    schema: pa.Schema | None
    open: Callable[[], Iterator[pa.RecordBatch]]
    nbytes: int | None = None
    once: bool = False

    def select(self, columns: list[str]) -> GivenRows:
        """Return some of the columns; raises `DuplicateColumnError` if the rows have one of them twice."""
        if self.schema is None:
            return self
        twice = next((name for name in columns if len(self.schema.get_all_field_indices(name)) > 1), None)
        if twice is not None:
            raise DuplicateColumnError(f"The rows have the column {twice!r} twice.", "Rename or drop one of the two.")
        schema = pa.schema([self.schema.field(name) for name in columns])
        open_rows = self.open
        return replace(self, schema=schema, open=lambda: (batch.select(columns) for batch in open_rows()))


class SourceFailedError(Exception):
    """The source of a write's rows raised ``error``, which says nothing of the table that is written.

    A write would take some errors for conflicts with other writers of its own table, and run again.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__("the source of the rows failed")
        self.error = error


def from_source(open_rows: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Open a source and yield its batches; an error of the source becomes a `SourceFailedError`."""
    batches: Iterator[pa.RecordBatch] | None = None
    while True:
        try:
            batches = open_rows() if batches is None else batches
            batch = next(batches, None)
        except Exception as error:
            raise SourceFailedError(error) from error
        if batch is None:
            return
        yield batch


def given_rows(rows: Any) -> GivenRows:
    """Return a user's rows: data of pyarrow, pandas, Polars or another library of Arrow, or batches of rows.

    Raises `InvalidOptionError` for any other object, and for pandas as `table_of_pandas` does.
    """
    if isinstance(rows, pa.RecordBatch):
        return _in_memory(pa.Table.from_batches([rows]))
    if isinstance(rows, pa.Table):
        return _in_memory(rows)
    if is_pandas(rows):
        return _in_memory(table_of_pandas(rows))
    # A dataset of pyarrow, which opens its rows anew each time.
    if hasattr(rows, "scanner") and hasattr(rows, "to_batches"):
        return GivenRows(rows.schema, lambda: iter(rows.to_batches()))
    if isinstance(rows, pa.RecordBatchReader):
        return GivenRows(rows.schema, lambda: iter(rows), once=True)
    if hasattr(rows, "__arrow_c_stream__"):
        return _of_stream(rows)
    if isinstance(rows, (list, tuple)) and rows and all(isinstance(batch, pa.RecordBatch) for batch in rows):
        return _in_memory(pa.Table.from_batches(map(_batch_check(rows[0].schema), rows)))
    if isinstance(rows, Iterator):
        return _of_iterator(rows)
    collect = " Collect a lazy frame first." if hasattr(rows, "collect") else ""
    raise InvalidOptionError(f"Rows were given as a {type(rows).__name__}.", f"{_TODO}{collect}")


def _of_stream(rows: Any) -> GivenRows:
    """Return the rows of an object of another library that gives them as a stream of Arrow."""
    try:
        # A DataFrame of Polars lies in memory. Its module's name tells it, so that Polars needs no import here.
        if type(rows).__module__.partition(".")[0] == "polars":
            return _in_memory(pa.table(rows))
        reader = pa.RecordBatchReader.from_stream(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        # A stream of values without columns, such as a Series.
        raise InvalidOptionError(f"Rows were given as a {type(rows).__name__}.", _TODO) from error
    return GivenRows(reader.schema, lambda: iter(reader), once=True)


def _in_memory(table: pa.Table) -> GivenRows:
    return GivenRows(table.schema, lambda: iter(table.to_batches()), int(table.nbytes))


def _of_iterator(rows: Iterator[Any]) -> GivenRows:
    """Return the batches of an iterator, which can be read once; the first tells the columns."""
    first_batch = next(rows, None)
    if first_batch is None:
        return GivenRows(None, lambda: iter(()))
    if not isinstance(first_batch, pa.RecordBatch):
        raise InvalidOptionError(f"Rows were given as an iterator of {type(first_batch).__name__}.", _TODO)
    return GivenRows(
        first_batch.schema, lambda: chain([first_batch], map(_batch_check(first_batch.schema), rows)), once=True
    )


def _batch_check(schema: pa.Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function that returns a batch of these columns, and refuses any other."""

    def check_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch; raises `InvalidOptionError` if it is none, or has other columns than the first."""
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidOptionError(
                f"An iterator of rows gave a {type(batch).__name__} after its first batch.",
                "Give an iterator of pyarrow.RecordBatch.",
            )
        if batch.schema != schema:
            raise InvalidOptionError(
                f"A batch of the rows has the columns {_columns_text(batch.schema)}, and the first batch had "
                f"{_columns_text(schema)}.",
                "Give all batches the same columns and types, in the same order.",
            )
        return batch

    return check_batch


def _columns_text(schema: pa.Schema) -> str:
    """Return the names of columns with their types, for an error."""
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


@dataclass
class RowsComingOnce:
    """Rows that can be read only once, kept until the end of a write for further attempts.

    An attempt may end before it has read all rows. The next attempt gets the kept rows first, and then the rest. Rows
    that failed to come fail again in each attempt.
    """

    rows: Iterator[pa.RecordBatch]
    _memory: list[pa.RecordBatch] = field(default_factory=list)
    _nbytes: int = 0
    _spills: list[SpillReader] = field(default_factory=list)
    _closing: ExitStack = field(default_factory=ExitStack)
    _local: Storage | None = None
    _numbers: Iterator[int] = field(default_factory=count)
    _failure: Exception | None = None

    def __enter__(self) -> RowsComingOnce:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def open(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows from the first on."""
        for spill in self._spills.copy():
            for piece in spill.pieces:
                yield from spill.batches(piece)
        yield from self._memory.copy()
        while (batch := self._next()) is not None:
            self._keep(batch)
            yield batch

    def _next(self) -> pa.RecordBatch | None:
        """Return the next batch, None behind the last; raises the error with which the rows failed to come."""
        if self._failure is not None:
            raise self._failure
        try:
            return next(self.rows, None)
        except Exception as error:
            self._failure = error
            raise

    def _keep(self, batch: pa.RecordBatch) -> None:
        """Keep a batch in memory, and move what is there to disk once it has too many bytes."""
        self._memory.append(batch)
        self._nbytes += batch.nbytes
        if self._nbytes <= _IN_MEMORY:
            return
        if self._local is None:
            folder = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="pyhudi-"))
            self._local = open_storage(folder, durable=False)
        writer = SpillWriter(self._local, f"rows.{next(self._numbers)}.spill", "")
        writer.append({0: self._memory})
        self._spills.append(SpillReader(self._local, writer.publish().path))
        self._memory, self._nbytes = [], 0


def first_bytes(batches: Iterable[pa.RecordBatch], most: int) -> tuple[Iterator[pa.RecordBatch], bool]:
    """Return an iterator of all batches, and whether they have at most ``most`` bytes; it reads few more than these."""
    source, waiting, size = iter(batches), [], 0
    for batch in source:
        waiting.append(batch)
        size += batch.nbytes
        if size > most:
            return chain(waiting, source), False
    return iter(waiting), True
