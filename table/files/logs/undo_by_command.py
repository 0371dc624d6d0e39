"""Undo in tables of version 6, and tables that came out of it: several instants append to one slice or log file.

A log file goes only if all of its blocks are of the undone instant. Blocks between those of other instants stay, and a
command at the end of the slice takes them back. Source: ``BaseRollbackHelper`` and ``HoodieCommandBlock``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ....storage.base import Storage, join, split
from ....storage.threads import for_each
from ..file_group import LogFile, data_file, log_file
from ..names import LogFileName, WriteToken
from ..undo import DeletesFiles
from .log_blocks import ROLLBACK, BlockHead, BlockType, Header, LogBlock
from .log_file import read_blocks

if TYPE_CHECKING:
    from ....timeline.metadata.models import RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest

# The write token of the commands of Apache Hudi 0.15.
_TOKEN = WriteToken(1, 0, 1)


class _NamedSlice(NamedTuple):
    """A file slice by what the names of its log files say."""

    folder: str
    file_id: str
    named_time: str


class TakesBlocksBack(DeletesFiles):
    """The way of a table of version 8 or 9 that came out of version 6, whose old log files keep their names.

    Plans and results of rollbacks are those of its version.
    """

    def take_back(self, storage: Storage, left_files: Mapping[str, Iterable[str]]) -> None:
        """Delete files of each instant alone, and append commands where its blocks are among those of others.

        ``left_files`` has the paths of the files that each instant left, by its requested time.
        """
        for instant_time, paths in left_files.items():
            left_paths = frozenset(paths)
            logs = {path: log for path in left_paths if (log := log_file(path, changes=True)) is not None}
            slices = _logs_of_slices(storage, {_slice_named(log) for log in logs.values()})
            deletable = for_each(
                storage,
                partial(_take_blocks_back, storage, instant_time, logs.keys()),
                [slices[named_slice] for named_slice in sorted(slices)],
            )
            storage.delete(*sorted(set(chain(left_paths - logs.keys(), *deletable))))

    def adds_files(self, instant_time: str, paths: Iterable[str]) -> bool:
        logs = (log_file(path, changes=True) for path in paths)
        # A log file that bears the instant's own time has blocks of no other instant.
        return any(log is not None and log.named_time != instant_time for log in logs)


class AppendsCommands(TakesBlocksBack):
    """The way of table version 6. Apache Hudi can carry out its plans, and it can carry out those of Apache Hudi."""

    def requests(self, storage: Storage, paths: Iterable[str]) -> list[RollbackRequest]:
        """Return a request for each base file, and one for each slice with log files of the undone instant.

        ``paths`` are the files, relative to the table's root, that have data of the instant.
        """
        from ....timeline.metadata.models import RollbackRequest  # noqa: PLC0415 (see timeline/instant_files.py)

        blocks: dict[_NamedSlice, dict[str, int]] = {}
        bases = []
        for path in paths:
            log = log_file(path, changes=True)
            if log is None:
                bases.append(path)
            else:
                # The number is how many blocks the file has, at least. Apache Hudi appends one command for all.
                blocks.setdefault(_slice_named(log), {})[split(path)[1]] = 1
        appended = [
            RollbackRequest(
                partition_path=named_slice.folder,
                file_id=named_slice.file_id,
                latest_base_instant=named_slice.named_time,
                files_to_be_deleted=[],
                log_blocks_to_be_deleted=names,
            )
            for named_slice, names in blocks.items()
        ]
        return [*super().requests(storage, bases), *appended]

    def planned(self, plan: RollbackPlan) -> Iterator[str]:
        yield from super().planned(plan)
        for request in plan.rollback_requests:
            yield from _logs_named(request.partition_path, request.log_blocks_to_be_deleted)

    def results(self, plan: RollbackPlan) -> dict[str, RollbackPartition]:
        """Return the results, which name the log files with blocks of the undone instant beside the deleted files."""
        partitions = super().results(plan)
        for request in plan.rollback_requests:
            names = partitions[request.partition_path].log_files_from_failed_commit
            if names is not None:
                names.update(request.log_blocks_to_be_deleted or {})
        return partitions

    def taken(self, rollback: RollbackMetadata) -> Iterator[str]:
        yield from super().taken(rollback)
        for path, part in rollback.partition_metadata.items():
            yield from _logs_named(path, part.log_files_from_failed_commit)


def _logs_named(folder: str, names: Mapping[str, int] | None) -> Iterator[str]:
    """Yield the paths of log files that a rollback names; a plan that was made by listing names the table's path."""
    for name in names or ():
        path = join(folder, split(name)[1])
        if data_file(path, changes=True) is not None:
            yield path


def _slice_named(log: LogFile) -> _NamedSlice:
    """Return the file slice to which a log file belongs by its name."""
    return _NamedSlice(split(log.path)[0], log.file_id, log.named_time)


def _logs_of_slices(storage: Storage, named_slices: Collection[_NamedSlice]) -> dict[_NamedSlice, list[LogFile]]:
    """Return all log files of each of some slices, in the order in which they are read; a folder is listed once."""
    slices: dict[_NamedSlice, list[LogFile]] = {}
    for listed in for_each(storage, storage.list, sorted({named_slice.folder for named_slice in named_slices})):
        for info in listed:
            log = log_file(info.path, info.size, changes=True)
            if log is not None and _slice_named(log) in named_slices:
                slices.setdefault(_slice_named(log), []).append(log)
    return {named_slice: sorted(logs, key=lambda log: log.name.order) for named_slice, logs in slices.items()}


def _take_blocks_back(
    storage: Storage, instant_time: str, left_logs: Collection[str], logs: Sequence[LogFile]
) -> frozenset[str]:
    """Append a rollback command to a file slice if blocks of ``instant_time`` need it; return the log files to delete.

    The command makes readers pass over the blocks of that undone instant in files that also have blocks of others. A
    file that has blocks of that instant alone can go.

    ``logs`` are all log files of the slice: the writer may have continued in files of other names. ``left_logs`` are
    log files that it made. A file among them goes, too, if its writer tore the first block.
    """
    blocks = {log.path: [block for block in read_blocks(storage, log.path) if _is_sound(block)] for log in logs}
    deletable = {
        path
        for path, sound_blocks in blocks.items()
        if _is_of_one_instant(sound_blocks, instant_time, torn=path in left_logs)
    }
    if _still_counts(
        (block for path, sound_blocks in blocks.items() if path not in deletable for block in sound_blocks),
        instant_time,
    ):
        # Not the rollback's time: a reader of a moment before the rollback stops at a block of a later time.
        head = BlockHead(
            BlockType.COMMAND,
            {
                Header.INSTANT_TIME: instant_time,
                Header.TARGET_INSTANT_TIME: instant_time,
                Header.COMMAND_BLOCK_TYPE: ROLLBACK,
            },
        )
        _append(storage, _slice_named(logs[0]), 1 + max(log.name.version for log in logs), b"".join(head.framed(())))
    return frozenset(deletable)


def _append(storage: Storage, named_slice: _NamedSlice, version: int, data: bytes) -> None:
    """Make a log file that is read after all others of a slice, and never in place of another writer's.

    ``version`` is the first that may be free; other writers may take it, and then the file gets a later one.
    """
    while True:
        name = LogFileName(named_slice.file_id, named_slice.named_time, version, _TOKEN).format()
        if storage.create(join(named_slice.folder, name), data):
            return
        version += 1


def _is_sound(block: LogBlock) -> bool:
    return block.type != BlockType.CORRUPT


def _is_of_one_instant(blocks: list[LogBlock], instant_time: str, *, torn: bool) -> bool:
    """Return whether a log file holds blocks of one instant alone, and no command; without blocks return ``torn``.

    ``torn`` says whether the instant made the file, which then has no sound block because its writer died.
    """
    is_of_instant = (block.type != BlockType.COMMAND and block.instant_time == instant_time for block in blocks)
    return all(is_of_instant) if blocks else torn


def _still_counts(blocks: Iterable[LogBlock], instant_time: str) -> bool:
    """Return whether the blocks of a slice, in their order, hold one of an instant that no command takes back."""
    counts = False
    for block in blocks:
        if block.type == BlockType.COMMAND:
            counts = counts and block.target_instant_time != instant_time
        elif block.instant_time == instant_time:
            counts = True
    return counts
