"""Rows of a snapshot as a dataset of pyarrow, for DuckDB and other libraries that push columns and conditions to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from ..errors import InvalidOptionError
from ..reader.row_filter import expression_values, needed_columns, read_where
from .reading import PinnedRows

# The default of pyarrow.
_BATCH_ROWS = 131_072
# Other arguments of a scanner, which say how pyarrow reads files.
_OF_PYARROW = frozenset(
    ("batch_readahead", "fragment_readahead", "fragment_scan_options", "use_threads", "cache_metadata", "memory_pool")
)


@dataclass(frozen=True, slots=True)
class TableScanner:
    """Reads the rows of a dataset, anew at each call, with the methods of ``pyarrow.dataset.Scanner``.

    A scanner of pyarrow would read a gigabyte ahead of what takes the rows.

    Attributes:
        rows: The rows, with the columns to show, or those that ``computed`` needs.
        computed: The columns to show, if they are calculated.
        batch_rows: The greatest number of rows of a batch.
    """

    rows: PinnedRows
    computed: Mapping[str, pc.Expression] | None = None
    batch_rows: int = _BATCH_ROWS

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns that are shown."""
        if self.computed is None:
            return self.rows.schema
        return self._projected(pa.RecordBatch.from_pylist([], self.rows.schema)).schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream that holds a few batches at a time."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for batch in map(self._projected, self.rows.batches()):
            for start in range(0, batch.num_rows, self.batch_rows):
                yield batch.slice(start, self.batch_rows)

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Return so many rows, or all if there are fewer."""
        return TableScanner(self.rows.narrowed(limit=num_rows), self.computed).to_table()

    def take(self, indices: Any) -> pa.Table:
        """Return rows by their places, which differ from read to read unless a single thread reads."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """Return how many rows there are."""
        return sum(batch.num_rows for batch in self.rows.narrowed(()).batches())

    def _projected(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns to show of a batch, calculated if they are expressions."""
        if self.computed is None:
            return rows
        values = [expression_values(expression, rows) for expression in self.computed.values()]
        return pa.RecordBatch.from_arrays(values, list(self.computed))


class TableDataset(ds.UnionDataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a table as of one moment, log files merged, as a dataset that is read as often as wanted.

    Conditions are evaluated by pyarrow, and leave out partitions, buckets, files and row groups without such rows.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: PinnedRows) -> None:
        # A library that reads the dataset without its scanner gets an error, instead of rows of files.
        source = f"{rows.snapshot.storage.path} is read by the scanner of its dataset alone, as to_table() does it"
        nothing = ds.IpcFileFormat().make_fragment(source, fs.LocalFileSystem())
        files = ds.FileSystemDataset([nothing], rows.schema, ds.IpcFileFormat())
        super().__init__(rows.schema, [files])
        self._rows = rows

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = _BATCH_ROWS,
        **options: Any,
    ) -> TableScanner:
        """Return what reads the rows; ``to_table``, ``to_batches`` and the like of the dataset do it by a scanner.

        Args:
            columns: The columns to show, or expressions by the names of their columns; None for all.
            filter: A condition.
            batch_size: The greatest number of rows of a batch.
            options: Other arguments of ``pyarrow.dataset.Dataset.scanner``, which change nothing.

        Returns:
            An object with the methods of ``pyarrow.dataset.Scanner``.

        Raises:
            InvalidOptionError: The condition is about a column that the dataset lacks, or pyarrow has no such argument.
            MissingColumnError: The dataset lacks a column.
        """
        for unknown in sorted(options.keys() - _OF_PYARROW):
            raise InvalidOptionError(
                f"scanner() of the table {self._rows.snapshot.storage.path} has no argument {unknown!r}.",
                "Leave it out; columns, filter and batch_size count.",
            )
        if isinstance(columns, Mapping):
            empty = self.schema.empty_table()
            needed = frozenset().union(*(needed_columns(expression, empty) for expression in columns.values()))
            rows = self._narrowed([name for name in self.schema.names if name in needed], filter)
            return TableScanner(rows, dict(columns), batch_size)
        return TableScanner(self._narrowed(columns, filter), None, batch_size)

    def filter(self, expression: pc.Expression) -> TableDataset:
        """Return the rows for which a condition holds, as a dataset.

        Args:
            expression: The condition.

        Returns:
            A dataset as of the same moment.

        Raises:
            InvalidOptionError: The condition is about a column that the dataset lacks.
        """
        return TableDataset(self._narrowed(None, expression))

    def _narrowed(self, columns: Sequence[str] | None, condition: pc.Expression | None) -> PinnedRows:
        """Return some columns of the rows that satisfy a condition, too; None for all."""
        path = self._rows.snapshot.storage.path
        row_filter = None if condition is None else read_where(condition, self.schema, path)
        return self._rows.narrowed(columns, row_filter)
