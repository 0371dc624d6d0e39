"""Which partitions of the metadata table an index needs, and which are dropped with it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ....errors import InvalidOptionError, UnsupportedTableError
from ....table.config import TableConfig
from ....table.format import format_of
from ....table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, SECONDARY
from ...following.kept_metadata import KEPT
from ...following.partitions_in_use import written_partitions

_NEEDS: dict[str, tuple[str, ...]] = {
    FILES: (FILES,),
    COLUMN_STATS: (FILES, COLUMN_STATS),
    PARTITION_STATS: (FILES, COLUMN_STATS, PARTITION_STATS),
}


def needed_partitions(name: str, columns: Sequence[str] | None, config: TableConfig, path: str) -> tuple[str, ...]:
    """Return the metadata table's partitions that an index needs, its own included, in the order to build them.

    Args:
        name: The index that the user asks for: files, column_stats or partition_stats.
        columns: The columns that the user wants to be indexed; None if the call named none.
        config: The table's properties, by which the table can have the index or not.
        path: The table's, for the errors.

    Raises:
        InvalidOptionError: pyhudi does not build the index, or the call named columns for an index without columns.
        UnsupportedTableError: The table cannot have the index.
    """
    if name not in KEPT:
        raise InvalidOptionError(
            f"pyhudi does not build {name!r}, which create_index got for the table {path}.",
            "Name files, column_stats or partition_stats. Build other indexes with Apache Hudi.",
        )
    if columns is not None and name == FILES:
        raise InvalidOptionError(
            f"create_index was given columns for 'files' of the table {path}, which lists files and has no columns.",
            "Name column_stats, or give no columns.",
        )
    if not format_of(config).keeps_metadata:
        raise UnsupportedTableError(
            f"The table {path} has version {config.version}, whose metadata table pyhudi does not keep.",
            "Upgrade the table first (HudiTable.upgrade).",
        )
    if name == PARTITION_STATS and not config.partition_fields:
        raise UnsupportedTableError(
            f"The table {path} is not partitioned, so that it has no bounds of partitions.",
            "Name column_stats, the bounds of files.",
        )
    return _NEEDS[name]


def dropped_with(name: str, config: TableConfig, path: str) -> tuple[str, ...]:
    """Return the partitions that are dropped with a partition, itself included, sorted; all in use or being built.

    Raises `InvalidOptionError` if the table has no such partition.
    """
    present = written_partitions(config)
    if name not in present:
        raise InvalidOptionError(
            f"The table {path} has no index {name!r}" + (f"; it has {', '.join(present)}." if present else "."),
            "Name one of these." if present else "There is nothing to drop.",
        )
    return partitions_that_need(name, config)


def partitions_that_need(name: str, config: TableConfig) -> tuple[str, ...]:
    """Return the partitions in use or being built that need a partition, itself included, sorted; none without it."""
    present = written_partitions(config)
    return tuple(other for other in present if name in (FILES, other) or _depends_on(other, name))


def _depends_on(other: str, name: str) -> bool:
    """Return whether a partition cannot be used without the partition `name`."""
    if name == COLUMN_STATS:
        return other == PARTITION_STATS
    return name == RECORD_INDEX and other.startswith(SECONDARY)


def not_in_use(names: Sequence[str], in_use: Collection[str]) -> tuple[str, ...]:
    """Return those of some partitions that are not in use, in their order."""
    return tuple(name for name in names if name not in in_use)
