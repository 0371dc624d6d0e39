"""The follower that keeps the metadata table: each instant writes its changes of data files there before it completes.

An instant T of the table has an instant T of the metadata table: a delta commit with a log file for each file group
with records of T. All of its files are steps of the decision that completes T. They appear after the point of no
return, and before T's completed file; readers count them only with that file. A rollback, a restore and a savepoint
have no such instant: what an undone instant wrote is deleted with it (`undone_metadata.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import OptionConflictError, StorageError, UnsupportedTableError
from ...table.config import TableConfig, load_config
from ...table.config.property_keys import METADATA_INFLIGHT, METADATA_PARTITIONS
from ...table.format import format_of
from ...table.last_writer import last_writer
from ...table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from ...table.metadata.metadata_table import MetadataTable
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers.first_steps import FirstSteps
from ..result import MetadataWritten
from .before_completion import still_replaces
from .changed_records import changed_records
from .damage import DAMAGE, DamagedPartitionError, check_folders, gone_with, reason_of, warning_of
from .follower import FileChanges, Preparation
from .indexed_columns import indexed_columns
from .metadata_commit import MetadataCommit, make_metadata_commit
from .partitions_in_use import being_built, written_partitions
from .retired_metadata import note_out_of_use
from .undone_metadata import INDEXING, take_back_gone

logger = logging.getLogger("pyhudi")

_LISTINGS = 5
# A rollback deletes the log files of an instant of the metadata table at most so long before the instant.
_UNDONE_S = 0.2

KEPT = frozenset({FILES, COLUMN_STATS, PARTITION_STATS})
"""The partitions that pyhudi keeps. If a table has others, `drop_index` must drop them before a write."""

_WITHOUT_RECORDS = frozenset({"rollback", "restore", "savepoint", INDEXING})
OUT_OF_USE: Mapping[str, str | None] = {METADATA_PARTITIONS: "", METADATA_INFLIGHT: ""}


class KeptMetadataTable:
    """Follows the instants of a table of version 8 or 9 whose metadata table is in use or being built."""

    def properties(self, table: Table, config: TableConfig) -> Mapping[str, str | None]:
        return {}

    def follows(self, table: Table) -> bool:
        return table.format.keeps_metadata and bool(written_partitions(table.config))

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        return indexed_columns(table.storage, table.config)

    def prepare(self, seen: SeenTable, instant: Instant, changes: FileChanges) -> Preparation:
        """Prepare the delta commit of an instant, or to take an unreadable metadata table out of use.

        ``seen`` is the table with one listing of its timeline, and ``changes`` what the instant does to data files. An
        instant without records for the metadata table gets a preparation that does nothing. For a delta commit it first
        deletes what writes left pending there that the table no longer has. Raises `UnsupportedTableError` if the
        metadata table has partitions that pyhudi does not keep.
        """
        config = load_config(seen.storage)
        names = written_partitions(config)
        refuse_unsupported_partitions(config, seen.storage.path)
        _log_dropped(seen, names)
        table = Table(seen.storage, config, seen.table.lock)
        if instant.action in _WITHOUT_RECORDS or not names:
            return _NothingWritten(names)
        start_s, tries = time.monotonic(), 0
        while True:
            try:
                metadata = MetadataTable.with_partitions(table, seen.timeline, names)
            except DAMAGE as error:
                note_out_of_use(seen.storage, names)
                return _GoneMetadata(names, warning_of(names, reason_of(error)))
            if take_back_gone(table, metadata):
                # Its timeline and listings have the files that are gone.
                continue
            try:
                commit = _commit_of_sound_partitions(
                    metadata, SeenTable(table, seen.timeline), instant, changes, being_built(config)
                )
                return _PreparedMetadata(names, metadata, commit, time.monotonic() - start_s)
            except StorageError:
                tries += 1
                # A rollback by another process may have deleted a log file after this process listed it.
                time.sleep(_UNDONE_S)
                if tries == _LISTINGS or metadata.timeline.reload().instants == metadata.timeline.instants:
                    raise


def _log_dropped(seen: SeenTable, names: tuple[str, ...]) -> None:
    """Log which partitions went out of use after a write read the table's properties: other engines may drop any."""
    dropped_names = sorted({*written_partitions(seen.table.config)} - {*names})
    if dropped_names:
        logger.info(
            "table %s: %s of its metadata table went out of use meanwhile; the last write is by %s",
            seen.storage.path,
            ", ".join(dropped_names),
            last_writer(seen.timeline) or "unknown software",
        )


def _commit_of_sound_partitions(
    metadata: MetadataTable, seen: SeenTable, instant: Instant, changes: FileChanges, building: tuple[str, ...]
) -> MetadataCommit:
    """Return the delta commit of an instant, made but not published; damaged partitions go out of use with it.

    ``seen`` is the table with one listing of its timeline, and ``changes`` what the instant does to data files.
    ``building`` names the partitions that an indexing builds. Each turn of the loop leaves out the partitions in which
    the turns before found damage.
    """
    gone_names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    while True:
        sound_metadata = (
            replace(metadata, names=tuple(name for name in metadata.names if name not in gone_names))
            if gone_names
            else metadata
        )
        try:
            check_folders(sound_metadata, {*seen.table.config.metadata_partitions} & {*sound_metadata.names})
            changed = changed_records(sound_metadata, seen, instant, changes)
            all_changes = replace(changed, drops=(*gone_names, *changed.drops), warnings=(*warnings, *changed.warnings))
            return make_metadata_commit(sound_metadata, instant, all_changes, building)
        except DamagedPartitionError as error:
            damaged = gone_with(error.name, sound_metadata.names)
            logger.warning("table %s: %s", seen.storage.path, warning_of(damaged, error.reason), exc_info=True)
            note_out_of_use(seen.storage, damaged)
            gone_names, warnings = (*gone_names, *damaged), (*warnings, warning_of(damaged, error.reason))


@dataclass(frozen=True, slots=True)
class _GoneMetadata:
    """The preparation of an instant that takes the unreadable partitions ``names`` of the metadata table out of use."""

    names: tuple[str, ...]
    warning: str
    sets_aside: bool = False

    @property
    def report(self) -> MetadataWritten:
        return MetadataWritten(warnings=(self.warning,))

    def ready_after(self, timeline: Timeline, config: TableConfig) -> str | None:
        return "" if written_partitions(config) == self.names else None

    def steps(self, completed: Instant) -> FirstSteps:
        return FirstSteps((), OUT_OF_USE, self.names)


@dataclass(frozen=True, slots=True)
class _NothingWritten:
    """The preparation of an instant that writes nothing to the partitions ``names`` of the metadata table."""

    names: tuple[str, ...]
    sets_aside: bool = False
    report: MetadataWritten | None = None

    def ready_after(self, timeline: Timeline, config: TableConfig) -> str | None:
        return "" if written_partitions(config) == self.names else None

    def steps(self, completed: Instant) -> FirstSteps:
        return FirstSteps(())


@dataclass(frozen=True, slots=True)
class _PreparedMetadata:
    """The preparation of an instant that writes to the partitions ``names``, by one listing of both timelines."""

    names: tuple[str, ...]
    metadata: MetadataTable
    commit: MetadataCommit
    seconds: float

    @property
    def sets_aside(self) -> bool:
        return self.commit.sets_aside

    @property
    def report(self) -> MetadataWritten:
        return self.commit.report(self.seconds)

    def _definitions_changed(self) -> bool:
        """Return whether the file of index definitions was replaced since this instant prepared to change it."""
        return any(not still_replaces(self.metadata.storage, step) for step in self.commit.definitions)

    def ready_after(self, timeline: Timeline, config: TableConfig) -> str | None:
        """Return the newest time in the metadata table; None if its partitions, definitions or compactions changed.

        The instant must complete after that time, which is empty if there is none; upon None the caller prepares anew.
        ``timeline`` and ``config`` are those of the table at the moment of the decision.
        """
        names = written_partitions(config)
        if names != self.names:
            gone_names = sorted({*self.names} - {*names})
            if gone_names:
                # Another process dropped them, or an engine that keeps other partitions.
                logger.info("table %s: %s went out of use meanwhile", timeline.storage.path, ", ".join(gone_names))
            return None
        if not _indexings(timeline) <= _indexings(self.metadata.of_table):
            # A partition that was dropped and begun anew may have other columns and another schema.
            return None
        current_timeline = self.metadata.timeline.reload()
        if self.commit.is_outdated(self.metadata.timeline, current_timeline) or self._definitions_changed():
            return None
        # The completion time of a log file decides its file slice, and a compaction of the metadata table merges what
        # completed before it, so the instant must complete after all instants there.
        return current_timeline.greatest_time() or ""

    def steps(self, completed: Instant) -> FirstSteps:
        """Return the steps of the delta commit; none but the drop if all of its partitions go out of use."""
        drops = self.commit.drops
        steps = () if {*self.names} <= {*drops} else self.commit.steps(self.metadata.timeline.files, completed)
        return FirstSteps(steps, OUT_OF_USE, drops)


def _indexings(timeline: Timeline) -> frozenset[str]:
    """Return the requested times of the indexings on a timeline."""
    return frozenset([each.requested_time for each in timeline.instants if each.action == INDEXING])


def refuse_disabled_metadata(config: TableConfig, path: str) -> None:
    """Raise `OptionConflictError` if the options of a write forbid a metadata table, and the table has one to keep."""
    names = written_partitions(config)
    if names and format_of(config).keeps_metadata:
        raise OptionConflictError(
            f"The write to {path} has hoodie.metadata.enable=false, and the table has a metadata table "
            f"({', '.join(names)}), which each write keeps.",
            f"Leave the option out; or drop the metadata table first, with HudiTable.drop_index({FILES!r}).",
        )


def refuse_unsupported_partitions(config: TableConfig, path: str) -> None:
    """Raise `UnsupportedTableError` if a table's metadata table has partitions that pyhudi does not keep."""
    unsupported = sorted({*written_partitions(config)} - KEPT)
    if unsupported:
        raise UnsupportedTableError(
            f"The metadata table of {path} holds {', '.join(unsupported)}, which pyhudi does not keep: after a write "
            "that leaves them as they are, readers would miss rows.",
            f"Drop these partitions with HudiTable.drop_index(), such as drop_index({unsupported[0]!r}), or write with "
            "Apache Hudi.",
        )
