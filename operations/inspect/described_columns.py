"""Columns of a query about a table, with a sentence on each; its schema and the page of columns are made from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

TEXT, COUNT = pa.string(), pa.int64()


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """One column; ``text`` says in a sentence what it holds, and when it is null."""

    name: str
    type: pa.DataType
    text: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class DescribedRows:
    """The rows that a query about a table returns; ``text`` says what a row is about, and the order of the rows."""

    name: str
    text: str
    columns: tuple[DescribedColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(each.name, each.type, nullable=each.nullable) for each in self.columns])

    def table(self, rows: Iterable[Sequence[Any]]) -> pa.Table:
        """Return rows, each with its values in the order of the columns, as an Arrow table."""
        values = [*zip(*rows, strict=True)] or [()] * len(self.columns)
        return pa.Table.from_arrays(
            [pa.array(column, each.type) for column, each in zip(values, self.columns, strict=True)], schema=self.schema
        )
