"""String hashes of whole arrays against the definition, one string at a time."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import DataError
from pyhudi.table.arrow.string_hash import hash64, java_string_hash

# Without surrogates, which no UTF-8 text holds; with the characters where UTF-8 or UTF-16 change their width.
CHARACTERS = st.one_of(
    st.sampled_from("a0,:\0\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff日😀"),
    st.characters(exclude_categories=["Cs"]),
)
TEXTS = st.one_of(st.text(CHARACTERS, max_size=40), st.text("abc", max_size=20))
COLUMNS = st.lists(st.none() | TEXTS, max_size=40)
KINDS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string())]


def java_hash(text: str | None) -> int:
    """Java's String.hashCode, one UTF-16 code unit after another; null counts 0."""
    units = (text or "").encode("utf-16-le")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + low + 256 * high) % 2**32
    return value - 2**32 if value >= 2**31 else value


def column(texts: list[str | None], kind: pa.DataType) -> pa.Array:
    plain = pa.array(texts, kind.value_type if pa.types.is_dictionary(kind) else kind)
    return plain.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("k0", 3365),
        ("日本語", 25921943),
        ("😀", 1772899),
        ("é", 233),
        ("a key of twenty byte", java_hash("a key of twenty byte")),
        ("polygenelubricants", -(2**31)),
        ("\0", 0),
    ],
)
def test_known_strings_hash_as_in_java(text: str, expected: int) -> None:
    hashes = java_string_hash(pa.array([text]))

    assert hashes.dtype == np.int32
    assert hashes.tolist() == [expected]


@settings(deadline=None)
@given(COLUMNS, st.sampled_from(KINDS), st.data())
def test_any_slice_hashes_as_java_would(texts: list[str | None], kind: pa.DataType, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(texts)))
    length = data.draw(st.integers(0, len(texts) - start))

    hashes = java_string_hash(column(texts, kind).slice(start, length))

    assert hashes.tolist() == [java_hash(text) for text in texts[start : start + length]]


@settings(deadline=None)
@given(COLUMNS, st.sampled_from(KINDS), st.data())
def test_the_64_bit_hash_depends_on_the_text_alone(texts: list[str | None], kind: Any, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(texts)))
    alone = {text: int(hash64(pa.array([text], pa.string()))[0]) for text in texts}

    hashes = hash64(column(texts, kind).slice(start))

    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [alone[text] for text in texts[start:]]


@settings(deadline=None)
@given(st.sets(st.text(st.sampled_from("\0\1a0@`é"), max_size=30), max_size=60))
def test_different_texts_have_different_64_bit_hashes(texts: set[str]) -> None:
    assert len(set(hash64(pa.array(sorted(texts), pa.string())).tolist())) == len(texts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], [None], [None, None, None], [""], ["", None, ""]])
def test_columns_without_a_character_hash_to_zero_in_java(texts: list[str | None], kind: pa.DataType) -> None:
    assert java_string_hash(column(texts, kind)).tolist() == [0] * len(texts)


def test_null_and_the_empty_text_differ_in_64_bits() -> None:
    null, empty = hash64(pa.array([None, ""])).tolist()

    assert null == 0
    assert empty != 0


def test_a_column_of_type_null_hashes_to_zero() -> None:
    assert java_string_hash(pa.nulls(3)).tolist() == [0, 0, 0]


def test_lengths_that_differ_wildly_do_not_disturb_each_other() -> None:
    texts: list[str | None] = [
        "",
        "a" * 100_000,
        "b",
        None,
        "f" * 600_000,
        "é" * 5_000,
        "c" * 9,
        "😀",
        "d" * 8 * 40,
        "e" * 7,
    ]
    texts *= 3

    array = pa.array(texts)

    assert java_string_hash(array).tolist() == [java_hash(text) for text in texts]
    assert hash64(array).tolist() == [int(hash64(pa.array([text], pa.string()))[0]) for text in texts]


@pytest.mark.parametrize("length", [1, 7, 8, 9, 20, 256, 300])
def test_columns_of_one_length_longer_than_a_chunk_are_right(length: int) -> None:
    texts = [f"{number:0{length}d}"[-length:] for number in range(70_000 if length < 50 else 3_000)]
    array = pa.array(texts)
    picked = [0, 1, 32_767, 32_768, 69_999] if length < 50 else [0, 1_599, 2_999]

    hashes, wide = java_string_hash(array), hash64(array)

    for position in picked:
        assert hashes[position] == java_hash(texts[position])
        assert wide[position] == hash64(array.slice(position, 1))[0]
    assert len(np.unique(wide)) == len(set(texts))


def test_chunks_of_a_column_hash_one_after_the_other() -> None:
    chunked = pa.chunked_array([["a", None], [], ["é"]], pa.string())

    assert java_string_hash(chunked).tolist() == [97, 0, 233]
    assert java_string_hash(pa.chunked_array([], pa.string())).tolist() == []


def test_what_stands_under_a_null_does_not_count() -> None:
    bad = bytes([0xFF, 0xFE])
    array = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 2, 4], np.int32)), pa.py_buffer(bad + "é".encode()), pa.py_buffer(bytes([0b10]))
    )

    assert java_string_hash(array).tolist() == [0, 233]
    assert hash64(array).tolist() == [0, int(hash64(pa.array(["é"]))[0])]


def test_dictionary_values_may_be_null_themselves() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1], pa.int32()), pa.array(["é", None]))

    assert java_string_hash(array).tolist() == [0, 233, 0, 0]


def test_a_text_that_is_not_utf8_is_refused() -> None:
    array = pa.array([b"ok", b"\xff\xfe"]).cast(pa.binary()).view(pa.string())

    with pytest.raises(DataError, match="not valid UTF-8"):
        java_string_hash(array)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="int64"):
        java_string_hash(pa.array([1]))


def test_the_64_bit_hash_is_the_same_in_every_process() -> None:
    what = "from pyhudi.table.arrow.string_hash import hash64"
    code = f"import pyarrow as pa; {what}; print(hash64(pa.array(['k0', 'é']))[:])"
    answers = {
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    }

    assert answers == {f"{hash64(pa.array(['k0', 'é']))}\n"}


@pytest.mark.parametrize("template", ["{}", "{:020d}", "user-{}@example.org", "{:08x}-{:08x}"])
def test_similar_keys_spread_over_high_and_low_bits(template: str) -> None:
    """65,536 keys in 256 classes: their chi-square has mean 255 and deviation 23 where the spread is random."""
    hashes = hash64(pa.array([template.format(number, number // 3) for number in range(65_536)]))

    for bits in (hashes >> np.uint64(56), hashes & np.uint64(255), (hashes >> np.uint64(40)) & np.uint64(255)):
        counts = np.bincount(bits.astype(np.int64), minlength=256)
        assert 140 < ((counts - 256.0) ** 2 / 256.0).sum() < 370


@pytest.mark.parametrize("position", [0, 7, 8, 15, 19])
def test_one_changed_bit_changes_half_of_all_bits(position: int) -> None:
    texts = np.random.default_rng(1).integers(97, 123, (4_096, 20), dtype=np.uint8)
    changed = texts.copy()
    changed[:, position] ^= 1

    differ = hash64(_rows(texts)) ^ hash64(_rows(changed))

    shares = [((differ >> np.uint64(bit)) & np.uint64(1)).mean() for bit in range(64)]
    assert 0.45 < min(shares) <= max(shares) < 0.55


def _rows(texts: np.ndarray) -> pa.Array:
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * texts.shape[1]
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(texts.tobytes()))
