"""Bloom filters of base files: Apache Hudi's bytes, and its definition followed one key at a time."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import InvalidOptionError
from pyhudi.table.arrow.murmur import murmur_strings
from pyhudi.table.files.bloom_filter import (
    DYNAMIC,
    FILTER,
    FILTER_CHECKSUM,
    FILTER_KEYS,
    SIMPLE,
    TYPE_CODE,
    BloomFilter,
    BloomFilterBuilder,
    BloomSettings,
    FileFilter,
    FilterKeys,
)
from support.recorded.fixture_tables import unpack
from support.seams import patch_seam
from support.share import share_of

# With characters of every width in UTF-8, whose bytes are negative in Java.
CHARACTERS = st.sampled_from("a0,:\0\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff日😀é")
KEYS = st.lists(st.text(CHARACTERS, min_size=1, max_size=12), max_size=40)
SMALL = BloomSettings(entries=10, false_positives=1e-6, dynamic=False)


def murmur(data: bytes, seed: int) -> int:
    """MurmurHash as Apache Hudi computes it, one byte after another."""
    factor, all_bits = 0x5BD1E995, 0xFFFFFFFF
    value = (seed ^ len(data)) & all_bits
    whole = len(data) - len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        mixed = word * factor & all_bits
        mixed = (mixed ^ mixed >> 24) * factor & all_bits
        value = (value * factor & all_bits) ^ mixed
    if whole < len(data):
        for place, byte in enumerate(reversed(struct.unpack(f"{len(data) - whole}b", data[whole:]))):
            value ^= byte << 8 * place & all_bits
        value = value * factor & all_bits
    value = (value ^ value >> 13) * factor & all_bits
    return value ^ value >> 15


def positions_of(key: str, settings: BloomSettings) -> set[int]:
    """The bits that a key sets, by Java's arithmetic."""
    link, positions = 0, set()
    for _ in range(settings.hashes):
        link = murmur(key.encode(), link)
        signed = link - 2**32 if link >= 2**31 else link
        positions.add(abs(signed) % settings.bits)
    return positions


def built_one_by_one(keys: list[str], settings: BloomSettings) -> dict[str, str]:
    """What a footer says after Apache Hudi's classes were given the keys one after another."""
    rows: list[set[int]] = [set()]
    in_row, full, turn = 0, False, 0
    for key in keys:
        row = len(rows) - 1
        if full:
            row, turn = turn % len(rows), turn + 1
        elif settings.dynamic and in_row >= settings.entries:
            if len(rows) * settings.entries < settings.most_entries:
                rows.append(set())
                row, in_row = len(rows) - 1, 0
            else:
                row, full = 0, True
        rows[row] |= positions_of(key, settings)
        in_row += 1
    head = struct.pack(">iibi", -1, settings.hashes, 1, settings.bits)
    encoded = b""
    for row_bits in rows:
        data = bytearray((settings.bits + 7) // 8)
        for bit in row_bits:
            data[bit >> 3] |= 1 << (bit & 7)
        encoded += head + data
    if not settings.dynamic:
        return {FILTER: base64.b64encode(encoded).decode()}
    counts = struct.pack(">iii", settings.entries, in_row, len(rows))
    return {FILTER: base64.b64encode(head + counts + encoded).decode(), TYPE_CODE: DYNAMIC}


def footer_of(keys: list[str], settings: BloomSettings, *, batch: int = 1 << 20) -> dict[str, str]:
    builder = BloomFilterBuilder(settings)
    for start in range(0, len(keys), batch):
        builder.add(pa.array(keys[start : start + batch], pa.string()))
    return builder.footer()


def filter_of(footer: dict[str, str]) -> BloomFilter:
    return BloomFilter.decode(footer[FILTER].encode(), footer.get(TYPE_CODE, SIMPLE))


@pytest.mark.parametrize(("text", "expected"), [("k0", -797840383), ("é0ÿ", -683982335)])
def test_known_strings_hash_as_in_java(text: str, expected: int) -> None:
    (strings,) = murmur_strings(pa.array([text]))

    assert strings.first.view(np.int32).tolist() == [expected]


@given(st.lists(st.text(CHARACTERS, max_size=30), max_size=30), st.integers(0, 5), st.data())
def test_whole_arrays_hash_as_single_strings_do(texts: list[str], start: int, data: st.DataObject) -> None:
    array = pa.array(["in front", *texts], pa.string())[1:].slice(start)
    once = [murmur(text.encode(), 0) for text in texts[start:]]
    twice = [murmur(text.encode(), link) for text, link in zip(texts[start:], once, strict=True)]

    for strings in murmur_strings(array):  # the whole array, as it is small
        places = data.draw(st.sets(st.integers(0, len(strings.rows) - 1)))
        chosen = np.array(sorted(places), np.int64)
        some = strings.chosen(chosen)
        first, second = strings.first, some.hashed(some.first)

        assert sorted(strings.rows.tolist()) == [*range(len(array))]
        assert first.tolist() == [once[row] for row in strings.rows.tolist()]
        assert second.tolist() == [twice[row] for row in strings.rows[chosen].tolist()]


def test_the_default_filter_has_as_many_bits_and_hashes_as_in_java() -> None:
    assert (BloomSettings().bits, BloomSettings().hashes) == (2587966, 30)


def test_a_known_filter_is_written_byte_for_byte() -> None:
    expected = "/////wAAABQBAAABIBBAAAFAAQABAQQAAEQAAAAAABAAAAQAiAACIIAAAIQAAgAAAA=="

    assert footer_of(["é0ÿ"], SMALL) == {FILTER: expected}


@given(KEYS, st.integers(1, 7), st.integers(1, 30), st.integers(1, 12), st.booleans())
def test_filters_are_built_as_in_java(keys: list[str], entries: int, most: int, batch: int, dynamic: bool) -> None:
    settings = BloomSettings(entries, 0.01, dynamic, most)

    assert footer_of(keys, settings, batch=batch) == built_one_by_one(keys, settings)


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        ("v9_cow_types", BloomSettings()),
        ("v9_mor_duplicates", BloomSettings()),
        # Made for 8 keys, of which some files have 20.
        ("v9_lookup_bloom_cow", BloomSettings(8, 0.05, most_entries=16)),
        ("v9_lookup_bloom_fixed_cow", BloomSettings(8, 0.05, dynamic=False)),
    ],
)
def test_filters_of_apache_hudi_are_rebuilt_byte_for_byte(table: str, settings: BloomSettings, tmp_path: Path) -> None:
    rebuilt = 0
    for path in sorted(Path(unpack(table, tmp_path)).rglob("*.parquet")):
        footer = pq.ParquetFile(path).metadata.metadata
        if FILTER.encode() not in footer:
            continue
        keys = pq.read_table(path, columns=["_hoodie_record_key"]).column(0).to_pylist()
        written = {name: footer[name.encode()].decode() for name in (FILTER, TYPE_CODE) if name.encode() in footer}

        assert footer_of(keys, settings) == written
        assert filter_of(written).may_hold(pa.array(keys)).all()
        assert (
            not filter_of(written).may_hold(pa.array([f"{key} {number}" for key in keys for number in range(9)])).all()
        )
        rebuilt += 1

    assert rebuilt


@given(st.lists(st.text(CHARACTERS, max_size=8), max_size=60), st.data())
def test_keys_between_two_positions_are_held_as_single_ones_are(keys: list[str], data: st.DataObject) -> None:
    held = filter_of(footer_of([key for key in keys[::2] if key], BloomSettings(3, 0.3, most_entries=9)))
    start, end = sorted((data.draw(st.integers(0, len(keys))), data.draw(st.integers(0, len(keys)))))
    asked = FilterKeys(pa.array(keys, pa.string()))

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "keys that are hashed at once", data.draw(st.integers(1, 20)))
        patch_seam(patch, "few keys for a bloom filter", data.draw(st.sampled_from([0, 5, 100])))
        found = held.may_hold_between(asked, start, end).tolist()

    assert found == [bool(held.may_hold(pa.array([key]))[0]) for key in keys[start:end]]


def test_filters_that_hash_keys_more_often_are_asked_for_the_same_ones() -> None:
    """What the first filter had worked out is not enough for the second."""
    keys = [f"key {number}" for number in range(200)]
    asked = FilterKeys(pa.array(keys))
    for false_positives in (0.5, 1e-9):
        held = filter_of(footer_of(keys[:10], BloomSettings(10, false_positives)))
        assert held.may_hold_between(asked, 0, 200).tolist() == held.may_hold(pa.array(keys)).tolist()

    assert held.may_hold_between(asked, 0, 200).sum() == 10


@settings(max_examples=share_of(50))
@given(KEYS, KEYS, st.integers(1, 7), st.booleans())
def test_a_filter_never_denies_a_key_that_it_holds(
    keys: list[str], absent: list[str], entries: int, dynamic: bool
) -> None:
    bloom_filter = filter_of(footer_of(keys, BloomSettings(entries, 0.5, dynamic, 20)))

    mixed = [*absent, *keys]
    for array in (pa.array(mixed, pa.string()), pa.array(mixed, pa.string()).dictionary_encode()):
        assert bloom_filter.may_hold(array)[len(absent) :].all()


def written(keys: list[str], settings: BloomSettings, before: Mapping[str, str], rows: int) -> dict[str, str]:
    """What the footer of a file says that keeps the rows of another, and takes more in."""
    made = FileFilter(settings, {name.encode(): value.encode() for name, value in before.items()}, rows)
    made.add(pa.array([f"old {number}" for number in range(rows)], pa.string()), from_previous=True)
    made.add(pa.array(keys, pa.string()), from_previous=False)
    return made.footer()


@given(KEYS, st.integers(0, 40), st.integers(1, 7), st.integers(1, 30), st.booleans())
def test_a_filter_goes_on_with_the_keys_that_it_lacks(
    keys: list[str], old: int, entries: int, most: int, dynamic: bool
) -> None:
    settings = BloomSettings(entries, 0.01, dynamic, most)
    first = [f"old {number}" for number in range(old)]
    before = written(first, settings, {}, 0)

    after = written([*first[::2], *keys], settings, before, old)

    known = filter_of(before)
    lacking = [key for key in keys if not known.may_hold(pa.array([key]))[0]]
    assert {name: after[name] for name in (FILTER, TYPE_CODE) if name in after} == built_one_by_one(
        [*first, *lacking], settings
    )
    assert after[FILTER_KEYS] == str(old + len(lacking))


@pytest.mark.parametrize(
    ("changes", "rows", "settings"),
    [
        pytest.param({FILTER_CHECKSUM: None}, 10, SMALL, id="nobody vouches for it"),
        pytest.param({FILTER: "AAAA"}, 10, SMALL, id="damaged"),
        pytest.param({FILTER_KEYS: None}, 10, SMALL, id="how many keys it has is not known"),
        pytest.param({FILTER_KEYS: "1e9"}, 10, SMALL, id="that is no number"),
        pytest.param({}, 7, SMALL, id="most of its keys are gone"),
        pytest.param({}, 10, replace(SMALL, dynamic=True), id="another one is wanted"),
        pytest.param({}, 10, replace(SMALL, entries=11), id="a greater one is wanted"),
    ],
)
def test_a_filter_is_built_anew_where(changes: dict[str, str | None], rows: int, settings: BloomSettings) -> None:
    said = written([f"old {number}" for number in range(10)], SMALL, {}, 0) | changes
    before = {name: value for name, value in said.items() if value is not None}

    after = written(["new"], settings, before, rows)

    every = [*(f"old {number}" for number in range(rows)), "new"]
    assert after[FILTER] == built_one_by_one(every, settings)[FILTER]
    assert after[FILTER_KEYS] == str(len(every))


def test_an_empty_key_is_never_denied() -> None:
    assert filter_of(footer_of(["a"], SMALL)).may_hold(pa.array(["", "b"])).tolist() == [True, False]


@pytest.mark.parametrize(("false_positives", "dynamic"), [(0.1, False), (0.01, True)])
def test_absent_keys_pass_as_often_as_the_settings_say(false_positives: float, dynamic: bool) -> None:
    count = 3_000
    keys = [f"key-{number:07}" for number in range(count)]
    found = filter_of(footer_of(keys, BloomSettings(count, false_positives, dynamic)))

    passed = found.may_hold(pa.array([f"key-{number:07}" for number in range(count, 11 * count)]))

    assert 0.7 * false_positives < passed.mean() < 1.3 * false_positives


def test_a_simple_filter_takes_keys_beyond_its_number() -> None:
    keys = [f"key {number}" for number in range(5 * SMALL.entries)]
    footer = footer_of(keys, SMALL)

    assert TYPE_CODE not in footer
    assert filter_of(footer).may_hold(pa.array(keys)).all()


def _head(hashes: int = 3, kind: int = 1, bits: int = 16, version: int = -1) -> bytes:
    return struct.pack(">iibi", version, hashes, kind, bits)


def _dynamic(rows: int, *encoded: bytes) -> bytes:
    return _head() + struct.pack(">iii", 10, 1, rows) + b"".join(encoded)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", SIMPLE),
        (b"\xff", SIMPLE),
        (_head(), SIMPLE),
        (_head() + b"\0", SIMPLE),
        (_head() + b"\0\0\0", SIMPLE),
        (_head(hashes=0) + b"\0\0", SIMPLE),
        (_head(hashes=-1) + b"\0\0", SIMPLE),
        (_head(hashes=1 << 17) + b"\0\0", SIMPLE),
        (_head(bits=0), SIMPLE),
        (_head(bits=-8), SIMPLE),
        (_head(bits=2**31 - 1) + b"\0\0", SIMPLE),
        (_head(kind=0) + b"\0\0", SIMPLE),
        (_head(version=-2) + b"\0\0", SIMPLE),
        (_head(version=5) + b"\0\0", SIMPLE),
        (_head(), DYNAMIC),
        (_dynamic(0), DYNAMIC),
        (_dynamic(-1), DYNAMIC),
        (_dynamic(2, _head(), b"\0\0"), DYNAMIC),
        (_dynamic(2**31 - 1, _head(), b"\0\0"), DYNAMIC),
        (_dynamic(3000, *([_head(hashes=30, bits=8), b"\0"] * 3000)), DYNAMIC),
        (_head() + b"\0\0", "ROARING"),
    ],
)
def test_what_cannot_be_a_filter_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(ValueError, match=r"it|row|bytes"):
        BloomFilter.decode(base64.b64encode(data), code)


def test_what_is_no_base64_is_refused() -> None:
    with pytest.raises(ValueError, match=r"base64|padding|character"):
        BloomFilter.decode(b"\xff\xfe,,,")


def test_no_filter_has_more_bits_than_java_can_count() -> None:
    with pytest.raises(InvalidOptionError, match="num_entries"):
        BloomFilterBuilder(BloomSettings(entries=60_000_000))
