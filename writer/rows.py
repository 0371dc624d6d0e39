"""Incoming rows made ready: keyed, checked, and cut by the file group that each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, NullOrderingError
from ..table.arrow.arrays import Mask, mask
from ..table.files.base_file import RECORD_KEY
from ..table.merging.deletes import IS_DELETED, DeleteMarker, deleted
from ..table.merging.winners import Positions
from ..table.schema.columns import POSITION
from ..table.schema.conform import conform
from .routes import Router

CHUNK_BYTES = 32 << 20
CHUNK_ROWS = 262_144


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One file group as a writer meets it: its number within a partition, whether or not it has files yet.

    The number is the bucket; or, where keys are generated, that of the task that opens the group, or the group's place
    among those that the partition has.
    """

    partition_path: str
    bucket: int


@dataclass(frozen=True, slots=True)
class RowSpec:
    """What the rows of one write hold.

    Attributes:
        columns: The data columns that are kept of each row, canonical types, and `POSITION` where rows were moved.
        ordering_fields: The columns that decide who wins, the first one first; none for the later row.
        deletes: True where every row is a delete, whatever its ordering values.
        marker: The value of a column by which rows are deletes, beside the flag ``_hoodie_is_deleted``.
    """

    columns: pa.Schema
    ordering_fields: tuple[str, ...]
    deletes: bool
    marker: DeleteMarker | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of keyed rows: the record key, then the columns."""
        return pa.schema([pa.field(RECORD_KEY, pa.string(), nullable=False), *self.columns])

    @property
    def deciding(self) -> list[str]:
        """The columns by which rows are held against one another: the record key, the judges, and where rows stood."""
        names = {*self.judges.names, POSITION}
        return [RECORD_KEY, *(name for name in self.columns.names if name in names)]

    @property
    def judges(self) -> pa.Schema:
        """The columns by which rows are judged: the ordering fields, the flag and the marker's, all nullable."""
        names = {*self.ordering_fields, IS_DELETED, *([self.marker.field] if self.marker else [])}
        return pa.schema([field.with_nullable(True) for field in self.columns if field.name in names])

    def ordering(self, rows: pa.RecordBatch) -> tuple[pa.Array, ...]:
        """Return the values of each ordering field; none where the later row wins."""
        return () if self.deletes else tuple(rows.column(name) for name in self.ordering_fields)

    def stood(self, rows: pa.RecordBatch) -> Positions | None:
        """Return where the rows stood before they were moved; None where they stand in their order."""
        return rows.column(POSITION).to_numpy() if POSITION in self.columns.names else None

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows are deletes."""
        return np.ones(rows.num_rows, dtype=np.bool_) if self.deletes else deleted(rows, self.marker)

    def unordered(self, rows: pa.RecordBatch, deletes: Mask) -> Mask | None:
        """Return which of the rows are deletes without an ordering value, which win against all before them.

        Apache Hudi's stand-in for a missing ordering value is the ``Integer`` 0, and it takes a 0 in a single ordering
        field of type int for it (``BufferedRecord.isCommitTimeOrderingDelete``).

        Args:
            rows: Rows with the ordering fields.
            deletes: Which of them are deletes.
        """
        ordering = self.ordering(rows)
        if len(ordering) != 1 or not pa.types.is_int32(ordering[0].type) or not deletes.any():
            return None
        return mask(pc.equal(ordering[0], 0)) & deletes


class RowReader:
    """Turns Spark's small batches into keyed rows by file group.

    Args:
        spec: What to keep of each row.
        router: Makes keys of rows, and says where they belong.
    """

    def __init__(self, spec: RowSpec, router: Router) -> None:
        self._spec = spec
        self._router = router

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
        routes = self._router.route(chunk)
        record_keys, paths = routes.record_keys, routes.paths
        live = self._judge(chunk, record_keys)
        rows = conform(chunk, self._spec.columns, fill_missing=True, present=live)
        rows = pa.RecordBatch.from_arrays([record_keys, *rows.columns], schema=self._spec.schema)

        names = paths.dictionary.to_pylist()  # O(partitions)
        first_of = {name: code for code, name in reversed(list(enumerate(names)))}
        same_name = np.array([first_of[name] for name in names], dtype=np.int64)
        width = int(routes.groups.max(initial=0)) + 1
        codes = same_name[paths.indices.to_numpy(zero_copy_only=False)] * width + routes.groups

        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        ends = np.append(starts[1:], len(ordered))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            code = int(ordered[start])
            yield Group(names[code // width], code % width), rows.take(pa.array(order[start:end]))

    def _judge(self, chunk: pa.RecordBatch, record_keys: pa.Array) -> pa.BooleanArray | None:
        """Check the ordering values, and return which rows are live; None for all.

        A delete needs a key, a partition and its ordering values: its other columns may be null where rows' may not.
        """
        judges = conform(chunk, self._spec.judges, fill_missing=True)
        for name, values in zip(self._spec.ordering_fields, self._spec.ordering(judges), strict=False):
            if values.null_count:
                key = record_keys.filter(values.is_null())[0].as_py()  # one value, for the error
                raise NullOrderingError(
                    f"The ordering field {name!r} is null in {values.null_count} of {chunk.num_rows} rows of one "
                    f"batch, the first with the record key {key!r}, so that nobody could say which row is newer.",
                    "Fill the column before writing, or drop those rows.",
                )
        deletes = self._spec.deleted(judges)
        return pa.array(~deletes) if deletes.any() else None


def rechunk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches large enough that work per batch and file group does not count."""
    waiting: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(batch)
        # Not nbytes, which looks into offsets: Spark 4.0 sends none for a list without elements inside of others.
        size += batch.get_total_buffer_size()
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
