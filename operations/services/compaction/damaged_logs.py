"""Damaged log files that a repair gives up: which of their blocks can be read, and how many rows the others held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ....errors import CorruptFileError, InvalidOptionError, UnsupportedTableError
from ....storage.base import Storage, split
from ....table.config.property_keys import EVENT_TIME_ORDERING
from ....table.files.file_group import FileSlice, LogFile
from ....table.files.logs.log_blocks import BlockType, LogBlock
from ....table.files.logs.log_contents import BlockContent, columns_of
from ....table.files.logs.log_file import read_blocks
from ....table.files.logs.whole_log import read_log
from ....table.files.lost import open_view
from ....table.files.names import FileGroupId
from ....table.files.slice_rule import slice_rule
from ....table.latest_schema import latest_schema
from ....table.schema.columns import with_meta
from ....table.table import Table
from ....timeline.timeline import Timeline
from ...result import RepairedLog


@dataclass(frozen=True, slots=True)
class ExaminedLog:
    """A damaged log file with its readable blocks, and a report of the rows that are given up."""

    group: FileGroupId
    log: LogFile
    report: RepairedLog


def examine(table: Table, timeline: Timeline, paths: Sequence[str]) -> dict[str, ExaminedLog]:
    """Examine log files, and return them by path.

    Raises `InvalidOptionError` for a file that is not damaged, or is no log file of a newest slice.
    """
    schema = latest_schema(table.config, timeline, writing=True) or pa.schema([])
    ordering = table.config.ordering_fields if table.config.merge_mode == EVENT_TIME_ORDERING else ()
    return _Examiner(table.storage, timeline, with_meta(schema), ordering).examine(paths)


@dataclass(frozen=True, slots=True)
class _Examiner:
    storage: Storage
    timeline: Timeline
    schema: pa.Schema
    ordering: tuple[str, ...]

    def examine(self, paths: Sequence[str]) -> dict[str, ExaminedLog]:
        view = open_view(self.timeline)
        file_slices = [
            file_slice
            for folder in sorted({split(path)[0] for path in paths})
            for file_slice in view.slices(folder).values()
        ]
        logs_by_path = {log.path: (file_slice, log) for file_slice in file_slices for log in file_slice.logs}
        for path in paths:
            if path not in logs_by_path:
                raise InvalidOptionError(
                    f"accept_loss names {path!r}, which is no log file of a newest file slice of the table "
                    f"{self.storage.path}.",
                    "Name the files as validate or the error shows them, relative to the table's path.",
                )
        return {path: self._examine(*logs_by_path[path]) for path in dict.fromkeys(paths)}

    def _examine(self, file_slice: FileSlice, log: LogFile) -> ExaminedLog:
        blocks = list(read_blocks(self.storage, log.path, passes_over_damage=True))
        makers = slice_rule(self.timeline).makers([log], self.timeline)
        counts = {block.offset: self._count(block, makers) for block in blocks}
        readable = {offset: count for offset, count in counts.items() if count is not None}
        if len(readable) == len(counts) and self._is_whole(log):
            raise InvalidOptionError(
                f"The log file {log.path} of the table {self.storage.path}, which accept_loss names, is not damaged.",
                "Leave it out of accept_loss.",
            )
        stated = log.stated
        report = RepairedLog(
            file=log.path,
            instant=max(makers, default=""),
            expected_size=None if stated is None else stated.size,
            actual_size=log.size,
            stated_records=None if stated is None else stated.records,
            readable_records=sum(readable.values()),
        )
        return ExaminedLog(file_slice.group, replace(log, readable=frozenset(readable)), report)

    def _is_whole(self, log: LogFile) -> bool:
        try:
            for _ in read_log(self.storage, log):
                pass
        except CorruptFileError:
            return False
        return True

    def _count(self, block: LogBlock, makers: frozenset[str]) -> int | None:
        """Return how many rows or deletes a block holds; None if it cannot be read as a whole."""
        if block.type == BlockType.CORRUPT or block.instant_time not in makers:
            return None
        try:
            if block.is_data:
                present = set(columns_of(block).names)
                wanted = pa.schema([column.with_nullable(True) for column in self.schema if column.name in present])
                return sum(int(batch.num_rows) for batch in BlockContent(self.storage, block).rows(wanted))
            if block.type == BlockType.DELETE:
                ordering = [self.schema.field(name) for name in self.ordering]
                return len(BlockContent(self.storage, block).deletes(ordering))
        except (CorruptFileError, UnsupportedTableError):
            return None
        return 0
