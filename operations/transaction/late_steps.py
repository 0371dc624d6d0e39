"""Instants of the metadata table that a stalled process made again after others had archived or dropped them.

Such a compaction would be the newest for readers, or the first, before which all instants count as archived.
"""

from __future__ import annotations

from ...errors import TableConfigError
from ...table.metadata.metadata_table import MetadataTable
from ...table.table import Table
from ...timeline.writers.decisions import Decision
from ..following.before_completion import take_back_steps
from .carried_out import is_newest


def take_back_late_steps(table: Table, decision: Decision) -> None:
    """Delete what a decision made of an instant of the metadata table after that instant was over."""
    if is_newest(table.storage, decision):
        return
    time = decision.instant.requested_time
    try:
        metadata = MetadataTable.with_partitions(table, table.timeline(), ())
    except TableConfigError:
        # The metadata table was dropped.
        is_over = True
    else:
        archived = metadata.timeline.files.archive.instants(time, time)
        is_over = metadata.files_begun() > time or any(each.requested_time == time for each in archived)
    if is_over:
        for first in decision.first:
            take_back_steps(table.storage, first)
