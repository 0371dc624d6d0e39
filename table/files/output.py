"""How a write's base files look, and the Parquet in its log files, with the memory that making them may take."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .bloom_filter import BloomSettings

MIB = 1 << 20
GIB = 1 << 30
# The row groups that threads fill take this part of the memory together, and as much again while they are encoded.
_SHARES_OF_ROW_GROUPS = 8
# What a thread takes beside that: rows that it keys and cuts, and what the allocator keeps for it; then the process.
_OF_A_THREAD = 80 * MIB
_OF_THE_PROCESS = 96 * MIB
# A thread with less would spend its time on spills and small row groups.
_LEAST_OF_A_THREAD = 192 * MIB


@dataclass(frozen=True, slots=True)
class Output:
    """How files are written.

    ``bloom_filter`` says whether base files get a filter; None if the index decides. ``row_group_bytes`` and
    ``memory``, which one task may hold, are Arrow bytes. ``statistics`` names the columns whose bounds the writer of a
    file reports, as followers of the table ask.
    """

    compression: str = "zstd"
    row_group_bytes: int = 120 * MIB
    bloom: BloomSettings = field(default_factory=BloomSettings)
    bloom_filter: bool | None = None
    memory: int = GIB
    statistics: tuple[str, ...] = ()

    def threads(self, most: int) -> int:
        """Return how many threads the memory is enough for, up to ``most``."""
        return max(1, min(most, self.memory // _LEAST_OF_A_THREAD))

    def shared_by(self, threads: int) -> Output:
        """Return how a process with so many threads writes files, in order to stay within the memory as a whole.

        Its ``memory`` is for rows that wait: it excludes what the threads hold at once.
        """
        row_group_bytes = min(self.row_group_bytes, self.memory // (_SHARES_OF_ROW_GROUPS * threads))
        taken_by_threads = threads * (2 * row_group_bytes + _OF_A_THREAD) + _OF_THE_PROCESS
        return replace(
            self, row_group_bytes=row_group_bytes, memory=max(self.memory - taken_by_threads, self.memory // 4)
        )
