"""Builds the indexes that a write asks for, once it is complete, if the table lacks them."""

from __future__ import annotations

from ....errors import ConcurrentWriteError
from ....storage.base import Storage
from ....table.config import load_config
from ....table.format import format_of
from ....table.metadata.kinds import PARTITION_STATS
from ....table.table import open_table
from ...following.partitions_in_use import being_built
from ...result import ServiceResult
from ...service_settings import IndexSettings
from ..means import Means
from .create_index import create_index
from .pending_indexings import dead_indexings


def create_indexes(storage: Storage, settings: IndexSettings, means: Means) -> ServiceResult | None:
    """Build the indexes that a table lacks; None if it lacks none, or another process is building them."""
    config = load_config(storage)
    if not format_of(config).keeps_metadata:
        return None
    wanted = [name for name in settings.names if name != PARTITION_STATS or config.partition_fields]
    lacks = [name for name in wanted if name not in config.metadata_partitions]
    if not lacks or ({*lacks} & {*being_built(config)} and _is_built(storage, means)):
        return None
    # The last index needs all that come before it.
    return create_index(storage, wanted[-1], means, columns=settings.columns)


def _is_built(storage: Storage, means: Means) -> bool:
    """Return whether another process, which does not seem dead, is building an index."""
    table = open_table(storage)
    try:
        dead_indexings(table, table.timeline(), means.patience)
    except ConcurrentWriteError:
        return True
    return False
