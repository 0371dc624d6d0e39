"""Which blocks of a slice's log files count, and in which order.

Source: ``BaseHoodieLogRecordReader``. Instants count in the order in which they are first seen. A command takes back
what was read of its target so far. A block of log compaction takes the place of the newest block that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....errors import UnsupportedTableError
from .log_blocks import BlockType, LogBlock


def effective_blocks(blocks_by_file: Iterable[Iterable[LogBlock]], upto: Callable[[str], bool]) -> tuple[LogBlock, ...]:
    """Return the data and delete blocks that count, winners of ties last.

    ``blocks_by_file`` has the blocks of each log file in the order in which files are read. ``upto`` says whether the
    blocks of an instant count, by its requested time.
    """
    instants: dict[str, list[LogBlock]] = {}
    for blocks in blocks_by_file:
        for block in blocks:
            if block.type == BlockType.COMMAND:
                instants.pop(_target_instant(block), None)
            elif block.type != BlockType.CORRUPT and upto(block.instant_time):
                instants.setdefault(block.instant_time, []).append(block)
    return tuple(block for time in _in_order(instants) for block in instants[time])


def _target_instant(block: LogBlock) -> str:
    """Return the instant that a command rolls back; UnsupportedTableError for any other command."""
    if not block.is_rollback or block.target_instant_time is None:
        raise UnsupportedTableError(
            f"{block.shown[:1].upper()}{block.shown[1:]} is a command that pyhudi does not know.",
            "Compact the table with Apache Hudi, then run this again.",
        )
    return block.target_instant_time


def _in_order(instants: dict[str, list[LogBlock]]) -> list[str]:
    """Return the instants that count, in order: a log compaction has the position of the newest instant it replaces.

    A log compaction that replaces no instant here does not count: the base file holds the rows that it was made of.
    """
    # By replaced instant, the log compaction that holds its rows after all log compactions.
    final: dict[str, str] = {}
    ordered: dict[str, None] = {}
    for time in reversed(instants):
        replaced = instants[time][0].compacted_times
        final |= dict.fromkeys(replaced, final.get(time, time))
        if not replaced:
            # The newest replaced instant gives the position, and the reversed order comes to it first.
            ordered.setdefault(final.get(time, time))
    return [*reversed(ordered)]
