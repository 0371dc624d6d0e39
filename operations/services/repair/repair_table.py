"""Repair: recovers the properties, rolls dead writes back, and moves orphaned files aside, where an undo finds them.

Each write does the first two, too. Only files whose write never completed are moved: to the folder of removed files. A
repair also deletes the number of buckets of a rescale that Apache Hudi rolled back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from ....errors import one_line
from ....storage.base import Storage
from ....storage.threads import for_each
from ....table.buckets.numbers import delete_bucket_rule, rule_files
from ....table.config import BACKUP_PATH, PROPERTIES_PATH, find_broken_change, recover_config
from ....table.config.property_keys import BUCKET_COUNT
from ....table.table import Table, open_table
from ....timeline.clock import format_time
from ....timeline.instants import Instant
from ....timeline.writers.patience import Patience
from ....timeline.writers.removed import RemovedFiles
from ...checks.check_catalogue import (
    ARCHIVE_FILE_CORRUPT,
    ARCHIVE_FILE_LOST,
    ARCHIVE_MANIFEST,
    NOT_CHECKED,
    ORPHAN,
    ORPHAN_SHOWN,
    PROPERTIES_BACKUP,
    PROPERTIES_UNUSABLE,
    ROLLED_BACK_FILE,
    UNREADABLE,
)
from ...checks.files import check_files
from ...checks.finding import Finding, Findings
from ...checks.pending import kept_by_savepoints
from ...checks.undone_rescales import UndoneRescale, undone_rescales
from ...inspect.validate import STALE_S, read_subject
from ...meeting.concurrency import ROLLBACK
from ...result import ServiceResult
from ...rollback.pending import OtherWriters
from ...transaction.commit_path import exclusive, prepare_for_removed_files
from ...transaction.undone_metadata import prepare_removal
from ..bucket_property import match_property_to_rules
from ..dead_writes import roll_back_dead_writes
from ..means import Means
from ..preconditions import dead_writes, open_for_service, refuse_restoring
from .moves import copy_and_check, move_aside


@dataclass(frozen=True, slots=True)
class UndoneNumbers:
    """The rescales whose numbers are deleted, and the reasons why the numbers of others stay."""

    rescales: tuple[UndoneRescale, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """A sentence for each rescale on what deletes its number."""
        return tuple(
            f"Delete {rescale.file.path}, the number of buckets of the rescale {rescale.file.instant_time}, which was "
            "rolled back."
            if rescale.file.for_java
            else f"Set {BUCKET_COUNT} to the number from before the rescale {rescale.file.instant_time}, which was "
            "rolled back."
            for rescale in self.rescales
        )


def find_undone(table: Table) -> UndoneNumbers:
    """Return the numbers of rescales that were rolled back; a number stays if a later write may have used it.

    Without the rule, readers would look a key up by the number from before, and miss the rows of such a write.
    """
    if not rule_files(table):
        return UndoneNumbers()
    subject = read_subject(Findings(table.storage, STALE_S))
    rescales = () if subject is None else undone_rescales(subject)
    staying = tuple(rescale for rescale in rescales if rescale.file.for_java and rescale.later_writes)
    return UndoneNumbers(
        tuple(rescale for rescale in rescales if rescale not in staying),
        tuple(f"{rescale.file.path} stays: {rescale.what.rstrip('.')}" for rescale in staying),
    )


def delete_undone(table: Table, undone: UndoneNumbers) -> str:
    """Delete the rules, and set the property to match; return what the user has to change in jobs of Apache Hudi."""
    exclusive(table, lambda _: _delete_rules(table, undone))
    return match_property_to_rules(open_table(table.storage))


def _delete_rules(table: Table, undone: UndoneNumbers) -> None:
    """Delete the files with the numbers of rescales that were rolled back; the caller holds the table's lock."""
    for rescale in undone.rescales:
        delete_bucket_rule(table, rescale.file.instant_time)


_ORPHANS = frozenset({ORPHAN, ORPHAN_SHOWN, ROLLED_BACK_FILE})
# With one of these findings, a file of an archived write looks like an orphan.
_HIDES_ORPHANS = frozenset({ARCHIVE_FILE_CORRUPT, ARCHIVE_FILE_LOST, ARCHIVE_MANIFEST, NOT_CHECKED, UNREADABLE})


@dataclass(frozen=True, slots=True)
class FoundOrphans:
    """The files to move, and for other files that look like orphans the reasons why they stay."""

    files: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()


def find_orphans(storage: Storage) -> FoundOrphans:
    """Return the orphans of a table.

    Files of pending writes are no orphans: the files are listed before the timeline, and an instant is on it before its
    first file exists. A file older than the timeline is an orphan only if the archive is whole and reaches further back
    than the file: without the archive, files of archived writes would look like orphans.
    """
    findings = Findings(storage, STALE_S)
    subject = read_subject(findings)
    if subject is None:
        return FoundOrphans(reasons=_sentences_of(findings.gathered))
    check_files(subject)
    orphans = [finding for finding in findings.gathered if finding.check in _ORPHANS]
    unreadable = [finding for finding in findings.gathered if finding.check in _HIDES_ORPHANS]
    if orphans and unreadable:
        why = f"{len(orphans)} files stay that look like orphans, as a part of the table could not be checked"
        return FoundOrphans(reasons=(why, *_sentences_of(unreadable)))
    savepoint_by_path = kept_by_savepoints(subject)
    first_archived = min((instant.requested_time for instant in subject.archived if instant.is_write), default="")
    files, reasons = [], [subject.lost_archive.rstrip(".")] if subject.lost_archive else []
    for finding in sorted(orphans, key=lambda finding: finding.file):
        if finding.file in savepoint_by_path:
            reasons.append(f"{finding.file} stays, as the savepoint {savepoint_by_path[finding.file]} keeps it")
        # Readers take each instant for committed that is older than the timeline.
        elif subject.timeline.is_committed(finding.instant) and not (
            first_archived and first_archived < finding.instant
        ):
            reasons.append(
                f"{finding.file} stays: it is older than all instants of the timeline and of the archive, so it is "
                "unknown whether its write completed"
            )
        else:
            files.append(finding)
    return FoundOrphans(tuple(files), tuple(reasons))


def _sentences_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return what findings say, as parts of a longer sentence."""
    return tuple(finding.what.rstrip(".") for finding in findings)


logger = logging.getLogger("pyhudi")


def repair_table(storage: Storage, means: Means, *, dry_run: bool = False) -> ServiceResult:
    """Recover the properties from their backup, roll dead writes back, and move orphaned files aside.

    If Apache Hudi rolled a rescale back, delete the number of buckets that the rescale set. `steps` of the result has
    each step, `skipped` which files stay and why. Raises `ConcurrentWriteError` while a writer lives, or may live, and
    beside a restore.
    """
    began = time.monotonic()
    table = open_for_service(storage)
    dead = refuse_writers(table, means.patience)
    result = _dry_result(table, dead) if dry_run else _Repair(table, means, dead).run()
    return replace(result, seconds=time.monotonic() - began)


def refuse_writers(table: Table, patience: Patience) -> tuple[Instant, ...]:
    """Return the pending writes of a table, all dead; raises if a writer may live, or a restore is pending."""
    timeline = table.timeline()
    refuse_restoring(ROLLBACK, timeline)
    return tuple(planned.victim for planned in dead_writes(ROLLBACK, OtherWriters(table, patience), timeline, ""))


def _dry_result(table: Table, dead: Sequence[Instant]) -> ServiceResult:
    """Return the result of a dry run: what a repair would move, roll back and delete, and which files would stay.

    `dead` are the pending writes of the table, whose writers all count as dead: a repair rolls them back.
    """
    properties, orphans = _files_of_broken_change(table.storage), find_orphans(table.storage)
    undone = find_undone(table)
    return ServiceResult(
        table.path,
        "repair",
        instants=len(dead),
        moved=(*properties, *(orphan.file for orphan in orphans.files)),
        steps=(
            *_steps_of_properties(properties),
            *_steps_of_rollbacks(dead),
            *undone.steps,
            *map(_step_of_orphan, orphans.files),
        ),
        skipped="; ".join((*undone.reasons, *orphans.reasons)),
        dry=True,
    )


@dataclass(slots=True)
class _Repair:
    """One call of `repair_table`, with what it has done so far; it rolls back the writes ``dead``."""

    table: Table
    means: Means
    dead: Sequence[Instant]
    removed: RemovedFiles | None = None
    moved: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    bytes: int = 0

    def run(self) -> ServiceResult:
        """Recover the properties first, then roll back, then delete numbers, and move orphans last.

        Return what was done. Each step sees the table as the steps before it left the table.
        """
        table, storage, means = self.table, self.table.storage, self.means
        if storage.exists(BACKUP_PATH):
            exclusive(table, lambda _: self._recover_properties())
        rollback_result = roll_back_dead_writes(storage, means.patience)
        self.steps += _steps_of_rollbacks(self.dead)
        numbers = find_undone(table)
        self.steps += numbers.steps
        todo = delete_undone(table, numbers) if numbers.rescales else ""
        orphans = find_orphans(storage)
        if orphans.files:
            prepare_for_removed_files(table)
            prepare_removal(table, [orphan.file for orphan in orphans.files], "repair")
            self._move_aside(orphans.files)
        at = "" if self.removed is None else self.removed.time
        return ServiceResult(
            table.path,
            "repair",
            at,
            instants=rollback_result.instants,
            bytes=self.bytes,
            moved=tuple(self.moved),
            steps=tuple(self.steps),
            skipped="; ".join(filter(None, (rollback_result.skipped, *numbers.reasons, *orphans.reasons))),
            todo="; ".join(
                filter(None, (todo, f"repair --undo {at} puts the files back, for seven days" if at else ""))
            ),
        )

    def _recover_properties(self) -> None:
        """Keep copies of both files of a broken change of the properties, then end that change."""
        storage = self.table.storage
        # Another process may have ended the change before this one had the lock.
        properties = _files_of_broken_change(storage)
        if not properties:
            return
        removed = self._reserve(properties)
        try:
            for path in properties:
                copy_and_check(storage, path, removed.place_of(path), removed.folder)
        except FileNotFoundError:
            # Another process, such as one without the lock, ends the change at this moment.
            removed.forget()
            self.removed = None
            return
        recover_config(storage)
        self.moved += properties
        self.steps += _steps_of_properties(properties)

    def _move_aside(self, orphans: Sequence[Finding]) -> None:
        """Move orphans to the removed files, and note each file that was still there."""
        removed = self._reserve({orphan.file: orphan.check.code for orphan in orphans})
        sizes = for_each(self.table.storage, lambda orphan: move_aside(removed, orphan.file), orphans)
        moved = [(orphan, size) for orphan, size in zip(orphans, sizes, strict=True) if size is not None]
        self.moved += [orphan.file for orphan, _ in moved]
        self.steps += [_step_of_orphan(orphan) for orphan, _ in moved]
        self.bytes += sum(size for _, size in moved)
        logger.warning("table %s: moved %d orphaned files to %s", self.table.path, len(moved), removed.folder)

    def _reserve(self, reasons: Mapping[str, str]) -> RemovedFiles:
        """Note why files are about to be moved; the first note of a call takes the time by which an undo finds them."""
        if self.removed is not None:
            self.removed.add(reasons)
            return self.removed
        # Another repair may have reserved the time: then take the next millisecond.
        for now in count(int(time.time() * 1000)):
            removed = RemovedFiles(self.table.storage, format_time(now, self.table.config.timezone))
            if removed.reserve():
                removed.add(reasons)
                break
        self.removed = removed
        return removed


def _files_of_broken_change(storage: Storage) -> Mapping[str, str]:
    """Return the paths of the files of a change of the properties that broke off, each with its finding's code.

    A repair copies both files, even a whole file: by the copies an undo sees whether the properties changed since.
    """
    broken_change = find_broken_change(storage)
    if broken_change is None:
        return {}
    code = PROPERTIES_BACKUP.code if broken_change.whole else PROPERTIES_UNUSABLE.code
    return {path: code for path in (BACKUP_PATH, PROPERTIES_PATH) if storage.exists(path)}


def _steps_of_properties(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sentence on a broken change of the properties; nothing without such a change."""
    if not properties:
        return ()
    return (f"End the change of {PROPERTIES_PATH} that broke off, by its backup.",)


def _steps_of_rollbacks(dead: Sequence[Instant]) -> tuple[str, ...]:
    """Return a sentence on the rollback of each dead write."""
    return tuple(f"Roll the {victim.action} {victim.requested_time} back, whose writer is dead." for victim in dead)


def _step_of_orphan(orphan: Finding) -> str:
    """Return the sentence on the move of an orphan, with the code of its finding."""
    return one_line(f"Move aside ({orphan.check.code}): {orphan.what}")
