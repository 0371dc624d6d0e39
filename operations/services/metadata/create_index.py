"""Builds partitions of the metadata table, and the partitions that they need."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ....errors import ConcurrentWriteError
from ....storage.base import Storage
from ....table.config import load_config
from ....table.format import format_of
from ....table.metadata.kinds import PARTITION_STATS
from ....table.table import open_table
from ...following.partitions_in_use import being_built
from ...result import CREATE_INDEX, ServiceResult
from ...service_settings import IndexSettings
from ..means import Means
from ..preconditions import open_for_service
from .index_names import needed_partitions, not_in_use
from .indexing import Indexing
from .pending_indexings import dead_indexings


def create_indexes(storage: Storage, settings: IndexSettings, means: Means) -> ServiceResult | None:
    """Build the indexes that a table lacks; None if it lacks none, or another process is building them."""
    config = load_config(storage)
    if not format_of(config).keeps_metadata:
        return None
    # A table without partition columns has no bounds of partitions.
    wanted = [name for name in settings.names if name != PARTITION_STATS or config.partition_fields]
    lacks = [name for name in wanted if name not in config.metadata_partitions]
    if not lacks or ({*lacks} & {*being_built(config)} and _is_being_built(storage, means)):
        return None
    # The last index needs all that come before it.
    return create_index(storage, wanted[-1], means, columns=settings.columns)


def _is_being_built(storage: Storage, means: Means) -> bool:
    """Return whether another process, which does not seem dead, is building an index.

    `dead_indexings` raises for a process that may live, and returns the indexings of dead processes.
    """
    table = open_table(storage)
    try:
        dead_indexings(table, table.timeline(), means.patience)
    except ConcurrentWriteError:
        return True
    return False


def create_index(
    storage: Storage, name: str, means: Means, *, columns: Sequence[str] | None = None, dry_run: bool = False
) -> ServiceResult:
    """Build a partition of the metadata table, and the partitions that it needs and the table lacks.

    Args:
        name: ``files``, ``column_stats`` or ``partition_stats``.
        columns: The columns whose bounds are kept; None for those that Apache Hudi takes by default.
        dry_run: Only return what would be built.

    Raises:
        InvalidOptionError: pyhudi does not build such a partition.
        UnsupportedTableError: The table cannot have the partition.
        ConcurrentWriteError: Another process builds an index of the table.
    """
    began = time.monotonic()
    table = open_for_service(storage)
    wanted = needed_partitions(name, columns, table.config, table.path)
    names = not_in_use(wanted, table.config.metadata_partitions)
    result = ServiceResult(storage.path, CREATE_INDEX, indexes=names, dry=dry_run)
    if not names:
        skipped = f"{name} is in use; to build it anew, call drop_index({name!r}) first"
        return replace(result, skipped=skipped, seconds=time.monotonic() - began)
    if not dry_run:
        result = Indexing(table, means, wanted, columns).carry_out(result)
    return replace(result, seconds=time.monotonic() - began)
