"""Strings come in the order of their bytes, each once, whatever they have in common."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.table.arrow import string_order
from pyhudi.table.arrow.string_order import in_order, unique_in_order

# Of one length and of many; with characters whose bytes come in another order than those of Java's units.
SAME_LENGTH = st.lists(st.text("09aZ", min_size=12, max_size=12), max_size=30)
ANY = st.lists(st.text("\0a0é\ue000\U0001f600", max_size=10), max_size=30)


@given(SAME_LENGTH | ANY)
def test_strings_come_in_the_order_of_their_bytes_and_once(texts: list[str]) -> None:
    # A slice has neither its offsets nor its bytes begin at 0.
    strings = pa.array(["before", *texts, "after"], pa.string())[1:-1]

    unique, places = unique_in_order(strings)

    assert in_order(strings).to_pylist() == sorted(texts, key=str.encode)
    assert unique.to_pylist() == sorted(set(texts), key=str.encode)
    assert unique.take(pa.array(places)).to_pylist() == texts


def test_places_in_which_few_of_many_strings_differ_count() -> None:
    """What a sample says of the places in which strings differ is not taken for granted."""
    numbers = pa.array(range(10_000, 30_000), pa.int64())
    keys = pc.binary_join_element_wise("b", pc.cast(numbers, pa.string()), "")
    odd = pa.array([*keys.to_pylist(), "a10001", "c10002"], pa.string()).take(
        pa.array([number * 7919 % 20_002 for number in range(20_002)])
    )

    unique, places = unique_in_order(odd)

    assert (unique[0].as_py(), unique[1].as_py(), unique[-1].as_py()) == ("a10001", "b10000", "c10002")
    assert unique.equals(odd.take(pc.sort_indices(odd)))
    assert unique.take(pa.array(places)).equals(odd)


def test_many_uuids_are_told_apart_without_arrow() -> None:
    """Eight of their digits alone would be the same in two of so many."""
    draw = np.random.default_rng(3).integers(0, 16, (200_000, 36))
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[draw]
    digits[:, [8, 13, 18, 23]] = ord("-")
    ends = pa.py_buffer(np.arange(len(digits) + 1, dtype=np.int32) * 36)
    keys = pa.StringArray.from_buffers(len(digits), ends, pa.py_buffer(digits.tobytes()))

    sort_result = string_order._sorted(keys)

    assert sort_result is not None
    assert sort_result[0].equals(keys.take(pc.sort_indices(keys)))
