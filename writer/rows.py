"""Incoming rows made ready: keyed, checked, and cut by the file group that each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, NullOrderingError
from ..index.base import Index
from ..table.base_file import RECORD_KEY
from ..table.conform import conform
from ..table.keys import KeyGenerator

IS_DELETED = "_hoodie_is_deleted"
CHUNK_BYTES = 32 << 20
CHUNK_ROWS = 262_144


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One file group as a writer meets it: a bucket of a partition, whether or not it has files yet."""

    partition_path: str
    bucket: int


@dataclass(frozen=True, slots=True)
class RowSpec:
    """What the rows of one write hold.

    Attributes:
        columns: The data columns that are kept of each row, canonical types.
        ordering_field: The column that decides who wins; None for the later row.
        deletes: True where every row is a delete, whatever its ordering value.
    """

    columns: pa.Schema
    ordering_field: str | None
    deletes: bool

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of keyed rows: the record key, then the columns."""
        return pa.schema([pa.field(RECORD_KEY, pa.string(), nullable=False), *self.columns])

    def ordering(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Return the ordering values of keyed rows, None where the later row wins."""
        if self.ordering_field is None or self.deletes:
            return None
        return rows.column(self.ordering_field)

    def deleted(self, rows: pa.RecordBatch) -> np.ndarray:
        """Return which of the keyed rows are deletes."""
        if self.deletes:
            return np.ones(rows.num_rows, dtype=np.bool_)
        if IS_DELETED not in self.columns.names:
            return np.zeros(rows.num_rows, dtype=np.bool_)
        flags = pc.fill_null(rows.column(IS_DELETED), False)
        return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=np.bool_)


class RowReader:
    """Turns Spark's small batches into keyed rows by file group.

    Args:
        spec: What to keep of each row.
        keys: Makes record keys and partition paths.
        index: Says which bucket holds a key.
    """

    def __init__(self, spec: RowSpec, keys: KeyGenerator, index: Index) -> None:
        self._spec = spec
        self._keys = keys
        self._index = index

    def groups(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Group, pa.RecordBatch]]:
        """Yield the rows of each file group, whole chunks of input at a time, in the order they came.

        Raises:
            NullKeyError: A record key is null or empty.
            NullOrderingError: An ordering value is null.
            PartitionValueError: A partition value makes no safe folder.
        """
        for chunk in rechunk(batches):
            yield from self._cut(chunk)

    def _cut(self, chunk: pa.RecordBatch) -> Iterator[tuple[Group, pa.RecordBatch]]:
        record_keys = self._keys.record_keys(chunk)
        paths = self._keys.partition_paths(chunk)
        rows = conform(chunk, self._spec.columns, fill_missing=True)
        rows = pa.RecordBatch.from_arrays([record_keys, *rows.columns], schema=self._spec.schema)
        self._check_ordering(rows)

        names = paths.dictionary.to_pylist()  # O(partitions)
        first_of = {name: code for code, name in reversed(list(enumerate(names)))}
        same_name = np.array([first_of[name] for name in names], dtype=np.int64)
        buckets = self._index.buckets(record_keys).astype(np.int64)
        width = int(buckets.max(initial=0)) + 1
        codes = same_name[paths.indices.to_numpy(zero_copy_only=False)] * width + buckets

        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        ends = np.append(starts[1:], len(ordered))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            code = int(ordered[start])
            yield Group(names[code // width], code % width), rows.take(pa.array(order[start:end]))

    def _check_ordering(self, rows: pa.RecordBatch) -> None:
        ordering = self._spec.ordering(rows)
        if ordering is not None and ordering.null_count:
            key = rows.column(RECORD_KEY).filter(ordering.is_null())[0].as_py()  # one value, for the error
            raise NullOrderingError(
                f"The ordering field {self._spec.ordering_field!r} is null in {ordering.null_count} of "
                f"{rows.num_rows} rows of one batch, the first with the record key {key!r}, so that nobody could say "
                "which row is newer.",
                "Fill the column before writing, or drop those rows.",
            )


def rechunk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches large enough that work per batch and file group does not count."""
    waiting: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(batch)
        size += batch.nbytes
        rows += batch.num_rows
        if size >= CHUNK_BYTES or rows >= CHUNK_ROWS:
            yield concat(waiting)
            waiting, size, rows = [], 0, 0
    if waiting:
        yield concat(waiting)


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return one batch with the rows of all; at least one is given."""
    if len(batches) == 1:
        return batches[0]
    joined = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if len(joined) > 1:
        raise DataError(
            f"{sum(batch.num_rows for batch in batches):,} rows of one file group hold more than 2 GiB of text in one "
            "column, which have to be merged at once.",
            "Use more buckets or partitions, lower hoodie.write.task.max.size, or write fewer versions of one key at "
            "a time.",
        )
    return joined[0]
