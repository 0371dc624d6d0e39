"""Builds partitions of the metadata table from a table's files, and writes their base files aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import TableConfigError
from ....table.metadata.encoding import Records
from ....table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from ....table.metadata.metadata_table import MetadataTable
from ....table.metadata.record_schema import record_schema
from ....table.seen_table import SeenTable
from ....timeline.instants import Instant
from ...following.follower import FileChanges
from ...following.indexed_columns import BOUNDED, IndexedColumns, bounds_definition, columns_of
from ..means import Means
from .built_bounds import BoundsOfTable
from .built_files import CommittedFiles, committed_files, files_records
from .built_index import BuiltBase, BuiltIndex, new_bases


@dataclass(frozen=True, slots=True)
class Built:
    """The base files that were built, and from how many data files.

    Attributes:
        indexed: The columns that ``column_stats`` indexed then; a later write may change them. Empty if no bounds were
            built.
    """

    index: BuiltIndex
    files: int
    indexed: tuple[str, ...]


def build_partitions(
    seen: SeenTable, metadata: MetadataTable, names: Sequence[str], indexing: Instant, means: Means
) -> Built:
    """Build partitions as of the moment at which the table is seen, and write their base files aside.

    Args:
        metadata: The metadata table as it is now.
        indexing: The instant that was requested at that moment.
    """
    files, time = committed_files(seen), indexing.requested_time
    indexed = _indexed(seen, indexing) if set(BOUNDED) & set(names) else None
    bounds = None if indexed is None else BoundsOfTable(seen, files, indexed, means, PARTITION_STATS in names)
    bases: list[BuiltBase] = []
    empty: list[tuple[str, str]] = []
    for name in names:
        made, without = new_bases(seen.storage, time, name, _records(name, files, bounds))
        bases += made
        empty += without
    index = BuiltIndex(metadata, time, tuple(names), tuple(bases), tuple(empty))
    return Built(index, len(files), () if indexed is None else indexed.names)


def _records(name: str, files: CommittedFiles, bounds: BoundsOfTable | None) -> Sequence[Records]:
    if name == FILES or bounds is None:
        return [files_records(files, record_schema())]
    return bounds.file_records() if name == COLUMN_STATS else bounds.partition_records()


def _indexed(seen: SeenTable, indexing: Instant) -> IndexedColumns:
    indexed = columns_of(seen, indexing, FileChanges(), bounds_definition(seen.storage))
    if indexed is None or not indexed.fields:
        raise TableConfigError(
            f"No definition says which columns of the table {seen.table.path} have bounds.",
            "Run drop_index('column_stats'), then create_index again.",
        )
    return indexed
