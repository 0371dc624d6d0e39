"""Which data blocks of a base file a compaction copies as they are; it decodes those that log files touch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from ..hfile.reader import HFile
from .merging import SaidRecords

# So many blocks of 64 KiB are decoded at a time.
_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class BlockRun:
    """Blocks side by side, all copied or all decoded; ``end_key`` is not greater than any key behind them."""

    numbers: range
    copied: bool
    end_key: bytes | None


@dataclass(frozen=True, slots=True)
class BlocksAtOnce:
    """Runs side by side, whose decoded blocks are in memory together."""

    runs: tuple[BlockRun, ...]

    @property
    def decoded(self) -> list[int]:
        return [number for run in self.runs if not run.copied for number in run.numbers]

    @property
    def end_key(self) -> bytes | None:
        return self.runs[-1].end_key


def sorted_keys(logs: Sequence[SaidRecords]) -> pa.BinaryArray:
    keys = pa.concat_arrays([log.keys for log in logs]) if logs else pa.array([], pa.binary())
    return keys.take(pc.sort_indices(keys))


def parts_of(file: HFile, keys: pa.BinaryArray, *, copies: bool) -> list[BlocksAtOnce]:
    """Return all blocks of a file in their order, given the keys of its log files.

    The last block is decoded, as it tells the last key. Without ``copies`` all are.
    """
    blocks = file.blocks
    ends: list[bytes | None] = [*(place.key for place in blocks[1:]), None]
    if not copies or len(blocks) < 2 or not file.can_be_copied:
        return [
            BlocksAtOnce(
                (
                    BlockRun(
                        range(at, min(at + _AT_ONCE, len(blocks))), False, ends[min(at + _AT_ONCE, len(blocks)) - 1]
                    ),
                )
            )
            for at in range(0, len(blocks), _AT_ONCE)
        ]
    counts = [0, *(count_below(keys, place.key) for place in blocks[1:]), len(keys)]
    touched = [before < after for before, after in pairwise(counts)]
    touched[-1] = True
    return list(_parts(touched, ends))


def _parts(touched: Sequence[bool], ends: Sequence[bytes | None]) -> Iterator[BlocksAtOnce]:
    runs: list[BlockRun] = []
    at = decoded = 0
    while at < len(touched):
        end = at + 1
        while end < len(touched) and touched[end] == touched[at] and end - at < _AT_ONCE:
            end += 1
        runs.append(BlockRun(range(at, end), not touched[at], ends[end - 1]))
        decoded += (end - at) if touched[at] else 0
        at = end
        if decoded >= _AT_ONCE:
            yield BlocksAtOnce(tuple(runs))
            runs, decoded = [], 0
    if runs:
        yield BlocksAtOnce(tuple(runs))


def count_below(keys: pa.BinaryArray, key: bytes) -> int:
    """Return how many of some keys, in their order, are less than a key."""
    return bisect_left(range(len(keys)), True, key=lambda at: keys[at].as_py() >= key)  # O(log keys)
