"""The instants of a table that a compaction of its metadata table has merged; others must not be archived.

Until then, the records of an instant count there only if the instant is on the timeline of the table. Source:
``TimelineArchiverV2``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...table.config import load_config
from ...table.metadata.metadata_table import MetadataTable
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from .partitions_in_use import written_partitions


def merged_in_metadata(table: Table, timeline: Timeline, instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """Return the instants that completed before the newest compaction of the metadata table.

    Returns all without a metadata table. Raises `TableConfigError` if the properties of the metadata table are missing.
    """
    # If other software builds a partition meanwhile, it begins with all complete instants.
    may_have = written_partitions(table.config) or any(each.action == "indexing" for each in timeline.instants)
    names = written_partitions(load_config(table.storage)) if table.format.keeps_metadata and may_have else ()
    if not names:
        return tuple(instants)
    last = MetadataTable.with_partitions(table, timeline, names).last_compaction
    return tuple(each for each in instants if last is not None and each.visible_since <= last.requested_time)
