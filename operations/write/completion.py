"""The point of no return: a write completes unless another instant changed the same data, or undid the write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ...index.registry import index_for
from ...storage.threads import for_each
from ...table.files.names import FileGroupId
from ...table.files.partitions import metafile_of, write_partition_metafile
from ...table.merging.merger import RowMeeting
from ...table.seen_table import SeenTable
from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ...writer.written_file import WrittenFile
from ..meeting.concurrency import COMPACTION
from ..meeting.conflicts import CheckedInstants, WriteChanges, check_conflicts, met_at
from ..meeting.new_keys import NewKeys
from ..meeting.taken import taken_as_conflicts
from ..planning.plan import WritePlan, buckets_by_partition
from ..planning.table_properties import properties_to_write
from ..streams.checkpoints import find_newest_batch
from ..transaction.life import Made
from ..transaction.outcome import CommitBody, Outcome
from .replacement import Replacement

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata


logger = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class Completion:
    """What a finished write makes part of its table.

    Attributes:
        plan: The write, whose instant is inflight and sealed.
        written: The result for each file group that the write met.
        touched: The partitions of its rows.
        replaced: The replaced file ids by partition path.
        build: Returns the content of its completed file; called once its data files are flushed.
    """

    plan: WritePlan
    written: Sequence[WrittenFile]
    touched: Collection[str]
    replacement: Replacement
    replaced: Mapping[str, Sequence[str]]
    build: Callable[[], CommitMetadata]

    @cached_property
    def partitions(self) -> list[str]:
        """The partitions that have new files."""
        return sorted({file.group.partition_path for file in self.written if file.path})

    @property
    def is_empty(self) -> bool:
        """Whether the table has the same files afterwards."""
        return not self.partitions and not any(self.replaced.values())

    @cached_property
    def body(self) -> CommitBody:
        """The content of the completed file, built once."""
        return CommitBody(self.build(), self.plan.table, self.plan.settings.batch)

    @property
    def made(self) -> Made:
        """The files that `life.finish` flushes and completes, with the calls right before the decision and in it."""
        plan, paths = self.plan, [file.path for file in self.written if file.path]
        folders = [*self.partitions, *([plan.config.timeline_folder] if plan.creates_table else [])]
        return Made(plan.transaction, paths, folders, self._outcome, self._ready)

    def _ready(self) -> None:
        """Reserve space for the content; check for conflicts before the decision if the check reads data files."""
        work = self.plan.transaction
        # The body needs space twice: in the decision, and later in the completed file.
        work.reserve.hold(self.body.size)
        # Read data files before the race, so that each of its rounds looks only at what came since. These rounds find
        # out whether the write is complete already.
        if self._changes_to_check.reads_files:
            self.is_free(work.table.timeline())

    def _outcome(self, timeline: Timeline) -> Outcome | None:
        """Return what the write changes, after a check for conflicts; None if the write is complete.

        Raises `CommitConflictError` if another instant changed the same data or the table's properties since the plan,
        or undid the write.
        """
        if not self.is_free(timeline):
            return None
        properties = properties_to_write(self.plan)
        written = [file for file in self.written if file.path]
        restore = partial(_restore_metafiles, self.plan, self.partitions)
        return Outcome(
            self.body, written, replaced=self._changes_to_check.replaced, properties=properties, restore=restore
        )

    def is_free(self, timeline: Timeline) -> bool:
        """Return whether the write may complete: False if it is complete; raise if another instant keeps it out.

        Another process may have completed it for a stalled writer, and archived it.
        """
        work = self.plan.transaction
        own_instant = timeline.find(work.instant_time)
        if work.table.archive.holds(work.instant_time) if own_instant is None else own_instant.state == State.COMPLETED:
            return False
        batch = self.plan.settings.batch
        completed_time = None if batch is None else find_newest_batch(SeenTable(work.table, timeline), batch)
        if completed_time is not None:
            raise work.conflict(f"A replay of its batch completed meanwhile, as {completed_time}")
        with taken_as_conflicts(work):
            check_conflicts(work, timeline, self._changes_to_check, self._checked_instants)
            self._check_dropped_deletes()
        return True

    def _check_dropped_deletes(self) -> None:
        """Raise if a compaction dropped deletes against which rows of this write had lost."""
        outdone = {file.group for file in self._outdone}
        for group in sorted(outdone & self._checked_instants.compacted):
            raise self.plan.transaction.conflict(
                f"A compaction of the {group.words} completed meanwhile and dropped deletes against which rows of this "
                "write had lost",
                met_at("", COMPACTION, [group]),
            )

    def log_outdone(self) -> None:
        """Log how many new rows the write left out because of deletes, with the key of one of them."""
        outdone_files = self._outdone
        if outdone_files:
            logger.warning(
                "table %s: %s left out %d new rows, whose keys were deleted with greater ordering values, such as %r "
                "in partition %r",
                self.plan.path,
                self.plan.instant_time,
                sum(file.counts.dropped for file in outdone_files),
                outdone_files[0].outdone,
                outdone_files[0].group.partition_path,
            )

    @property
    def _outdone(self) -> list[WrittenFile]:
        """The files that left out new rows because of deletes."""
        return [file for file in self.written if file.outdone]

    @cached_property
    def _checked_instants(self) -> CheckedInstants:
        """The instants with which the write was compared, in this round or an earlier."""
        return CheckedInstants()

    @cached_property
    def _changes_to_check(self) -> WriteChanges:
        """What the write changes, for the checks for conflicts of all rounds."""
        new_keys = _new_keys(self.plan, self.written, self.touched)
        return _changes(self.plan, self.written, self.replaced, self.replacement, new_keys)


def _changes(
    plan: WritePlan,
    written: Sequence[WrittenFile],
    replaced: Mapping[str, Sequence[str]],
    replacement: Replacement,
    new_keys: NewKeys | None,
) -> WriteChanges:
    """Return what the write is about to change, and the rows that decided about it, to compare with other instants.

    Args:
        plan: The write under its instant.
        written: The result for each file group that the write met.
        replaced: The replaced file ids by partition path.
        replacement: Says which partitions the write replaces as a whole.
        new_keys: Where the write put keys that the index did not find; None if it looked up no keys.
    """
    replaced_groups = {FileGroupId(partition, file_id) for partition, ids in replaced.items() for file_id in ids}
    groups = replaced_groups.union(file.group for file in written)
    merged_files = [(file, file.previous) for file in written if file.previous is not None]
    # The slices whose log files the new base files take in; log files take in none.
    slices_by_rewritten = {file.group: previous for file, previous in merged_files if not file.is_log}
    return WriteChanges(
        file_groups=frozenset(groups),
        replaced=frozenset(replaced_groups),
        rewritten=frozenset(slices_by_rewritten),
        bases=[base_or_log for _, previous in merged_files for base_or_log in previous.data_files],
        rival_key=index_for(plan.config).rival_key,
        covers=replacement.covers,
        columns=plan.schema,
        new_keys=new_keys,
        read=plan.settings.origin.read,
        merged_logs=[log for file_slice in slices_by_rewritten.values() for log in file_slice.logs],
        numbers=buckets_by_partition(plan, (file.group.partition_path for file in written)),
    )


def _new_keys(plan: WritePlan, written: Sequence[WrittenFile], touched: Collection[str]) -> NewKeys | None:
    """Return where the write put keys that it had looked up; None for a write that adds rows without a lookup."""
    if not plan.looks_up or (plan.rules.meeting is RowMeeting.ADD and not plan.keeps_keys_unique):
        return None
    files = {file.path: file.rows for file in written if file.path and file.counts.inserts}
    logs: dict[FileGroupId, dict[str, int]] = {}
    for file in written:
        if file.is_log and file.path and file.rows:
            logs.setdefault(file.group, {})[file.path] = file.rows
    # A table that says nothing of its index is searched in all partitions.
    anywhere = plan.lookup.is_global or plan.settings.lookup.unnoted
    return NewKeys(files, anywhere, logs, frozenset(touched))


def _restore_metafiles(plan: WritePlan, partitions: Sequence[str]) -> None:
    """Make the metafiles of partitions again that another writer made, and deleted when it gave up."""
    exist = for_each(plan.storage, plan.storage.exists, [metafile_of(partition) for partition in partitions])
    for partition in (path for path, exists in zip(partitions, exist, strict=True) if not exists):
        write_partition_metafile(plan.storage, partition, plan.instant_time)
