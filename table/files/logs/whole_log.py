"""Reads a file slice's log file and checks it against what the completed instant states about the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....errors import CorruptFileError
from ....storage.base import Storage
from ..file_group import LogFile, StatedLog
from .log_blocks import BlockType, LogBlock
from .log_contents import BlockContent, repairable
from .log_file import read_blocks


def read_log(storage: Storage, log: LogFile) -> Iterator[LogBlock]:
    """Yield the blocks of a log file in their order, without contents, and raise if rows of it are lost.

    Torn blocks of a file about which no instant states anything are skipped, as readers do. Of a file that a repair
    reads, only the blocks that the repair found readable are read.
    """
    with repairable(storage, log.path):
        if log.readable is not None:
            blocks = read_blocks(storage, log.path, passes_over_damage=True)
            yield from (block for block in blocks if block.offset in log.readable)
        elif log.stated is None:
            yield from read_blocks(storage, log.path)
        else:
            yield from _WholeLog(storage, log, log.stated).blocks()


@dataclass(frozen=True, slots=True)
class _WholeLog:
    """Reads a log file that an undamaged table has as its instant states it; CorruptFileError if it differs."""

    storage: Storage
    log: LogFile
    stated: StatedLog

    def blocks(self) -> Iterator[LogBlock]:
        """Yield the blocks, and raise at the first sign that rows are lost."""
        torn, last_is_torn, stated_blocks = 0, False, []
        for block in read_blocks(self.storage, self.log.path, self._check_size):
            last_is_torn = block.type == BlockType.CORRUPT
            if not last_is_torn:
                self._check_instant(block)
                if block.instant_time in self.stated.makers:
                    stated_blocks.append(block)
            elif self.stated.allows_torn_blocks:
                torn += 1
            else:
                raise self._torn(block)
            yield block
        # No writer wrote the block again; in a shared file it may be of a write that failed.
        if last_is_torn and not self.stated.shared:
            raise self._torn(block)
        if torn:
            self._check_records(stated_blocks)

    def _check_size(self, size: int) -> None:
        if not self.stated.allows_size(size):
            raise self._damaged(f"it has {size} bytes, and the instant states {self.stated.size}")

    def _check_instant(self, block: LogBlock) -> None:
        if block.instant_time not in self.stated.makers and not self.stated.shared:
            raise self._damaged(f"its block at byte {block.offset} names the instant {block.instant_time!r}")

    def _check_records(self, stated_blocks: list[LogBlock]) -> None:
        """Raise if torn blocks held records that no whole block holds again."""
        counted = [block for block in stated_blocks if block.is_data or block.type == BlockType.DELETE]
        records = sum(BlockContent(self.storage, block).count() for block in counted)
        if records < self.stated.records:
            raise self._damaged(
                f"its whole blocks hold {records} records, and the instant states {self.stated.records}"
            )

    def _torn(self, block: LogBlock) -> CorruptFileError:
        return self._damaged(f"{block.content_size} bytes from byte {block.offset} on are no whole block")

    def _damaged(self, reason: str) -> CorruptFileError:
        """Return the error for a damaged file; `repairable` adds what to do."""
        what = (
            f"The log file {self.log.path} of the table {self.storage.path}, which the completed instant "
            f"{', '.join(self.stated.makers)} wrote, is damaged: {reason}."
        )
        return CorruptFileError(what, "")
