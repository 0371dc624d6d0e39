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
        first_word: The column with the first word of the rows' positions on the curve.
        lower: How many lower bits of that word tell positions within a cell.
    """

    first_word: str
    lower: int
    _last: int = -1

    def ends(self, batch: pa.RecordBatch) -> Ends:
        """Return the positions in a batch of rows, not empty, at which a cell begins."""
        cells = (batch.column(self.first_word).to_numpy() >> np.uint64(self.lower)).astype(np.int64)
        begin = np.flatnonzero(np.diff(cells, prepend=self._last))
        self._last = int(cells[-1])
        return begin


def cut_parts(
    batches: Iterable[pa.RecordBatch], rows: int, count: int, cells: CellsOfCurve | None
) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of batches in parts; ``rows`` is the number of all rows.

    Without ``cells`` there are ``count`` parts, which differ by one row at most. With them there are about as many, and
    a part ends at the end of a cell if a cell ends within half a part of where the part would end otherwise.
    """
    count = max(min(count, rows), 1)
    share, part, number, begun, rows_before = rows // count, [], 1, 0, 0
    for batch in batches:
        ends = None if cells is None or not batch.num_rows else cells.ends(batch) + rows_before
        start = 0
        while start < batch.num_rows:
            if ends is None:
                cut = rows * number // count
            elif rows - begun <= share + share // 2:
                cut = rows
            else:
                later_ends = ends[ends > begun]
                cut = _end_of_cell(
                    begun + share, later_ends, rows_before + start, rows_before + batch.num_rows, share // 2
                )
            cut_rows = batch.slice(start, cut - rows_before - start)
            start += cut_rows.num_rows
            part.append(cut_rows)
            if rows_before + start == cut:
                yield part
                part, number, begun = [], number + 1, cut
        rows_before += batch.num_rows


def _end_of_cell(wanted: int, ends: Ends, after: int, known_until: int, slack: int) -> int:
    """Return the row before which a part ends: the end of a cell near the wanted row, or that row, or a later row.

    Ends of cells are known up to the row ``known_until``; a part with the rows before ``after`` ends there or later.
    """
    near = ends[(ends >= after) & (np.abs(ends - wanted) <= slack)]
    if len(near):
        return int(near[np.argmin(np.abs(near - wanted))])
    # Among the rows that come next a cell may end, as long as there is slack.
    return wanted if after < wanted and wanted + slack <= known_until else wanted + slack
