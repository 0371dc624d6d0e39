"""Rows in the order of their keys, given to tasks so that each sees all rows of some keys."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.operations.locating.global_index import whole_runs
from support.seams import patch_seam


@pytest.mark.parametrize("columns", [1, 2])
@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"))),
    size=st.integers(1, 4),
    chunk=st.integers(1, 6),
)
def test_rows_are_cut_where_their_first_columns_change(
    rows: list[tuple[str, str]], size: int, chunk: int, columns: int
) -> None:
    """However they come, no run is torn, none is lost, and memory holds a chunk and one run."""
    ordered = pa.table({"key": [a for a, _ in sorted(rows)], "path": [b for _, b in sorted(rows)]})
    ordered = ordered.cast(pa.schema([("key", pa.string()), ("path", pa.string())]))
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "rows of a chunk", chunk)
        batches = list(whole_runs(iter(ordered.to_batches(max_chunksize=size)), columns))

    assert [row for some in batches for row in some.to_pylist()] == ordered.to_pylist()
    runs = [{tuple(row.values())[:columns] for row in some.to_pylist()} for some in batches]
    assert sum(map(len, runs)) == len(set().union(*runs))
    longest = max((sum(row[:columns] == one[:columns] for row in rows) for one in rows), default=0)
    assert all(some.num_rows <= chunk + size + longest for some in batches)
