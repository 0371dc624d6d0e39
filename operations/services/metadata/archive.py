"""Moves instants of a metadata table into its own archive.

Readers look up the instant of a log block on the timelines of the table and of the metadata table. So an instant of the
metadata table stays as long as the table's timeline has older instants, and as long as a file exists that it wrote.
Then no reader needs the archive.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from ....storage.base import join
from ....table.files.file_group import data_file
from ....table.files.slice_rule import slice_rule
from ....table.metadata.metadata_table import FOLDER
from ....table.table import Table
from ....timeline.archive.lsm_writer import LsmWriter
from ....timeline.instants import Instant, State
from ....timeline.writers.owner import SCRATCH
from ...service_settings import ArchiveSettings
from ...transaction.commit_path import exclusive
from ...transaction.instant_changes import remove_archived
from .slices import MetadataSlices, is_beginning, is_being_undone

logger = logging.getLogger("pyhudi")


def archive_metadata(table: Table, settings: ArchiveSettings) -> int:
    """Move the oldest instants of a metadata table into its archive; return how many instants it moved.

    Several processes may take each step, at once or again.
    """
    slices = MetadataSlices.of(table, table.timeline())
    if slices is None:
        return 0
    instants = _archivable(slices, settings)
    if not instants:
        return 0
    files = slices.timeline.files
    writer = LsmWriter(table.storage, files.layout.archive_folder)

    writer.put(instants, files)
    archived = frozenset(files.archive.instants(instants[0].requested_time, instants[-1].requested_time))
    paths = files.paths()
    archived_files = [paths.get(each.identity, {}) for each in instants if each in archived]
    exclusive(table, lambda lock: remove_archived(lock, archived_files))
    merged = writer.merge(SCRATCH, settings.batch)
    writer.tidy(merged)
    logger.info("table %s: archived %d instants of its metadata table", table.path, len(archived_files))
    return len(archived_files)


def _archivable(slices: MetadataSlices, settings: ArchiveSettings) -> Sequence[Instant]:
    """Return the oldest completed instants that neither timeline and no file needs, in order of requested time.

    The instants are those of the metadata table, whose timeline and files `slices` has, with the timeline of the table
    itself. At least `settings.min_commits` delta commits stay. Before the first compaction nothing is archived.
    """
    timeline, of_table = slices.timeline, slices.metadata.of_table
    last_compaction = slices.metadata.last_compaction
    if last_compaction is None or is_being_undone(of_table):
        return ()
    delta_times = [each.requested_time for each in timeline.completed if each.action == "deltacommit"]
    if len(delta_times) <= settings.min_commits:
        return ()
    obstacles = [
        last_compaction.requested_time,
        delta_times[-settings.min_commits],
        # As in `TimelineUtils.getEarliestInstantForMetadataArchival`. Indexings and restores never leave the timeline.
        *(each.requested_time for each in of_table.instants if each.is_write or each.state != State.COMPLETED),
        *(each.requested_time for each in timeline.pending),
        *_makers_of_files(slices),
    ]
    older_instants = [each for each in timeline.completed if each.requested_time < min(obstacles)]
    last_beginning = max(
        (each.visible_since for each in older_instants if is_beginning(each.requested_time)), default=""
    )
    # An instant that began a partition says which writes the partition's first records cover: keep it while such a
    # write is on the timeline.
    if any(write.visible_since <= last_beginning for write in of_table.writes):
        return ()
    return older_instants


def _makers_of_files(slices: MetadataSlices) -> Iterable[str]:
    """Return the times of the instants that made the data files, without instants that began partitions."""
    storage = slices.metadata.storage
    folders = [name for name in storage.look(FOLDER).folders if not name.startswith(".")]
    data_files = [data_file(info.path, info.size) for name in folders for info in storage.list(join(FOLDER, name))]
    makers = slice_rule(slices.timeline).makers([file for file in data_files if file is not None], slices.timeline)
    return (time for time in makers if not is_beginning(time))
