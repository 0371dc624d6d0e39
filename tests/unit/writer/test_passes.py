"""Spilled rows gone through in passes: each row once, those of one key together, within memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.storage import open_storage
from pyhudi.table.arrow.spill import SpillReader, SpillWriter
from pyhudi.table.schema.columns import RECORD_KEY
from pyhudi.writer.buffer import GroupRows
from pyhudi.writer.passes import Portion, passes
from pyhudi.writer.routes import Route
from pyhudi.writer.rows import cut


def spilled(folder: Path, *sizes: int) -> list[Portion]:
    """Return portions of so many rows, each key three times."""
    storage = open_storage(str(folder), durable=False)
    writer = SpillWriter(storage, "rows.spill", "")
    for number, size in enumerate(sizes):
        for part in range(3):
            keys = pa.array([f"{number}-{key:06}" for key in range(size)])
            batch = pa.record_batch([keys, pa.array([part] * size), keys], [RECORD_KEY, "part", "more"])
            writer.append({("a", number): [batch]})
    reader = SpillReader(storage, writer.publish().path)
    return [
        Portion(
            Route("a", number), GroupRows(tuple((reader, one) for one in reader.pieces if one.key == ("a", number)))
        )
        for number in range(len(sizes))
    ]


@pytest.mark.parametrize(
    ("nbytes", "least", "most"), [(10**9, 1, 1), (40_000, 3, 12), (8000, 12, 60)], ids=["one", "some", "parted"]
)
def test_each_row_is_in_one_pass_with_all_rows_of_its_key(tmp_path: Path, nbytes: int, least: int, most: int) -> None:
    portions = spilled(tmp_path, 100, 600, 5, 300)
    seen: dict[str, int] = {}
    rows = count = 0
    for number, held in enumerate(passes([[one] for one in portions], [RECORD_KEY, "part"], nbytes)):
        count = number + 1
        assert sum(batch.nbytes for one in held for batch in one.batches) <= nbytes
        for piece in held:
            assert all(batch.schema.names == [RECORD_KEY, "part"] for batch in piece.batches)
            whole = pa.Table.from_batches(piece.portion.batches())
            assert whole.column_names == [RECORD_KEY, "part", "more"]
            assert whole.column(RECORD_KEY) == pa.Table.from_batches(piece.batches).column(RECORD_KEY)
            assert whole.column("part").to_pylist() == sorted(whole.column("part").to_pylist()), "in their order"
            assert piece.count == whole.num_rows
            rows += piece.count
            assert all(seen.setdefault(key, number) == number for key in whole.column(RECORD_KEY).to_pylist())

    assert rows == 3 * (100 + 600 + 5 + 300)
    assert least <= count <= most


def test_portions_of_one_unit_are_in_one_pass(tmp_path: Path) -> None:
    portions = spilled(tmp_path, 100, 100, 100, 100)
    numbers_by_pass = [
        [one.portion.route.number for one in held]
        for held in passes([portions[:3], portions[3:]], [RECORD_KEY], 12_000)
    ]

    assert numbers_by_pass == [[0, 1, 2], [3]]


def test_rows_are_cut_by_their_codes_in_the_order_in_which_they_came() -> None:
    batch = pa.record_batch([pa.array(range(7))], ["n"])
    codes = np.array([2, -1, 0, 2, 0, -1, 2])

    assert [(code, some.column(0).to_pylist()) for code, some in cut(batch, codes)] == [(0, [2, 4]), (2, [0, 3, 6])]
    assert list(cut(batch.slice(0, 0), codes[:0])) == []
    assert list(cut(batch.slice(0, 1), np.array([-1]))) == []
