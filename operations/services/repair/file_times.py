"""Sets the times of completed instants' files, which Apache Hudi 1.x takes for completion times in version 6."""

from __future__ import annotations

import time

from ....errors import UnsupportedTableError
from ....storage.base import Storage
from ....table.config import check_supported
from ....table.table import open_table
from ....timeline.clock import parse_time
from ...checks.file_times import late_files
from ...checks.files import check_files
from ...checks.finding import Findings
from ...inspect.validate import STALE_S, read_subject
from ...result import ServiceResult


def set_file_times(storage: Storage, *, dry_run: bool = False) -> ServiceResult:
    """Set the time of each completed instant's file that Apache Hudi 1.x misreads to right after its requested time.

    Raises `UnsupportedTableError` for a store in which no program can set a file's time.
    """
    began = time.monotonic()
    table = open_table(storage)
    check_supported(table.config, table.path, writing=False)
    if storage.remote:
        raise UnsupportedTableError(
            f"The store of the table {table.path} gives each file the time at which it was stored, and takes no other.",
            "Upgrade the table (HudiTable.upgrade), after which these times do not count, or copy it to a disk first.",
        )
    subject = read_subject(Findings(storage, STALE_S))
    steps = []
    if subject is not None:
        check_files(subject)
        for late in late_files(subject):
            path = subject.path(late.instant)
            steps.append(f"Set the time of {path} to a millisecond after {late.instant.requested_time}.")
            if not dry_run:
                storage.set_modified(path, (parse_time(late.instant.requested_time, table.config.timezone) + 1) / 1000)
    seconds = time.monotonic() - began
    return ServiceResult(table.path, "repair", steps=tuple(steps), dry=dry_run, seconds=seconds)
