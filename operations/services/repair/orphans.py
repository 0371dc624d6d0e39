"""Finds orphans, the data files of writes that never completed, by the checks of `validate`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ....storage.base import Storage
from ...checks.check_catalogue import (
    ARCHIVE_FILE_CORRUPT,
    ARCHIVE_FILE_LOST,
    ARCHIVE_MANIFEST,
    NOT_CHECKED,
    ORPHAN,
    ORPHAN_SHOWN,
    ROLLED_BACK_FILE,
    UNREADABLE,
)
from ...checks.files import check_files
from ...checks.finding import Finding, Findings
from ...checks.pending import kept_by_savepoints
from ...inspect.validate import STALE_S, read_subject

_ORPHANS = frozenset({ORPHAN, ORPHAN_SHOWN, ROLLED_BACK_FILE})
# With one of these findings, a file of an archived write looks like an orphan.
_BLIND = frozenset({ARCHIVE_FILE_CORRUPT, ARCHIVE_FILE_LOST, ARCHIVE_MANIFEST, NOT_CHECKED, UNREADABLE})


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
        return FoundOrphans(reasons=_texts_of(findings.gathered))
    check_files(subject)
    orphans = [finding for finding in findings.gathered if finding.check in _ORPHANS]
    blind = [finding for finding in findings.gathered if finding.check in _BLIND]
    if orphans and blind:
        why = f"{len(orphans)} files stay that look like orphans, as a part of the table could not be checked"
        return FoundOrphans(reasons=(why, *_texts_of(blind)))
    saved = kept_by_savepoints(subject)
    first = min((instant.requested_time for instant in subject.archived if instant.is_write), default="")
    files, reasons = [], [subject.lost_archive.rstrip(".")] if subject.lost_archive else []
    for finding in sorted(orphans, key=lambda finding: finding.file):
        if finding.file in saved:
            reasons.append(f"{finding.file} stays, as the savepoint {saved[finding.file]} keeps it")
        elif subject.timeline.is_committed(finding.instant) and not (first and first < finding.instant):
            reasons.append(
                f"{finding.file} stays: it is older than all instants of the timeline and of the archive, so it is "
                "unknown whether its write completed"
            )
        else:
            files.append(finding)
    return FoundOrphans(tuple(files), tuple(reasons))


def _texts_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(finding.what.rstrip(".") for finding in findings)
