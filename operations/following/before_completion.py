"""Files that come before an instant's completed file: its maker writes them, and any process copies them into place.

Such a file waits "aside", whole, in the working folder of its instant, and is deleted with the left-overs of that. To
publish it is to copy it, so that a second process may do the same at the same time.
"""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Callable
from functools import partial
from itertools import groupby

from ...errors import TableConfigError
from ...storage.base import Storage, join, split
from ...storage.copying import Checksum, copy_file
from ...timeline.writers.first_steps import (
    MOST_TO_MAKE,
    DeleteFile,
    FirstSteps,
    MakeFile,
    PublishFile,
    ReplaceFile,
    Step,
    folder_of,
)
from ...timeline.writers.seals import KEPT_S
from .partitions_in_use import change_partitions

# A decision itself holds smaller files, which saves the requests of a copy. All followers share its size.
_MOST_OF_ONE = MOST_TO_MAKE // 8
LATE_S = 0.5
"""The shortest time in which another process can carry a decision out, and then undo or archive its instant."""


class AsideFileGoneError(Exception):
    """A file that waited to be published is gone or damaged, and no process has published it."""


def set_aside(storage: Storage, instant_time: str, path: str, content: bytes) -> PublishFile:
    """Write a file to the instant's working folder, and return the step that copies it into place as ``path``.

    It gets a name that no other process gives, and is on the disk before a decision names it.
    """
    name = f"{uuid.uuid4().hex}-{split(path)[1]}"
    storage.write(join(folder_of(instant_time), name), content)
    return PublishFile(name, path, len(content), zlib.crc32(content))


def file_step(storage: Storage, instant_time: str, path: str, content: bytes, *, other_files: int = 0) -> Step:
    """Return the step that makes a file: the decision holds a small file, a large file waits in the working folder.

    ``other_files`` is the number of other files of the same follower. All of them together may take half of what a
    decision may hold, and each an eighth.
    """
    if len(content) > min(_MOST_OF_ONE, MOST_TO_MAKE // 2 // (1 + other_files)):
        return set_aside(storage, instant_time, path, content)
    return MakeFile(path, content)


def take_steps(
    storage: Storage, instant_time: str, first_steps: FirstSteps, is_binding: Callable[[], bool] = lambda: True
) -> None:
    """Take the steps of one follower in their order, any number of times, by any number of processes.

    ``is_binding`` returns whether the decision is still the newest: a stalled process must not change which partitions
    of the metadata table are in use if others have dropped and rebuilt them since, nor make files that others have
    made and deleted since. Raises `AsideFileGoneError`, and `TableConfigError` if a file to be made exists with other
    bytes.
    """
    looked_s = time.monotonic()
    change_partitions(storage, drops=first_steps.drops, binds=is_binding)
    # Delete consecutive files in one call.
    for deletes, steps in groupby(first_steps.steps, lambda step: isinstance(step, DeleteFile)):
        if deletes:
            storage.delete(*(step.path for step in steps))
        else:
            for step in steps:
                if time.monotonic() - looked_s >= LATE_S:
                    if not is_binding():
                        return
                    looked_s = time.monotonic()
                _take_step(storage, instant_time, step)
    change_partitions(storage, adds=first_steps.adds, begins=first_steps.begins, binds=is_binding)


def _take_step(storage: Storage, instant_time: str, step: Step) -> None:
    """Make, publish or replace the file of one step."""
    if isinstance(step, MakeFile):
        _make(storage, step)
    elif isinstance(step, PublishFile):
        _publish(storage, instant_time, step)
    elif isinstance(step, ReplaceFile):
        _replace(storage, step)


def take_back_steps(storage: Storage, first_steps: FirstSteps) -> None:
    """Delete the files of steps that were taken again after another process had undone their instant."""
    storage.delete(*first_steps.paths)
    # Apache Hudi fails at a table whose folder of rules is empty.
    storage.sweep(sorted({split(path)[0] for path in first_steps.paths}), KEPT_S, empty=True)


def _make(storage: Storage, step: MakeFile) -> None:
    """Make a file unless it exists with the same content; raise `TableConfigError` if it has other content."""
    while not storage.create(step.path, step.content):
        try:
            has_same_content = storage.read(step.path) == step.content
        except FileNotFoundError:
            continue  # another process is undoing the instant, and will delete this file, too
        if has_same_content:
            return
        raise TableConfigError(
            f"The file {step.path} of the table {storage.path} has other bytes than the decision to make it.",
            "Look at the table's history for the instant of that file, and at the file.",
        )


def still_replaces(storage: Storage, step: ReplaceFile) -> bool:
    """Return whether a file still has the bytes that a step is to replace."""
    try:
        crc: int | None = zlib.crc32(storage.read(step.path))
    except FileNotFoundError:
        crc = None
    return crc == step.replaces


def _replace(storage: Storage, step: ReplaceFile) -> None:
    """Replace a file unless another process has replaced it already."""
    if still_replaces(storage, step):
        storage.write(step.path, step.content)


def _publish(storage: Storage, instant_time: str, step: PublishFile) -> None:
    """Copy a file into place unless that is done; raise `AsideFileGoneError` if no process can do so any more."""
    source = join(folder_of(instant_time), step.name)
    if not _is_published(storage, step):
        try:
            copy_file(storage, source, step.path, folder_of(instant_time), partial(_check_copy, step))
        except FileNotFoundError:
            # The maker deletes its copies once they are published.
            if not _is_published(storage, step):
                raise AsideFileGoneError(source) from None
    # Another process may have made the file, and its name may not be on the disk yet.
    storage.flush([split(step.path)[0]])


def _is_published(storage: Storage, step: PublishFile) -> bool:
    """Return whether a file is in place with its full size."""
    files = storage.look(split(step.path)[0]).files
    return any((info.path, info.size) == (step.path, step.size) for info in files)


def _check_copy(step: PublishFile, copied: Checksum) -> None:
    """Raise `AsideFileGoneError` if the copied bytes are not those of the step."""
    if copied != (step.size, step.crc):
        raise AsideFileGoneError(step.name)
