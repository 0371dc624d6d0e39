"""Writes by the options of ``df.write``, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyhudi.operations.result import CommitResult
from pyhudi.options.parsing import parse_options
from support.drive import write


def write_without_spark(table: Path, rows: pa.Table, options: Mapping[str, str]) -> CommitResult:
    """Run one write by the options that ``df.write`` would take, rows in their order, in milliseconds."""
    asked = parse_options(options).to_write_request(str(table), rows.schema, overwrite=False)
    return write(table, rows, operation=asked.operation, table=asked.table, settings=asked.write)
