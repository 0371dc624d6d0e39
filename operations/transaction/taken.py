"""What other instants took from a write since its plan: files and instants that a read missed, or the write itself.

Such an error looks like damage, and running the write again cures it. It is known by its text, as Spark hands on the
errors of its tasks as text, and the timeline of now tells what became of the names in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ...errors import StorageError, WriteSealedError
from ...storage.base import Storage, split
from ...table.files.file_group import data_file
from ...table.files.lost import BEING_UNDONE
from ...table.files.read_written import read_written
from ...table.table import Table, find_table
from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ...timeline.writers.write_notes import GIVEN_UP
from .transaction import Transaction

# What pyhudi, Spark and Hadoop say of files that are gone; Spark Connect leaves the cause of a failed read out.
_GONE = re.compile(
    r"while it was (?:needed|being read)|while Spark read it|cleaning has taken away"
    r"|FAILED_READ_FILE|PATH_NOT_FOUND|does not exist"
)
_NAME = re.compile(r"[\w.-]+")
# An archiving or a clean may take what a call reads between its listing and its read.
_TRIES = 3

Result = TypeVar("Result")


def again_where(run: Callable[[], Result], may_cure: Callable[[StorageError], bool]) -> Result:
    """Return what a call returns, after up to two more calls where the error of a read says that these may help."""
    for _ in range(_TRIES - 1):
        try:
            return run()
        except StorageError as error:
            if not may_cure(error):
                raise
    return run()


def was_removed(error: StorageError) -> bool:
    """Return whether a read failed because its file is there no more, which a later listing tells."""
    return isinstance(error.__cause__, FileNotFoundError)


@contextmanager
def given_up_as_conflicts(work: Transaction, after: str = "") -> Iterator[None]:
    """Raise `CommitConflictError` instead of the error of a write that another process has given up as dead.

    That process seals the write for good, and deletes its files. The newest instant that the notes of a write name
    counts, too, where it is ``after`` a time.
    """
    try:
        yield
    except (StorageError, WriteSealedError) as error:
        condemned = _given_up_by_others(work, after)
        if condemned is None:
            raise
        what = "It was given up by another process, taking its writer for dead, and its files were deleted"
        raise work.at(condemned).conflict(what) from error


def _given_up_by_others(work: Transaction, after: str) -> str | None:
    """Return the time of a write's instant that is sealed for good; None where its own abort has left the last note."""
    newest = work.notes.newest() if work.key else None
    if newest == GIVEN_UP:
        return None
    times = (work.instant_time, newest if newest and newest > after else "")
    return next((time for time in times if time and work.at(time).seal.is_given_up()), None)


@contextmanager
def taken_as_conflicts(work: Transaction) -> Iterator[None]:
    """Raise `CommitConflictError` instead of the error of a file or an instant that other instants took meanwhile."""
    try:
        yield
    except StorageError as error:
        what = taken_since(work.storage, error)
        if what is None:
            raise
        raise work.conflict(what) from error


def taken_since(storage: Storage, error: Exception) -> str | None:
    """Return in a sentence what other instants took so that a read failed; None where they took nothing.

    A file that the table needs as it is now was not taken: it is damage.
    """
    text = str(error)
    if not _GONE.search(text):
        return None
    table = find_table(storage)
    if table is None:
        return None
    now = table.timeline()
    names = dict.fromkeys(name.rstrip(".") for name in _NAME.findall(text))
    undone = BEING_UNDONE in text
    found = (_file_taken(table, now, name, is_rolled_back=undone) or _instant_taken(now, name) for name in names)
    return next((what for what in found if what is not None), None)


def _file_taken(table: Table, now: Timeline, name: str, *, is_rolled_back: bool) -> str | None:
    file = data_file(name)
    if file is None:
        return None
    made_by = max(table.format.makers([file], now), default="")
    if not table.format.slices.shows(file, now.is_committed) or is_rolled_back:
        return f"The {file.kind} {name} that it read is of the write {made_by}, which was rolled back meanwhile"
    written, named = read_written(now), (file.file_id, name)
    places = (path for path in written.partitions if (path, file.file_id) not in written.replaced)
    if any(named in written.names(path) for path in places):
        return None
    from ...table.files.cleaned import deleted_by, read_cleans  # noqa: PLC0415 (brings pydantic along)

    cleans = (
        f"the clean {instant.requested_time}"
        for instant, clean in read_cleans(now, made_by)
        if any(split(path)[1] == name for _, names in deleted_by(clean) for path in names)
    )
    what = f"The {file.kind} {name} that it read was replaced meanwhile"
    return f"{what}, and {next(cleans, 'another writer')} took it; the file group is {file.file_id}"


def _instant_taken(now: Timeline, name: str) -> str | None:
    instant = now.files.layout.parse(name)
    if instant is None or instant.state != State.COMPLETED or instant in now.completed:
        return None
    return f"The {instant.action} {instant.requested_time} was archived or rolled back meanwhile"
