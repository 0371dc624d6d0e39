"""Sets of record keys by their hashes, held against Python's sets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.table.arrow.string_hash import hash64, other_hash64
from pyhudi.table.merging.key_set import BYTES_OF_A_KEY, EMPTY, KeyHashes, KeySet
from support.share import share_of

KEYS = st.text("ab\u07ff", max_size=3) | st.integers(0, 60).map(str)
MANY = st.lists(KEYS, max_size=30)


def hashed(keys: list[str]) -> KeyHashes:
    return KeyHashes.of(pa.array(keys, pa.string()))


@settings(max_examples=share_of(200))
@given(parts=st.lists(MANY, max_size=3), changes=st.lists(st.tuples(st.booleans(), MANY), max_size=6), wanted=MANY)
def test_a_set_holds_what_a_set_of_python_holds(
    parts: list[list[str]], changes: list[tuple[bool, list[str]]], wanted: list[str]
) -> None:
    model = {key for part in parts for key in part}
    key_set = KeySet.of(map(hashed, parts))
    for adds, keys in changes:
        key_set = key_set.added(hashed(keys)) if adds else key_set.without(hashed(keys))
        model = model | set(keys) if adds else model - set(keys)

    assert key_set.holds(hashed(wanted)).tolist() == [key in model for key in wanted]
    assert len(key_set) == len(model)
    assert key_set.nbytes == BYTES_OF_A_KEY * len(model)


@pytest.mark.parametrize("share", [1, 100])
def test_hashes_that_share_a_half_differ(share: int) -> None:
    halves = np.arange(100, dtype=np.uint64)
    alike = KeyHashes(halves // np.uint64(share), halves)

    found = KeySet.of([alike.take(np.arange(0, 100, 2))]).added(alike.take(np.arange(50, 60)))

    assert np.flatnonzero(found.holds(alike)).tolist() == sorted({*range(0, 100, 2), *range(50, 60)})
    assert not EMPTY.holds(alike).any()


def test_the_two_halves_of_a_hash_have_nothing_in_common() -> None:
    texts = pa.array([f"{number:0{width}}" for width in (1, 4, 8, 9, 16, 40) for number in range(5_000)]).unique()

    assert len(np.unique(other_hash64(texts))) == len(texts)
    assert not len(np.intersect1d(hash64(texts), other_hash64(texts)))
    bits = np.unpackbits((hash64(texts) ^ other_hash64(texts)).view(np.uint8))
    assert 0.49 < bits.mean() < 0.51
