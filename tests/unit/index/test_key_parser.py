"""Record keys taken apart as Apache Hudi 0.15.0 and 1.2.0 do.

The expected lists and hashes of `JAVA_*` are what `BucketIdentifier.getHashKeys` of these releases returned.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyhudi.index.bucket import java_list_hash
from pyhudi.index.key_parser import KeyParser, parse_record_keys

# Hash fields, record key, values, List.hashCode of the values.
JAVA_1_2 = [
    ("id", "k0", ["k0"], 3396),
    ("id", "日本語", ["日本語"], 25921974),
    ("id", "", [""], 31),
    ("id", "a:b", ["a:b"], 95144),
    ("id", "x,y", ["x,y"], 116836),
    ("id", "id:k1", ["id:k1"], 100007940),
    ("id", "x,id:k1", ["x,id:k1"], 485949904),
    ("id", "id:a,b", ["a,b"], 94710),
    ("id", "id:a,b:c", ["a"], 128),
    ("a,b", "a:q,r,b:7", ["q,r", "7"], 3413217),
    ("a,b", "a:y,b:__null__", ["y", None], 4712),
    ("a,b", "a:__null__,b:__empty__", [None, ""], 961),
    ("a,b", "a:__null__x,b:,", ["__null__x", ","], 990542908),
    ("b,a", "a:1,b:2", ["1", "2"], 2530),
    ("b", "a:1,2,b:__empty__", [""], 31),
    ("a", "a:2024-10-22 14:11:53.023,b:1", ["2024-10-22 14:11:53.023"], -298419870),
    ("b", "a:10:20:30,b:1", ["1"], 80),
    ("a,b", "a:1,,,b::2:,:", ["1,,", ":2:"], 1561714),
    ("a,b", "x,a:1,b:2", ["2"], 81),
    ("a,b", ",:", [",:"], 1453),
    ("a,b", "a:😀,b:é,", ["😀", "é,"], 54968097),
    ("a", "b:1,2", ["b:1,2"], 92281470),
    ("a", "b:1,c:2", ["b:1,c:2"], -1511801369),
    ("c,a,b", "a:1,b:2,c:3", ["1", "2", "3"], 78481),
    ("a", "__null__,a:1", ["__null__,a:1"], -1574139950),
    ("a,b", "a:é:日,本,b:__null__,", ["é:日,本", "__null__,"], -640223054),
    ("id", ":", [":"], 89),
    ("a", "a:1,,", ["1,,"], 48528),
]
JAVA_0_15 = [
    ("id", "k0", ["k0"], 3396),
    ("id", "日本語", ["日本語"], 25921974),
    ("id", "", [""], 31),
    ("id", "a:b", [], 1),
    ("id", "x,y", ["x,y"], 116836),
    ("id", "id:k1", ["k1"], 3397),
    ("id", "x,id:k1", ["x", "k1"], 8047),
    ("id", "id:a,b", ["a", "b"], 4066),
    ("id", "id:a,b:c", ["a"], 128),
    ("a,b", "a:q,r,b:7", ["q", "r", "7"], 141973),
    ("a,b", "a:y,b:__null__", ["y", None], 4712),
    ("a,b", "a:__null__,b:__empty__", [None, ""], 961),
    ("a,b", "a:__null__x,b:,", ["__null__x", ""], 990542864),
    ("b,a", "a:1,b:2", ["1", "2"], 2530),
    ("b", "a:1,2,b:__empty__", ["2", ""], 2511),
    ("a", "a:2024-10-22 14:11:53.023,b:1", ["2024-10-22 14:11:53.023"], -298419870),
    ("b", "a:10:20:30,b:1", ["1"], 80),
    ("a,b", "a:1,,,b::2:,:", ["1", "", "", ":2:"], 2440626),
    ("a,b", "x,a:1,b:2", ["x", "1", "2"], 146680),
    ("a,b", ",:", [""], 31),
    ("a,b", "a:😀,b:é,", ["😀", "é"], 54961063),
    ("a", "b:1,2", ["2"], 81),
    ("a", "b:1,c:2", [], 1),
    ("c,a,b", "a:1,b:2,c:3", ["1", "2", "3"], 78481),
    ("a", "__null__,a:1", ["__null__", "1"], 447595851),
    ("a,b", "a:é:日,本,b:__null__,", ["é:日", "本", None], 242824519),
    ("id", ":", [], 1),
    ("a", "a:1,,", ["1"], 80),
]
RELEASES = [(KeyParser.RELEASE_1, *case) for case in JAVA_1_2] + [(KeyParser.RELEASE_0, *case) for case in JAVA_0_15]

FIELDS = ["a", "b", "id"]
MARKS = ["a", "b", "id", "x", ",", ":", ",", ":", "a:", ",b:", "__null__", "__empty__", "é", "日", "😀", ""]
KEYS = st.lists(st.sampled_from(MARKS), max_size=10).map("".join) | st.text(st.sampled_from(",:ab é😀"), max_size=8)


def meaning(value: str) -> str | None:
    return {"__null__": None, "__empty__": ""}.get(value, value)


def values_1(key: str, fields: list[str]) -> list[str | None]:
    """The walk of 1.x, colon by colon."""
    if "," not in key or ":" not in key:
        return [key]
    values, start = [], 0
    while start < len(key):
        colon = key.index(":", start)
        following = key.find(":", colon + 1)
        while following >= 0 and "," not in key[colon:following]:
            following = key.find(":", following + 1)
        end = key.rindex(",", colon, following) if following >= 0 else len(key)
        if not fields or key[start:colon] in fields:
            values.append(meaning(key[colon + 1 : end]))
        start = end + 1
    return values or [key]


def values_0(key: str, fields: list[str]) -> list[str | None]:
    """The split of 0.15, which like Java's drops empty pieces at the end."""
    if ":" not in key:
        return [key]
    file_slices = key.rstrip(",").split(",")
    values: list[str | None] = []
    for file_slice in file_slices:
        name, colon, value = file_slice.partition(":")
        if not colon:
            values.append(file_slice)
        elif not fields or name in fields:
            values.append(meaning(value))
    return values


def list_hash(values: list[str | None]) -> int:
    """Java's List.hashCode of strings."""
    total = 1
    for value in values:
        units = (value or "").encode("utf-16-le")
        of_value = 0
        for low, high in zip(units[::2], units[1::2], strict=True):
            of_value = 31 * of_value + low + 256 * high
        total = 31 * total + of_value
    total %= 2**32
    return total - 2**32 if total >= 2**31 else total


@pytest.mark.parametrize(("parser", "fields", "key", "values", "expected"), RELEASES)
def test_a_key_is_taken_apart_as_in_java(
    parser: KeyParser, fields: str, key: str, values: list[str | None], expected: int
) -> None:
    lists = parse_record_keys(pa.array([key]), fields.split(","), parser)

    assert lists.to_pylist() == [values]
    assert java_list_hash(lists).tolist() == [expected]


@pytest.mark.parametrize("parser", KeyParser)
def test_keys_of_all_shapes_do_not_disturb_each_other(parser: KeyParser) -> None:
    cases = [case for case in RELEASES if case[0] is parser and case[1] == "a,b"]
    filler = ["plain", "", "a:1", "1,2"]
    keys = [text for case in cases for text in (case[2], *filler)]
    alone = [parse_record_keys(pa.array([key]), ["a", "b"], parser).to_pylist()[0] for key in keys]

    assert parse_record_keys(pa.array(keys), ["a", "b"], parser).to_pylist() == alone


@settings(deadline=None)
@given(
    st.lists(KEYS, max_size=12),
    st.lists(st.sampled_from(FIELDS), unique=True, max_size=3),
    st.sampled_from(KeyParser),
    st.sampled_from([pa.string(), pa.large_string()]),
    st.integers(0, 3),
)
@example(["b:1,a:x:y"], ["b"], KeyParser.RELEASE_1, pa.string(), 0)
def test_any_keys_are_taken_apart_by_the_rule(
    keys: list[str], fields: list[str], parser: KeyParser, kind: pa.DataType, start: int
) -> None:
    rule = values_0 if parser is KeyParser.RELEASE_0 else values_1

    lists = parse_record_keys(pa.array(keys, kind).slice(start), fields, parser)

    expected = [rule(key, fields) for key in keys[start:]]
    assert lists.to_pylist() == expected
    assert java_list_hash(lists).tolist() == [list_hash(values) for values in expected]


def test_a_list_may_hold_nulls_and_nothing() -> None:
    lists = pa.array([["a", None, ""], [], [None], ["x"]], pa.large_list(pa.string()))

    assert java_list_hash(lists).tolist() == [123008, 1, 31, 151]
    assert java_list_hash(lists.slice(1, 2)).tolist() == [1, 31]
    assert java_list_hash(lists.slice(0, 0)).tolist() == []
