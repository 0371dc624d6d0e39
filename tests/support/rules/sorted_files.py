"""Whether the base files that readers see lie in the order of their table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from support.made.sorting import slices
from support.models.curve_model import in_order


def unsorted_files(path: Path) -> list[str]:
    """Return the base files that readers see and whose rows do not lie in the order of the table's properties."""
    order = load_config(open_storage(str(path))).sort_order
    assert order is not None
    unsorted_paths = []
    for file_slice in slices(path):
        if file_slice.base is not None:
            rows = pq.read_table(path / file_slice.base.path).to_pylist()
            if not in_order(rows, order.columns, order.curve):
                unsorted_paths.append(file_slice.base.path)
    return unsorted_paths
