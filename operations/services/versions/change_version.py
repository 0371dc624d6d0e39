"""Brings a table to another version: finishes pending instants first, and then changes the properties by one decision.

Versions 8 and 9 differ in properties only. From version 6, the call merges log files and copies instants before the
decision, and deletes the old files of the instants after it. If a process dies before the decision, readers see no
change. If it dies later, the next process that decides carries the decision out, and the old files stay until the next
call, without harm. Writes that were planned before the decision fail.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ....errors import ConcurrentWriteError, CorruptInstantError
from ....storage.base import Storage
from ....storage.threads import for_each
from ....table.config import TableConfig, load_config
from ....table.table import Table, open_table
from ....timeline.instants import Instant
from ....timeline.old_layout import OldState
from ....timeline.timeline import Timeline
from ...checks.bodies import read_record
from ...following.kept_metadata import refuse_unsupported_partitions
from ...following.partitions_in_use import changed_names, written_partitions
from ...meeting.concurrency import ROLLBACK
from ...transaction.decide import settle
from ...transaction.without_instant import set_properties
from ...version_change import PropertyChange, VersionResult
from ..means import Means
from ..preconditions import refuse_restoring
from .compact_whole import BegunMeanwhileError, compact_whole, has_unfinished_instants, slices_with_logs
from .steps import VersionStep, spelling_of, step_of, warnings_of
from .timeline_copy import TimelineCopy, remove_old_files
from .unfinished import UnfinishedInstants
from .visible_rows import changed_keys

logger = logging.getLogger("pyhudi")

# If instants begin while others are finished, the call finishes these, too, at most so many times.
_ROUNDS = 20


def change_version(storage: Storage, name: str, to: int, means: Means, *, dry_run: bool = False) -> VersionResult:
    """Bring a table to the version ``to``; ``name`` is upgrade or downgrade, ``dry_run`` returns what would be done.

    Raises `TableVersionError` and `UnsupportedTableError` for tables that cannot be brought to it,
    `ConcurrentWriteError` while a writer or a restore is at work, `CorruptInstantError` if a completed instant does
    not parse, and `CommitConflictError` if another process changes the version meanwhile.
    """
    began = time.monotonic()
    table = open_table(storage)
    step = step_of(table, name, to)
    if not dry_run:
        # A decision whose maker died may be about to change the version.
        settle(table)
        table = open_table(storage)
        step = step_of(table, name, to)
        remove_old_files(table)
    if step is None:
        return VersionResult(table.path, name, to, to, dry=dry_run, seconds=time.monotonic() - began)
    step.refuse(table)
    if not step.copies:
        # Of a table of version 6 each change takes the metadata table out of use, and notes what its record index says.
        refuse_unsupported_partitions(table.config, table.path)
    call = _VersionCall(table, step, means)
    result = call.dry_result() if dry_run else call.run()
    return replace(result, seconds=time.monotonic() - began)


@dataclass(slots=True)
class _VersionCall:
    """One call that takes a step; ``decoded`` has the identities of the completed instants that it has read."""

    table: Table
    step: VersionStep
    means: Means
    decoded: set[str] = field(default_factory=set)

    @property
    def unfinished(self) -> UnfinishedInstants:
        """The pending instants that have to be finished before the step."""
        return UnfinishedInstants(self.table, self.step, self.means)

    def dry_result(self) -> VersionResult:
        """Return what `run` would do, without writing anything."""
        timeline = self.table.timeline()
        self._decode(timeline)
        sentences = [unfinished.sentence for unfinished in self.unfinished.find(timeline)]
        spelling = spelling_of(self.table)
        changes = self.step.properties(self.table, self.table.config, spelling)
        sentences += self._compaction_in_words(timeline)
        return replace(self._result(changes, spelling), unfinished=tuple(sentences), dry=True)

    def run(self) -> VersionResult:
        """Finish pending instants, copy what the step copies, and change the version; return what was done.

        Raises `ConcurrentWriteError` if writers begin again and again, or if other software changed the
        properties.
        """
        table = self.table
        timeline = table.timeline()
        self._decode(timeline)
        # This raises, before anything changes, if an instant cannot be finished.
        self.unfinished.find(timeline)
        spelling = spelling_of(table)
        changes = self.step.properties(table, table.config, spelling)
        # Describe the step before the compactions, after which there are no log files to describe.
        described = self._result(changes, spelling)
        sentences: list[str] = []
        for _ in range(_ROUNDS):
            sentences += self.unfinished.finish()
            try:
                sentences += self._compact()
                copy, state = self._copy(changes)
                set_properties(table, self.step.name, partial(self._changes, spelling, copy, state), state.completed)
            except BegunMeanwhileError:
                continue
            if load_config(table.storage).version != self.step.after:
                raise ConcurrentWriteError(
                    f"Other software changed the properties of the table {table.path} while pyhudi was about to "
                    f"{self.step.name} it.",
                    "Run it again.",
                )
            remove_old_files(open_table(table.storage))
            logger.info("table %s: %s to version %d", table.path, self.step.name, self.step.after)
            return replace(described, unfinished=tuple(sentences))
        raise ConcurrentWriteError(
            f"Writers began {_ROUNDS} times in a row while the {self.step.name} of the table {table.path} was about to "
            "be decided.",
            "Run it again while fewer writers are at work.",
        )

    def _compaction_in_words(self, timeline: Timeline) -> list[str]:
        """Return what a compaction of the whole table would do, as a sentence; nothing if there are no log files."""
        slices = slices_with_logs(timeline) if self.step.compacts(self.table) else ()
        return [f"Merge the log files of {len(slices):,} file slices into base files."] if slices else []

    def _compact(self) -> list[str]:
        """Merge the log files of the whole table if the step needs that, and return what was done."""
        sentences = self._compaction_in_words(self.table.timeline())
        if sentences:
            compact_whole(self.table, self.means, self.step.name)
        return sentences

    def _copy(self, changes: Mapping[str, str | None]) -> tuple[TimelineCopy | None, OldState]:
        """Copy the timeline if the step needs that; return the copy and the state of the timeline before it.

        Without a copy, it returns None and an empty state. Raises `BegunMeanwhileError` if log files have come
        since the compaction.
        """
        if not self.step.copies:
            return None, OldState(b"", b"")
        copy = TimelineCopy.planned(self.table, changes)
        state = copy.state()
        copy.make()
        if self._compaction_in_words(self.table.timeline()):
            # A delta commit of Apache Hudi completed between the compaction and the copies.
            raise BegunMeanwhileError
        return copy, state

    def _changes(
        self, spelling: str | None, copy: TimelineCopy | None, state: OldState, timeline: Timeline, stored: TableConfig
    ) -> Mapping[str, str | None]:
        """Return the changes of the properties for a round of the decision, None to remove one.

        Raise `BegunMeanwhileError` if the timeline changed since it was copied: `state` is that before the `copy`.
        `spelling` is how the table's keys are spelled, None if no property needs to note that.
        """
        refuse_restoring(ROLLBACK, timeline)
        # An instant that began, or reached another state, since the copies would be missing on the new timeline.
        if has_unfinished_instants(timeline) or (
            copy is not None and not (copy.state().whole == state.whole and copy.is_whole())
        ):
            raise BegunMeanwhileError
        self._decode(timeline)
        # The metadata table would keep its old version, so it goes out of use.
        unused = changed_names(stored, drops=written_partitions(stored))
        return {**self.step.properties(self.table, stored, spelling), **unused}

    def _result(self, changes: Mapping[str, str | None], spelling: str | None) -> VersionResult:
        """Return what the step changes, with warnings; the log files are read to count keys that show another row."""
        stored = self.table.config
        after = stored.with_changes(changes)
        warnings, keys = warnings_of(stored, self.step, after, spelling), changed_keys(self.table, after, self.means)
        if self.step.compacts(self.table) and keys != 0:
            warnings += (
                f"The log files are merged by the rules of version {self.step.before}, so that all rows stay what they "
                f"are. Queries of times before the {self.step.name} merge them by those of version {self.step.after}: "
                f"{'some' if keys is None else f'at most {keys:,}'} keys show another row there",
            )
        properties = (PropertyChange(key, stored.properties.get(key), text) for key, text in sorted(changes.items()))
        return VersionResult(
            self.table.path,
            self.step.name,
            self.step.before,
            self.step.after,
            tuple(properties),
            bytes=self._bytes_to_write(changes),
            changed_keys=keys,
            warnings=warnings,
        )

    def _bytes_to_write(self, changes: Mapping[str, str | None]) -> int:
        """Return how many bytes the call copies or merges."""
        copied_bytes = TimelineCopy.planned(self.table, changes).size() if self.step.copies else 0
        merged = slices_with_logs(self.table.timeline()) if self.step.compacts(self.table) else ()
        return copied_bytes + sum(file_slice.size for file_slice in merged)

    def _decode(self, timeline: Timeline) -> None:
        """Read each completed instant, so that the call stops before it carries over an unreadable one."""
        unread_instants = [instant for instant in timeline.completed if instant.identity not in self.decoded]
        try:
            for_each(self.table.storage, lambda instant: _refuse_unreadable(timeline, instant), unread_instants)
            if self.step.copies and not self.decoded:
                TimelineCopy.planned(self.table, {}).check()
        except CorruptInstantError as error:
            raise CorruptInstantError(
                f"The {self.step.name} of the table {self.table.path} stops before it changes anything: {error.what}",
                "Put the file back from a backup, or roll its write back, then call it again; validate() shows more.",
            ) from error
        self.decoded.update(instant.identity for instant in unread_instants)


def _refuse_unreadable(timeline: Timeline, instant: Instant) -> None:
    """Raise `CorruptInstantError` for a completed instant that cannot be read, unless it is archived by now."""
    path = timeline.files.path(instant)
    if not read_record(timeline, instant) and instant.is_write and timeline.storage.exists(path):
        raise CorruptInstantError(f"{path} is empty.", "Restore the file from a backup.")
