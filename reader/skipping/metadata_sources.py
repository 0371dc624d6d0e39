"""The sources of a metadata table that can say of a query's file slices which of them can hold its rows."""

from __future__ import annotations

from collections.abc import Iterator

from ...table.config import TableConfig
from ...table.metadata.kinds import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION, RECORD_INDEX, SECONDARY
from ...table.metadata.trusted import TrustedMetadata
from .answers import SliceSource
from .column_bounds import ColumnStatsSource
from .expression_source import ExpressionIndexSource
from .key_sources import BloomFilterSource, RecordIndexSource
from .search import Search
from .secondary_source import SecondaryIndexSource


def sources_of(
    trusted: TrustedMetadata, config: TableConfig, search: Search, *, shows_newest: bool
) -> Iterator[SliceSource]:
    """Yield the sources that can answer, those that leave fewest slices first.

    What is known of keys and of expressions is known of now, so that other moments do without it.
    """
    is_of_now = shows_newest and trusted.is_of_now
    keys = search.keys
    if is_of_now and keys is not None and RECORD_INDEX in trusted.names:
        yield RecordIndexSource(trusted, keys)
    if is_of_now:
        yield from _of_definitions(trusted, search)
    if COLUMN_STATS in trusted.names:
        yield ColumnStatsSource(trusted, config, search)
    if is_of_now and keys is not None and BLOOM_FILTERS in trusted.names:
        yield BloomFilterSource(trusted, keys)


def names_rows(trusted: TrustedMetadata, search: Search) -> bool:
    """Return whether an index can name the rows themselves, which it does for all partitions alone."""
    if RECORD_INDEX not in trusted.names:
        return False
    return search.keys is not None or any(
        isinstance(source, SecondaryIndexSource) for source in _of_definitions(trusted, search)
    )


def _of_definitions(trusted: TrustedMetadata, search: Search) -> Iterator[SliceSource]:
    """Yield secondary indexes, and then indexes of expressions."""
    for kind in (SECONDARY, EXPRESSION) if search.predicates else ():
        for name in trusted.names:
            if not name.startswith(kind) or name not in trusted.definitions:
                continue
            definition = trusted.definitions[name]
            source: SliceSource | None = None
            if kind == EXPRESSION:
                source = ExpressionIndexSource.of(trusted, definition, search.predicates, search.schema)
            elif RECORD_INDEX in trusted.names and _is_built(trusted, name):
                source = SecondaryIndexSource.of(trusted, definition, search.predicates, search.schema)
            if source is not None:
                yield source


def _is_built(trusted: TrustedMetadata, name: str) -> bool:
    """Return whether nothing shows that a secondary index lacks entries of older rows.

    Apache Hudi builds nothing of a second secondary index, says that it is complete, and adds entries of later writes
    alone (its issue 19716).
    """
    is_only = sum(other.startswith(SECONDARY) for other in trusted.definitions) == 1
    has_begun = trusted.ask(name, lambda index: any(group.base is not None for group in index.slices.values()))
    return is_only and has_begun is True
