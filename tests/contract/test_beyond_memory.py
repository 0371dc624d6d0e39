"""File groups whose rows are too many for memory, while the columns that decide are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.table.files.output import Output
from support.drive import KEYED, rows_of, write
from support.seams import patch_seam
from support.write_settings import write_settings

# A quarter of a task's memory is for merging: 50 kB, of which the 200 rows below take 400.
BOUNDS: dict[str, Any] = {"batch_size": 30_000, "output": Output(memory=200_000)}


def rows(keys: range, *, ts: int, mark: str, times: int = 1) -> pa.Table:
    """Return rows of 2 kB each, every key several times with the same ordering value, the last time marked with n."""
    order = [(key, number) for number in range(times) for key in keys]
    return pa.table(
        {
            "id": [f"k{key:03}" for key, _ in order],
            "ts": pa.array([ts] * len(order), pa.int64()),
            "text": [f"{mark}{number}".ljust(2_000, ".") for _, number in order],
            "_hoodie_is_deleted": [mark == "gone"] * len(order),
        }
    )


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_rows_are_read_again_when_it_is_known_which_of_them_stay(
    tmp_path: Path, colocated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deal_out(*_: Any) -> None:
        raise AssertionError("the rows are written to disk once more")

    patch_seam(monkeypatch, "spill rows of a merge", deal_out)
    table, bounds = tmp_path / "t", write_settings(**BOUNDS, colocated=colocated)

    first = write(table, rows(range(100), ts=1, mark="a", times=2), table=KEYED, settings=bounds)
    second = write(table, rows(range(50, 150), ts=2, mark="b", times=2), settings=bounds)
    older = write(table, rows(range(150), ts=1, mark="c"), settings=bounds)
    gone = write(table, rows(range(60, 90), ts=3, mark="gone", times=7), settings=bounds)
    dropping = write_settings(**BOUNDS, colocated=colocated, insert_dup_policy="drop")
    dropped = write(table, rows(range(40, 200), ts=1, mark="d"), operation="insert", settings=dropping)

    assert (first.inserts, second.inserts, second.updates) == (100, 50, 50)
    assert (older.updates, gone.deletes, dropped.inserts, dropped.dropped) == (50, 30, 80, 80)
    marks = {n: "c0" if n < 50 else "d0" if 60 <= n < 90 or n >= 150 else "b1" for n in range(200)}
    assert [(key, text.rstrip(".")) for key, text in rows_of(table, "id", "text")] == [
        (f"k{n:03}", mark) for n, mark in marks.items()
    ]
