"""Rows cut into parts of about the same size, each a row group of a sorted file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Ends = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class CellsOfCurve:
    """Finds where rows that lie along a curve enter another cell; sees them in their order, batch by batch.

    Attributes:
        places: The column with the first word of the rows' places.
        lower: How many lower bits of that word tell places within a cell.
    """

    places: str
    lower: int
    _last: int = -1

    def ends(self, batch: pa.RecordBatch) -> Ends:
        """Return the positions in a batch of rows, not empty, at which a cell begins."""
        cells = (batch.column(self.places).to_numpy() >> np.uint64(self.lower)).astype(np.int64)
        begin = np.flatnonzero(np.diff(cells, prepend=self._last))
        self._last = int(cells[-1])
        return begin


def cut_parts(
    batches: Iterable[pa.RecordBatch], rows: int, count: int, cells: CellsOfCurve | None
) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of batches, of which there are so many, in parts.

    Without ``cells`` there are ``count`` parts, which differ by one row at most. With them there are about as many, and
    a part ends at the end of a cell if there is one within half a part of where it would end otherwise.
    """
    count = max(min(count, rows), 1)
    share, part, number, begun, done = rows // count, [], 1, 0, 0
    for batch in batches:
        ends = None if cells is None or not batch.num_rows else cells.ends(batch) + done
        start = 0
        while start < batch.num_rows:
            if ends is None:
                cut = rows * number // count
            elif rows - begun <= share + share // 2:
                cut = rows
            else:
                there = ends[ends > begun]
                cut = _end_of_cell(begun + share, there, done + start, done + batch.num_rows, share // 2)
            piece = batch.slice(start, cut - done - start)
            start += piece.num_rows
            part.append(piece)
            if done + start == cut:
                yield part
                part, number, begun = [], number + 1, cut
        done += batch.num_rows


def _end_of_cell(wanted: int, ends: Ends, after: int, known: int, slack: int) -> int:
    """Return the row before which a part ends: the end of a cell near the wanted row, or that row, or a later row.

    The ends of cells are known up to the row ``known``; a part that has the rows before ``after`` ends there or later.
    """
    near = ends[(ends >= after) & (np.abs(ends - wanted) <= slack)]
    if len(near):
        return int(near[np.argmin(np.abs(near - wanted))])
    # Among the rows that come next a cell may end, as long as there is slack.
    return wanted if after < wanted and wanted + slack <= known else wanted + slack
