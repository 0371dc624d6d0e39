"""The file names of a timeline: whether times and states are right, each by itself and compared with the others."""

from __future__ import annotations

import re
from collections import defaultdict

from ...storage.base import join, split
from ...table.config import BACKUP_PATH, PROPERTIES_PATH
from ...table.left_behind import instants_left_by_upgrade
from ...timeline.clock import parse_time
from ...timeline.instant_files import InstantFiles
from ...timeline.instants import Instant, State
from .check_catalogue import (
    COMPLETED_TWICE,
    FUTURE_TIME,
    IN_BOTH_PLACES,
    LEFT_BEHIND,
    LINK,
    NO_COMPLETION_TIME,
    NO_REQUESTED,
    OUT_OF_ORDER,
    PENDING_ARCHIVED,
    PROPERTY_INVALID,
    STRANGE_FILE,
    STRANGE_TIME,
)
from .finding import Findings
from .left_overs import LOCK
from .subject import Subject, called

# Two time zones differ by up to 26 hours.
_AHEAD_S = {"UTC": 3600.0, "LOCAL": 27 * 3600.0}
_MADE_BY_JAVA = re.compile(r".+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SAVEPOINT = "savepoint"
# Files that lie in one folder with the instants of layout 1.
_BESIDE_INSTANTS = frozenset({PROPERTIES_PATH, BACKUP_PATH, LOCK})


def list_states(instants: InstantFiles, findings: Findings) -> tuple[Instant, ...]:
    """Return each state of an instant that has a file on the timeline; report files that are no instants.

    Raises StorageError if the store cannot be reached.
    """
    layout = instants.layout
    content = instants.storage.look(layout.folder)
    for name in content.links:
        path = join(layout.folder, name)
        findings.add(LINK, f"{path} is a symbolic link.", file=path)
    with findings.turning(PROPERTY_INVALID, file=PROPERTIES_PATH):
        instants.refuse_moved(content)
    states = []
    for info in content.files:
        name = split(info.path)[1]
        instant = layout.parse(name)
        if instant is not None:
            states.append(instant)
        # A writer of Apache Hudi at work makes names that end in a UUID; only an old file of such a name is a finding.
        elif info.path not in _BESIDE_INSTANTS and (
            not _MADE_BY_JAVA.fullmatch(name) or findings.is_old(info.modified)
        ):
            findings.add(STRANGE_FILE, f"{info.path} is no instant by its name.", file=info.path)
    return tuple(states)


def check_instants(subject: Subject) -> None:
    """Report what is wrong with the instants on the timeline, by the names of their files."""
    _check_times(subject)
    _check_order(subject)
    _check_completed_twice(subject)
    _check_states(subject)
    _check_archived(subject)
    _check_left_behind(subject)


def _check_times(subject: Subject) -> None:
    """Report a completed instant without completion time, a time that is none, and a time in the future."""
    zone, now_s = subject.config.timezone, subject.storage.now()
    for instant in subject.timeline.instants:
        path = subject.path(instant)
        if not subject.timeline.files.layout.is_whole(instant):
            subject.tell(NO_COMPLETION_TIME, instant, f"{path} has no completion time.")
        for time in filter(None, (instant.requested_time, instant.completion_time)):
            try:
                ahead_s = parse_time(time, zone) / 1000 - now_s
            except ValueError:
                subject.tell(STRANGE_TIME, instant, f"{path} has the time {time}, which is no date and time.")
                continue
            if ahead_s > _AHEAD_S[zone]:
                subject.tell(
                    FUTURE_TIME, instant, f"{path} lies {ahead_s / 3600:.0f} hours ahead of the store's clock."
                )


def _check_order(subject: Subject) -> None:
    """Check that completion times differ and are later than requests: they are the cursor of incremental queries."""
    instant_by_time: dict[str, Instant] = {}
    for instant in subject.timeline.completed:
        time = instant.completion_time
        if time is None:
            continue
        if time < instant.requested_time:
            what = f"The {called(instant)} completed at {time}, before it was requested."
            subject.tell(OUT_OF_ORDER, instant, what)
        other = instant_by_time.setdefault(time, instant)
        if other is not instant:
            what = f"The {called(instant)} and the {called(other)} completed both at {time}."
            subject.tell(OUT_OF_ORDER, instant, what)


def _check_completed_twice(subject: Subject) -> None:
    """Report instants with two completed files, and times that instants of different kinds share.

    A savepoint shares the time of the write that it keeps.
    """
    completed: dict[tuple[str, str], list[Instant]] = defaultdict(list)
    groups: dict[str, set[str]] = defaultdict(set)
    for instant in subject.states:
        if instant.state == State.COMPLETED:
            completed[instant.requested_time, instant.group].append(instant)
        if instant.group != _SAVEPOINT:
            groups[instant.requested_time].add(instant.group)
    for (time, group), same_instants in sorted(completed.items()):
        if len(same_instants) > 1:
            names = ", ".join(sorted(subject.path(twin) for twin in same_instants))
            subject.findings.add(
                COMPLETED_TWICE,
                f"The {group} {time} has {len(same_instants)} completed files: {names}.",
                file=subject.path(same_instants[1]),
                instant=time,
            )
    for time, actions in sorted(groups.items()):
        if len(actions) > 1:
            subject.findings.add(
                COMPLETED_TWICE, f"The time {time} is that of a {' and of a '.join(sorted(actions))}.", instant=time
            )


def _check_states(subject: Subject) -> None:
    """Check that each inflight file has a requested file, except for savepoints, which have none."""
    requested = {
        (instant.requested_time, instant.group) for instant in subject.states if instant.state == State.REQUESTED
    }
    for instant in subject.timeline.pending:
        begun = instant.state == State.INFLIGHT and instant.action != _SAVEPOINT
        if begun and (instant.requested_time, instant.group) not in requested and not subject.in_archive(instant):
            subject.tell(NO_REQUESTED, instant, f"The {called(instant)} is inflight and was never requested.")


def _check_left_behind(subject: Subject) -> None:
    """Report each instant that lies where the version before an upgrade had its timeline."""
    for path in instants_left_by_upgrade(subject.table):
        what = f"An upgrade of the table left {path} behind, or an older release of an engine wrote it since."
        subject.findings.add(LEFT_BEHIND, what, file=path, instant=split(path)[1].partition(".")[0])


def _check_archived(subject: Subject) -> None:
    """Report instants that are in the archive and still on the timeline.

    A completed instant there does no harm, but a writer would roll back an instant that looks pending.
    """
    for instant in subject.timeline.instants:
        if not subject.in_archive(instant):
            continue
        path = subject.path(instant)
        if instant.state == State.COMPLETED:
            what = f"The {called(instant)} is archived, and {path} is still there."
            subject.tell(IN_BOTH_PLACES, instant, what)
        else:
            what = f"The {called(instant)} is complete in the archive and looks pending on the timeline."
            subject.tell(PENDING_ARCHIVED, instant, what)
