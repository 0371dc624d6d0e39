"""The times of completed instants' files, in table versions in which the names lack completion times.

Apache Hudi 1.x takes the time at which such a file was last changed for the completion time. By it, a log file belongs
to the newest base file that was begun before its base instant completed. A copied table has the times of the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ...storage.base import split
from ...table.files.file_group import LogFile
from ...timeline.clock import format_time
from ...timeline.instants import Instant, State
from .check_catalogue import FILE_TIME
from .subject import Subject


class LateFile(NamedTuple):
    """A completed instant whose file is younger than the next base file of its file group, and its log file there.

    ``modified`` is the time at which the instant's file was last changed, ``until`` the instant time of the base file.
    """

    instant: Instant
    modified: str
    until: str
    log: LogFile


def check_file_times(subject: Subject) -> None:
    """Look for log files that Apache Hudi 1.x merges with a later base file."""
    for late in late_files(subject):
        what = (
            f"{subject.path(late.instant)} was last changed at {late.modified}, and the file group of {late.log.path} "
            f"has a base file of {late.until}."
        )
        subject.tell(FILE_TIME, late.instant, what)


def late_files(subject: Subject) -> Iterator[LateFile]:
    """Yield each completed instant whose file is younger than the next base file of its file group, once."""
    without_completion_time = {
        completed.requested_time: completed
        for completed in subject.timeline.completed
        if completed.completion_time is None
    }
    if not without_completion_time:
        return
    files, zone = subject.timeline.files, subject.config.timezone
    parsed = ((files.layout.parse(split(info.path)[1]), info) for info in subject.storage.list(files.folder))
    modified_times = {
        instant.requested_time: format_time(int(info.modified * 1000), zone)
        for instant, info in parsed
        if instant is not None and instant.state == State.COMPLETED
    }
    reported: set[str] = set()
    for log, begun, until in _superseded_logs(subject):
        modified = modified_times.get(begun, "")
        if begun in without_completion_time.keys() - reported and modified >= until:
            reported.add(begun)
            yield LateFile(without_completion_time[begun], modified, until, log)


def _superseded_logs(subject: Subject) -> Iterator[tuple[LogFile, str, str]]:
    """Yield a log file of each slice that has a later slice, with the base instants of both slices."""
    for group in subject.live:
        for before, after in pairwise(group.slices):
            if before.logs:
                yield before.logs[0], before.base_time, after.base_time
