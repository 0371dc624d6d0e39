"""A small table whose rows tests merge and update without Spark, and the rows that it holds afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi import arrow
from support.merge_rows import NAMES, SCHEMA, START, Values, counts, given, rows


def made(path: Path, **terms: Any) -> arrow.Table:
    terms = {"record_key": "id", "partition_by": "p", "order_by": "ts", **terms}
    table = arrow.Table.create(path, SCHEMA, **({} if "index" in terms else {"buckets": 2}), **terms)
    table.upsert(given(*START))
    return table


__all__ = ["NAMES", "SCHEMA", "START", "Values", "counts", "given", "made", "rows"]
