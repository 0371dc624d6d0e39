"""Builds partitions of the metadata table, and the partitions that they need."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ....storage.base import Storage
from ...result import CREATE_INDEX, ServiceResult
from ..means import Means
from ..preconditions import open_for_service
from .index_names import absent, needed
from .indexing import Indexing


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
    wanted = needed(name, columns, table.config, table.path)
    names = absent(wanted, table.config.metadata_partitions)
    result = ServiceResult(storage.path, CREATE_INDEX, indexes=names, dry=dry_run)
    if not names:
        skipped = f"{name} is in use; to build it anew, call drop_index({name!r}) first"
        return replace(result, skipped=skipped, seconds=time.monotonic() - began)
    if not dry_run:
        result = Indexing(table, means, wanted, columns).carry_out(result)
    return replace(result, seconds=time.monotonic() - began)
