"""Batches joined, up to what one Arrow array holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.errors import DataError
from pyhudi.table.arrow.batches import concat


@pytest.mark.slow
def test_more_text_than_one_array_holds_is_refused() -> None:
    """Two rows of one GiB, which share their bytes here."""
    # Made from its buffers, or the bytes would be copied.
    offsets = pa.py_buffer(np.array([0, 1 << 30], np.int32))
    batch = pa.record_batch([pa.StringArray.from_buffers(1, offsets, pa.py_buffer(bytes(1 << 30)))], ["text"])

    with pytest.raises(DataError, match=r"2 rows of one file group hold more than 2 GiB of text .* Use more buckets"):
        concat([batch, batch])


def test_batches_without_a_row_join_to_a_batch_without_a_row() -> None:
    empty = pa.RecordBatch.from_pylist([], pa.schema([("a", pa.string())]))

    assert concat([empty, empty]) == empty
