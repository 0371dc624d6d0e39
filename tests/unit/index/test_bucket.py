"""The bucket index against buckets that Apache Hudi chose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import NullKeyError
from pyhudi.index.base import Index
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.key_parser import KeyParser
from pyhudi.table.files.names import FileGroupId
from support.seams import patch_seam

TEXT = st.text(st.sampled_from("ab_,:é😀"), max_size=4) | st.sampled_from(["__null__", "__empty__"])
JAVA = json.loads((Path(__file__).parents[2] / "fixtures/bucket_keys/apache_hudi_1_2.json").read_text("utf-8"))


@pytest.mark.parametrize("table", JAVA, ids=[table["table"] for table in JAVA])
def test_every_key_is_in_the_bucket_where_apache_hudi_put_it(table: dict[str, Any]) -> None:
    options = table["options"]
    index = BucketIndex(
        int(options["hoodie.bucket.index.num.buckets"]),
        tuple(options["hoodie.datasource.write.recordkey.field"].split(",")),
        tuple(options["hoodie.bucket.index.hash.field"].split(",")),
    )
    keys = [key for held in table["keys"].values() for key in held]
    expected = [int(bucket) for bucket, held in table["keys"].items() for _ in held]

    assert len(keys) > 60
    assert index.buckets(pa.array(keys)).tolist() == expected


@pytest.mark.parametrize(
    ("count", "fields", "key", "expected"),
    [
        (7, ("id",), "日本語", 1),
        (4, ("a", "b"), "a:y,b:__null__", 0),
        (256, ("id",), "k0", 3396 % 256),
        (1, ("id",), "k0", 0),
        # Hashes to -2**31 + 31, of which Java clears the sign.
        (1000, ("id",), "polygenelubricants", 31),
    ],
)
def test_known_keys_are_in_known_buckets(count: int, fields: tuple[str, ...], key: str, expected: int) -> None:
    buckets = BucketIndex(count, fields).buckets(pa.array([key]))

    assert buckets.dtype == np.int32
    assert buckets.tolist() == [expected]


def test_the_release_of_the_other_writers_decides_the_bucket() -> None:
    key = pa.array(["a:q,r,b:7"])
    fields = ("a", "b")

    assert BucketIndex(1000, fields, parser=KeyParser.RELEASE_1).buckets(key).tolist() == [217]
    assert BucketIndex(1000, fields, parser=KeyParser.RELEASE_0).buckets(key).tolist() == [973]


def test_a_subset_of_the_key_fields_may_be_hashed() -> None:
    index = BucketIndex(1000, ("a", "b"), ("b",))

    assert index.buckets(pa.array(["a:1,b:x", "a:2,b:x", "a:1,b:y"])).tolist() == [151, 151, 152]


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("ab,:é😀"), max_size=6), max_size=20), st.integers(1, 2**31 - 1), st.data())
def test_a_bucket_depends_on_the_key_alone(keys: list[str], count: int, data: st.DataObject) -> None:
    index = BucketIndex(count, ("a", "b"))
    array = pa.array(keys, pa.string())
    alone = [int(index.buckets(pa.array([key]))[0]) for key in keys]
    kind = data.draw(st.sampled_from([pa.string(), pa.large_string()]))

    assert all(0 <= bucket < count for bucket in alone)
    assert index.buckets(array.cast(kind)).tolist() == alone
    assert index.buckets(array.dictionary_encode()).tolist() == alone


@pytest.mark.parametrize("parser", KeyParser)
@given(
    rows=st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=9),
    names=st.sampled_from([["a", "b", "c"], ["a", "b:", "c"], ["a", "a", "b"]]),
    hashed=st.sampled_from([(), ("a",), ("b",), ("c", "a")]),
)
@settings(deadline=None)
def test_parts_lead_to_the_bucket_that_their_key_has(
    parser: KeyParser, rows: list[list[str]], names: list[str], hashed: tuple[str, ...]
) -> None:
    """Texts with commas, colons or the words for null and empty included."""
    index = BucketIndex(1 << 30, tuple(names), tuple(field for field in hashed if field in names), parser)
    keys = pa.array([",".join(map(":".join, zip(names, row, strict=True))) for row in rows], pa.string())
    parts = [(name, pa.array([row[place] for row in rows], pa.string())) for place, name in enumerate(names)]

    assert index.buckets(keys, parts).tolist() == index.buckets(keys).tolist()


def test_parts_spare_taking_keys_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a key was taken apart")

    keys = pa.array(["a:1,b:x", "a:2,b:__null__"])
    parts = [("a", pa.array(["1", "2"])), ("b", pa.array(["x", "__null__"]))]
    index = BucketIndex(7, ("a", "b"))
    expected = index.buckets(keys).tolist()
    patch_seam(monkeypatch, "take record keys apart", refuse)

    assert index.buckets(keys, parts).tolist() == expected


def test_more_keys_than_one_chunk_are_all_placed() -> None:
    keys = pa.array([f"a:{number},b:x" if number % 1000 == 0 else f"k{number}" for number in range(70_000)])
    index = BucketIndex(16, ("a", "b"))

    buckets = index.buckets(keys)

    for position in (0, 1, 32_767, 32_768, 65_536, 69_000, 69_999):
        assert buckets[position] == index.buckets(keys.slice(position, 1))[0]


def test_no_keys_have_no_buckets() -> None:
    assert BucketIndex(4, ("id",)).buckets(pa.array([], pa.string())).tolist() == []


def test_keys_of_another_bucket_are_found_in_a_file() -> None:
    index = BucketIndex(4, ("id",))
    keys = pa.array([f"k{number}" for number in range(40)])
    inside = keys.filter(pa.array(index.buckets(keys) == 2))

    group = FileGroupId("p", "00000002-x-0")
    assert index.misfits(inside, group).tolist() == []
    assert index.misfits(pa.concat_arrays([inside, keys.slice(0, 1)]), group).tolist() == [len(inside)]
    assert len(index.misfits(inside, FileGroupId("p", "x-0"))) == len(inside)


def test_two_file_groups_of_one_bucket_are_rivals() -> None:
    index = BucketIndex(4, ("id",))

    assert index.rival_key(FileGroupId("p", "00000002-x-0")) == index.rival_key(FileGroupId("p", "00000002-y-0"))
    assert index.rival_key(FileGroupId("p", "00000002-x-0")) != index.rival_key(FileGroupId("p", "00000003-x-0"))
    assert index.rival_key(FileGroupId("p", "x-0")) != index.rival_key(FileGroupId("p", "y-0"))


def test_a_null_key_is_refused() -> None:
    with pytest.raises(NullKeyError, match="1 of 2 record keys"):
        BucketIndex(4, ("id",)).buckets(pa.array(["a", None]))


def test_there_is_no_table_without_buckets() -> None:
    with pytest.raises(ValueError, match="at least one bucket"):
        BucketIndex(0, ("id",))


def test_the_bucket_index_needs_nothing_but_the_key() -> None:
    index: Index = BucketIndex(4, ("id",))

    assert (index.is_global, index.needs_lookup, index.can_index_log_files) == (False, False, True)


def test_each_attempt_places_a_new_bucket_alike() -> None:
    index = BucketIndex(4, ("id",))
    made = index.place("20260101000000000", "p", 2)

    assert made == index.place("20260101000000000", "p", 2)
    assert (made.partition_path, index.number_of(made)) == ("p", 2)
    assert len({made, index.place("20260101000000001", "p", 2), index.place("20260101000000000", "q", 2)}) == 3
