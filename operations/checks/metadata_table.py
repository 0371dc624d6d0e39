"""Compares the metadata table with its table: whether it has all writes, and then each of its partitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...storage.base import join
from ...table.config import PROPERTIES_PATH
from ...table.metadata.kinds import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY,
    kind_of,
)
from ...table.metadata.metadata_table import FOLDER, MetadataTable
from .check_catalogue import METADATA_DAMAGED, METADATA_LOST, METADATA_STALE, NOT_CHECKED
from .metadata_bounds import check_bounds_of_metadata
from .metadata_expressions import check_expression_index
from .metadata_files import check_files_of_metadata
from .metadata_filters import check_filters_of_metadata
from .metadata_keys import check_record_index, check_secondary_index
from .metadata_subject import MetadataSubject
from .subject import Subject, called


def check_metadata(subject: Subject) -> None:
    """Look for writes that are missing from the metadata table, and compare its list of files with the folders.

    A deep check compares all of its partitions with footers and rows. If writes are missing, nothing is compared.
    """
    partitions = subject.config.metadata_partitions
    if not partitions:
        return
    if not subject.storage.has_files(FOLDER):
        what = f"{PROPERTIES_PATH} names the metadata partitions {', '.join(partitions)}, and {FOLDER} is not there."
        subject.findings.add(METADATA_LOST, what, file=PROPERTIES_PATH)
        return
    with subject.findings.turning(METADATA_DAMAGED, file=FOLDER):
        metadata = MetadataTable.of(subject.table, subject.timeline)
        if metadata is not None and not _is_behind(subject, metadata):
            _check_partitions(MetadataSubject(subject, metadata))


def _is_behind(subject: Subject, metadata: MetadataTable) -> bool:
    """Return whether the metadata table lacks completed writes, and report each."""
    lacking = metadata.lacks()
    for time in lacking:
        instant = subject.timeline.find(time)
        if instant is not None:
            what = f"The {called(instant)} is complete, and the metadata table does not know of it."
            subject.tell(METADATA_STALE, instant, what)
    return bool(lacking)


def _check_partitions(judged: MetadataSubject) -> None:
    """Check each partition of the metadata table: the list of files always, all others in a deep check.

    A partition of an unknown kind is a finding.
    """
    check_by_name: dict[str, Callable[[], None]] = {FILES: partial(check_files_of_metadata, judged)}
    if judged.subject.deep:
        check_by_name |= _deep_checks(judged)
    for name in judged.metadata.names:
        if kind_of(name) is None:
            what = f"The metadata table has a partition {name}, which this pyhudi does not know."
            judged.subject.findings.add(NOT_CHECKED, what, file=join(FOLDER, name))
        elif name in check_by_name:
            with judged.subject.findings.turning(METADATA_DAMAGED, file=join(FOLDER, name)):
                check_by_name[name]()


def _deep_checks(judged: MetadataSubject) -> dict[str, Callable[[], None]]:
    """Return the checks by footers and rows; those by rows only if no write completed since the listing."""
    names, reason = judged.metadata.names, _why_not_comparable(judged)
    of_bounds = [name for name in (COLUMN_STATS, PARTITION_STATS) if name in names]
    if reason:
        of_bounds = [name for name in of_bounds if name == COLUMN_STATS]
    # One check compares both kinds of bounds, as it reads the same facts of files for both.
    checks: dict[str, Callable[[], None]] = {
        name: partial(check_bounds_of_metadata, judged, of_bounds) for name in of_bounds[:1]
    }
    if reason:
        what = f"The metadata table's entries about rows, and not about one file, were not compared: {reason}."
        judged.subject.findings.add(NOT_CHECKED, what, file=FOLDER)
        return checks
    checks |= {
        BLOOM_FILTERS: partial(check_filters_of_metadata, judged),
        RECORD_INDEX: partial(check_record_index, judged),
    }
    checks |= {name: partial(check_secondary_index, judged, name) for name in names if name.startswith(SECONDARY)}
    return checks | {
        name: partial(check_expression_index, judged, name) for name in names if name.startswith(EXPRESSION)
    }


def _why_not_comparable(judged: MetadataSubject) -> str:
    """Return why rows and the metadata table cannot be compared: they are not of one moment; empty if they can."""
    if judged.absent:
        return f"{min(judged.absent)} was not there when the table's folders were listed"
    return "" if judged.metadata.is_of_now() else "a write completed meanwhile"
