"""Which reads tasks are told of."""

from __future__ import annotations

from typing import Any

from pyhudi.connector.table import snapshot_frames
from pyhudi.reader.plan import SlicePart, Split


def test_no_more_is_packed_of_splits_than_it_takes_to_see_that_they_are_too_many() -> None:
    splits: list[Any] = [
        Split((SlicePart(f"p/{number:040d}.parquet", "p", None, 1, None),)) for number in range(20_000)
    ]

    assert snapshot_frames._is_small(splits[:1_000])
    assert not snapshot_frames._is_small(splits)
    assert not snapshot_frames._is_small([*splits, lambda: "cannot be packed"])
