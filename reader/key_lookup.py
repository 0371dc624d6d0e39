"""Which base files and row groups may hold the record keys that a query looks for, by footers alone.

A footer tells the least and the greatest key, and often has a bloom filter of all keys; the statistics of a row group
tell the bounds of its keys. A file is left out only where one of them says that it holds none of the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import TableConfigError, UnsupportedTableError
from ..table.arrow.arrays import span_of
from ..table.arrow.string_order import in_order
from ..table.config import TableConfig
from ..table.files.key_footers import KeyFooter
from ..table.schema.columns import RECORD_KEY
from .predicates import Predicate, Span
from .pruning import wanted_keys
from .statistics import Columns, matching_row_groups

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Search:
    """What a query looks for in base files.

    Attributes:
        predicates: Conjuncts.
        schema: The table's columns, canonical, meta columns among them.
        keys: Every record key that rows which satisfy the predicates have, in the order of their bytes; None where they
            may have any.
    """

    predicates: tuple[Predicate, ...]
    schema: pa.Schema
    keys: pa.StringArray | None = None

    @classmethod
    def of(cls, predicates: Sequence[Predicate], schema: pa.Schema, config: TableConfig | None) -> Search:
        """Return a search by predicates.

        Args:
            predicates: Conjuncts.
            schema: The table's columns, canonical, meta columns among them.
            config: Says how record keys are made; None where that is not known.
        """
        keys = None
        if config is not None and predicates:
            try:
                keys = wanted_keys(predicates, config, schema)
            except (UnsupportedTableError, TableConfigError):
                # A table can be read without the key generator that writes it.
                keys = None
        return cls(tuple(predicates), schema, None if keys is None else in_order(keys))

    def with_more(self, predicates: Sequence[Predicate]) -> Search:
        """Return a search by more predicates, which say nothing of keys."""
        return replace(self, predicates=(*self.predicates, *predicates))

    def may_be_in(self, footer: KeyFooter) -> bool:
        """Return False only where a base file certainly holds none of the keys, by what its footer says of its own."""
        return self.keys is None or len(footer.possible(self.keys)) > 0

    def row_groups(self, parquet: pq.ParquetFile, shown: str) -> list[int]:
        """Return the numbers of a base file's row groups that may hold what is looked for.

        Args:
            parquet: An open file; only its footer is looked at.
            shown: Its path, for the log.
        """
        groups = matching_row_groups(parquet, self.predicates, self.schema)
        if self.keys is None or not groups:
            return groups
        if not self.may_be_in(KeyFooter.of(parquet.metadata.metadata or {}, shown)):
            return []
        columns = Columns.of(parquet)
        return [number for number in groups if _is_among(self.keys, columns.span(number, RECORD_KEY, pa.string()))]


def _is_among(keys: pa.StringArray, span: Span) -> bool:
    """Return False only where no key lies between the bounds of a row group that has a key in every row."""
    if span.nulls:
        return True
    start, end = span_of(keys, span.least, span.greatest)
    return start < end
