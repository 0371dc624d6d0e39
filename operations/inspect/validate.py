"""Checks that the files of a table follow the format, whatever engine wrote them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ...storage.base import Storage
from ...table.table import Table
from ...timeline.listing import newest_states
from ...timeline.timeline import Timeline
from ..checks.archive import check_archive, check_lost_archive
from ..checks.bodies import read_statements
from ..checks.check_catalogue import NOT_CHECKED
from ..checks.duplicates import check_duplicates
from ..checks.file_times import check_file_times
from ..checks.files import check_files, check_folders
from ..checks.finding import FINDINGS_SCHEMA, Findings
from ..checks.footers import check_footers
from ..checks.instants import check_instants, list_states
from ..checks.left_overs import check_checksums, check_left_overs
from ..checks.logs import check_logs
from ..checks.metadata_table import check_metadata
from ..checks.pending import check_pending
from ..checks.properties import check_properties, is_known, load
from ..checks.rows import check_rows
from ..checks.subject import Subject, walk

# A younger file is no finding, as it may belong to a writer at work.
STALE_S = 3600.0

# `check_files` comes first: it reads archived writes, which the other checks use.
_CHECKS: tuple[Callable[[Subject], None], ...] = (
    check_files,
    check_lost_archive,
    check_properties,
    check_folders,
    check_instants,
    check_pending,
    check_footers,
    check_logs,
    check_file_times,
    check_left_overs,
    check_checksums,
    check_metadata,
)
_CHECKS_OF_ROWS: tuple[Callable[[Subject], None], ...] = (check_rows, check_duplicates)


def validate(storage: Storage, *, deep: bool = False, stale_s: float = STALE_S) -> pa.Table:
    """Return one row for each finding, errors first, with columns as in `FINDINGS_SCHEMA`; the table stays unchanged.

    It reads names, instants and footers, and with ``deep`` also rows of the newest file slices and archived writes.
    Unfinished work and unused files are findings once they are ``stale_s`` seconds old.
    """
    findings = Findings(storage, stale_s)
    subject = read_subject(findings, deep=deep)
    if subject is None:
        return findings.table()
    for check in (*_CHECKS, *(_CHECKS_OF_ROWS if deep else ())):
        with findings.turning(NOT_CHECKED):
            check(subject)
    return findings.table()


def read_subject(findings: Findings, *, deep: bool = False) -> Subject | None:
    """Return a table as the checks see it; None if its properties do not suffice, which is a finding."""
    storage = findings.storage
    config = load(findings)
    if config is None or not is_known(config, findings):
        return None
    # The folders are listed first: a data file's instant is on the timeline before the file exists.
    folders, table = walk(storage), Table(storage, config)
    states = list_states(table.instants, findings)
    timeline = Timeline(newest_states(states), table.instants)
    archived = check_archive(table.archive, findings)
    statements = read_statements(timeline, states, findings)
    return Subject(table, findings, folders, states, timeline, archived, statements, deep)


__all__ = ["FINDINGS_SCHEMA", "STALE_S", "read_subject", "validate"]
