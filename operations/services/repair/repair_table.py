"""Repair: recovers the properties, rolls dead writes back, and moves orphaned files aside, where an undo finds them.

Each write does the first two, too. Only files whose write never completed are moved. A repair also deletes the number
of buckets of a rescale that Apache Hudi rolled back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from ....errors import one_line
from ....storage.base import Storage
from ....storage.parallel import for_each
from ....table.config import BACKUP_PATH, PROPERTIES_PATH, find_broken_change, recover_config
from ....table.table import Table
from ....timeline.clock import format_time
from ....timeline.instants import Instant
from ....timeline.writers.patience import Patience
from ....timeline.writers.removed import RemovedFiles
from ...checks.check_catalogue import PROPERTIES_BACKUP, PROPERTIES_UNUSABLE
from ...checks.finding import Finding
from ...result import ServiceResult
from ...rollback.pending import OtherWriters
from ...transaction.commit_path import exclusive, prepare_for_removed_files
from ...transaction.concurrency import ROLLBACK
from ...transaction.undone_metadata import prepare_removal
from ..dead_writes import roll_back_dead_writes
from ..means import Means
from ..preconditions import dead_writes, open_for_service, refuse_restoring
from .moves import copy_and_check, move_aside
from .orphans import find_orphans
from .undone_numbers import delete_undone, find_undone

logger = logging.getLogger("pyhudi")


def repair_table(storage: Storage, means: Means, *, dry_run: bool = False) -> ServiceResult:
    """Recover the properties from their backup, roll dead writes back, and move orphaned files aside.

    If Apache Hudi rolled a rescale back, delete the number of buckets that it left behind. `steps` of the result has
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
    properties, orphans = _properties(table.storage), find_orphans(table.storage)
    undone = find_undone(table)
    return ServiceResult(
        table.path,
        "repair",
        instants=len(dead),
        moved=(*properties, *(orphan.file for orphan in orphans.files)),
        steps=(
            *_steps_of_properties(properties),
            *_rollbacks(dead),
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
        table, storage, means = self.table, self.table.storage, self.means
        properties = _properties(storage)
        if properties:
            exclusive(table, lambda _: self._recover_properties(properties))
        undone = roll_back_dead_writes(storage, means.patience)
        self.steps += _rollbacks(self.dead)
        numbers = find_undone(table)
        self.steps += numbers.steps
        todo = delete_undone(table, numbers) if numbers.rescales else ""
        orphans = find_orphans(storage)
        if orphans.files:
            prepare_for_removed_files(table)
            prepare_removal(table, [orphan.file for orphan in orphans.files], "repair")
            self._move(orphans.files)
        at = "" if self.removed is None else self.removed.time
        return ServiceResult(
            table.path,
            "repair",
            at,
            instants=undone.instants,
            bytes=self.bytes,
            moved=tuple(self.moved),
            steps=tuple(self.steps),
            skipped="; ".join(filter(None, (undone.skipped, *numbers.reasons, *orphans.reasons))),
            todo="; ".join(
                filter(None, (todo, f"repair --undo {at} puts the files back, for seven days" if at else ""))
            ),
        )

    def _recover_properties(self, properties: Mapping[str, str]) -> None:
        storage, removed = self.table.storage, self._reserve(properties)
        for path in properties:
            copy_and_check(storage, path, removed.place_of(path), removed.folder)
        recover_config(storage)
        self.moved += properties
        self.steps += _steps_of_properties(properties)

    def _move(self, orphans: Sequence[Finding]) -> None:
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
        for now in count(int(time.time() * 1000)):
            removed = RemovedFiles(self.table.storage, format_time(now, self.table.config.timezone))
            if removed.reserve():
                removed.add(reasons)
                break
        self.removed = removed
        return removed


def _properties(storage: Storage) -> Mapping[str, str]:
    """Return the files of a change of the properties that broke off, each with the code of its finding.

    A repair copies both files, even a whole file: by the copies an undo sees whether the properties changed since.
    """
    broken = find_broken_change(storage)
    if broken is None:
        return {}
    code = PROPERTIES_BACKUP.code if broken.whole else PROPERTIES_UNUSABLE.code
    return {path: code for path in (BACKUP_PATH, PROPERTIES_PATH) if storage.exists(path)}


def _steps_of_properties(properties: Mapping[str, str]) -> tuple[str, ...]:
    if not properties:
        return ()
    return (f"End the change of {PROPERTIES_PATH} that broke off, by its backup.",)


def _rollbacks(dead: Sequence[Instant]) -> tuple[str, ...]:
    return tuple(f"Roll the {victim.action} {victim.requested_time} back, whose writer is dead." for victim in dead)


def _step_of_orphan(orphan: Finding) -> str:
    return one_line(f"Move aside ({orphan.check.code}): {orphan.what}")
