"""hudi-rs as a reader that must agree, and pyhudi as it reads without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from hudi import HudiTable
from pyhudi.options.parsing import parse_options
from pyhudi.reader.scan import RowReader
from pyhudi.reader.snapshot import open_snapshot
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


def read_without_spark(table: Path, options: Mapping[str, str] | None = None) -> pa.Table:
    """Return what pyhudi shows for the options of a query, read as Spark's tasks read it, in milliseconds."""
    asked = parse_options(options or {})
    snapshot = open_snapshot(str(table), query=asked.to_query(), bases_alone=asked.bases_alone)
    batches = [
        batch
        for split in snapshot.plan(snapshot.schema, (), 1 << 27)
        for batch in RowReader(snapshot.storage, snapshot.schema, snapshot.schema, times=snapshot.times).read(split)
    ]
    return pa.Table.from_batches(batches, snapshot.schema)
