"""Batches joined, up to what one Arrow array holds, and the memory that threads share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.errors import DataError
from pyhudi.table.arrow.batches import concat, rechunk
from pyhudi.table.files.output import Output


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


def test_batches_are_joined_up_to_a_chunk_and_a_large_batch_is_not_copied() -> None:
    small, large = (pa.record_batch({"n": pa.array(range(count))}) for count in (10, 1_000))

    chunks = list(rechunk(iter([small, small, large, small, small.slice(0, 0)]), most=400))

    assert [chunk.num_rows for chunk in chunks] == [20, 1_000, 10]
    assert chunks[1].column(0).buffers()[1].address == large.column(0).buffers()[1].address


def test_threads_share_the_memory_of_a_write() -> None:
    given = Output(memory=1 << 30)

    shares = {threads: given.shared_by(threads) for threads in (1, 2, 5)}

    assert [given.threads(most) for most in (1, 4, 64)] == [1, 4, 5]
    assert Output(memory=1).threads(8) == 1
    for threads, share in shares.items():
        # What waits, and twice the row groups that the threads fill.
        assert share.memory + 2 * threads * share.row_group_bytes < given.memory
    assert shares[1].row_group_bytes == given.row_group_bytes > shares[2].row_group_bytes > shares[5].row_group_bytes
