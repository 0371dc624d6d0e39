"""The sources in a metadata table that tell which file slices can hold the rows of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...table.config import TableConfig
from ...table.files.file_group import FileSlice
from ...table.metadata.index_definitions import IndexDefinition
from ...table.metadata.kinds import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION, RECORD_INDEX, SECONDARY
from ...table.metadata.trusted import TrustedMetadata
from .answers import SliceSource
from .column_bounds import ColumnStatsSource
from .expression_source import ExpressionIndexSource
from .key_sources import BloomFilterSource, IndexedRows, RecordIndexSource
from .search import Search
from .secondary_source import SecondaryIndexSource


def sources_of(
    metadata: TrustedMetadata, config: TableConfig, search: Search, slices: Sequence[FileSlice], *, shows_newest: bool
) -> Iterator[SliceSource]:
    """Yield the sources that can answer about slices, those that leave fewest first.

    The indexes of keys and expressions describe the present, so queries of other moments do without them.
    """
    is_of_now = shows_newest and metadata.is_of_now
    keys = search.keys
    # A condition on partitions has left slices of other partitions out.
    rows = IndexedRows(metadata, slices, not search.columns & {*config.partition_fields})
    # Buckets have left slices out already, so the remaining slices are not whole partitions.
    has_index = is_of_now and RECORD_INDEX in metadata.names and not config.has_buckets
    if has_index and keys is not None:
        yield RecordIndexSource(rows, keys)
    if has_index:
        yield from _secondary_sources(rows, search)
    if is_of_now:
        yield from _expression_sources(metadata, search)
    if COLUMN_STATS in metadata.names:
        yield ColumnStatsSource(metadata, config, search)
    if is_of_now and keys is not None and BLOOM_FILTERS in metadata.names:
        yield BloomFilterSource(metadata, keys)


def names_rows(metadata: TrustedMetadata, config: TableConfig, search: Search) -> bool:
    """Return whether an index of the whole table may name the rows, which takes slices of all partitions."""
    if RECORD_INDEX not in metadata.names or config.has_buckets or search.columns & {*config.partition_fields}:
        return False
    return search.keys is not None or any(True for _ in _secondary_sources(IndexedRows(metadata, (), True), search))


def _secondary_sources(rows: IndexedRows, search: Search) -> Iterator[SliceSource]:
    """Yield the secondary indexes that are complete, and of a column whose wanted values are known."""
    metadata = rows.trusted
    for definition in _definitions_of_kind(metadata, SECONDARY, search):
        if _is_built(metadata, definition.name):
            source = SecondaryIndexSource.of(rows, definition, search.predicates, search.schema)
            if source is not None:
                yield source


def _expression_sources(metadata: TrustedMetadata, search: Search) -> Iterator[SliceSource]:
    """Yield the indexes of expressions of which a predicate says something."""
    for definition in _definitions_of_kind(metadata, EXPRESSION, search):
        source = ExpressionIndexSource.of(metadata, definition, search.predicates, search.schema)
        if source is not None:
            yield source


def _definitions_of_kind(metadata: TrustedMetadata, kind: str, search: Search) -> list[IndexDefinition]:
    """Return the definitions of a table's indexes of a kind; none if the search has no predicates."""
    names = [name for name in metadata.names if name.startswith(kind)] if search.predicates else []
    return [metadata.definitions[name] for name in names if name in metadata.definitions]


def _is_built(metadata: TrustedMetadata, name: str) -> bool:
    """Return whether nothing shows that a secondary index lacks entries of older rows.

    Apache Hudi calls a second secondary index complete without building it, and only adds entries of later writes (its
    issue 19716).
    """
    is_only = sum(other.startswith(SECONDARY) for other in metadata.definitions) == 1
    has_begun = metadata.ask(name, lambda index: any(group.base is not None for group in index.slices.values()))
    return is_only and has_begun is True
