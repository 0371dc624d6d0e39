"""What an instant may leave in a table's folder: data files, instant files, and the working folder of its writer."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial

from ...storage.base import FileInfo, Storage, split
from ...storage.threads import for_each
from ...table.files.file_group import data_file
from ...table.files.marked_files import marked_files
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers import heartbeat, owner
from ...timeline.writers.decisions import Decision, DecisionKind
from ...timeline.writers.first_steps import folder_of
from ...timeline.writers.markers import Markers
from ..meeting.transaction import Transaction
from .carried_out import is_unused
from .decide import decide


def forget_partitions(table: Table, victim: Instant, partitions: Iterable[str]) -> None:
    """Delete the metafiles of partitions that only this ended write opened and used. Raises as `decide`.

    A metafile that stayed would hide each later partition below it. A writer that relied on it makes it again.
    """
    paths = list(partitions)
    if paths:
        decide(table, partial(_close_unused, table.storage, victim, paths))


def _close_unused(storage: Storage, victim: Instant, paths: list[str], _: Timeline) -> Decision | None:
    """Return the decision to delete the metafiles of those partitions that only this instant opened and no write used.

    None if all partitions are in use. It runs in each round of `decide`, because a write may begin to use a partition.
    """
    flags = for_each(storage, lambda path: is_unused(storage, path, victim.requested_time), paths)
    unused = tuple(path for path, flag in zip(paths, flags, strict=True) if flag)
    return Decision(DecisionKind.CLOSE, victim.at(State.INFLIGHT), partitions=unused) if unused else None


logger = logging.getLogger("pyhudi")

_META_FOLDER = ".hoodie"


def files_of(table: Table, timeline: Timeline, instant_time: str, *, rolled_back: bool = False) -> list[str]:
    """Return the data files that a write may have left, by its markers or by a listing.

    A write of pyhudi makes a marker before each file, so without markers it left no file. But its markers may be gone
    if it was `rolled_back` while it ran.
    """
    storage = table.storage
    if not rolled_back:
        if Markers(storage, instant_time).exist():
            return marked_files(storage, table.format.slices, instant_time)
        if storage.has_files(owner.Claim(storage, instant_time).folder):
            return []
    # A rollback deletes the metafile of a partition that the write opened, so a file may lie outside of partitions.
    all_files = storage.list("", recursive=True, strict=False)
    files_of_table = (info for info in all_files if not info.path.startswith(f"{_META_FOLDER}/"))
    return sorted(info.path for info in by_maker(table, timeline, files_of_table).get(instant_time, ()))


def by_maker(table: Table, timeline: Timeline, listed_files: Iterable[FileInfo]) -> dict[str, list[FileInfo]]:
    """Return the data files among listed files, change data included, by the requested times of their makers.

    Several instants may have appended to a log file of version 6.
    """
    parsed = ((info, data_file(info.path, info.size, changes=True)) for info in listed_files)
    files = [(info, file) for info, file in parsed if file is not None]
    makers = table.format.makers_of_each([file for _, file in files], timeline)
    files_by_time: dict[str, list[FileInfo]] = {}
    for (info, _), times in zip(files, makers, strict=True):
        for time in times:
            files_by_time.setdefault(time, []).append(info)
    return files_by_time


def marked_by_tasks(work: Transaction, _: object = ()) -> Iterator[list[str]]:
    """Yield the data files that an instant's markers name, as `Ownership.files` if no other process shares the work."""
    yield marked_files(work.storage, work.table.format.slices, work.instant_time)


def forget(storage: Storage, instant_time: str) -> None:
    """Delete the markers, the heartbeat and the working folder with the claim of an instant that is over."""
    Markers(storage, instant_time).delete()
    heartbeat.Heartbeat(storage, instant_time).delete()
    storage.delete_folder(owner.Claim(storage, instant_time).folder)


def try_to_forget(storage: Storage, instant_time: str) -> None:
    """Delete the left-overs of a complete instant; an error is only logged."""
    try:
        forget(storage, instant_time)
    except Exception:
        logger.warning(
            "table %s: left-overs of %s stay until the next write", storage.path, instant_time, exc_info=True
        )


def forget_attempt(storage: Storage, instant_time: str) -> None:
    """Delete the left-overs of an instant except its spills and its signs of life, for the commit's next attempt.

    That attempt has another instant, and reads the spills here.
    """
    Markers(storage, instant_time).delete()
    claim = owner.Claim(storage, instant_time)
    listing = storage.look(claim.folder)
    storage.delete(*(info.path for info in listing.files if split(info.path)[1] != owner.OWNER_FILE))
    storage.delete_folder(claim.aside)
    # It holds the files that followers prepared for the completed file.
    if split(folder_of(instant_time))[1] in listing.folders:
        storage.delete_folder(folder_of(instant_time))


def by_partition(paths: list[str]) -> dict[str, list[str]]:
    """Return paths of data files by partition path."""
    partitions: dict[str, list[str]] = {}
    for path in paths:
        partitions.setdefault(path.rpartition("/")[0], []).append(path)
    return partitions
