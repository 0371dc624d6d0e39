"""Undoes a repair: puts the files back that it moved aside, unless readers or later changes forbid that."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....errors import InvalidOptionError, one_line
from ....storage.base import Storage
from ....table.config import BACKUP_PATH, PROPERTIES_PATH, read_properties
from ....table.files.file_group import data_file
from ....table.table import Table
from ....timeline.timeline import Timeline
from ....timeline.writers.removed import RemovedFiles, removed_times
from ...checks.check_catalogue import ORPHAN_SHOWN
from ...result import ServiceResult
from ...transaction.commit_path import exclusive
from ..means import Means
from ..preconditions import open_for_service
from .moves import may_come_back, put_back
from .repair_table import refuse_writers

_OWN_FOLDER = ".hoodie/"
_PROPERTIES = (BACKUP_PATH, PROPERTIES_PATH)


def undo_repair(storage: Storage, at: str, means: Means, *, dry_run: bool = False) -> ServiceResult:
    """Put the files back that a repair moved aside; ``at`` is the time of its result.

    `skipped` of the result says which files stay aside and why. Raises `InvalidOptionError` if there are no such files,
    and `ConcurrentWriteError` while a writer lives, or may live.
    """
    began = time.monotonic()
    table = open_for_service(storage)
    times = removed_times(storage)
    if at not in times:
        raise InvalidOptionError(
            f"No repair of the table {storage.path} has moved files at {at!r}, or they are older than seven days.",
            f"Name one of these: {', '.join(times)}." if times else "The table has no files that a repair moved.",
        )
    refuse_writers(table, means.patience)
    undo = _Undo(table, RemovedFiles(storage, at))
    result = undo.dry_result() if dry_run else undo.run()
    return replace(result, seconds=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Undo:
    """One undo of a repair, whose files are among the removed files."""

    table: Table
    removed: RemovedFiles

    def dry_result(self) -> ServiceResult:
        """Return the result of a dry run: which files may come back."""
        return self._result(*self._paths_and_sentences(), dry=True)

    def run(self) -> ServiceResult:
        """Put back the files that may come back, the properties last; return which came back."""
        paths, sentences = self._paths_and_sentences()
        for path in paths:
            if path not in _PROPERTIES:
                put_back(self.removed, path)
        # The properties come last: while a change of them looks broken off, each other step would wait for its writer.
        if BACKUP_PATH in paths:
            exclusive(self.table, lambda _: self._put_back_properties())
        if not self.removed.paths():
            self.removed.forget()
        return self._result(paths, sentences)

    def _paths_and_sentences(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the paths of the files that may come back, and a sentence for each that may not."""
        timeline, reasons = self.table.timeline(), self.removed.reasons()
        reason_by_path = {path: self._why_forbidden(path, timeline, reasons) for path in self.removed.paths()}
        sentences = tuple(
            one_line(f"{path} stays aside: {reason}") for path, reason in reason_by_path.items() if reason
        )
        return tuple(path for path, reason in reason_by_path.items() if not reason), sentences

    def _why_forbidden(self, path: str, timeline: Timeline, reasons: Mapping[str, str]) -> str:
        """Return why a file must stay aside; empty if it may come back."""
        if path in _PROPERTIES:
            return "" if self._fits_properties() else "the properties were changed since"
        file = data_file(path, changes=True)
        if file is None or path.startswith(_OWN_FOLDER):
            return "no repair has moved it"
        # In old tables only the content of a log file says which instants wrote it, so open the file.
        makers = self.table.format.makers([file], timeline, opens=True)
        # Readers showed the rows of such an orphan before the repair, too.
        if any(map(timeline.is_committed, makers)) and reasons.get(path) != ORPHAN_SHOWN.code:
            return "archiving has passed its instant since, so that readers would show its rows"
        return "" if may_come_back(self.removed, path) else "the table has another file of this name"

    def _fits_properties(self) -> bool:
        """Return whether the properties are as the repair made them, or as an undo that broke off put them back."""
        backup, properties = self._kept_properties()
        is_same = read_properties(self.table.storage, PROPERTIES_PATH) in {properties, backup}
        return backup is not None and is_same and read_properties(self.table.storage, BACKUP_PATH) in {None, backup}

    def _put_back_properties(self) -> None:
        """Put both files of the properties back as the repair found them, without a moment without either."""
        storage, (backup, properties) = self.table.storage, self._kept_properties()
        if backup is None:
            return
        # As in each change of the properties, readers use the backup while it exists.
        storage.create(BACKUP_PATH, backup)
        if properties is None:
            storage.delete(PROPERTIES_PATH)
        else:
            storage.write(PROPERTIES_PATH, properties)
        storage.delete(*map(self.removed.place_of, _PROPERTIES))

    def _kept_properties(self) -> list[bytes | None]:
        """Return the bytes of the kept backup and of the kept properties, None for a file that was not kept."""
        return [read_properties(self.table.storage, self.removed.place_of(path)) for path in _PROPERTIES]

    def _result(self, paths: tuple[str, ...], sentences: tuple[str, ...], *, dry: bool = False) -> ServiceResult:
        """Return the result of an undo that puts some paths back; `sentences` say why other files stay."""
        steps = tuple(one_line(f"Put {path} back.") for path in paths)
        return ServiceResult(
            self.table.path,
            "repair",
            self.removed.time,
            put_back=paths,
            steps=steps,
            skipped="; ".join(sentences),
            dry=dry,
        )
