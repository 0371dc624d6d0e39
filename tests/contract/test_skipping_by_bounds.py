"""Files and partitions that bounds in metadata tables leave out: never one with a row that a query wants."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.drawn.stated_bounds import check_slices
from support.share import share_of


@settings(max_examples=share_of(60), deadline=None)
@given(st.integers(0, 1 << 32))
def test_no_slice_with_a_wanted_row_is_left_out(seed: int) -> None:
    """Of slices of every type, as Apache Hudi states bounds of base files, log files and partial log files."""
    check_slices(seed)
