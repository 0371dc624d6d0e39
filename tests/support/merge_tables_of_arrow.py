"""A small table whose rows are merged and updated without Spark, and what is asked of it afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi import arrow
from support.drive import rows_of
from support.merge_rows import NAMES, SCHEMA, START, Values, counts, given


def made(path: Path, **terms: Any) -> arrow.Table:
    terms = {"record_key": "id", "partition_by": "p", "order_by": "ts", **terms}
    table = arrow.Table.create(path, SCHEMA, **({} if "index" in terms else {"buckets": 2}), **terms)
    table.upsert(given(*START))
    return table


def rows(table: arrow.Table) -> list[Values]:
    return rows_of(table.path, *NAMES)


__all__ = ["NAMES", "SCHEMA", "START", "Values", "counts", "given", "made", "rows"]
