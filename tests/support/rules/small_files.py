"""What holds of the places that new keys are dealt, whatever the files and the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st
from pyhudi.index import small_files
from pyhudi.index.settings import FileSizes
from pyhudi.index.small_files import GroupSizes, Shares, SmallFile
from pyhudi.table.files.file_group import BaseFile, FileSlice, LogFile
from pyhudi.table.files.names import FileGroupId, LogFileName
from pyhudi.table.files.view import FileView

INSTANT = "20260101000000000"
SIZES = FileSizes(small=1000, largest=1200, record_bytes=10)
SMALL = st.lists(st.integers(0, 999), max_size=6).map(
    lambda found: tuple(sorted(SmallFile(size, f"f{number}") for number, size in enumerate(found)))
)
BUCKET = "00000003-b959-4a51-93cf-1e7a3f5f2d11-0"
LOG = LogFile("p/.log", 10, LogFileName("logged", INSTANT, 1))


def hashes(count: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return hashes as keys have them."""
    return np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64, endpoint=False)


def dealt(rows: int, small: tuple[SmallFile, ...] = (), sizes: FileSizes = SIZES, record_bytes: float = 10) -> Shares:
    """Return how rows of one partition are dealt out."""
    return small_files.deal({"p": rows}, GroupSizes({"p": small}), sizes, record_bytes, INSTANT)["p"]


def check_rooms(rows: int, small: tuple[SmallFile, ...], largest: int, record_bytes: float) -> None:
    """No file is meant to grow over the largest size, and none is opened while a small one has room."""
    shares = dealt(rows, small, FileSizes(small=1000, largest=largest), record_bytes).shares
    before = {one.file_id: one.size for one in small}

    assert sum(one.rows for one in shares) == rows
    assert min(one.rows for one in shares) >= 1
    assert len({one.file_id for one in shares}) == len(shares)
    for file_group in shares:
        grown = before.get(file_group.file_id, 0) + file_group.rows * record_bytes
        assert grown <= largest + 1e-6 or (file_group.number is not None and file_group.rows == 1)
    opened = [one for one in shares if one.number is not None]
    rooms = sum(max(int((largest - one.size) / record_bytes), 0) for one in small)
    assert (rows - rooms > 0) == bool(opened)
    assert all(one.rows == opened[0].rows for one in opened[:-1])


def check_portions(rows: int, small: tuple[SmallFile, ...], seed: int, cuts: Sequence[int]) -> None:
    """A key goes to one place, in whatever order and portions rows come, and places get as many as they are to get."""
    shares, keys = dealt(rows, small), hashes(rows, seed)
    whole = shares.take(keys)

    order = np.random.default_rng(seed + 1).permutation(rows)
    portions = np.concatenate([shares.take(part) for part in np.split(keys[order], sorted(cuts))])

    assert (portions == whole[order]).all()
    assert len(whole) == rows and whole.min() >= 0 and whole.max() < len(shares.shares)
    counts = np.bincount(whole, minlength=len(shares.shares))
    for count, one in zip(counts.tolist(), shares.shares, strict=True):
        # Nine standard deviations are none that chance makes.
        assert abs(count - one.rows) <= 9 * (one.rows * (1 - one.rows / rows)) ** 0.5 + 9


def check_candidates(sizes: FileSizes, appends: bool, expected: list[str]) -> None:
    """Small files have no logs, are held by nobody, and are no buckets by their names."""
    file_groups = dict(
        [
            group("b", 500),
            group("c", 999),
            group("d", 20),
            group("large", 1000),
            group("held", 10),
            group("logged", 10, (LOG,)),
            group("log only", None, (LOG,)),
            group(BUCKET, 5),
        ]
    )
    held = {("p", "held"), ("q", "d")}

    group_sizes = GroupSizes.of(view(file_groups), ["p", "q"], sizes, held=held, appends=appends)

    assert [one.file_id for one in group_sizes.small.get("p", ())] == expected
    assert not group_sizes.small.get("q")


def group(file_id: str, size: int | None, logs: tuple[LogFile, ...] = ()) -> tuple[str, FileSlice]:
    """Return a slice with a base file of some size, or without one."""
    base = None if size is None else BaseFile(f"p/{file_id}", size, file_id, "0-0-0", INSTANT)
    return file_id, FileSlice(FileGroupId("p", file_id), INSTANT, base, logs)


def view(slices: Mapping[str, FileSlice]) -> FileView:
    """Return a view of one partition."""
    return cast(FileView, SimpleNamespace(slices=lambda path: slices if path == "p" else {}))
