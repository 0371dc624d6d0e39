"""Rows sorted in memory or through spilled runs, in the order that Python's own sort gives."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.arrow.spill import SpillWriter
from pyhudi.writer.sort import RowSorter

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.float64()), ("n", pa.int64())])


def spills(folder: str) -> Callable[[], tuple[SpillWriter, Storage]]:
    storage = open_storage(folder)
    return lambda: (SpillWriter(storage, "runs.spill", ""), storage)


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
    with tempfile.TemporaryDirectory() as folder:
        sorter = RowSorter(["a", "b"], memory, spills(folder))
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


@settings(max_examples=60, deadline=None)
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


def test_nothing_is_spilled_that_fits() -> None:
    def refuse() -> tuple[SpillWriter, Storage]:
        raise AssertionError("there is no need to spill")

    sorter = RowSorter(["n"], 1 << 20, refuse)
    sorter.add(pa.record_batch({"n": [3, 1]}))
    sorter.add(pa.record_batch({"n": pa.array([], pa.int64())}))
    sorter.add(pa.record_batch({"n": [2]}))

    assert [batch.column("n").to_pylist() for batch in sorter.batches()] == [[1, 2, 3]]
