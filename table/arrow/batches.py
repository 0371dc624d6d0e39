"""Record batches joined, so that fixed costs per batch become negligible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from ...errors import DataError

CHUNK_BYTES = 32 << 20
CHUNK_ROWS = 262_144


def rechunk(batches: Iterator[pa.RecordBatch], most: int = CHUNK_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of up to ``most`` bytes; a larger batch stays as it is, and is not copied."""
    waiting: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        # Not nbytes, which looks into offsets: Spark 4.0 sends none for an empty list inside other lists.
        nbytes = batch.get_total_buffer_size()
        if waiting and (size + nbytes > most or rows + batch.num_rows > CHUNK_ROWS):
            yield concat(waiting)
            waiting, size, rows = [], 0, 0
        waiting.append(batch)
        size += nbytes
        rows += batch.num_rows
    if waiting:
        yield concat(waiting)


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return one batch with the rows of all batches, at least one."""
    if len(batches) == 1:
        return batches[0]
    joined = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if len(joined) > 1:
        raise DataError(
            f"{sum(batch.num_rows for batch in batches):,} rows of one file group hold more than 2 GiB of text in one "
            "column, and have to be merged at once.",
            "Use more buckets or partitions, lower hoodie.write.task.max.size, or write fewer versions of one key at "
            "a time.",
        )
    # If no batch has a row, `joined` is empty.
    return joined[0] if joined else batches[0]


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return one batch with the rows of all, and empty the list: only one column at a time is in memory twice."""
    schema = batches[0].schema
    columns = [[batch.column(at) for batch in batches] for at in range(len(schema))]
    batches.clear()
    columns_joined = []
    for field, arrays in zip(schema, columns, strict=True):
        narrow = pa.schema([field])
        columns_joined.append(
            concat([pa.RecordBatch.from_arrays([array], schema=narrow) for array in arrays]).column(0)
        )
        arrays.clear()
    return pa.RecordBatch.from_arrays(columns_joined, schema=schema)


def within(
    batches: Iterable[pa.RecordBatch],
    nbytes: int,
    cost: Callable[[pa.RecordBatch], int] = lambda batch: int(batch.nbytes),
) -> list[pa.RecordBatch] | None:
    """Return all batches if their cost, by default their bytes, is at most ``nbytes``; None as soon as it is more."""
    fitting, size = [], 0
    for batch in batches:
        size += cost(batch)
        if size > nbytes:
            return None
        fitting.append(batch)
    return fitting
