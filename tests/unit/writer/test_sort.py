"""Rows sorted in memory or through spilled runs, in the order that Python's own sort gives."""

from __future__ import annotations

import math
import random
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.table.config.sort_order import HILBERT, LINEAR, ZORDER, SortOrder
from pyhudi.writer.sort import RowSorter
from support.seams import patch_seam
from support.share import share_of

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.float64()), ("n", pa.int64())])
WIDE = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string()), ("n", pa.int64())])


def in_order(rows: list[tuple[str | None, float | None, int]]) -> list[tuple[str | None, float | None, int]]:
    """Return rows by a, then b: nulls first, NaN last, equal rows as they came."""

    def key(row: tuple[str | None, float | None, int]) -> tuple[bool, str, int, float]:
        a, b, _ = row
        rank = 0 if b is None else 2 if math.isnan(b) else 1
        return a is not None, a or "", rank, b if rank == 1 else 0.0

    return sorted(rows, key=key)


def sorted_through(
    rows: list[tuple[str | None, float | None, int]], *, memory: int, batch: int, coded: bool = False
) -> list[object]:
    """Sort rows given in batches, whose strings may be dictionaries, each batch with one of its own."""
    sorter = RowSorter(SortOrder(("a", "b")), memory)
    for start in range(0, len(rows), batch):
        columns = zip(*rows[start : start + batch], strict=True)
        arrays = [pa.array(column, one.type) for column, one in zip(columns, SCHEMA, strict=True)]
        arrays[0] = arrays[0].dictionary_encode() if coded else arrays[0]
        sorter.add(pa.record_batch(arrays, SCHEMA.names))
    return [tuple(row.values()) for done in sorter.batches() for row in done.to_pylist()]


VALUES = st.tuples(
    st.one_of(st.none(), st.sampled_from(["", "a", "ä", "b", "Ω"])),
    st.one_of(st.none(), st.sampled_from([math.nan, -1.0, 0.0, 2.5])),
)


@settings(max_examples=share_of(60), deadline=None)
@given(st.lists(VALUES, max_size=80), st.sampled_from([1, 400, 2000]), st.integers(1, 9), st.booleans())
def test_rows_come_back_in_order_however_little_memory_there_is(
    values: list[tuple[str | None, float | None]], memory: int, batch: int, coded: bool
) -> None:
    rows = [(a, b, number) for number, (a, b) in enumerate(values)]

    assert repr(sorted_through(rows, memory=memory, batch=batch, coded=coded)) == repr(in_order(rows))


@pytest.mark.parametrize("memory", [1 << 14, 1 << 30], ids=["spilled", "in memory"])
def test_many_rows_come_back_in_order(memory: int) -> None:
    chance = random.Random(7)
    rows = [(f"k{chance.randrange(300)}", float(chance.randrange(9)), number) for number in range(20_000)]

    assert sorted_through(rows, memory=memory, batch=700) == in_order(rows)


@pytest.fixture
def spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which sorters make theirs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_nothing_is_spilled_that_fits(spilled: Path) -> None:
    sorter = RowSorter(SortOrder(("n",)), 1 << 20)
    sorter.add(pa.record_batch({"n": [3, 1]}))
    sorter.add(pa.record_batch({"n": pa.array([], pa.int64())}))
    sorter.add(pa.record_batch({"n": [2]}))

    assert [batch.column("n").to_pylist() for batch in sorter.batches()] == [[1, 2, 3]]
    assert not list(spilled.iterdir())


@pytest.mark.parametrize("curve", [LINEAR, ZORDER, HILBERT])
@pytest.mark.parametrize("discarded", [True, False])
def test_what_is_spilled_is_gone_afterwards(spilled: Path, curve: str, discarded: bool) -> None:
    sorter = RowSorter(SortOrder(("a", "b"), curve), 64)
    for batch in of_chance(900):
        sorter.add(batch)
    assert list(spilled.iterdir())

    taken = sorter.batches()
    first = next(taken)
    if discarded:
        taken.close()
    rest = list(taken)

    assert first.num_rows < 900
    assert bool(rest) is not discarded
    assert not list(spilled.iterdir())


def of_chance(count: int) -> list[pa.RecordBatch]:
    """Return rows with two columns that have nothing to do with each other, in batches of 300."""
    chance = random.Random(3)
    rows = [(chance.randrange(1000), f"b{chance.randrange(1000):03d}", number) for number in range(count)]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), WIDE, strict=True)]
    return pa.Table.from_arrays(columns, schema=WIDE).to_batches(max_chunksize=300)


def through(order: SortOrder, memory: int) -> pa.Table:
    sorter = RowSorter(order, memory)
    for batch in of_chance(6000):
        sorter.add(batch)
    return pa.Table.from_batches(sorter.batches(), WIDE)


@pytest.mark.parametrize("memory", [1 << 30, 1 << 15])
@pytest.mark.parametrize("curve", [ZORDER, HILBERT])
def test_a_part_of_rows_along_a_curve_is_a_cell_of_the_square(curve: str, memory: int) -> None:
    """Each of 64 parts has an eighth of the values of either column, and no value of another eighth."""
    sorter = RowSorter(SortOrder(("a", "b"), curve), memory)
    for batch in of_chance(6000):
        sorter.add(batch)
    parts = [pa.Table.from_batches(part) for part in sorter.parts(64)]

    assert pa.concat_tables(parts).sort_by("n").column("n").to_pylist() == [*range(6000)]
    assert len(parts) == 64
    for name in ("a", "b"):
        values = pa.concat_tables(parts).column(name)
        eighths = pc.rank(values, tiebreaker="min").to_numpy() - 1
        ends = np.cumsum([0, *(part.num_rows for part in parts)])
        spans = [eighths[start:end] * 8 // 6000 for start, end in pairwise(ends.tolist())]
        assert {int(span.max() - span.min()) for span in spans} == {0}


@pytest.mark.parametrize("memory", [1 << 30, 1 << 14])
@pytest.mark.parametrize("values", [1, 3, 50])
def test_parts_along_a_curve_are_of_like_size_however_the_cells_are(values: int, memory: int) -> None:
    """Few values leave most cells empty, and put many rows into others."""
    sorter = RowSorter(SortOrder(("a", "b"), ZORDER), memory)
    for start in range(0, 4000, 500):
        numbers = np.arange(start, start + 500)
        sorter.add(pa.record_batch({"a": numbers % values, "b": numbers * 7 % values, "n": numbers}))
    sizes = [sum(piece.num_rows for piece in part) for part in sorter.parts(32)]

    assert sum(sizes) == 4000
    assert 62 <= min(sizes) <= max(sizes) <= 187


@pytest.mark.parametrize("curve", [ZORDER, HILBERT])
@pytest.mark.parametrize("memory", [1 << 15, 1 << 17])
def test_rows_along_a_curve_lie_alike_however_little_memory_there_is(curve: str, memory: int) -> None:
    """The sample has all values here, and so says of each run where its rows belong."""
    order = SortOrder(("a", "b"), curve)

    assert through(order, memory).equals(through(order, 1 << 30))


def test_a_sample_of_some_rows_cuts_each_axis_nearly_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "rows of a run in a sorter's sample", 30)

    ordered = through(SortOrder(("a", "b"), ZORDER), 1 << 14)

    assert sorted(ordered.column("n").to_pylist()) == list(range(6000))
    lower = ordered.slice(0, 2500).column("a").to_pylist()
    upper = ordered.slice(3500).column("a").to_pylist()
    assert max(lower) < 700
    assert min(upper) > 300


def test_columns_without_nan_are_known() -> None:
    sorter = RowSorter(SortOrder(("a", "b", "n")), 1 << 20)
    sorter.add(pa.record_batch({"a": [1.0, None], "b": [0.5, math.nan], "n": [1, 2]}))
    sorter.add(pa.record_batch({"a": [2.0], "b": [0.25], "n": [1]}))

    assert sorter.bounded == {"a", "n"}
