"""hudi-rs as a reader that must agree."""

from __future__ import annotations

import pyarrow as pa
from hudi import HudiTable
from support.places import Place


def read_by_hudi_rs(path: Place) -> pa.Table:
    """Return a snapshot as hudi-rs reads it, meta columns first; None of its rows where it holds none."""
    batches = [pa.record_batch(batch) for batch in HudiTable(str(path)).read()]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def rows_by_hudi_rs(path: Place, *columns: str) -> list[tuple[object, ...]]:
    """Return the table's rows as sorted tuples of the given columns."""
    table = read_by_hudi_rs(path)
    if not table.num_rows:
        return []
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
