"""What other instants took from a write since its plan: files and instants that it reads, or the write itself.

Such an error looks like damage, but the write succeeds when it is run again. An error of pyhudi says which file is
gone, an error of Spark or Hadoop names it in its text, and the timeline of now tells what became of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from ...errors import ConcurrentWriteError, MetInstant, PyHudiError, RetryError, StorageError, WriteSealedError
from ...storage.base import Storage, split
from ...table.files.file_group import data_file
from ...table.files.read_written import read_written
from ...table.table import Table, find_table
from ...timeline.instant_files import UPGRADE
from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ...timeline.writers.write_notes import GIVEN_UP
from .concurrency import InstantKind
from .transaction import Transaction

# The words of Spark and Hadoop for files that are gone; Spark Connect leaves out the cause of a failed read.
_GONE = re.compile(r"FAILED_READ_FILE|PATH_NOT_FOUND|does not exist")
_NAME = re.compile(r"[\w.-]+")
# An archiving or a clean may delete a file after a call listed it and before the call reads it.
_TRIES = 3

Result = TypeVar("Result")


def with_retries(run: Callable[[], Result], may_cure: Callable[[RetryError], bool]) -> Result:
    """Return the result of a call, which is repeated up to twice if `may_cure` says that this may help."""
    for _ in range(_TRIES - 1):
        try:
            return run()
        except (StorageError, ConcurrentWriteError) as error:
            if not may_cure(error):
                raise
    return run()


def was_removed(error: RetryError) -> bool:
    """Return whether a read failed because its file is gone, so that a new listing helps."""
    return isinstance(error.__cause__, FileNotFoundError)


@contextmanager
def given_up_as_conflicts(work: Transaction, later_than: str = "") -> Iterator[None]:
    """Raise `CommitConflictError` instead of the error of a write that another process has given up as dead.

    That process seals the write for good, and deletes its files. It may also have given up the newest instant that the
    notes of the write name, which counts if its time is ``later_than`` a time.
    """
    try:
        yield
    except (StorageError, WriteSealedError) as error:
        given_up_time = _given_up_by_others(work, later_than)
        if given_up_time is None:
            raise
        what = "It was given up by another process, taking its writer for dead, and its files were deleted"
        raise work.at(given_up_time).conflict(what) from error


def _given_up_by_others(work: Transaction, later_than: str) -> str | None:
    """Return the time of a write's instant that another process gave up; None if there is none, or this write did."""
    newest = work.notes.newest() if work.key else None
    if newest == GIVEN_UP:
        return None
    times = (work.instant_time, newest if newest and newest > later_than else "")
    return next((time for time in times if time and work.at(time).seal.is_given_up()), None)


@contextmanager
def taken_as_conflicts(work: Transaction) -> Iterator[None]:
    """Raise `CommitConflictError` instead of the error of a file or instant that other instants took meanwhile."""
    try:
        yield
    except StorageError as error:
        taken = taken_since(work.storage, error)
        if taken is None:
            raise
        raise work.conflict(taken.what, taken.met) from error


@dataclass(frozen=True, slots=True)
class Taken:
    """What other instants took so that a read failed: as a sentence, and as the instant that the write met."""

    what: str
    met: MetInstant


def taken_since(storage: Storage, error: Exception) -> Taken | None:
    """Return what other instants took so that a read failed; None if they took nothing.

    If the table still needs a missing file, nothing took it: the table is damaged.
    """
    names, met = _missing_names(error), error.met if isinstance(error, PyHudiError) else None
    if met is not None and met.kind == UPGRADE:
        return Taken("The table went to another version meanwhile", met)
    table = find_table(storage) if names else None
    if table is None:
        return None
    current_timeline = table.timeline()
    is_rolled_back = met is not None and met.kind == InstantKind.ROLLBACK.value
    candidates = (
        _file_taken(table, current_timeline, name, is_rolled_back=is_rolled_back)
        or _instant_taken(current_timeline, name)
        for name in names
    )
    taken = next((taken for taken in candidates if taken is not None), None)
    # Callers trust an instant less that was only in an error's text, so pass that on.
    return taken if taken is None or met is None else replace(taken, met=replace(taken.met, from_text=met.from_text))


def _missing_names(error: Exception) -> Iterable[str]:
    """Return names that may be of the files that an error misses: from its facts, or words of its text; else none."""
    if isinstance(error, PyHudiError):
        return [error.met.file] if error.met is not None and error.met.file else []
    text = str(error)
    return dict.fromkeys(name.rstrip(".") for name in _NAME.findall(text)) if _GONE.search(text) else []


def _file_taken(table: Table, current_timeline: Timeline, name: str, *, is_rolled_back: bool) -> Taken | None:
    """Return the rollback, or the write and the clean, that took a data file.

    None if the name is of no data file, or if the table still needs the file. ``is_rolled_back`` is what the error says
    of the file.
    """
    file = data_file(name)
    if file is None:
        return None
    made_by = max(table.format.makers([file], current_timeline), default="")
    if not table.format.slices.shows(file, current_timeline.is_committed) or is_rolled_back:
        what = f"The {file.kind} {name} that it read is of the write {made_by}, which was rolled back meanwhile"
        return Taken(what, MetInstant(made_by, InstantKind.ROLLBACK.value, file_id=file.file_id))
    written_files, name_in_group = read_written(current_timeline), (file.file_id, name)
    paths = (path for path in written_files.partitions if (path, file.file_id) not in written_files.replaced)
    if any(name_in_group in written_files.names(path) for path in paths):
        return None
    from ...table.files.cleaned import deleted_by, read_cleans  # noqa: PLC0415 (brings pydantic along)

    cleans = (
        f"the clean {instant.requested_time}"
        for instant, clean in read_cleans(current_timeline, made_by)
        if any(split(path)[1] == name for _, names in deleted_by(clean) for path in names)
    )
    what = f"The {file.kind} {name} that it read was replaced meanwhile"
    return Taken(
        f"{what}, and {next(cleans, 'another writer')} took it; the file group is {file.file_id}",
        MetInstant(made_by, InstantKind.CLEAN.value, file_id=file.file_id),
    )


def _instant_taken(current_timeline: Timeline, name: str) -> Taken | None:
    """Return the archiving or rollback that took an instant's completed file; None for a name of anything else."""
    instant = current_timeline.files.layout.parse(name)
    if instant is None or instant.state != State.COMPLETED or instant in current_timeline.completed:
        return None
    what = f"The {instant.action} {instant.requested_time} was archived or rolled back meanwhile"
    return Taken(what, MetInstant(instant.requested_time, InstantKind.ARCHIVING.value))
