"""Incoming rows made ready: keyed, checked, and cut by file group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from ..errors import NullOrderingError
from ..storage.threads import in_order
from ..table.arrow.arrays import Mask, mask
from ..table.arrow.batches import CHUNK_BYTES, rechunk
from ..table.merging.row_spec import DeleteOrder, RowSpec
from ..table.schema.columns import POSITION
from ..table.schema.conform import conform
from .routes import Numbers, Route, Router, Routes


class RowCheck(Protocol):
    """Refuses incoming rows that no other check refuses."""

    def check(self, rows: pa.RecordBatch, routes: Routes, deletes: Mask) -> None:
        """Check rows, some of them deletes; raise `DataError` for a bad row."""
        ...

    def finish(self) -> None:
        """Check what `check` left; raise `DataError` for a bad row."""
        ...


@dataclass(frozen=True, slots=True)
class _CutRows:
    """A chunk of rows, cut by file group, and what the reader checks and counts of it in the order of the chunks."""

    rows: pa.RecordBatch
    routes: Routes
    deletes: Mask
    missing: Mapping[str, int]
    parts: Sequence[tuple[Route, pa.RecordBatch]]


class IncomingRowReader:
    """Turns Spark's small batches into keyed rows by file group; `first` is the first row's position.

    Attributes:
        missing: How many values were missing among floats that became whole numbers, by column.
    """

    def __init__(self, spec: RowSpec, router: Router, first: int = 0, check: RowCheck | None = None) -> None:
        self._spec = spec
        self._router = router
        self._next = first
        self._check = check
        self.missing: Counter[str] = Counter()

    def routed(
        self, batches: Iterator[pa.RecordBatch], threads: int = 1, most_bytes: int = CHUNK_BYTES
    ) -> Iterator[tuple[Route, pa.RecordBatch]]:
        """Yield the rows of each file group, whole chunks of input at a time, in the order they came.

        Several threads key and cut a chunk each.
        """
        for cut_rows in in_order(self._cut, self._chunks(batches, most_bytes), threads):
            if self._check is not None:
                self._check.check(cut_rows.rows, cut_rows.routes, cut_rows.deletes)
            self.missing.update(cut_rows.missing)
            yield from cut_rows.parts
        if self._check is not None:
            self._check.finish()

    def _chunks(
        self, batches: Iterator[pa.RecordBatch], most_bytes: int
    ) -> Iterator[tuple[pa.RecordBatch, Routes | None]]:
        """Yield chunks, with their routes if the router has to see them in order."""
        for chunk in rechunk(batches, most_bytes):
            numbered = self._with_positions(chunk)
            yield numbered, None if self._router.any_order else self._router.route(numbered)

    def _with_positions(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with their positions if the write needs these, as it may reorder rows."""
        if POSITION not in self._spec.columns.names or POSITION in chunk.schema.names:
            return chunk
        numbers = pa.array(np.arange(self._next, self._next + chunk.num_rows))
        self._next += chunk.num_rows
        return chunk.append_column(pa.field(POSITION, pa.int64(), nullable=False), numbers)

    def _cut(self, numbered: tuple[pa.RecordBatch, Routes | None]) -> _CutRows:
        """Return a chunk keyed, checked, in the types of the table, and cut by file group.

        ``numbered`` is the chunk with its rows' positions, and its routes. These are None if the router takes chunks in
        any order, so that this thread calls it.
        """
        (chunk, given_routes), missing_values = numbered, Counter[str]()
        routes = self._router.route(chunk) if given_routes is None else given_routes
        record_keys, paths = routes.record_keys, routes.paths
        _, deletes = judged(self._spec, chunk, record_keys)
        # A delete needs a key, a partition and its ordering values. Its other columns may be null, unlike a row's.
        live = pa.array(~deletes) if deletes.any() else None
        rows = conform(
            chunk,
            self._spec.columns,
            fill_missing=True,
            by_value=True,
            present=live,
            keys=record_keys,
            missing=missing_values,
        )
        rows = pa.RecordBatch.from_arrays([record_keys, *rows.columns], schema=self._spec.schema)

        names = paths.dictionary.to_pylist()  # O(partitions)
        # Equal paths get one code: the dictionary of a `PlacedRouter` may have a path twice.
        first_of = {name: code for code, name in reversed(list(enumerate(names)))}
        same_name = np.array([first_of[name] for name in names], dtype=np.int64)
        # Each code stands for a partition and a number within it.
        width = int(routes.groups.max(initial=0)) + 1
        codes = same_name[paths.indices.to_numpy(zero_copy_only=False)] * width + routes.groups

        parts = [(Route(names[code // width], code % width), part) for code, part in cut(rows, codes)]
        return _CutRows(chunk, routes, deletes, missing_values, parts)


def judged(spec: RowSpec, rows: pa.RecordBatch, record_keys: pa.Array) -> tuple[pa.RecordBatch, Mask]:
    """Return the columns that decide between rows, in the types of the table, and which rows are deletes.

    Raises `NullOrderingError` for a row without an ordering value that needs it.
    """
    deciding = conform(rows, spec.judges, fill_missing=True, by_value=True, keys=record_keys)
    deletes = spec.deleted(deciding)
    for name, values in zip(spec.ordering_fields, spec.ordering(deciding), strict=False):
        is_null = mask(values.is_null())
        if spec.order is not DeleteOrder.OWN:
            # Deletes then need no ordering value of their own.
            is_null &= ~deletes
        if is_null.any():
            key = record_keys.filter(pa.array(is_null))[0].as_py()  # one value, for the error
            raise NullOrderingError(
                f"The ordering field {name!r} is null in {np.count_nonzero(is_null)} of {rows.num_rows} rows of one "
                f"batch, the first with the record key {key!r}, so it is unknown which row is newer.",
                "Fill the column before writing, or drop those rows.",
            )
    return deciding, deletes


def cut(rows: pa.RecordBatch, codes: Numbers) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each code in the order in which they came, codes ascending; drop rows of negative codes."""
    if not len(codes):
        return
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    ends = np.append(starts[1:], len(ordered))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        code = int(ordered[start])
        if code >= 0:
            yield code, rows.take(pa.array(order[start:end]))
