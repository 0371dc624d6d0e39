"""Log files: whether their blocks are whole, and whether pending compactions name the right log files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from ...errors import CorruptFileError, PyHudiError
from ...storage.base import join
from ...storage.threads import for_each
from ...table.arrow.arrays import plain
from ...table.files.file_group import FileSlice, LogFile, data_file, log_file
from ...table.files.log_names import log_names
from ...table.files.logs.log_blocks import BlockType, LogBlock
from ...table.files.logs.log_contents import BlockContent
from ...table.files.logs.log_file import read_blocks
from ...table.files.logs.whole_log import read_log
from ...table.files.names import FileGroupId
from ...table.schema.columns import RECORD_KEY
from ...timeline.archive.completions import CompletionTimes
from ...timeline.held import COMPACTING, LOG_COMPACTION
from ...timeline.instants import Instant, State
from ...timeline.metadata.models import CompactionOperation
from .check_catalogue import (
    BLOCK_INSTANT,
    FILE_CORRUPT,
    LOG_DAMAGED,
    LOG_PASSED_OVER,
    PLAN_FILE_LOST,
    PLAN_MISFIT,
    SKIPPED_BLOCK,
    TORN_BLOCK,
    TORN_INSTANT,
)
from .subject import Subject, called, shown

_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])


def check_logs(subject: Subject) -> None:
    """Check the blocks of each log file of a completed write, older slices included, and the pending compactions."""
    listed = (log_file(info.path, info.size) for files in subject.folders.partitions.values() for info in files)
    files = [file for file in listed if file is not None]
    complete_files = [file for file in files if subject.is_complete(subject.maker(file.path))]
    for_each(subject.storage, lambda file: _check_blocks(subject, file), complete_files)
    shows, is_committed = subject.table.format.slices.shows, subject.timeline.is_committed
    hidden = [file for file in files if not shows(file, is_committed)]
    for_each(subject.storage, lambda file: _check_hidden_rows(subject, file), hidden)
    slices = {group.id: group.newest for group in subject.live}
    if not subject.deep and subject.computed_index is not None:
        # A deep check looks at all keys. In other slices, the footers of base files name two keys.
        without_base = [file_slice for file_slice in slices.values() if file_slice.base is None]
        for_each(subject.storage, lambda file_slice: _check_bucket(subject, file_slice), without_base)
    for instant in subject.timeline.pending:
        if instant.action in COMPACTING:
            with subject.turning(TORN_INSTANT, instant.at(State.REQUESTED)):
                _check_plan(subject, instant, slices)


def data_blocks(subject: Subject, file: LogFile) -> Iterator[LogBlock]:
    """Yield the blocks of a log file that hold rows or deletes."""
    for block in read_blocks(subject.storage, file.path):
        if block.type not in {BlockType.CORRUPT, BlockType.COMMAND}:
            yield block


def _check_blocks(subject: Subject, file: LogFile) -> None:
    """Report torn blocks, blocks of other instants, and a log file that holds less than its write states.

    A file that a repair gave up is no finding.
    """
    if file.path in subject.statements.given_up:
        return
    stated_file = subject.statements.files.get(file.path)
    stated = None if stated_file is None else stated_file.log
    # In some table versions several instants append to one log file, so that blocks of others are right.
    is_shared = not log_names(subject.timeline).says_maker
    # `read_log` compares a file with what its write states, which the name of a listed file does not say.
    file = replace(file, stated=None if stated is None else replace(stated, shared=is_shared))
    with subject.turning(FILE_CORRUPT, file):
        torn_blocks, makers = [], subject.table.format.makers([file], subject.timeline, opens=True)
        for block in read_blocks(subject.storage, file.path):
            if block.type == BlockType.CORRUPT:
                torn_blocks.append(f"{block.content_size} bytes from byte {block.offset} on are no block")
            elif block.instant_time not in makers and not is_shared:
                what = f"{file.path} has a block of the instant {block.instant_time!r} at byte {block.offset}."
                subject.tell(BLOCK_INSTANT, file, what)
        damage = _damage_of(subject, file)
        if damage:
            subject.tell(LOG_DAMAGED, file, damage)
        # Damage is reported alone. Without it, a file with stated rows has those of a torn block once more behind it.
        for what in () if damage else torn_blocks:
            check = TORN_BLOCK if file.stated is None else SKIPPED_BLOCK
            subject.tell(check, file, f"{file.path} is not whole: {what}.")


def _check_hidden_rows(subject: Subject, file: LogFile) -> None:
    """Look for rows of completed writes in a log file that readers skip."""
    with subject.turning(FILE_CORRUPT, file):
        instant_times = {block.instant_time for block in data_blocks(subject, file)}
        completed_times = sorted(filter(subject.is_complete, instant_times))
        if completed_times:
            of_writes = f"the completed {shown(completed_times)}"
            what = f"{file.path} has the name of no completed write, and holds rows of {of_writes}."
            subject.tell(LOG_PASSED_OVER, file, what)


def _check_bucket(subject: Subject, file_slice: FileSlice) -> None:
    """Check that some keys of each log file of a slice belong to the slice's bucket."""
    for log in file_slice.logs:
        # `_check_blocks` reports a file that cannot be read.
        with suppress(PyHudiError):
            samples = (_some_keys(subject, block) for block in data_blocks(subject, log))
            keys = next((found for found in samples if len(found)), None)
            if keys is not None:
                subject.check_buckets(log, file_slice.group, keys)


def _some_keys(subject: Subject, block: LogBlock) -> pa.Array:
    """Return the record keys of the rows or deletes with which a block begins."""
    content = BlockContent(subject.storage, block)
    if block.type == BlockType.DELETE:
        return content.deletes().keys
    rows = next(content.rows(_KEYS), None)
    return pa.array([], pa.string()) if rows is None else plain(rows.column(RECORD_KEY))


def _damage_of(subject: Subject, file: LogFile) -> str:
    """Return what a log file lacks of what its instant states, in words; empty if readers accept the file."""
    try:
        for _ in read_log(subject.storage, file):
            pass
    except CorruptFileError as error:
        return error.what
    return ""


def _check_plan(subject: Subject, compaction: Instant, slices: dict[FileGroupId, FileSlice]) -> None:
    """Compare the files that a compaction will merge with the slices at its requested time.

    ``slices`` has the newest slice of each file group. Findings are planned files that are gone, and plans that name
    other files or file groups than the table has.
    """
    plan = subject.timeline.files.read_compaction_plan(compaction)
    is_merged = subject.table.format.slices.is_merged
    completed_at = CompletionTimes(subject.timeline)
    for operation in plan.operations if plan is not None else ():
        partition, file_id = operation.partition_path or "", operation.file_id or ""
        planned = {path for name in _planned_names(operation) if data_file(path := join(partition, name)) is not None}
        lost_paths = [path for path in planned if not subject.is_there(path)]
        group = f"the file group {file_id} of the partition {partition!r}"
        if lost_paths:
            what = f"The {called(compaction)} names {shown(lost_paths)} of {group}, which does not exist any more."
            subject.tell(PLAN_FILE_LOST, compaction, what)
        file_slice = slices.get(FileGroupId(partition, file_id))
        if file_slice is None and (partition, file_id) not in subject.statements.written.replaced:
            what = f"The {called(compaction)} names {group}, which the table does not have."
            subject.tell(PLAN_MISFIT, compaction, what)
        if compaction.action == LOG_COMPACTION:
            # A log compaction skips the file groups that its plan no longer fits.
            continue
        # A newer slice does not tell which files the plan had to merge.
        if file_slice is None or file_slice.base_time >= compaction.requested_time:
            continue
        mergeable = {log.path for log in file_slice.logs if is_merged(log, compaction.requested_time, completed_at)}
        mergeable |= {file_slice.base.path} if file_slice.base is not None else set()
        differing = mergeable ^ {path for path in planned if path not in lost_paths}
        if differing:
            what = (
                f"The compaction {compaction.requested_time} and the table do not agree on which files {group} had "
                f"at the compaction's requested time: {shown(differing)}."
            )
            subject.tell(PLAN_MISFIT, compaction, what)


def _planned_names(operation: CompactionOperation) -> list[str]:
    """Return the names of the files that an operation merges. Plans of old releases hold paths."""
    paths = (operation.data_file_path, *operation.delta_file_paths)
    return [path.rpartition("/")[2] for path in paths if path]
